"""Gibbs sampling of one unit at a time, with the other layer summed out."""

import math

import tensorflow as tf

from keras_rbm import random
from keras_rbm.inference.annealing.settings import SEARCH
from keras_rbm.inference.potentials import Potentials, finite_layers
from keras_rbm.inference.traces import traced_by_size
from keras_rbm.inference.unit_states import UnitStates
from keras_rbm.units.layer_parameters import index_of_noise


def single_site_sweeps(
    potentials: Potentials, visible: tf.Tensor, seed: int | tf.Tensor
) -> tf.Tensor:
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
    sweeps = min(SEARCH.single_site_sweeps, int(SEARCH.evaluations / math.prod(sizes)))
    seed = random.as_seed(seed)
    if sweeps < SEARCH.fewest_single_site_sweeps:
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
