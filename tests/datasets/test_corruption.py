"""Corrupted pairs: what the noise does, and that a seed and a position decide it."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_rbm.datasets import binarize, corrupt, flip, occlude, shuffled_batches

NUM_EXAMPLES = 4000


def zeros(num_examples=20, width=12):
    return tf.data.Dataset.from_tensor_slices(
        np.zeros((num_examples, width), "float32")
    )


def corrupted(pairs):
    return np.stack([noisy for noisy, *_ in pairs])


def corners(images, size):
    """The patches' upper left corners, after a check that each is one whole square."""
    covered = images == 1
    top, left = covered.any(2).argmax(1), covered.any(1).argmax(1)
    for image, row, column in zip(covered, top, left, strict=True):
        assert image[row : row + size, column : column + size].all()
    np.testing.assert_array_equal(covered.sum((1, 2)), size**2)
    return top, left


class TestFlip:
    @pytest.mark.parametrize("probability", [0.1, 0.5])
    def test_rate_within_binomial_errors(self, probability):
        gray = tf.data.Dataset.from_tensors(tf.fill([100, 400], 0.25))
        ((noisy, _),) = corrupt(gray, flip(probability))
        flipped = noisy.numpy() == 0.75
        np.testing.assert_array_equal(noisy[~flipped], 0.25)
        error = np.sqrt(probability * (1 - probability) / flipped.size)
        assert abs(flipped.mean() - probability) < 5 * error
        per_example = error * np.sqrt(len(flipped))
        assert abs(flipped.mean(1) - probability).max() < 5 * per_example

    @pytest.mark.parametrize("probability", [0, 1])
    def test_certain_ends(self, probability):
        np.testing.assert_array_equal(
            corrupted(corrupt(zeros(), flip(probability))), probability
        )

    @pytest.mark.parametrize("probability", [-0.1, 1.1, np.nan, "0.1", None])
    def test_bad_probability(self, probability):
        with pytest.raises(ValueError, match=f"Received: probability={probability!r}"):
            flip(probability)


class TestOcclude:
    def test_every_position_is_equally_likely(self):
        """Pearson's statistic lies within five of its own standard errors."""
        batch = zeros(NUM_EXAMPLES, 30).batch(NUM_EXAMPLES)
        ((noisy, _),) = corrupt(batch, occlude(2, value=1.0, image_shape=(5, 6)))
        top, left = corners(noisy.numpy().reshape(-1, 5, 6), size=2)
        counts = np.zeros((4, 5))
        np.add.at(counts, (top, left), 1)
        expected = NUM_EXAMPLES / counts.size
        statistic = ((counts - expected) ** 2 / expected).sum()
        freedom = counts.size - 1
        assert abs(statistic - freedom) < 5 * np.sqrt(2 * freedom)

    @pytest.mark.parametrize("size", [1, 3, 4])
    def test_images_are_square_by_default(self, size):
        pairs = corrupt(zeros(width=16), occlude(size, value=1.0))
        corners(corrupted(pairs).reshape(-1, 4, 4), size)

    def test_value_covers_and_the_rest_stays(self):
        gray = tf.data.Dataset.from_tensors(tf.fill([50, 9], 0.25))
        ((noisy, _),) = corrupt(gray, occlude(2, value=0.75))
        np.testing.assert_array_equal(np.sort(noisy), [[0.25] * 5 + [0.75] * 4] * 50)

    @pytest.mark.parametrize(
        "kwargs, message",
        [
            ({"size": 0}, "Received: size=0"),
            ({"size": 2.0}, "Received: size=2.0"),
            ({"size": 2, "value": 2}, "Received: value=2"),
            ({"size": 2, "value": np.nan}, "Received: value=nan"),
            ({"size": 2}, "Received: image_shape=None for 12 units"),
            ({"size": 2, "image_shape": (3, 5)}, r"Received: image_shape=\(3, 5\)"),
            ({"size": 2, "image_shape": 12}, "Received: image_shape=12"),
            ({"size": 4, "image_shape": (3, 4)}, "Received: size=4"),
        ],
    )
    def test_bad_input(self, kwargs, message):
        with pytest.raises(ValueError, match=message):
            corrupt(zeros(width=12), occlude(**kwargs))


@pytest.mark.parametrize("corruption", [flip(0.5), occlude(2, 1.0, (3, 4))])
class TestCorrupt:
    def test_noise_is_a_function_of_the_seed(self, corruption):
        draws = []
        for global_seed in (1, 2):
            keras.utils.set_random_seed(global_seed)
            draws.append(corrupted(corrupt(zeros(), corruption, seed=5)))
        np.testing.assert_array_equal(*draws)
        other = corrupted(corrupt(zeros(), corruption, seed=6))
        assert (draws[0] != other).any()

    def test_examples_differ(self, corruption):
        images = corrupted(corrupt(zeros(), corruption))
        (batch,) = corrupted(corrupt(zeros().batch(20), corruption))
        assert len(np.unique(images, axis=0)) > 1
        assert len(np.unique(batch, axis=0)) > 1

    def test_same_every_epoch(self, corruption):
        pairs = corrupt(zeros(), corruption)
        np.testing.assert_array_equal(corrupted(pairs), corrupted(pairs))

    def test_fresh_every_epoch(self, corruption):
        pairs = corrupt(zeros(), corruption, redraw=True)
        assert (corrupted(pairs) != corrupted(pairs)).any()

    def test_a_counter_makes_it_resumable(self, corruption):
        counter = tf.Variable(0, dtype=tf.int64)
        kwargs = {"redraw": True, "iterations": counter}

        def epoch(pairs, step):
            counter.assign(step)
            return corrupted(pairs)

        uninterrupted = corrupt(zeros(), corruption, **kwargs)
        first, second = (epoch(uninterrupted, step) for step in (0, 20))
        resumed = corrupt(zeros(), corruption, **kwargs)
        np.testing.assert_array_equal(epoch(resumed, 20), second)
        assert (first != second).any()

    @pytest.mark.parametrize("redraw", [False, True])
    @pytest.mark.parametrize("batched", [False, True])
    def test_clean_and_further_components_stay(self, corruption, batched, redraw):
        clean = np.random.default_rng(0).uniform(size=(20, 12))
        weight = np.arange(20)
        dataset = tf.data.Dataset.from_tensor_slices((clean, weight))
        dataset = dataset.batch(8) if batched else dataset
        pairs = corrupt(dataset, corruption, redraw=redraw)
        spec, rest = dataset.element_spec
        assert pairs.element_spec == (spec, spec, rest)
        assert pairs.cardinality() == dataset.cardinality()
        for (_, *kept), element in zip(pairs, dataset, strict=True):
            for one, other in zip(kept, element, strict=True):
                np.testing.assert_array_equal(one, other)

    def test_pairs_stay_together_when_shuffled_afterwards(self, corruption):
        clean = np.random.default_rng(0).uniform(size=(20, 12)).astype("float32")
        pairs = corrupt(tf.data.Dataset.from_tensor_slices(clean), corruption)
        noisy = corrupted(pairs)
        for step in (0, 4):
            shuffled = shuffled_batches(pairs, 5, seed=0, iterations=step)
            for one, other in shuffled.unbatch().as_numpy_iterator():
                (position,) = np.flatnonzero((clean == other).all(1))
                np.testing.assert_array_equal(one, noisy[position])


def test_noise_is_independent_of_binarization():
    """Under one seed the same uniform numbers would flip what they had switched on."""
    half = tf.data.Dataset.from_tensors(tf.fill([10_000], 0.5))
    (bits,) = binarize(half, "sample", redraw=False)
    ((flips, _),) = corrupt(zeros(1, 10_000), flip(0.5))
    share = np.mean(bits.numpy() == flips.numpy())
    assert abs(share - 0.5) < 5 * 0.5 / np.sqrt(10_000)


def test_a_corruption_of_your_own():
    def darken(clean, key):
        return clean * tf.random.stateless_uniform(clean.shape, key, alg="philox")

    ones = tf.data.Dataset.from_tensors(tf.ones([4]))
    ((noisy, clean),) = corrupt(ones, darken)
    assert (noisy.numpy() < clean.numpy()).all()


@pytest.mark.parametrize(
    "args, kwargs, error, message",
    [
        ((np.zeros((2, 4)), flip(0.1)), {}, TypeError, "from_tensor_slices"),
        ((zeros(), 0.1), {}, TypeError, "'float' object is not callable"),
        ((zeros(), flip(0.1)), {"seed": 0.5}, ValueError, "Received: seed=0.5"),
        ((tf.data.Dataset.range(3), flip(0.1)), {}, ValueError, "begin with floats"),
        (
            (tf.data.Dataset.from_tensors({"image": [0.5]}), flip(0.1)),
            {},
            ValueError,
            "begin with floats",
        ),
    ],
)
def test_bad_input(args, kwargs, error, message):
    with pytest.raises(error, match=message):
        corrupt(*args, **kwargs)


def test_flipping_needs_values_from_0_to_1():
    spins = tf.data.Dataset.from_tensors([-1.0, 1.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"values in \[0, 1\]"):
        list(corrupt(spins, flip(0.5)))
