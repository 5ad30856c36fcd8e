"""Log Z and likelihoods of a conditional model, example by example."""

import warnings

import tensorflow as tf

from keras_rbm import inference, random
from keras_rbm.checks import check_counts
from keras_rbm.inference.arguments import as_floats
from keras_rbm.inference.messages.approximate_inference import can_start_at
from keras_rbm.inference.messages.mean_field import mean_field_bound

#: Methods for log Z. Tempering, which takes one model at a time, is not among them.
METHODS = ("bethe", "mean_field", "exact", "ais", "bidirectional", "reverse_ais")
_ANNEALED = ("ais", "bidirectional", "reverse_ais")
#: Nats by which a likelihood may exceed 0 without being wrong.
_ROUNDING = 1e-3
#: Models, or chains of all models, that are computed at once.
_ROWS_AT_ONCE = 10_000


def log_partitions(potentials_of, rows, method, *, num_chains, seed, **options):
    """Returns the `LogPartition` of the models given each row of x, see `CRBM`.

    Args:
        potentials_of: function of rows of x that returns their `Potentials`.
        rows: tensor (B, X).
        method, num_chains, seed: as for `CRBM.log_partition`.
        **options: the other arguments of `estimate_log_partition`.
    """
    if not isinstance(method, str) or method not in METHODS:
        raise ValueError(
            f"Expected method to be one of {METHODS}. Received: method={method!r}."
        )
    size = _ROWS_AT_ONCE
    if method in _ANNEALED:
        check_counts(2, num_chains=num_chains)
        size = max(1, _ROWS_AT_ONCE // num_chains)
    parts = []
    for first in range(0, len(rows), size):
        features = rows[first : first + size]
        potentials = potentials_of(features)
        if method == "mean_field":
            parts.append(_mean_field_bound(potentials, features))
            continue
        part = inference.estimate_log_partition(
            potentials,
            method,
            base=potentials.visible_bias,
            num_chains=num_chains,
            seed=random.fold_in(random.as_seed(seed), first),
            **options,
        )
        parts.append(part)
    return inference.LogPartition.joined(parts)


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
    if value.shape != free_energy.shape:
        raise ValueError(
            "Expected log_partition of the same x, a value for each of "
            f"{len(free_energy)} rows. Received: shape {tuple(value.shape)}. Call "
            "log_partition(x) with it, or pass a method's name."
        )
    score = -free_energy - value
    if method == "mean_field" and is_discrete:
        return tf.minimum(score, 0.0)
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
