"""Gibbs sampling of one unit at a time, the other layer summed out."""

import math
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from scipy.special import logsumexp

from keras_rbm import random
from keras_rbm.inference.estimates import rows_by_weight
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
        hidden: tensor (n, B, H), states for each of B models.
        log_weights: array (n, B), float64, log p*(h) with v summed out; minus infinity
            of a state that is there already.
        log_mass: array (B,), log of the sum of the weights: a lower bound of log Z,
            and nearly log Z where few states matter.
    """

    hidden: tf.Tensor
    log_weights: np.ndarray
    log_mass: np.ndarray

    @classmethod
    def by(cls, potentials, visible):
        """Returns the likeliest hidden state of each visible one as `Visited`.

        Args:
            potentials: `Potentials`, B models if the biases have a batch dimension.
            visible: tensor (n · B, V), row i that of model i modulo B.

        `None` where the hidden units are not binary.
        """
        if not isinstance(potentials.hidden, BernoulliParameters):
            return None
        batch = 1 if potentials.batch_size is None else int(potentials.batch_size)
        models = potentials.repeat(len(visible) // batch)
        hidden = tf.cast(models.hidden_natural(visible) > 0.0, tf.float32)
        exact = tf.nest.map_structure(lambda x: tf.cast(x, tf.float64), models)
        states = tf.cast(hidden, tf.float64)
        log_weights = tf.reduce_sum(states * exact.hidden_bias, -1)
        of_visible = exact.visible.log_partition(exact.visible_natural(states))
        log_weights += tf.reduce_sum(of_visible, -1)
        log_weights = log_weights.numpy().reshape(-1, batch)
        hidden = tf.reshape(hidden, (*log_weights.shape, -1))
        log_weights[_repeated(hidden.numpy())] = -np.inf
        return cls(hidden, log_weights, logsumexp(log_weights, 0))

    def draw(self, potentials, regions, count, seed):
        """Returns visible states (count · B, V), drawn by their hidden states."""
        batch = len(self.log_mass)
        hidden = tf.reshape(self.hidden, (-1, self.hidden.shape[2]))
        models = potentials.repeat(len(hidden) // batch)
        means = models.visible.mean(models.visible_natural(hidden))
        labels = regions.labels(np.reshape(means, (-1, batch, means.shape[1])))
        seeds = [random.fold_in(seed, number) for number in range(2)]
        chosen = rows_by_weight(self.log_weights, labels, count, seeds[0])
        chosen = np.stack([chosen, np.tile(np.arange(batch), (count, 1))], -1)
        hidden = tf.gather_nd(self.hidden, chosen.reshape(-1, 2))
        natural = potentials.repeat(count).visible_natural(hidden)
        noise = random.uniform(natural.shape, seeds[1])
        return potentials.visible.sample(natural, noise)


def _repeated(hidden):
    """Returns bools (n, B), whether a model's state (n, B, H) is there already."""
    keys = hidden @ np.random.default_rng(0).random(hidden.shape[-1])
    order = np.argsort(keys, 0, kind="stable")
    ordered = np.take_along_axis(keys, order, 0)
    repeated = np.zeros_like(keys, bool)
    same = np.concatenate([0 * ordered[:1], np.diff(ordered, axis=0) == 0.0])
    same[0] = False
    np.put_along_axis(repeated, order, same.astype(bool), 0)
    return repeated
