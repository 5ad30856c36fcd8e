"""The rate that falls to 0: by which steps, resumed, and on replicas."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from comparisons import assert_equal, assert_restored
from model_test_case import assert_same_state, two_cpus

from keras_rbm import RBM, rules
from keras_rbm.optimizers import FallingRate

DATA = np.random.default_rng(0).integers(0, 2, (40, 6)).astype("float32")


class Rates(keras.callbacks.Callback):
    """Notes the rate of each step."""

    def __init__(self):
        super().__init__()
        self.rates = []

    def on_train_batch_begin(self, batch, logs=None):
        self.rates.append(float(self.model.optimizer.learning_rate))


#: Of two steps an epoch, four epochs.
WANTED = 0.5 * (1.0 - np.arange(8) / 8)


def model(rule="cd", **kwargs):
    rbm = RBM(3, num_visible=6, seed=0)
    rbm.compile(keras.optimizers.SGD(FallingRate(0.5), **kwargs), rule=rule)
    return rbm


def rates_of(rbm, *args, epochs=4, **kwargs):
    rates = Rates()
    rbm.fit(*args, epochs=epochs, verbose=0, callbacks=[rates], **kwargs)
    return rates.rates


def test_falls_to_zero_and_stays_within_its_ends():
    rate = FallingRate(0.5)
    rate.fall(end=40, length=20)
    np.testing.assert_allclose(
        [rate(step) for step in (10, 30, 39, 40, 50)], [0.5, 0.25, 0.025, 0.0, 0.0]
    )


def test_falls_in_a_straight_line_and_begins_again():
    rbm = model()
    for _ in range(2):
        np.testing.assert_allclose(rates_of(rbm, DATA, batch_size=20), WANTED)
    goes_on = rates_of(rbm, DATA, batch_size=20, initial_epoch=3)
    np.testing.assert_allclose(goes_on, WANTED[6:])


@pytest.mark.parametrize(
    "options", [{"rule": rules.SDCP(3, 1)}, {"gradient_accumulation_steps": 2}]
)
def test_counts_batches(options):
    """Counted by a batch's inner steps, the rate was 0 after a third of the epochs."""
    rates = rates_of(model(**options), DATA, batch_size=20)
    np.testing.assert_allclose(rates, WANTED)


def test_is_constant_outside_of_fit():
    rbm = model()
    before = float(rbm.optimizer.learning_rate)
    rbm.fit(DATA, verbose=0)
    assert before == float(rbm.optimizer.learning_rate) == 0.5
    kernel = rbm.kernel.numpy()
    rbm.train_on_batch(DATA)
    assert np.any(rbm.kernel.numpy() != kernel)


@pytest.mark.filterwarnings("ignore:Your input ran out of data")
def test_falls_by_epochs_if_the_length_is_unknown():
    def batches():
        for _ in range(2):
            yield from tf.split(DATA, 2)

    data = tf.data.Dataset.from_generator(
        batches, output_signature=tf.TensorSpec((None, 6))
    )
    rates = rates_of(model(), data, epochs=2)
    assert rates == sorted(rates, reverse=True) and set(rates) == {0.5, 0.25}


def test_a_loaded_model_goes_on(tmp_path):
    """The default optimizer is saved with a rate that falls in the next `fit`, too."""
    rbm = RBM(3, seed=0)
    rbm.compile()
    rbm.fit(DATA, epochs=2, verbose=0)
    rbm.save(tmp_path / "rbm.keras")
    loaded = keras.saving.load_model(tmp_path / "rbm.keras")
    for own in (rbm, loaded):
        assert rates_of(own, DATA, batch_size=20)[4] == pytest.approx(0.025)
    assert_same_state(rbm, loaded)


@pytest.mark.slow
def test_two_replicas():
    rates, weights = [], []
    for strategy in (two_cpus(), tf.distribute.get_strategy()):
        with strategy.scope():
            rbm = model(rules.MaximumLikelihood("exact"))
        rates.append(rates_of(rbm, DATA, batch_size=20))
        weights.append([w.numpy() for w in rbm.trainable_variables])
    np.testing.assert_allclose(*rates)
    assert_equal(*weights, rtol=1e-4, atol=1e-6)


def test_another_keras_model_keeps_the_rate():
    other = keras.Sequential([keras.layers.Dense(1)])
    other.compile(keras.optimizers.SGD(FallingRate(0.1)), loss="mse")
    other.fit(DATA, DATA[:, :1], epochs=2, verbose=0)
    assert float(other.optimizer.learning_rate) == pytest.approx(0.1)


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), "fast"])
def test_bad_rates(rate):
    with pytest.raises((TypeError, ValueError), match="initial_learning_rate"):
        FallingRate(rate)


def test_config_round_trip():
    again = assert_restored(keras.optimizers.schedules, FallingRate(0.2))
    assert again.initial_learning_rate == 0.2
