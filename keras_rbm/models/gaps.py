"""What a model without input says of rows of which a part is not known."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike

from keras_rbm import random
from keras_rbm.inference import LogPartition, Potentials
from keras_rbm.inference.arguments import check_sizes
from keras_rbm.inference.completion import chain_means, draw_unknown, means_if_present
from keras_rbm.inference.few_unknown import rows_with_few_unknown, sums_over_unknown
from keras_rbm.inference.full_precision import full_precision
from keras_rbm.inference.potentials import finite_layers
from keras_rbm.models.conditional_scores import check_method, log_partitions
from keras_rbm.models.data.missing import filled, is_known
from keras_rbm.units.layer_parameters import LayerParameters

#: Rows whose chains run at once.
_ROWS_AT_ONCE = 1000
#: Sweeps of the chains of an exported model.
_EXPORTED_STEPS = 200
#: Binary hidden units that are enumerated for each row, rather than annealed.
_ENUMERATED = 14


def log_partition_given(
    model: keras.Model, observed: ArrayLike, method: str | None = None, **options: Any
) -> LogPartition:
    """Estimates, for each row, log Z of the model in which what is known is fixed.

    With `missing="absent"` it is log Z of the model of the units that a row has.

    Args:
        model: a built model without input.
        observed: array (N, V), NaN where not known.
        method: str, or `None` for `"exact"` if the hidden layer is small enough to
            enumerate it for each row, else `"ais"`.
        **options: as for `CRBM.log_partition`.

    Returns:
        `LogPartition`, fields (N,), nats.
    """
    values = tf.constant(model._states_with_gaps(observed), tf.float32)
    potentials = model.potentials(dtype=model.variable_dtype)
    method = method or _default_method(potentials)
    check_method(method)
    if model.missing == "absent":
        return log_partitions(
            lambda rows: model.potentials(_mask(rows), model.variable_dtype),
            values,
            [method],
            **options,
        )[method]
    few = rows_with_few_unknown(potentials, values.numpy())
    parts = []
    if few.any():
        with full_precision():
            sums, _ = sums_over_unknown(potentials, values[few].numpy())
        parts.append(LogPartition.exact(sums))
    if not few.all():
        rows = values[~few]
        estimate = log_partitions(
            lambda rows: potentials.given(rows)[0], rows, [method], **options
        )[method]
        parts.append(_shifted(estimate, tf.cast(potentials.given(rows)[1], tf.float64)))
    order = np.argsort(np.concatenate([np.flatnonzero(few), np.flatnonzero(~few)]))
    return _reordered(parts, order)


def _default_method(potentials):
    states = finite_layers(potentials).get("hidden", np.inf)
    return "exact" if states <= _ENUMERATED else "ais"


def _mask(rows):
    return tf.cast(is_known(rows), rows.dtype)


def _shifted(estimate, shift):
    """Returns an estimate of log Z plus known numbers (N,)."""
    names = "value", "lower", "upper", "log_weights"
    return estimate._replace(**{n: getattr(estimate, n) + shift for n in names})


def _reordered(parts, order):
    """Returns parts as one estimate, with its models in another order."""
    most = max(len(part.log_weights) for part in parts)
    parts = [
        part._replace(
            log_weights=tf.broadcast_to(part.log_weights, (most, len(part.value)))
            if len(part.log_weights) == 1
            else part.log_weights
        )
        for part in parts
    ]
    *fields, note = LogPartition.joined(parts)
    gathered = (tf.gather(field, order, axis=-1) for field in fields)
    return LogPartition(*gathered, note)  # type: ignore[call-arg]


def log_likelihood_of_known(
    model: keras.Model, values: Any, log_partition: Any
) -> tf.Tensor:
    """Returns log p of what is known of each row, (N,), float64, nats."""
    if model.missing == "absent":
        if log_partition is None or isinstance(log_partition, str):
            log_partition = log_partition_given(model, values, log_partition)
        own = getattr(log_partition, "value", log_partition)
        own = tf.cast(own, tf.float64)
        if own.shape.rank != 1 or len(own) != len(values):
            raise ValueError(
                "Expected log_partition of the same rows, which have models of their "
                f"own, a value for each of {len(values)}. Received: shape "
                f"{tuple(own.shape)}. Pass log_partition(observed=x), or a method's "
                "name."
            )
        return -tf.cast(model.free_energy(values), tf.float64) - own
    if log_partition is None:  # exact if the rows' own models are
        potentials = model.potentials(dtype=model.variable_dtype)
        log_partition = _default_method(potentials)
    joint = model._log_partition_value(log_partition)
    method = log_partition if isinstance(log_partition, str) else None
    return log_partition_given(model, values, method).value - joint


def marginals(
    model: keras.Model, values: np.ndarray, steps: int, seed: int
) -> tf.Tensor:
    """Returns means (N, rows) of the encoded visible states given what is known.

    Args:
        model: a built model without input.
        values: array (N, V), states, NaN where not known.
        steps: int ≥ 1, sweeps of the chains of rows of which much is unknown.
        seed: int.
    """
    check_sizes(steps=steps)
    potentials = model.potentials(dtype=model.variable_dtype)
    base = model._base_natural(potentials)
    with full_precision():
        if model.missing == "absent":
            return _means_if_present(model, values)
        means = np.zeros((len(values), int(potentials.visible.num_rows)), np.float32)
        few = rows_with_few_unknown(potentials, values)
        if few.any():
            means[few] = sums_over_unknown(potentials, values[few], True)[1]
        rest = np.flatnonzero(~few)
        for rows in np.split(rest, range(_ROWS_AT_ONCE, len(rest), _ROWS_AT_ONCE)):
            if len(rows):
                own = random.fold_in(random.as_seed(seed), int(rows[0]))
                means[rows] = means_by_chains(
                    potentials, values[rows], base, steps, own
                )
    return tf.constant(means)


def means_by_chains(
    potentials: Potentials,
    values: np.ndarray,
    base: tf.Tensor,
    steps: int,
    seed: int | tf.Tensor,
) -> tf.Tensor:
    """Returns means (N, rows) of the encoded visible states, by a chain for each row.

    Args:
        potentials: `Potentials`, of one model or N.
        values: array (N, V), states, NaN where not known.
        base: tensor (rows,) or (N, rows), where chains begin.
        steps: int ≥ 1.
        seed: int or seed tensor (2,).
    """
    return chain_means(potentials, *_chains(values, base, steps, seed))[0]


def draws_by_chains(
    potentials: Potentials,
    values: np.ndarray,
    base: tf.Tensor,
    steps: int,
    seed: int | tf.Tensor,
) -> tf.Tensor:
    """Returns states (N, V) that chains reach, see `means_by_chains`."""
    return draw_unknown(potentials, *_chains(values, base, steps, seed))


def _chains(values, base, steps, seed):
    """Returns what chains that keep known states take, but for the model."""
    rows = tf.constant(values)
    start = filled(rows), is_known(rows), base, random.as_seed(seed)
    return *start, tf.constant(steps)


def imputed(
    units: LayerParameters,
    values: np.ndarray,
    method: str,
    means: Callable[[], tf.Tensor],
    draws: Callable[[], tf.Tensor],
) -> tf.Tensor:
    """Returns states (N, V) in which gaps are filled.

    Args:
        units: `LayerParameters`.
        values: array (N, V), NaN where not known.
        method: `"mean"`, `"mode"` or `"sample"`.
        means, draws: functions that return means (N, rows), or states (N, V).
    """
    if method not in ("mean", "mode", "sample"):
        raise ValueError(
            f"Expected method 'mean', 'mode' or 'sample'. Received: method={method!r}."
        )
    if method == "sample":
        found = draws()
    elif method == "mean":
        found = units.state_like(means())
    else:
        found = units.mode(units.natural_for_mean(means()))
    return filled(tf.constant(values), found)


def _means_if_present(model, values):
    parts = []
    for first in range(0, len(values), _ROWS_AT_ONCE):
        rows = tf.constant(values[first : first + _ROWS_AT_ONCE])
        known = is_known(rows)
        own = model.potentials(_mask(rows), model.variable_dtype)
        parts.append(means_if_present(own, filled(rows), known))
    return tf.concat(parts, 0)


def states_given(
    model: keras.Model, values: np.ndarray, steps: int, seed: int
) -> tf.Tensor:
    """Returns states (N, V): what is not known is drawn given what is.

    Args:
        model, values, steps, seed: as for `marginals`.
    """
    check_sizes(steps=steps)
    potentials = model.potentials(dtype=model.variable_dtype)
    if model.missing == "absent":
        units = potentials.visible
        natural = units.natural_for_expected(_means_if_present(model, values))
        return units.draw(natural, seed)
    with full_precision():
        base = model._base_natural(potentials)
        return draws_by_chains(potentials, values, base, steps, seed)


def impute_in_graph(model: keras.Model, visible: tf.Tensor) -> tf.Tensor:
    """Returns what `impute` does by chains, for an exported model."""
    known, states = is_known(visible), filled(visible)
    potentials = model.potentials(_mask(visible), model.variable_dtype)
    if model.missing == "absent":
        means = means_if_present(potentials, states, known)
    else:
        base = model._base_natural(potentials)
        chains = states, known, base, random.as_seed(0), tf.constant(_EXPORTED_STEPS)
        means, _ = chain_means(potentials, *chains)
    return filled(visible, potentials.visible.whole.state_like(means))
