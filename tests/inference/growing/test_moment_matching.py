import numpy as np
import pytest
import tensorflow as tf
from brute_force import binary_states, random_potentials

from keras_rbm.inference import Potentials
from keras_rbm.inference.growing.moment_matching import match_means, total_softplus

STATES = binary_states(6).astype("float32")
COUNT = 20_000


def law(potentials):
    return tf.nn.softmax(-potentials.free_energy(STATES)).numpy().astype(float)


def drawn(potentials, seed=0):
    probabilities = law(potentials) / law(potentials).sum()
    rows = np.random.default_rng(seed).choice(len(STATES), COUNT, p=probabilities)
    return tf.constant(STATES[rows])


def two_modes():
    """Returns a model of all on or all off, between which no sweep moves."""
    kernel = np.full((6, 1), 12.0, "float32")
    return Potentials(kernel, np.full(6, -6.0, "float32"), [-36.0])


def matched_law(result, potentials):
    return law(Potentials(potentials.kernel, result.bias, potentials.hidden_bias))


@pytest.mark.parametrize("seed", range(3))
def test_means_become_the_target(seed):
    potentials = random_potentials(6, 4, seed=seed)
    target = np.random.default_rng(seed).uniform(0.2, 0.8, 6).astype("float32")
    visible = drawn(potentials)
    result = match_means(
        potentials, target, visible, tf.zeros(COUNT), seed, max_sweeps=20
    )
    means = matched_law(result, potentials) @ STATES
    np.testing.assert_allclose(means, target, atol=0.02)
    np.testing.assert_allclose(result.visible.numpy().mean(0), target, atol=0.02)


def test_mass_moves_between_modes_that_sweeps_do_not_leave():
    """Chains that have yet to move would lead the biases on and on."""
    potentials = two_modes()
    visible = drawn(potentials)
    assert 0.4 < float(tf.reduce_mean(visible)) < 0.6
    target = tf.fill([6], 0.7)
    result = match_means(potentials, target, visible, tf.zeros(COUNT), 0, max_sweeps=10)
    means = matched_law(result, potentials) @ STATES
    np.testing.assert_allclose(means, 0.7, atol=0.03)
    np.testing.assert_allclose(result.visible.numpy().mean(0), 0.7, atol=0.03)


def test_weights_make_samples_of_another_model_its_own():
    before, potentials = two_modes(), two_modes()
    potentials = potentials._replace(
        visible=before.visible._replace(bias=tf.fill([6], -6.2))
    )
    visible = drawn(before)
    change = before.free_energy(visible) - potentials.free_energy(visible)
    target = tf.constant(law(potentials) @ STATES, tf.float32)
    result = match_means(potentials, target, visible, change, 0, max_sweeps=10)
    assert float(tf.reduce_mean(target)) < 0.4
    total = tf.reduce_sum(result.bias - potentials.visible_bias)  # what moves the mass
    assert abs(float(total)) < 0.1
    np.testing.assert_allclose(result.visible.numpy().mean(0), target, atol=0.02)


def test_the_temperature_is_fitted_with_the_biases():
    """Back from biases and a scale that were changed to the model of the target."""
    truth = random_potentials(6, 4, seed=5)
    total = law(truth) @ total_softplus(truth, STATES).numpy().astype(float)
    target = tf.constant(law(truth) @ STATES, tf.float32)
    start = truth._replace(
        visible=truth.visible._replace(bias=truth.visible_bias + 0.2)
    )
    result = match_means(
        start,
        target,
        drawn(start),
        tf.zeros(COUNT),
        0,
        max_sweeps=30,
        total=tf.constant(total, tf.float32),
    )
    np.testing.assert_allclose(result.bias, truth.visible_bias, atol=0.15)
    assert float(result.scale) == pytest.approx(1.0, abs=0.05)
