"""Small models that grow, with everything about their states known."""

import numpy as np
import tensorflow as tf
from brute_force import binary_states

from keras_rbm.inference import Potentials
from keras_rbm.inference.growing.resample_move import FractionalParameters


def states_of(potentials):
    """Returns all visible states, float32."""
    return binary_states(potentials.num_visible).astype("float32")


def log_partition(potentials):
    return float(tf.reduce_logsumexp(-potentials.free_energy(states_of(potentials))))


def law_of(potentials):
    """Returns p(v) of all visible states, float64."""
    energies = potentials.free_energy(states_of(potentials)).numpy().astype(float)
    weights = np.exp(energies.min() - energies)
    return weights / weights.sum()


def means_of(potentials):
    return law_of(potentials) @ states_of(potentials)


def drawn(potentials, count, seed=0):
    """Returns exact samples, (count, V)."""
    states = states_of(potentials)
    rows = np.random.default_rng(seed).choice(len(states), count, p=law_of(potentials))
    return tf.constant(states[rows])


def log_likelihood(potentials, data, weights=None):
    """Returns the mean of log p(v) over rows, whose weights add to 1."""
    energies = potentials.free_energy(tf.constant(data)).numpy().astype(float)
    return -np.average(energies, weights=weights) - log_partition(potentials)


def counted(potentials, coefficients=None, visible_bias=None):
    """Returns a model whose hidden units count once, or so many times."""
    if coefficients is None:
        coefficients = tf.ones(potentials.num_hidden)
    hidden = FractionalParameters(
        potentials.hidden_bias, tf.constant(coefficients, tf.float32)
    )
    bias = potentials.visible_bias if visible_bias is None else visible_bias
    return Potentials(potentials.kernel, bias, hidden)


def two_modes(bias=-6.0):
    """Returns a model of all on or all off, between which no sweep moves."""
    kernel = np.full((6, 1), 12.0, "float32")
    return Potentials(kernel, np.full(6, bias, "float32"), [-36.0])
