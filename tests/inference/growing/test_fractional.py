"""Units that count a fraction of a time: FW16, section 3.3 and proposition 3.2."""

import numpy as np
import pytest
import tensorflow as tf
from brute_force import assert_follows, binary_states, random_potentials
from growing_models import counted
from message_passing import arrays

from keras_rbm.inference import Potentials
from keras_rbm.inference.gibbs import ChainState
from keras_rbm.inference.growing.resample_move import (
    FractionalParameters,
    between,
    fractional_chain,
    fractional_sweep,
)
from keras_rbm.units.bernoulli import BernoulliParameters

COEFFICIENTS = {
    "fractions": [0.3, 0.7, 0.5, 0.9],
    "with whole ones": [0.4, 1.0, 0.0, 1.0],
    "whole": [1.0, 1.0, 0.0, 1.0],
    "ones": [1.0, 1.0, 1.0, 1.0],
}
CHAINS = 50_000


def model(coefficients, seed=0, scale=1.0):
    return counted(random_potentials(5, 4, seed, scale), coefficients)


def log_weights(potentials):
    """Returns log p* of all visible states, written out."""
    v, (kernel, b, c) = binary_states(5), arrays(potentials)
    softplus = np.logaddexp(0.0, v @ kernel + c)
    return v @ b + softplus @ np.asarray(potentials.hidden.coefficients, np.float64)


def law_of(potentials):
    weights = log_weights(potentials)
    return np.exp(weights - np.logaddexp.reduce(weights))


def drawn(law):
    rows = np.random.default_rng(0).choice(len(law), CHAINS, p=law)
    return tf.constant(binary_states(5)[rows], tf.float32)


@pytest.mark.parametrize("coefficients", COEFFICIENTS.values(), ids=COEFFICIENTS)
def test_chains_do_not_drift(coefficients):
    potentials = model(coefficients)
    law = law_of(potentials)
    states = drawn(law)
    moved = fractional_chain(potentials, states, tf.constant([3, 0]), tf.constant(3))
    assert (moved != states).numpy().mean() > 0.1
    assert_follows(law, moved)


def test_without_metropolis_chains_would_drift(monkeypatch):
    potentials = model(COEFFICIENTS["fractions"], scale=2.0)
    law = law_of(potentials)
    monkeypatch.setattr(
        FractionalParameters, "log_correction", lambda *_: tf.zeros(CHAINS)
    )
    states = drawn(law)
    state = ChainState(states, potentials.hidden_natural(states))
    for seed in range(5):  # not fractional_chain: it may have been traced before
        state = fractional_sweep(potentials, state, seed)
    with pytest.raises(AssertionError):
        assert_follows(law, state.visible)


def test_whole_coefficients_are_the_units_of_an_rbm():
    """Free energies and the distribution of h, whichever end of the noise is used."""
    potentials = model(COEFFICIENTS["whole"])
    used = [0, 1, 3]
    plain = Potentials(
        tf.gather(potentials.kernel, used, axis=1),
        potentials.visible,
        BernoulliParameters(tf.gather(potentials.hidden_bias, used)),
    )
    states = tf.constant(binary_states(5), tf.float32)
    np.testing.assert_allclose(
        potentials.free_energy(states), plain.free_energy(states), rtol=1e-5, atol=1e-5
    )
    natural = tf.constant(np.tile([-1.0, 0.5, 9.0, 2.0], (CHAINS, 1)), tf.float32)
    hidden = potentials.hidden.draw(natural, 5).numpy()
    want = np.array([1.0, 1.0, 0.0, 1.0]) / (1.0 + np.exp(-natural[0].numpy()))
    np.testing.assert_allclose(hidden.mean(0), want, atol=5 * 0.5 / np.sqrt(CHAINS))
    assert set(hidden.flat) == {0.0, 1.0}


@pytest.mark.parametrize("t", [0.0, 0.3, 1.0])
def test_the_model_between_is_the_geometric_mean(t):
    before = model([1.0, 1.0, 0.0, 0.0])
    after = before._replace(
        visible=BernoulliParameters(before.visible_bias + 0.5),
        hidden=before.hidden._replace(coefficients=tf.ones(4)),
    )
    want = (1.0 - t) * log_weights(before) + t * log_weights(after)
    np.testing.assert_allclose(log_weights(between(before, after, t)), want, atol=1e-5)


def test_fractional_units_lie_between_two_rbms():
    """Proposition 3.2."""
    a, c = np.meshgrid(np.linspace(-30, 30, 121), np.linspace(0.05, 1.0, 20))
    value = FractionalParameters(tf.zeros(()), tf.constant(c, tf.float64))
    value = value.log_partition(tf.constant(a)).numpy()
    upper = np.logaddexp(0.0, c * a)
    assert (value <= upper + 1e-12).all()
    assert (value >= upper + (c - 1) * np.log(2) - 1e-12).all()
