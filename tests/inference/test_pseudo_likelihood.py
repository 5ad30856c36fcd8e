"""Pseudo-likelihoods and reconstruction, against conditionals."""

import numpy as np
import pytest
import tensorflow as tf
from brute_force import (
    Enumerated,
    binary_states,
    random_gaussian_potentials,
    random_potentials,
)
from comparisons import assert_mean

from keras_rbm import inference


def test_equals_enumerated_conditionals():
    potentials = random_potentials(6, 4, scale=1.5)
    truth = Enumerated(potentials)
    p = dict(zip(map(tuple, truth.v), truth.p_visible, strict=True))
    states, expected = truth.v[::5], []
    for state in states:
        flips = [tuple(np.abs(state - unit)) for unit in np.eye(6)]
        own = p[tuple(state)]
        expected.append(sum(np.log(own / (own + p[flip])) for flip in flips))
    states = tf.constant(states, tf.float32)
    got = inference.pseudo_log_likelihood(potentials, states)
    np.testing.assert_allclose(got, expected, rtol=1e-5)


def assert_unbiased(potentials, state, exact, count, **options):
    many = inference.stochastic_pseudo_log_likelihood(
        potentials, tf.repeat(tf.cast(state, tf.float32), count, 0), 1, **options
    )
    assert_mean(many, exact, errors=4.0)


@pytest.mark.parametrize("soft", [False, True])
def test_stochastic_form_is_unbiased(soft):
    potentials = random_potentials(7, 4)
    states = tf.constant(np.random.default_rng(0).random((1, 7)), tf.float32)
    if not soft:
        states = tf.round(states)
    exact = inference.pseudo_log_likelihood(potentials, states)[0]
    assert_unbiased(potentials, states, exact, 20_000)


def test_only_the_observed_units_count():
    """The loss of a deep model is of its data, given the layers that are no data."""
    potentials = random_potentials(6, 4, scale=1.5)
    state = binary_states(6)[37:38]
    states = np.concatenate([state, abs(state - np.eye(6)[:4])]).astype("float32")
    energy, *others = potentials.free_energy(states).numpy()
    expected = -sum(np.logaddexp(0.0, energy - other) for other in others)
    assert_unbiased(potentials, state, expected, 5000, observed=4)


def test_biases_with_a_batch_dimension():
    potentials = random_potentials(5, 3)
    visible = tf.constant(binary_states(5)[:6], tf.float32)
    bias = tf.random.stateless_normal((6, 5), (0, 1))
    batch = inference.Potentials(potentials.kernel, bias, potentials.hidden)
    got = inference.pseudo_log_likelihood(batch, visible)
    for i in range(6):
        one = inference.Potentials(potentials.kernel, bias[i], potentials.hidden)
        alone = inference.pseudo_log_likelihood(one, visible[i : i + 1])
        np.testing.assert_allclose(got[i], alone[0], rtol=1e-5)


def test_reconstruction_equals_the_conditional_density():
    potentials = random_potentials(6, 4)
    states = tf.constant(binary_states(6)[::7], tf.float32)
    hidden = tf.sigmoid(potentials.hidden_natural(states))
    mean = tf.sigmoid(potentials.visible_natural(hidden)).numpy()
    expected = np.log(np.where(states == 1, mean, 1 - mean)).sum(1)
    got = inference.reconstruction_log_likelihood(potentials, states)
    np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_reconstruction_of_gaussian_units_is_a_normal_density():
    potentials = random_gaussian_potentials(3, 4)
    states = tf.random.stateless_normal((5, 3), (1, 2))
    hidden = tf.sigmoid(potentials.hidden_natural(states))
    units = potentials.visible
    mean = units.mean(potentials.visible_natural(hidden)).numpy()
    deviation = (units.scale / tf.sqrt(units.precision)).numpy()
    z = (states - mean) / deviation
    expected = (-0.5 * z**2 - np.log(deviation) - 0.5 * np.log(2 * np.pi)).numpy()
    got = inference.reconstruction_log_likelihood(potentials, states)
    np.testing.assert_allclose(got, expected.sum(1), rtol=1e-4)
