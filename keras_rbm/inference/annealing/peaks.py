"""Peaks of a model's probability, where chains may not come.

Beside a wide mode a chain may need thousands of sweeps, or luck, to find a narrow one
that holds more mass. Without noise some states lead there at once. Going uphill costs
little, so many states do.
"""

import numpy as np
import tensorflow as tf

from keras_rbm import random
from keras_rbm.inference.annealing.regions import heaviest
from keras_rbm.inference.traces import traced_by_size

#: Sweeps uphill.
_SWEEPS = 30
#: Chains of all models that are in memory at a time.
ROWS_AT_ONCE = 10_000
#: Natural parameter at which a unit is sure to be in its highest state.
CERTAIN = 30.0


def find_peaks(potentials, regions, first, starts, count, seed):
    """Returns the heaviest states that iterated conditional modes [1] lead to.

    They start at states of independent units with the means `u m + (1 - u) e`, where m
    are the means of `first`, u is uniform in (0, 1), and e are the units' lowest means
    for one half of the starts, their highest for the other.

    Args:
        potentials: `Potentials` of B models, or a single one.
        regions: `Regions` of each model; no two states returned are of the same one,
            unless there are fewer.
        first: tensor (V,) or (B, V), visible natural parameters.
        starts: int, the number of starts for each model.
        count: int, the number of states to return.
        seed: int tensor (2,).

    Returns:
        tensor (count, B, V).

    References:
        1. Besag. On the statistical analysis of dirty pictures. Journal of the Royal
           Statistical Society B, 1986.
    """
    units, batch = potentials.visible, regions.centers.shape[1]
    size = min(starts, max(2, ROWS_AT_ONCE // batch))
    models, found = potentials.repeat(size), []
    for number in range(-(-starts // size)):
        states = _starts(units, first, size, batch, random.fold_in(seed, number))
        found.append(_heaviest(units, regions, *_uphill(models, states), count))
    states = tf.reshape(tf.concat(found, 0), (-1, units.num_units))
    models = potentials.repeat(len(states) // batch)
    return _heaviest(units, regions, states, -models.free_energy(states), count)


def _starts(units, first, size, batch, seed):
    """Returns states (size · B, V) with less, or more, in all units than `first`."""
    ends = CERTAIN * np.where(np.arange(size) % 2, 1.0, -1.0) * units.finite
    ends = units.mean(tf.fill([1, units.num_rows], 1.0) * ends[:, np.newaxis])
    share = random.uniform((size, batch, 1), random.fold_in(seed, 0))
    means = share * units.mean(first) + (1.0 - share) * ends[:, np.newaxis]
    means = tf.reshape(means, (-1, units.num_rows))
    return units.draw(units.natural_for_expected(means), random.fold_in(seed, 1))


@traced_by_size
def _uphill(potentials, visible):
    """Returns where states lead in a few sweeps, and their log weights."""

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
    log_weights = np.reshape(np.float64(log_weights), rows.shape[:2])
    log_weights = np.nan_to_num(log_weights, nan=-1e300, neginf=-1e300)
    return tf.gather(states, heaviest(regions.labels(rows), log_weights, count))
