"""Peaks of a model's modes, where chains may not come.

Beside a wide mode a chain may need thousands of sweeps, or luck, to find a narrow one
that holds more mass. Without noise some states lead there at once. Going uphill costs
little, so many states do.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_rbm import random
from keras_rbm.inference.annealing.pool import comparable, heaviest_rows
from keras_rbm.inference.traces import traced_by_size

#: Starts of either kind, as a multiple of M: going uphill costs little.
_STARTS = 20
#: Sweeps uphill: most states arrive in ten, the last in narrow modes after twenty.
_SWEEPS = 20
#: Rows of one walk uphill, for the sake of memory.
_ROWS_AT_ONCE = 10_000


class Peaks(NamedTuple):
    """States that iterated conditional modes reach.

    Attributes:
        highest: tensor (K, B, V), of least free energy.
        others: tensor (n · B, V), of any height.
    """

    highest: tf.Tensor
    others: tf.Tensor


def find_peaks(potentials, regions, first, num_chains, count, seed):
    """Returns states that iterated conditional modes [1] reach from many starts.

    They start at states of independent visible units with the means
    `u m + (1 - u) e`, where m are the means of `first`, u is uniform in (0, 1) for each
    start, and e are the units' lowest means for every other start, their highest for
    the rest (the means at natural parameters of 0, for categories and units without
    limit). As many start at hidden states that are drawn without any input but, of
    each start, the logit of a u: binary units are on with probability u.

    Args:
        potentials: `Potentials` of B models, or a single one.
        regions: `Regions` of each model; the highest states are of different ones, and
            the last repeat the first if fewer are reached.
        first: tensor (rows,) or (B, rows), visible natural parameters.
        num_chains: int, M; there are twenty times as many starts of either kind.
        count: int, K.
        seed: int tensor (2,).

    References:
        1. Besag. On the statistical analysis of dirty pictures. Journal of the Royal
           Statistical Society B, 1986.
    """
    units, batch, starts = (
        potentials.visible,
        regions.centers.shape[1],
        _STARTS * num_chains,
    )
    size = min(starts, max(2, _ROWS_AT_ONCE // batch))
    walkers, highest, others = potentials.repeat(size), [], []
    for number in range(-(-starts // size)):
        part = random.fold_in(seed, number)
        visible = _visible_starts(units, first, size, batch, random.fold_in(part, 0))
        hidden = _hidden_starts(walkers.hidden, size * batch, random.fold_in(part, 1))
        for states in (visible, units.mode(walkers.visible_natural(hidden))):
            states, log_weights = uphill(walkers, states)
            highest.append(_heaviest(units, regions, states, log_weights, count))
            if number == 0:
                others.append(states[: num_chains * batch])
    states = tf.reshape(tf.concat(highest, 0), (-1, units.num_units))
    models = potentials.repeat(len(states) // batch)
    log_weights = -models.free_energy(states)
    highest = _heaviest(units, regions, states, log_weights, count)
    return Peaks(highest, tf.concat(others, 0))


def _visible_starts(units, first, size, batch, seed):
    """Returns states (size · B, V) between those of `first` and all units at an end."""
    ends = units.mean(tf.tile(units.ends, (-(-size // 2), 1)))[:size]
    share = random.uniform((size, batch, 1), random.fold_in(seed, 0))
    means = share * units.mean(first) + (1.0 - share) * ends[:, tf.newaxis]
    means = tf.reshape(means, (-1, units.num_rows))
    return units.draw(units.natural_for_expected(means), random.fold_in(seed, 1))


def _hidden_starts(units, rows, seed):
    """Returns hidden states (rows, H), of each row with another share of units on."""
    share = random.uniform((rows, 1), random.fold_in(seed, 0))
    natural = tf.math.log(share) - tf.math.log1p(-share)
    natural = tf.tile(natural, (1, units.num_rows))
    return units.draw(natural, random.fold_in(seed, 1))


@traced_by_size
def uphill(potentials, visible):
    """Returns where states lead without noise, and their log weights.

    Args:
        potentials: `Potentials` of as many models as rows, or a single one.
        visible: tensor (C, V), states.

    Returns:
        tensors (C, V) and (C,), nats.
    """

    def sweep(index, visible):
        hidden = potentials.hidden.mode(potentials.hidden_natural(visible))
        new = potentials.visible.mode(potentials.visible_natural(hidden))
        return index + 1, tf.ensure_shape(new, visible.shape)

    _, visible = tf.while_loop(
        lambda index, _: index < _SWEEPS, sweep, (tf.constant(0), visible)
    )
    return visible, -potentials.free_energy(visible)


def _heaviest(units, regions, states, log_weights, count):
    """Returns states (count, B, V) of states (n · B, V)."""
    batch = regions.centers.shape[1]
    rows = np.reshape(units.encode(states), (-1, batch, units.num_rows))
    log_weights = np.reshape(comparable(np.float64(log_weights)), rows.shape[:2])
    return tf.gather(states, heaviest_rows(regions.labels(rows), log_weights, count))
