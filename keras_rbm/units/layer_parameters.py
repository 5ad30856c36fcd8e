"""What the parameters of a layer of units have in common."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_rbm import random


class BiasStatistics(NamedTuple):
    """Statistics of units that learn a bias only: `bias` is the first statistic."""

    bias: tf.Tensor


class BiasFields(NamedTuple):
    """Parameters of units that have a bias only."""

    bias: tf.Tensor


class LayerParameters:
    """A layer's parameters: the mathematics of its units, for any inference.

    A type of units derives its parameters from this class and from a `NamedTuple` of
    tensors, the first of which is `bias`, of shape (rows,) or (B, rows). It must
    implement `log_partition`, `mean`, `mode` and `sample`, and what differs from units
    that learn a bias only, are one number each, and whose state is their first
    statistic: `statistics` and `expected_statistics`, `encode` and `first`,
    `num_units`, `base_measure`.

    *States* have a column for each unit. What the other layer sees of them has a row of
    the kernel for each number: one for a unit that is a number, q for a unit of q
    categories.
    """

    __slots__ = ()

    #: The states that each unit has, if they are finitely many and the same.
    states = None

    @property
    def finite(self):
        """Bool, whether each unit has finitely many states: those in `values`."""
        return self.states is not None

    @property
    def num_rows(self):
        """int, or a scalar tensor where the number changes between calls."""
        size = self.bias.shape[-1]
        return tf.shape(self.bias)[-1] if size is None else size

    @property
    def num_units(self):
        """The same, of the columns of states."""
        return self.num_rows

    @property
    def values(self):
        """Array (units, most) of a finite layer: each unit's states.

        Where others have more, the last one is repeated.
        """
        return np.tile(np.float32(self.states), (self.num_units, 1))

    @property
    def unit_of_row(self):
        """Int array (rows,), which unit each row of the kernel belongs to."""
        return np.arange(self.num_rows)

    @property
    def curvature(self):
        """Tensor (rows,): the least `-d² base / dt²`, infinite of a bounded unit."""
        return tf.fill([self.num_rows], tf.constant(np.inf, self.bias.dtype))

    def natural(self, inputs):
        """Returns the natural parameters, bias + inputs, (C, rows)."""
        return self.bias + inputs

    def with_bias(self, bias):
        """Returns the same units with another bias."""
        return self._replace(bias=bias)

    def repeat(self, count):
        """Returns `count` copies of each of B layers, one after the other."""
        if self.bias.shape.rank != 2:
            return self
        return self.with_bias(tf.tile(self.bias, (count, 1)))

    def encode(self, states):
        """Returns states (C, units) as (C, rows); `mean` is the expectation of it."""
        return states

    def first(self, encoded):
        """Returns the first statistic, (C, rows), an affine function of `encode`."""
        return encoded

    def first_of(self, states):
        """Returns the first statistic of states, (C, rows)."""
        return self.first(self.encode(states))

    def state_like(self, means):
        """Returns means (C, rows) as (C, units): of categories the likeliest one."""
        if self.num_rows == self.num_units:
            return means
        return self.mode(self.natural_for_mean(means))

    def statistics(self, states):
        """Returns what the log-density's exponent grows by with each parameter."""
        return BiasStatistics(self.first_of(states))

    def expected_statistics(self, natural):
        """Returns the expectation of `statistics`."""
        return BiasStatistics(self.first(self.mean(natural)))

    def draw(self, natural, seed):
        """Returns states (C, units) drawn from natural parameters (C, rows)."""
        chains = natural.shape[0]
        chains = tf.shape(natural)[0] if chains is None else chains
        noise = random.uniform((chains, self.num_units), seed)
        return self.sample(natural, noise)

    def base_measure(self, states):
        """Returns `base(y)`, (C, units)."""
        return tf.zeros_like(states)


def index_of_noise(logits, noise):
    """Draws which of q values each unit takes.

    Args:
        logits: tensor (..., q), unnormalised log-probabilities.
        noise: tensor (...), uniform on [0, 1).

    Returns:
        tensor (...), numbers 0 to q - 1, in the logits' dtype.
    """
    q = logits.shape[-1]
    weights = tf.exp(logits - tf.reduce_max(logits, -1, keepdims=True))
    # A product with ones, as XLA's cumulative sums take q times as long. From the last
    # value down: of two values the draw is that of a binary unit.
    from_here = tf.constant(np.tril(np.ones((q, q))), logits.dtype)
    tails = tf.matmul(weights, from_here)
    passed = noise[..., tf.newaxis] * tails[..., :1] < tails[..., 1:]
    return tf.reduce_sum(tf.cast(passed, logits.dtype), -1)
