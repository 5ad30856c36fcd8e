"""Log Z and likelihoods of a conditional model, and what data alone say of log Z."""

import math
import warnings

import numpy as np
import tensorflow as tf
from scipy.special import logsumexp

from keras_rbm import inference, random
from keras_rbm._checks import check_counts
from keras_rbm.datasets.in_memory import as_dense
from keras_rbm.inference.annealing.options import Options
from keras_rbm.inference.arguments import as_floats, check_eager
from keras_rbm.inference.log_partition import log_partitions as estimates_of
from keras_rbm.inference.messages.approximate_inference import can_start_at
from keras_rbm.inference.messages.mean_field import mean_field_bound
from keras_rbm.inference.traces import full_precision
from keras_rbm.models.data.rows import as_rows, row_chunks
from keras_rbm.models.layer_variables import visible_parameters

_ANNEALED = ("ais", "bidirectional", "reverse_ais")
#: Methods for log Z. Tempering, which takes one model at a time, is not among them.
METHODS = ("bethe", "mean_field", "exact", *_ANNEALED)
#: Nats by which a likelihood may exceed 0 without being wrong.
_ROUNDING = 1e-3
#: Models, or chains of all models, that are computed at once.
_ROWS_AT_ONCE = 10_000
#: Rounding of energies in float32, relative and absolute, nats.
_RELATIVE, _ABSOLUTE = 1e-6, 1e-4


def check_method(method):
    """Raises a ValueError unless a method estimates log Z of each example's model."""
    if not isinstance(method, str) or method not in METHODS:
        raise ValueError(
            f"Expected method to be one of {METHODS}. Received: method={method!r}."
        )


def log_partitions(
    potentials_of, rows, methods, *, num_chains=100, precision=None, seed=0
):
    """Estimates log Z(x) of the models given each row of x, by several methods.

    The methods share a search and chains.

    Args:
        potentials_of: function of rows of x that returns their `Potentials`.
        rows: tensor (B, X), or `SparseRows`.
        methods: list of str.
        num_chains, precision, seed: as for `CRBM.log_partition`.

    Returns:
        dict of method to `LogPartition`, fields (B,).
    """
    for method in methods:
        check_method(method)
    size = _ROWS_AT_ONCE
    if any(method in _ANNEALED for method in methods):
        check_eager("CRBM")
        check_counts(2, num_chains=num_chains)
        size = max(1, _ROWS_AT_ONCE // num_chains)
    parts = []
    eager = tf.executing_eagerly()
    for first in range(0, len(rows) if eager else size, size):
        features = as_rows(rows[first : first + size]) if eager else rows
        potentials = potentials_of(features)
        fresh = random.fold_in(random.as_seed(seed), first)
        part = estimates_of(
            potentials,
            [method for method in methods if method != "mean_field"],
            Options(num_chains, precision, fresh, potentials.visible_bias),
        )
        if "mean_field" in methods:
            part["mean_field"] = _mean_field_bound(potentials, features)
        parts.append(part)
    join = inference.LogPartition.joined
    return {method: join([part[method] for part in parts]) for method in methods}


@full_precision()
def _mean_field_bound(potentials, x):
    """Returns the higher bound of two starts: from x, if it has the width of v."""
    starts = [None]
    if can_start_at(potentials, x):
        starts.append(potentials.visible.statistics(x).bias)
    return mean_field_bound(potentials, starts=starts)


def log_likelihoods(free_energy, log_partition, method, is_discrete):
    """Returns -F(v | x) - log Z(x), (B,), float64, nats.

    Args:
        free_energy: tensor (B,).
        log_partition: `LogPartition` of the same x, or an array (B,).
        method: str, the method that has just computed it, or `None`.
        is_discrete: bool, whether v has probabilities, not densities.
    """
    free_energy = tf.cast(free_energy, tf.float64)
    value = getattr(log_partition, "value", log_partition)
    value = as_floats("log_partition", value, dtype=tf.float64)
    if not value.shape.is_compatible_with(free_energy.shape):
        raise ValueError(
            "Expected log_partition of the same x, a value for each of "
            f"{len(free_energy)} rows. Received: shape {tuple(value.shape)}. Call "
            "log_partition(x) with it, or pass a method's name."
        )
    score = -free_energy - value
    if method == "mean_field" and is_discrete:
        return tf.minimum(score, 0.0)
    if not tf.executing_eagerly():
        return score
    above = int(tf.reduce_sum(tf.cast(score > _ROUNDING, tf.int32)))
    if method == "bethe" and above:
        warnings.warn(
            f"The Bethe estimate gives {above} of {len(score)} examples a "
            "log-likelihood above 0, up to "
            f"{float(tf.reduce_max(score)):.3g} nats: it is wrong there. Use "
            "log_partition='ais' or 'exact'.",
            stacklevel=3,
        )
    return score


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
    if not visible_parameters(model).whole.finite:
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
