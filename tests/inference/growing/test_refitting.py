import numpy as np
import pytest
import tensorflow as tf
from brute_force import binary_states, random_potentials

from keras_rbm import inference
from keras_rbm.inference.growing.frank_wolfe import DataAndSamples
from keras_rbm.inference.growing.refitting import refit
from keras_rbm.inference.growing.reweighting import Descended
from keras_rbm.units import FractionalParameters

STATES = binary_states(6).astype("float32")
COUNT = 20_000


def fractional(potentials, bias=None, scale=1.0):
    coefficients = tf.fill([potentials.num_hidden], tf.cast(scale, tf.float32))
    hidden = FractionalParameters(potentials.hidden_bias, coefficients)
    bias = potentials.visible_bias if bias is None else bias
    return inference.Potentials(potentials.kernel, bias, hidden)


BEFORE, AFTER = (fractional(random_potentials(6, 3, seed=seed)) for seed in (1, 2))


def drawn(potentials, count, seed):
    law = tf.nn.softmax(-potentials.free_energy(STATES)).numpy().astype(float)
    rng = np.random.default_rng(seed)
    return tf.constant(STATES[rng.choice(len(STATES), count, p=law / law.sum())])


def log_likelihood(potentials, data):
    log_z = tf.reduce_logsumexp(-potentials.free_energy(STATES))
    return float(tf.reduce_mean(-potentials.free_energy(data)) - log_z)


def refitted(after, data, drift, **kwargs):
    samples = drawn(BEFORE, COUNT, 1)
    each = tf.fill([len(data)], 1.0 / len(data))
    shares = tf.fill([COUNT], 1.0 / COUNT)
    return refit(
        after,
        lambda states: BEFORE.free_energy(states) - after.free_energy(states),
        DataAndSamples(data, each, samples, shares),
        Descended.independent(drawn(BEFORE, COUNT, 2)),
        0,
        drift=drift,
        bias_steps=20,
        gibbs_steps=5,
        **kwargs,
    )


@pytest.mark.parametrize("learn_temperature", [False, True])
def test_gain_and_ratio_are_the_exact_ones(learn_temperature):
    data = drawn(fractional(random_potentials(6, 3, seed=3)), 300, 0)
    result = refitted(AFTER, data, tf.zeros(6), learn_temperature=learn_temperature)
    assert (float(result.scale) != 1.0) == learn_temperature
    fitted = fractional(AFTER, result.visible_bias, result.scale)
    gain = log_likelihood(fitted, data) - log_likelihood(BEFORE, data)
    error = 4 * float(result.gain_error)
    assert 0.0 < error < 0.1
    assert float(result.gain) == pytest.approx(gain, abs=error)
    old, new = (
        tf.reduce_logsumexp(-model.free_energy(STATES)) for model in (BEFORE, fitted)
    )
    assert float(result.log_ratio) == pytest.approx(float(new - old), abs=error)
    law = tf.nn.softmax(-fitted.free_energy(STATES))
    means = tf.linalg.matvec(STATES, law, transpose_a=True)
    for states in (result.visible, result.held_out_chains.visible):
        np.testing.assert_allclose(tf.reduce_mean(states, 0), means, atol=0.02)


def test_following_the_data_is_no_gain_of_the_change():
    data = drawn(BEFORE, 300, 0)
    law = tf.nn.softmax(-BEFORE.free_energy(STATES))
    drift = tf.reduce_mean(data, 0) - tf.linalg.matvec(STATES, law, transpose_a=True)
    result = refitted(BEFORE, data, drift)
    fitted = fractional(BEFORE, result.visible_bias)
    gain = log_likelihood(fitted, data) - log_likelihood(BEFORE, data)
    assert gain > 0.005
    assert float(result.gain) == pytest.approx(0.0, abs=0.2 * gain)
