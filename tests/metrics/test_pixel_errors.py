"""Wrong pixels against NumPy, over batches, weights and replicas."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_rbm.metrics import PixelError

#: Rounding of a float32 sum of a few hundred terms.
ROUNDING = 1e-5
#: Noisy states, clean targets, predicted probabilities and weights of rows.
GENERATOR = np.random.default_rng(0)
NOISY, CLEAN = GENERATOR.integers(0, 2, (2, 23, 9)).astype("float32")
PREDICTED = GENERATOR.uniform(size=CLEAN.shape).astype("float32")
WEIGHT = GENERATOR.uniform(size=23).astype("float32")
ONE = np.eye(23)[0]
OF_PIXELS = WEIGHT[:, None] * (NOISY != CLEAN)
#: Threshold, targets, predictions and weights.
CASES = {
    "all pixels": (0.5, CLEAN, PREDICTED, np.ones(23)),
    "a threshold": (0.2, CLEAN, PREDICTED, np.ones(23)),
    "weights of rows": (0.5, CLEAN, PREDICTED, WEIGHT),
    "one row alone": (0.5, CLEAN, PREDICTED, ONE),
    "changed pixels": (0.5, CLEAN, PREDICTED, OF_PIXELS),
    "returned as it came": (0.5, CLEAN, NOISY, OF_PIXELS),
    "types": (0.5, CLEAN.astype("int32"), PREDICTED.astype("float64"), WEIGHT),
    "bools": (0.5, CLEAN.astype(bool), NOISY.astype(bool), NOISY != CLEAN),
}


def batches(*arrays):
    """Batches of different sizes."""
    return zip(*(np.split(array, [3, 13]) for array in arrays), strict=True)


def expected(threshold, y_true, y_pred, weight):
    wrong = (y_pred > threshold) != (y_true > threshold)
    counted = weight.reshape(len(weight), -1) * np.ones_like(CLEAN)
    return 100 * (counted * wrong).sum() / counted.sum()


@pytest.mark.parametrize("threshold, y_true, y_pred, weight", CASES.values(), ids=CASES)
@pytest.mark.parametrize("jit_compile", [None, False, True])
def test_equals_numpy_over_uneven_batches(
    threshold, y_true, y_pred, weight, jit_compile
):
    """A mean of the batches' ratios would be another number."""
    metric = PixelError(threshold)
    update = metric.update_state
    if jit_compile is not None:
        update = tf.function(update, jit_compile=jit_compile)
    for batch in batches(y_true, y_pred, weight):
        update(*map(tf.constant, batch))
    want = expected(threshold, y_true, y_pred, weight)
    assert want == 100 or y_pred is not NOISY
    np.testing.assert_allclose(metric.result(), want, rtol=ROUNDING)
    metric.reset_state()
    assert metric.result() == 0
    metric.update_state(y_true, y_pred, 0.0 * weight)
    assert metric.result() == 0


def test_two_replicas():
    arrays = [array[:22] for array in (CLEAN, PREDICTED, WEIGHT)]
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        metric = PixelError()
    shares = tf.data.Dataset.from_tensor_slices(tuple(arrays)).batch(22)
    step = tf.function(lambda batch: strategy.run(metric.update_state, batch))
    for batch in strategy.experimental_distribute_dataset(shares):
        step(batch)
    want = expected(0.5, CLEAN, PREDICTED, np.append(WEIGHT[:22], 0.0))
    np.testing.assert_allclose(metric.result(), want, rtol=ROUNDING)


def test_config_round_trip():
    metric = PixelError(threshold=0.25, name="restored")
    copy = keras.metrics.deserialize(keras.metrics.serialize(metric))
    assert type(copy) is PixelError and copy.get_config() == metric.get_config()
    assert (copy.threshold, copy.name, copy._direction) == (0.25, "restored", "down")


def test_in_compile():
    model = keras.Sequential([keras.Input((9,)), keras.layers.Activation("linear")])
    model.compile(loss="mse", weighted_metrics=[PixelError()])
    logs = model.evaluate(
        1 - CLEAN, CLEAN, sample_weight=WEIGHT, verbose=0, return_dict=True
    )
    np.testing.assert_allclose(logs["pixel_error"], 100, rtol=ROUNDING)


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


@pytest.mark.parametrize("threshold", [None, "0.5", np.nan, np.inf])
def test_bad_threshold(threshold):
    word = f"Received: threshold={threshold!r}"
    with pytest.raises((TypeError, ValueError), match=word):
        PixelError(threshold)


Y = np.zeros((5, 3))
DENSE = "Expected y_pred as a dense.*Received"


@pytest.mark.parametrize(
    ("y_pred", "weight", "error", "message"),
    [
        (np.zeros((5, 1)), None, ValueError, r"y_pred.shape=\(5, 1\), y_true.shape="),
        ("text", None, TypeError, DENSE),
        (None, None, TypeError, DENSE),
        ({"a": Y}, None, TypeError, DENSE),
        (Y.astype(str), None, TypeError, DENSE),
        ([[0.0], [0.0, 1.0]], None, TypeError, DENSE),
        (Y, "text", TypeError, "Expected sample_weight"),
        (Y, np.ones(4), ValueError, "Expected sample_weight"),
    ],
)
def test_what_cannot_be_compared(y_pred, weight, error, message):
    """It ended in TensorFlow, with a message that names no argument."""
    with pytest.raises(error, match=message):
        PixelError().update_state(Y, y_pred, weight)
