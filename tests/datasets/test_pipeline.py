"""Order and noise as functions of a seed and a counter."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from comparisons import assert_equal

from keras_rbm.datasets import binarize, shuffled_batches


@pytest.fixture
def counter():
    return tf.Variable(0, dtype=tf.int64)


def rows(num_rows=10):
    return np.arange(num_rows, dtype="float32")[:, np.newaxis]


def order(batches):
    return np.concatenate([np.ravel(x) for x in batches])


class TestBinarize:
    def test_threshold_is_above_127_of_255(self):
        pixels = np.arange(256, dtype=np.uint8)
        intensities = pixels.astype("float32") / np.float32(255)
        dataset = tf.data.Dataset.from_tensors(intensities)
        (bits,) = binarize(dataset, "threshold")
        np.testing.assert_array_equal(bits, pixels > 127)

    @pytest.mark.parametrize("method", ["threshold", "sample"])
    def test_only_the_first_component_changes(self, method):
        element = (tf.constant([0.25, 0.75]), None, {"y": tf.constant([0.5])})
        dataset = tf.data.Dataset.from_tensors(element).repeat(3)
        result = binarize(dataset, method)
        assert result.element_spec == dataset.element_spec
        assert result.cardinality() == 3
        for bits, nothing, rest in result:
            assert set(bits.numpy()) <= {0, 1}
            assert nothing is None
            assert rest["y"] == 0.5

    def test_certain_pixels_stay(self):
        certain = tf.data.Dataset.from_tensors(tf.constant([0.0, 1.0] * 1000))
        np.testing.assert_array_equal(*binarize(certain, "sample"), [0, 1] * 1000)

    def test_elements_are_independent(self):
        """Equal intensities, different bits, and half of them on."""
        half = tf.data.Dataset.from_tensors(tf.fill([10_000], 0.5)).repeat(2)
        first, second = binarize(half, "sample")
        for bits in (first, second, first != second):
            assert abs(np.mean(bits) - 0.5) < 5 * 0.5 / np.sqrt(10_000)

    def test_bits_are_a_function_of_seed_and_counter(self, counter):
        """So a run is resumable, and Keras' global seed has no say."""
        dataset = tf.data.Dataset.from_tensors(tf.fill([100], 0.5))

        def sample(pipeline, step):
            keras.utils.set_random_seed(step + 1)
            counter.assign(step)
            (bits,) = pipeline
            return bits.numpy()

        first, resumed, fixed = (
            binarize(dataset, "sample", seed=5, iterations=iterations)
            for iterations in (counter, counter, 0)
        )
        expected = [sample(first, step) for step in (0, 7, 14)]
        np.testing.assert_array_equal(sample(resumed, 14), expected[2])
        np.testing.assert_array_equal(sample(fixed, 3), expected[0])
        assert (expected[0] != expected[1]).any()


class TestShuffledBatches:
    def test_every_epoch_has_every_example_once(self):
        batches = shuffled_batches(rows(), 4, seed=0, iterations=0)
        assert [len(x) for x in batches] == [4, 4, 2] and batches.cardinality() == 3
        np.testing.assert_array_equal(sorted(order(batches)), range(10))
        batches = shuffled_batches(rows(), 4, seed=0, iterations=0, drop_remainder=True)
        assert [len(x) for x in batches] == [4, 4] and batches.cardinality() == 2
        assert batches.element_spec.shape == (4, 1)

    def test_order_is_a_function_of_seed_and_counter(self, counter):
        """The counter is read when an epoch begins; it may be a function, or an int."""

        def epochs(seed, iterations):
            return shuffled_batches(rows(50), 7, seed=seed, iterations=iterations)

        batches = epochs(1, counter)
        first = order(batches)
        np.testing.assert_array_equal(order(batches), first)
        counter.assign(8)
        second = order(batches)
        for iterations in (8, lambda: 8):
            np.testing.assert_array_equal(order(epochs(1, iterations)), second)
        for other in (first, order(epochs(2, 8))):
            assert (other != second).any()

    def test_components_stay_together(self, counter):
        data = ({"a": rows(), "b": [2 * rows(), None]}, np.arange(10), None)
        batches = shuffled_batches(data, 3, seed=0, iterations=counter)
        for inputs, label, weight in batches:
            doubled, nothing = inputs["b"]
            np.testing.assert_array_equal(inputs["a"][:, 0], label)
            np.testing.assert_array_equal(2 * inputs["a"], doubled)
            assert nothing is None and weight is None

    def test_floats_are_cast_as_keras_casts_them(self, counter):
        data = (rows().astype("float64"), np.arange(10))
        batches = shuffled_batches(data, 3, seed=0, iterations=counter)
        x, y = batches.element_spec
        assert x.dtype == keras.config.floatx() and y.dtype == tf.int64

    def test_dataset_equals_arrays(self, counter):
        data = (rows(), np.arange(10))
        dataset = tf.data.Dataset.from_tensor_slices(data).filter(lambda x, y: y >= 0)
        kwargs = {"batch_size": 3, "seed": 2, "iterations": counter}
        one, other = (shuffled_batches(given, **kwargs) for given in (dataset, data))
        assert_equal(tf.nest.flatten(list(one)), tf.nest.flatten(list(other)))


class Recorder(keras.Model):
    """Records the order in which it is given examples."""

    def train_step(self, data):
        self.seen += np.ravel(data).tolist()
        self.optimizer.iterations.assign_add(1)
        return {"loss": 0.0}


def order_of_fit(epochs, initial_epoch=0):
    """Returns the examples of epochs, after as many updates as have been made."""
    model = Recorder()
    model.seen = []
    model.compile(keras.optimizers.SGD(0.0), run_eagerly=True)
    iterations = model.optimizer.iterations
    iterations.assign(4 * initial_epoch)
    batches = shuffled_batches(rows(20), 5, seed=0, iterations=iterations)
    epochs = {"epochs": epochs, "initial_epoch": initial_epoch}
    model.fit(batches, shuffle=False, verbose=0, **epochs)
    return np.reshape(model.seen, (-1, 20)).tolist()


def test_a_resumed_fit_sees_the_same_order():
    """Keras' own shuffling repeats one order, and `Dataset.shuffle` does not resume."""
    whole = order_of_fit(4)
    assert order_of_fit(4, 2) == whole[2:] and order_of_fit(2) == whole[:2]
    assert len(set(map(tuple, whole))) == 4


@pytest.mark.parametrize("method", ["threshold", "sample"])
@pytest.mark.parametrize("bad", [255.0, -1.0, np.nan])
def test_raw_pixels_are_refused(method, bad):
    dataset = tf.data.Dataset.from_tensors([0.0, bad])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"values in \[0, 1\]"):
        list(binarize(dataset, method))
