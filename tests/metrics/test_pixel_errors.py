"""Both errors against NumPy, over batches, weights and replicas."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_rbm.metrics import ChangedPixelError, PixelError

#: Rounding of a float32 sum of a few hundred terms.
ROUNDING = 1e-5


@pytest.fixture
def states():
    """Noisy inputs, clean targets, predicted probabilities and weights."""
    generator = np.random.default_rng(0)
    noisy, clean = generator.integers(0, 2, (2, 23, 9)).astype("float32")
    predicted = generator.uniform(size=clean.shape).astype("float32")
    return noisy, clean, predicted, generator.uniform(size=23).astype("float32")


def batches(*arrays):
    """Batches of different sizes."""
    return zip(*(np.split(array, [3, 13]) for array in arrays), strict=True)


def update(metric, x, y_true, y_pred, sample_weight=None):
    if isinstance(metric, ChangedPixelError):
        metric.observe(x)
    metric.update_state(y_true, y_pred, sample_weight)


def expected(metric, x, y_true, y_pred, weight=1.0):
    wrong = (y_pred > metric.threshold) != (y_true > metric.threshold)
    counted = np.broadcast_to(weight, y_true.shape[:1])[:, None] * np.ones_like(y_true)
    if isinstance(metric, ChangedPixelError):
        counted = counted * ((x > metric.threshold) != (y_true > metric.threshold))
    return 100 * (counted * wrong).sum() / counted.sum()


@pytest.mark.parametrize("metric_class", [PixelError, ChangedPixelError])
class TestBoth:
    @pytest.mark.parametrize("threshold", [0.5, 0.2])
    def test_equals_numpy_over_uneven_batches(self, metric_class, threshold, states):
        """A mean of the batches' ratios would be another number."""
        x, y_true, y_pred, _ = states
        metric = metric_class(threshold)
        for batch in batches(x, y_true, y_pred):
            update(metric, *batch)
        np.testing.assert_allclose(
            metric.result(), expected(metric, x, y_true, y_pred), rtol=ROUNDING
        )

    def test_weights(self, metric_class, states):
        metric = metric_class()
        for batch in batches(*states):
            update(metric, *batch)
        np.testing.assert_allclose(
            metric.result(), expected(metric, *states), rtol=ROUNDING
        )

    def test_an_example_without_weight_does_not_count(self, metric_class, states):
        x, y_true, y_pred, _ = states
        metric = metric_class()
        update(metric, x, y_true, y_pred, [1.0] + 22 * [0.0])
        np.testing.assert_allclose(
            metric.result(), expected(metric, x[:1], y_true[:1], y_pred[:1]), ROUNDING
        )

    def test_weights_of_pixels(self, metric_class, states):
        x, y_true, y_pred, weight = states
        of_examples, of_pixels = metric_class(), metric_class()
        update(of_examples, x, y_true, y_pred, weight)
        update(of_pixels, x, y_true, y_pred, np.repeat(weight[:, None], 9, axis=1))
        np.testing.assert_allclose(of_pixels.result(), of_examples.result(), ROUNDING)

    def test_types_of_states(self, metric_class, states):
        x, y_true, y_pred, _ = states
        metric = metric_class()
        update(metric, x.astype(bool), y_true.astype("int32"), y_pred.astype("float64"))
        np.testing.assert_allclose(
            metric.result(), expected(metric, x, y_true, y_pred), rtol=ROUNDING
        )

    @pytest.mark.parametrize("jit_compile", [False, True])
    def test_traced(self, metric_class, jit_compile, states):
        x, y_true, y_pred, _ = states
        metric = metric_class()
        step = tf.function(
            lambda *batch: update(metric, *batch), jit_compile=jit_compile
        )
        for batch in batches(x, y_true, y_pred):
            step(*batch)
        np.testing.assert_allclose(
            metric.result(), expected(metric, x, y_true, y_pred), rtol=ROUNDING
        )

    def test_two_replicas(self, metric_class, states):
        """Every replica observes its own share of a batch."""
        arrays = [array[:22] for array in states[:3]]
        strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        with strategy.scope():
            metric = metric_class()
        shares = tf.data.Dataset.from_tensor_slices(tuple(arrays)).batch(22)
        step = tf.function(
            lambda batch: strategy.run(lambda *share: update(metric, *share), batch)
        )
        for batch in strategy.experimental_distribute_dataset(shares):
            step(batch)
        np.testing.assert_allclose(
            metric.result(), expected(metric, *arrays), rtol=ROUNDING
        )

    def test_reset_state(self, metric_class, states):
        metric = metric_class()
        update(metric, *states[:3])
        metric.reset_state()
        assert metric.result() == 0

    def test_config_round_trip(self, metric_class):
        metric = metric_class(threshold=0.25, name="restored")
        copy = keras.metrics.deserialize(keras.metrics.serialize(metric))
        assert type(copy) is metric_class
        assert copy.get_config() == metric.get_config()
        assert (copy.threshold, copy.name) == (0.25, "restored")

    def test_less_is_better(self, metric_class):
        assert metric_class()._direction == "down"

    @pytest.mark.parametrize("threshold", [None, "0.5", np.nan, np.inf])
    def test_bad_threshold(self, metric_class, threshold):
        with pytest.raises(ValueError, match=f"Received: threshold={threshold!r}"):
            metric_class(threshold)

    def test_bad_shape_of_predictions(self, metric_class):
        with pytest.raises(ValueError, match=r"y_pred.shape=\(2, 1\), y_true.shape="):
            update(metric_class(), np.zeros((2, 4)), np.zeros((2, 4)), np.zeros((2, 1)))


class TestPixelError:
    def test_in_compile(self, states):
        _, clean, _, weight = states
        model = keras.Sequential([keras.Input((9,)), keras.layers.Activation("linear")])
        model.compile(loss="mse", weighted_metrics=[PixelError()])
        logs = model.evaluate(
            1 - clean, clean, sample_weight=weight, verbose=0, return_dict=True
        )
        np.testing.assert_allclose(logs["pixel_error"], 100, rtol=ROUNDING)


class TestChangedPixelError:
    def test_nothing_restored_and_nothing_changed(self, states):
        x, y_true, _, _ = states
        metric = ChangedPixelError()
        update(metric, x, y_true, x)
        np.testing.assert_allclose(metric.result(), 100, rtol=ROUNDING)
        metric.reset_state()
        update(metric, y_true, y_true, x)
        assert metric.result() == 0

    def test_every_update_needs_its_own_inputs(self, states):
        x, y_true, y_pred, _ = states
        metric = ChangedPixelError()
        for _ in range(2):
            with pytest.raises(ValueError, match=r"call metric.observe\(noisy\)"):
                metric.update_state(y_true, y_pred)
            update(metric, x, y_true, y_pred)

    def test_inputs_of_another_width(self, states):
        _, y_true, y_pred, _ = states
        with pytest.raises(ValueError, match=r"x.shape=\(23, 4\), y_true.shape="):
            update(ChangedPixelError(), np.zeros((23, 4)), y_true, y_pred)


def test_nan_is_wrong():
    metric = PixelError()
    metric.update_state([[0.0, 1.0]], [[float("nan"), float("nan")]])
    assert float(metric.result()) == 100.0


def test_batch_size_known_of_one_alone():
    metric = PixelError()
    specs = [tf.TensorSpec((None, 3)), tf.TensorSpec((2, 3))]
    update = tf.function(metric.update_state, input_signature=specs)
    update(tf.zeros((2, 3)), tf.constant([[0.0, 0, 1], [0, 0, 0]]))
    assert float(metric.result()) == pytest.approx(100 / 6)


@pytest.mark.parametrize("metric", [PixelError, ChangedPixelError])
def test_what_cannot_be_compared(metric):
    """It ended in TensorFlow, with a message that names no argument."""
    states = np.zeros((5, 3))
    for wrong in ("text", None, {"a": states}, states.astype(str), [[0.0], [0.0, 1.0]]):
        with pytest.raises(TypeError, match="Expected y_pred as a dense.*Received"):
            update(metric(), states, states, wrong)
    for weights, error in (("text", TypeError), (np.ones(4), ValueError)):
        with pytest.raises(error, match="Expected sample_weight"):
            one = metric()
            if metric is ChangedPixelError:
                one.observe(states)
            one.update_state(states, states, weights)
