"""Exact sums over visible states that are not known, where a row has few of them."""

import itertools
from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from keras_rbm.inference.potentials import Potentials, num_states
from keras_rbm.units.joined_units import JoinedParameters
from keras_rbm.units.layer_parameters import LayerParameters

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
    states = _states_of_units(potentials.visible)
    each = [np.inf if values is None else np.log2(len(values)) for values in states]
    return np.where(np.isnan(visible), each, 0.0).sum(1) <= np.log2(MOST_STATES)


def _states_of_units(units):
    """Returns the states of each unit, an array, or `None` if they are infinitely many.

    So a label is summed over beside real-valued units that are known.
    """
    found = []
    for part in units.parts if isinstance(units, JoinedParameters) else [units]:
        if part.finite:
            counts = num_states(part)
            found += [own[:n] for own, n in zip(part.values, counts, strict=True)]
        else:
            found += [None] * int(part.num_units)
    return found


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
    log_sums = np.zeros(len(visible))
    means = np.zeros((len(visible), int(units.num_rows))) if with_means else None
    width = visible.shape[1] + (means.shape[1] if means is not None else 0)
    for numbers, states, starts in _parts(units, visible, _AT_ONCE // width):
        tensor = tf.constant(states, tf.float32)
        log_weights = -np.float64(potentials.free_energy(tensor))
        sums = np.logaddexp.reduceat(log_weights, starts)
        log_sums[numbers] = sums
        if means is not None:
            lengths = np.diff(np.append(starts, len(states)))
            shares = np.exp(log_weights - np.repeat(sums, lengths))
            rows = shares[:, np.newaxis] * np.float64(units.encode(tensor))
            means[numbers] = np.add.reduceat(rows, starts)
    return log_sums, means


def _parts(
    units: LayerParameters, visible: np.ndarray, most: int
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yields numbers of rows, all their states, and where each row's states begin."""
    states_of = _states_of_units(units)
    numbers, parts, size = [], [], 0
    for number, row in enumerate(visible):
        columns = np.flatnonzero(np.isnan(row))
        if len(columns):
            each = (states_of[column] for column in columns)
            found = np.array([*itertools.product(*each)], np.float32)
            states = np.repeat(row[np.newaxis], len(found), 0)
            states[:, columns] = found
        else:
            states = row[np.newaxis]
        if parts and size + len(states) > most:
            yield _joined(numbers, parts)
            numbers, parts, size = [], [], 0
        numbers.append(number)
        parts.append(states)
        size += len(states)
    if parts:
        yield _joined(numbers, parts)


def _joined(numbers, parts):
    starts = np.cumsum([0, *map(len, parts)])[:-1]
    return np.array(numbers), np.concatenate(parts), starts
