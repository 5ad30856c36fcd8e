"""Answers by enumerating every joint state, in float64 NumPy: the tests' truth."""

import itertools
import math

import numpy as np
import tensorflow as tf

import keras_rbm
from keras_rbm.inference import Potentials
from keras_rbm.units.gaussian import GaussianParameters


def binary_states(num_units):
    """Returns all states of binary units, (2^units, units)."""
    return np.array(list(itertools.product([0.0, 1.0], repeat=num_units)))


def random_potentials(num_visible, num_hidden, seed=0, scale=1.0):
    """Returns a binary model with normal random parameters."""
    rng = np.random.default_rng(seed)
    kernel = rng.normal(0, scale, (num_visible, num_hidden))
    visible, hidden = rng.normal(0, 1, num_visible), rng.normal(0, 1, num_hidden)
    return Potentials(*(tf.constant(a, tf.float32) for a in (kernel, visible, hidden)))


def random_gaussian_potentials(num_visible, num_hidden, seed=0, scale=0.5):
    """Returns a model with Gaussian visible, binary hidden units."""
    rng = np.random.default_rng(seed)
    fields = {
        "bias": rng.normal(0, 1, num_visible),
        "log_precision": rng.normal(0, 0.3, num_visible),
        "shift": rng.normal(0, 1, num_visible),
        "scale": rng.uniform(0.5, 2, num_visible),
    }
    visible = GaussianParameters(
        **{name: tf.constant(value, tf.float32) for name, value in fields.items()}
    )
    kernel = tf.constant(rng.normal(0, scale, (num_visible, num_hidden)), tf.float32)
    return Potentials(
        kernel, visible, tf.constant(rng.normal(0, 1, num_hidden), tf.float32)
    )


def assert_visible_means(potentials, states):
    """Asserts that first statistics are the model's, within five standard errors."""
    exact = keras_rbm.inference.exact_moments(potentials).visible.bias.numpy()
    first = potentials.visible.statistics(states).bias.numpy()
    error = first.std(0) / np.sqrt(len(first))
    assert (abs(first.mean(0) - exact) < 5 * error).all()


def rbm_like(potentials):
    """Returns an RBM with the parameters of binary potentials."""
    sizes = potentials.kernel.shape
    rbm = keras_rbm.RBM(sizes[1], num_visible=sizes[0], seed=0)
    rbm.kernel.assign(potentials.kernel)
    rbm.visible_bias.assign(potentials.visible_bias)
    rbm.hidden_bias.assign(potentials.hidden_bias)
    return rbm


def all_states(units):
    """Returns all states of binary or of categorical units, as rows of the kernel."""
    size, q = len(units.bias), len(getattr(units, "categories", [0]))
    if q == 1:
        return binary_states(size)
    states = np.array(list(itertools.product(range(q), repeat=size // q)))
    return np.eye(q)[states].reshape(len(states), -1)


class Enumerated:
    """A tiny model of binary or categorical units with everything about it known."""

    def __init__(self, potentials):
        kernel, b, c = (
            np.asarray(a, np.float64)
            for a in (
                potentials.kernel,
                potentials.visible_bias,
                potentials.hidden_bias,
            )
        )
        self.v = all_states(potentials.visible)
        self.h = binary_states(len(c))
        self.log_joint = (
            self.v @ kernel @ self.h.T + (self.v @ b)[:, None] + (self.h @ c)[None]
        )
        top = self.log_joint.max()
        self.log_partition = top + math.log(np.exp(self.log_joint - top).sum())
        self.joint = np.exp(self.log_joint - self.log_partition)
        self.p_visible = self.joint.sum(1)
        self.p_hidden = self.joint.sum(0)

    def moments(self):
        """Returns the expectations of v h', v and h."""
        kernel = self.v.T @ self.joint @ self.h
        return kernel, self.p_visible @ self.v, self.p_hidden @ self.h

    def sample(self, count, rng):
        """Returns exact visible samples, (count, V) float32."""
        rows = rng.choice(len(self.v), count, p=self.p_visible)
        return self.v[rows].astype(np.float32)

    def frequencies(self, visible):
        """Returns how often each visible state occurs."""
        return frequencies(visible)


def frequencies(states):
    """Returns how often each state of binary units occurs, of rows (count, units)."""
    states = np.asarray(states).astype(int)
    powers = 2 ** np.arange(states.shape[1])[::-1]
    return np.bincount(states @ powers, minlength=2 * powers[0]) / len(states)


def assert_follows(law, states):
    """Compares frequencies with a law: chi-square within five standard deviations."""
    freedom = len(law) - 1
    chi_square = len(states) * np.sum((frequencies(states) - law) ** 2 / law)
    assert chi_square < freedom + 5 * np.sqrt(2 * freedom)


def tempered_sweep(potentials, base, beta, hidden_base=0.0):
    """Returns p_beta(v) and the matrix p(v' | v) of a Gibbs sweep at beta."""
    kernel, b, c = (
        np.asarray(a, np.float64)
        for a in (potentials.kernel, potentials.visible_bias, potentials.hidden_bias)
    )
    v, h = binary_states(len(b)), binary_states(len(c))
    visible_bias = (1 - beta) * np.asarray(base, np.float64) + beta * b
    hidden_natural = (1 - beta) * np.asarray(hidden_base) + beta * (v @ kernel + c)
    up = _bernoulli(hidden_natural, h)
    down = _bernoulli(visible_bias + beta * (h @ kernel.T), v)
    log_weight = v @ visible_bias + np.logaddexp(0, hidden_natural).sum(1)
    weight = np.exp(log_weight - log_weight.max())
    return weight / weight.sum(), up @ down


def _bernoulli(natural, states):
    """Returns p(state | row of natural parameters), (rows, states)."""
    log_p = natural @ states.T - np.logaddexp(0, natural).sum(1, keepdims=True)
    return np.exp(log_p)
