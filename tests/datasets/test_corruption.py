"""Corrupted pairs: what the noise does, and that a seed and a position decide it."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from comparisons import assert_equal

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

    def test_examples_differ_and_epochs_if_drawn_anew(self, corruption):
        pairs = corrupt(zeros(), corruption)
        np.testing.assert_array_equal(corrupted(pairs), corrupted(pairs))
        (batch,) = corrupted(corrupt(zeros().batch(20), corruption))
        for images in (corrupted(pairs), batch):
            assert len(np.unique(images, axis=0)) > 1
        pairs = corrupt(zeros(), corruption, redraw=True)
        assert (corrupted(pairs) != corrupted(pairs)).any()

    def test_a_counter_makes_it_resumable(self, corruption):
        counter = tf.Variable(0, dtype=tf.int64)
        whole, resumed = (
            corrupt(zeros(), corruption, redraw=True, iterations=counter)
            for _ in range(2)
        )
        first = corrupted(whole)
        counter.assign(20)
        np.testing.assert_array_equal(corrupted(resumed), corrupted(whole))
        assert (first != corrupted(whole)).any()

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
            assert_equal(kept, element)

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


def test_flipping_needs_values_from_0_to_1():
    spins = tf.data.Dataset.from_tensors([-1.0, 1.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"values in \[0, 1\]"):
        list(corrupt(spins, flip(0.5)))
