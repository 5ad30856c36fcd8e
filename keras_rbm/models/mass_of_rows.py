"""What the data alone say of log Z: a bound that no estimate may lie below."""

import math

import numpy as np
from scipy.special import logsumexp

from keras_rbm.datasets.sparse_rows import as_dense
from keras_rbm.models.data.rows import row_chunks

#: Rounding of energies in float32, relative and absolute, nats.
_RELATIVE, _ABSOLUTE = 1e-6, 1e-4


def log_mass(model, values, energies):
    """Returns a lower bound of log Z: the log mass of the different rows, in nats.

    For units of finitely many states `sum_v exp(-F(v)) <= Z` over any set of
    different states. It is a theorem; how near it comes depends on how much of the
    model's mass these states have. Rounding is taken off.

    Args:
        model: a model of p(v).
        values: array, sparse matrix (N, V) or dataset, states.
        energies: array (N,), F(v) or an upper bound of it.

    Returns:
        float; minus infinity for units of infinitely many states, and if a state is
        not known.
    """
    if not model._visible_parameters().whole.finite:
        return -math.inf
    different: dict[bytes, int] = {}
    number = 0
    for chunk in row_chunks(values, model.form.visible.fill):
        rows = np.asarray(as_dense(chunk), np.float32) + 0.0  # no state is minus 0
        if np.isnan(rows).any():
            return -math.inf
        different |= {row.tobytes(): number + i for i, row in enumerate(rows)}
        number += len(rows)
    if number != len(energies):
        return -math.inf  # they can be read only once
    weights = -np.asarray(energies, np.float64)[list(different.values())]
    total = logsumexp(weights)
    return float(total - _ABSOLUTE - _RELATIVE * np.abs(weights).max())


def may_exceed(energies, log_partition):
    """Returns whether rows could have more mass than Z, if all were different."""
    return bool(logsumexp(-np.asarray(energies, np.float64)) > log_partition)
