"""Gibbs sampling of one unit at a time, the other layer summed out."""

import math
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_rbm import random
from keras_rbm.inference.potentials import binary_layers
from keras_rbm.units import BernoulliParameters

#: Sweeps at most and at least, and evaluations of a visible unit's log-partition.
_SWEEPS, _FEWEST_SWEEPS, _EVALUATIONS = 20, 5, 1e8


def single_site_sweeps(potentials, visible, seed):
    """Draws the units of the smaller layer one after the other, the others summed out.

    Block Gibbs hardly ever leaves a mode of a model with strong weights: v tells h,
    and h tells v. With the larger layer summed out,
    `log p*(h) = c' h + sum_i A_i((b + W h)_i)`, and modes that differ in few hidden
    units are a few likely steps apart. A sweep takes two log-partitions of H · V units
    for each chain; large models make fewer sweeps, or none where few would fit.

    Args:
        potentials: `Potentials` with a layer of binary units; others stay as they are.
        visible: tensor (C, V), states.
        seed: int or integer tensor of shape (2,).

    Returns:
        tensor (C, V), states.
    """
    sizes = visible.shape[0], *potentials.kernel.shape
    sweeps = min(_SWEEPS, int(_EVALUATIONS / math.prod(sizes)))
    seed = random.as_seed(seed)
    layers = binary_layers(potentials)
    if sweeps < _FEWEST_SWEEPS or not layers:
        return visible
    if min(reversed(layers), key=layers.get) == "visible":
        return _sweeps(potentials.transpose(), visible, seed, tf.constant(sweeps))
    starting, ending = (random.fold_in(seed, -stream) for stream in (1, 2))
    natural = potentials.hidden_natural(visible)
    hidden = potentials.hidden.sample(natural, random.uniform(natural.shape, starting))
    hidden = _sweeps(potentials, hidden, seed, tf.constant(sweeps))
    natural = potentials.visible_natural(hidden)
    return potentials.visible.sample(natural, random.uniform(visible.shape, ending))


@tf.function(autograph=False)
def _sweeps(potentials, hidden, seed, count):
    """Returns hidden states after sweeps over all hidden units in turn."""
    rows, units = tf.shape(hidden)[0], potentials.num_hidden
    kernel = tf.cast(tf.transpose(potentials.kernel), hidden.dtype)
    of_hidden = tf.broadcast_to(potentials.hidden_bias, (rows, units))
    log_partition = potentials.visible.log_partition

    def sweep(number, states):
        inputs = potentials.visible_natural(states)
        noise = random.uniform((units, rows), random.fold_in(seed, number))

        def site(unit, hidden, natural):
            row = tf.gather(kernel, unit)
            natural -= hidden[:, unit, tf.newaxis] * row  # without the unit
            gain = log_partition(natural + row) - log_partition(natural)
            odds = of_hidden[:, unit] + tf.reduce_sum(gain, -1)
            state = tf.cast(tf.gather(noise, unit) < tf.sigmoid(odds), hidden.dtype)
            column = tf.one_hot(unit, units, dtype=hidden.dtype)
            hidden = tf.where(column > 0.0, state[:, tf.newaxis], hidden)
            natural += state[:, tf.newaxis] * row
            for tensor, start in ((hidden, states), (natural, inputs)):
                tensor.set_shape(start.shape)  # lost where there are many models
            return unit + 1, hidden, natural

        _, hidden, _ = tf.while_loop(
            lambda unit, *_: unit < units,
            site,
            (tf.constant(0), states, inputs),
        )
        return number + 1, hidden

    return tf.while_loop(
        lambda number, _: number < count, sweep, (tf.constant(0), hidden)
    )[1]


class Visited(NamedTuple):
    """Hidden states that chains have been in, with their exact weights.

    Attributes:
        hidden: tensor (n, H), each state once.
        probabilities: tensor (n,), their shares of each other.
        log_mass: scalar, float64, log of the sum of their weights p*(h), v summed
            out: a lower bound of log Z, and nearly log Z where few states matter.
    """

    hidden: tf.Tensor
    probabilities: tf.Tensor
    log_mass: tf.Tensor

    @classmethod
    def by(cls, potentials, visible):
        """Returns the likeliest hidden state of each visible one, (C, V), as `Visited`.

        `None` where the hidden units are not binary, or there are several models.
        """
        binary = isinstance(potentials.hidden, BernoulliParameters)
        if not binary or potentials.batch_size is not None:
            return None
        hidden = potentials.hidden_natural(visible).numpy() > 0.0
        hidden = tf.constant(np.unique(hidden, axis=0), tf.float32)
        exact = tf.nest.map_structure(lambda x: tf.cast(x, tf.float64), potentials)
        states = tf.cast(hidden, tf.float64)
        log_weights = tf.linalg.matvec(states, exact.hidden_bias)
        of_visible = exact.visible.log_partition(exact.visible_natural(states))
        log_weights += tf.reduce_sum(of_visible, -1)
        shares = tf.cast(tf.nn.softmax(log_weights), tf.float32)
        return cls(hidden, shares, tf.reduce_logsumexp(log_weights))

    def means(self, potentials):
        """Returns E[v] over these states, (V,)."""
        means = potentials.visible.mean(potentials.visible_natural(self.hidden))
        return tf.linalg.matvec(means, self.probabilities, transpose_a=True)

    def draw(self, potentials, count, seed):
        """Returns visible states (count, V), drawn by their hidden states."""
        cumulative = tf.cumsum(self.probabilities)
        place = random.uniform((count,), random.fold_in(seed, 0)) * cumulative[-1]
        number = tf.searchsorted(cumulative, place, side="right")
        number = tf.minimum(number, len(cumulative) - 1)
        natural = potentials.visible_natural(tf.gather(self.hidden, number))
        noise = random.uniform(natural.shape, random.fold_in(seed, 1))
        return potentials.visible.sample(natural, noise)
