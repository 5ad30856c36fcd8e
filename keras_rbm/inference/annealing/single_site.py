"""Gibbs sampling of one unit at a time, with the other layer summed out."""

import math
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from scipy.special import logsumexp

from keras_rbm import random
from keras_rbm.inference.annealing.regions import rows_by_weight
from keras_rbm.inference.potentials import finite_layers
from keras_rbm.inference.traces import traced_by_size
from keras_rbm.inference.unit_states import UnitStates
from keras_rbm.units.layer_parameters import index_of_noise

#: Most and fewest sweeps, and the most evaluations of a visible unit's log-partition.
_SWEEPS, _FEWEST_SWEEPS, _EVALUATIONS = 20, 5, 1e8


def single_site_sweeps(potentials, visible, seed):
    """Draws the units of the smaller layer one by one, with the other summed out.

    Block Gibbs hardly ever leaves a mode of a model with strong weights: v determines
    h, and h determines v. With the larger layer summed out,
    `log p*(h) = c' h + sum_i A_i((b + W h)_i)`, and modes that differ in few hidden
    units are a few likely steps apart. A sweep evaluates H · V log-partitions for each
    state of a unit and each chain; large models make fewer sweeps, or none if only a
    few would be affordable.

    Args:
        potentials: `Potentials`; if neither layer is finite, states are unchanged.
        visible: tensor (C, V), states.
        seed: int or integer tensor of shape (2,).

    Returns:
        tensor (C, V), states.
    """
    layers = finite_layers(potentials)
    if not layers:
        return visible
    side = min(reversed(layers), key=layers.get)
    states = getattr(potentials, side).values.shape[1]
    sizes = visible.shape[0], *potentials.kernel.shape, states / 2
    sweeps = min(_SWEEPS, int(_EVALUATIONS / math.prod(sizes)))
    seed = random.as_seed(seed)
    if sweeps < _FEWEST_SWEEPS:
        return visible
    if side == "visible":
        return _sweeps(potentials.transpose(), visible, seed, tf.constant(sweeps))
    starting, ending = (random.fold_in(seed, -stream) for stream in (1, 2))
    hidden = potentials.hidden.draw(potentials.hidden_natural(visible), starting)
    hidden = _sweeps(potentials, hidden, seed, tf.constant(sweeps))
    return potentials.visible.draw(potentials.visible_natural(hidden), ending)


@traced_by_size
def _sweeps(potentials, hidden, seed, count):
    """Returns hidden states after sweeps over all hidden units in turn."""
    rows, units = tf.shape(hidden)[0], potentials.num_hidden
    kernel = tf.cast(tf.transpose(potentials.kernel), hidden.dtype)
    table = UnitStates.of(potentials.hidden, kernel)
    log_partition = potentials.visible.log_partition

    def sweep(number, states):
        inputs = potentials.visible_natural(states)
        noise = random.uniform((units, rows), random.fold_in(seed, number))

        def site(unit, hidden, natural):
            added = table.inputs(unit)
            natural -= tf.matmul(table.shares(hidden[:, unit], unit), added)
            weights = [
                tf.reduce_sum(log_partition(natural + added[k]), -1)
                for k in range(table.count)
            ]
            weights = tf.gather(table.own, unit, axis=-2) + tf.stack(weights, -1)
            number = index_of_noise(weights, tf.gather(noise, unit))
            number = tf.cast(number, tf.int32)
            state = tf.gather(tf.gather(table.values, unit), number)
            column = tf.one_hot(unit, units, dtype=hidden.dtype)
            hidden = tf.where(column > 0.0, state[:, tf.newaxis], hidden)
            natural += tf.gather(added, number)
            for tensor, start in ((hidden, states), (natural, inputs)):
                tensor.set_shape(start.shape)  # lost if there are several models
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
    """States of one layer that chains have visited, with their exact weights.

    The layer is the hidden one if it is finite, else the visible one.

    Attributes:
        states: tensor (n, B, units), states for each of B models.
        log_weights: array (n, B), float64, log p* with the other layer summed out;
            minus infinity for a repeated state.
        log_mass: array (B,), log of the sum of the weights: a lower bound of log Z,
            and nearly log Z if few states matter.
        of_hidden: bool, whether the states are of the hidden layer.
    """

    states: tf.Tensor
    log_weights: np.ndarray
    log_mass: np.ndarray
    of_hidden: bool

    @classmethod
    def by(cls, potentials, visible):
        """Returns each visible state, or its likeliest hidden state, as `Visited`.

        Args:
            potentials: `Potentials`, B models if the biases have a batch dimension.
            visible: tensor (n · B, V); row i belongs to model i modulo B.

        Returns `None` if neither layer is finite.
        """
        layers = finite_layers(potentials)
        if not layers:
            return None
        of_hidden = "hidden" in layers
        batch = 1 if potentials.batch_size is None else int(potentials.batch_size)
        models = potentials.repeat(len(visible) // batch)
        states = visible
        if of_hidden:
            states = models.hidden.mode(models.hidden_natural(visible))
            models = models.transpose()
        exact = tf.nest.map_structure(lambda x: tf.cast(x, tf.float64), models)
        log_weights = -exact.free_energy(tf.cast(states, tf.float64))
        log_weights = log_weights.numpy().reshape(-1, batch)
        states = tf.reshape(states, (*log_weights.shape, -1))
        log_weights[_repeated(states.numpy())] = -np.inf
        return cls(states, log_weights, logsumexp(log_weights, 0), of_hidden)

    def draw(self, potentials, regions, count, seed):
        """Returns visible states (count · B, V), drawn by weight, and absent shares."""
        batch = len(self.log_mass)
        means = tf.reshape(self.states, (-1, self.states.shape[2]))
        if self.of_hidden:
            models = potentials.repeat(len(means) // batch)
            means = models.visible.mean(models.visible_natural(means))
        else:
            means = potentials.visible.encode(means)
        labels = regions.labels(np.reshape(means, (-1, batch, means.shape[1])))
        seeds = [random.fold_in(seed, number) for number in range(2)]
        chosen, absent = rows_by_weight(self.log_weights, labels, count, seeds[0])
        chosen = np.stack([chosen, np.tile(np.arange(batch), (count, 1))], -1)
        states = tf.gather_nd(self.states, chosen.reshape(-1, 2))
        if self.of_hidden:
            natural = potentials.repeat(count).visible_natural(states)
            states = potentials.visible.draw(natural, seeds[1])
        return states, absent


def _repeated(hidden):
    """Returns bools (n, B), whether a model's state (n, B, H) repeats another."""
    keys = hidden @ np.random.default_rng(0).random(hidden.shape[-1])
    order = np.argsort(keys, 0, kind="stable")
    ordered = np.take_along_axis(keys, order, 0)
    repeated = np.zeros_like(keys, bool)
    same = np.concatenate([0 * ordered[:1], np.diff(ordered, axis=0) == 0.0])
    same[0] = False
    np.put_along_axis(repeated, order, same.astype(bool), 0)
    return repeated
