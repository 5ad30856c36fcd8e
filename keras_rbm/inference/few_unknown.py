"""Exact sums over visible states that are not known, where a row has few of them."""

import numpy as np
import tensorflow as tf

from keras_rbm.inference.exact import digits_of
from keras_rbm.inference.potentials import Potentials, num_states
from keras_rbm.units.joined_units import JoinedParameters

#: States of a row's unknown units, up to which all are summed.
MOST_STATES = 2**10
#: Numbers of states that are held at once.
_AT_ONCE = 2**22


def rows_with_few_unknown(potentials: Potentials, visible: np.ndarray) -> np.ndarray:
    """Returns bools (N,): whether a row's unknown units have few states together.

    Args:
        potentials: `Potentials`, a single model.
        visible: array (N, V), states, NaN where not known.
    """
    sizes, _ = _states_of_units(potentials.visible)
    return np.where(np.isnan(visible), np.log2(sizes), 0.0).sum(1) <= np.log2(
        MOST_STATES
    )


def _states_of_units(units):
    """Returns how many states each unit has, and its states, (units, most).

    Units without finitely many states have infinitely many, and none are listed: so a
    label is summed over beside real-valued units that are known.
    """
    parts = units.parts if isinstance(units, JoinedParameters) else [units]
    most = max(part.values.shape[1] if part.finite else 1 for part in parts)
    sizes, values = [], []
    for part in parts:
        own = part.values if part.finite else np.zeros((part.num_units, 1))
        values.append(np.pad(own, ((0, 0), (0, most - own.shape[1]))))
        sizes.append(num_states(part) if part.finite else np.full(len(own), np.inf))
    return np.concatenate(sizes), np.concatenate(values)


def sums_over_unknown(
    potentials: Potentials, visible: np.ndarray, with_means: bool = False
) -> tuple[np.ndarray, np.ndarray | None]:
    """Sums `exp(-F(v))` over the states of unknown units.

    Args:
        potentials: `Potentials`, a single model.
        visible: array (N, V), with few unknown units in each row.
        with_means: bool, whether means are computed, too.

    Returns:
        `(log_sums, means)`: float64 arrays (N,), in nats, and (N, rows) or `None`: the
        mean of the encoded visible states given the known ones.
    """
    units = potentials.visible
    sizes, values = _states_of_units(units)
    unknown = np.isnan(visible)
    sizes = np.where(unknown, sizes, 1).astype(int)  # of each row
    lengths = sizes.prod(1)
    log_sums = np.zeros(len(visible))
    means = np.zeros((len(visible), int(units.num_rows))) if with_means else None
    width = visible.shape[1] + (means.shape[1] if means is not None else 0)
    part_of = np.cumsum(lengths) // (_AT_ONCE // width)
    for part in np.unique(part_of):
        numbers = np.flatnonzero(part_of == part)
        row = np.repeat(numbers, lengths[numbers])
        starts = np.cumsum(lengths[numbers]) - lengths[numbers]
        within = np.arange(len(row)) - np.repeat(starts, lengths[numbers])
        digits = digits_of(within, sizes[row])
        states = values[np.arange(len(values)), digits]
        states = tf.constant(np.where(unknown[row], states, visible[row]), tf.float32)
        log_weights = -np.float64(potentials.free_energy(states))
        log_sums[numbers] = sums = np.logaddexp.reduceat(log_weights, starts)
        if means is not None:
            shares = np.exp(log_weights - np.repeat(sums, lengths[numbers]))
            rows = shares[:, np.newaxis] * np.float64(units.encode(states))
            means[numbers] = np.add.reduceat(rows, starts)
    return log_sums, means
