import numpy as np
import pytest
import tensorflow as tf
from brute_force import binary_states, random_potentials

from keras_rbm.inference import Potentials
from keras_rbm.inference.growing.fractional import FractionalParameters
from keras_rbm.inference.growing.moment_matching import match_means

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


def matched(potentials, target, visible, log_weights, seed, max_sweeps):
    """Returns the model whose means have been fitted, all units counted once."""
    ones = tf.ones(potentials.num_hidden)
    hidden = FractionalParameters(potentials.hidden_bias, ones)
    return match_means(
        potentials._replace(hidden=hidden),
        target,
        visible,
        log_weights,
        seed,
        max_sweeps=max_sweeps,
        drift=tf.zeros(6),
    )


def matched_law(result, potentials):
    return law(Potentials(potentials.kernel, result.bias, potentials.hidden_bias))


@pytest.mark.parametrize("seed", range(3))
def test_means_become_the_target(seed):
    potentials = random_potentials(6, 4, seed=seed)
    target = np.random.default_rng(seed).uniform(0.2, 0.8, 6).astype("float32")
    visible = drawn(potentials)
    result = matched(potentials, target, visible, tf.zeros(COUNT), seed, 20)
    means = matched_law(result, potentials) @ STATES
    np.testing.assert_allclose(means, target, atol=0.02)
    np.testing.assert_allclose(result.visible.numpy().mean(0), target, atol=0.02)


def test_mass_moves_between_modes_that_sweeps_do_not_leave():
    """Chains that have yet to move would lead the biases on and on."""
    potentials = two_modes()
    visible = drawn(potentials)
    assert 0.4 < float(tf.reduce_mean(visible)) < 0.6
    target = tf.fill([6], 0.7)
    result = matched(potentials, target, visible, tf.zeros(COUNT), 0, 10)
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
    result = matched(potentials, target, visible, change, 0, 10)
    assert float(tf.reduce_mean(target)) < 0.4
    total = tf.reduce_sum(result.bias - potentials.visible_bias)  # what moves the mass
    assert abs(float(total)) < 0.1
    np.testing.assert_allclose(result.visible.numpy().mean(0), target, atol=0.02)
