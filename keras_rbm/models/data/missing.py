"""Entries of the data that are not known, which NaN stands for."""

from typing import Any

import numpy as np
import tensorflow as tf

from keras_rbm.datasets.sparse_rows import SparseRows
from keras_rbm.units.unit import Unit

#: What NaN may mean, besides an error.
KINDS = ("latent", "absent")


def check_missing(missing: Any) -> None:
    """Raises a ValueError unless the argument of a model is one of the kinds."""
    if missing is not None and (not isinstance(missing, str) or missing not in KINDS):
        raise ValueError(
            "Expected missing as 'latent' (there, but not known), 'absent' (not part "
            f"of the example), or None. Received: missing={missing!r}."
        )


def is_known(values: Any) -> Any:
    """Returns bools of the shape of an array or tensor of numbers."""
    if tf.is_tensor(values):
        floating = values.dtype.is_floating
        return values == values if floating else tf.ones_like(values, tf.bool)
    return values == values  # false for NaN


def all_known(values: Any) -> bool:
    """Returns whether no entry of an array, tensor or `SparseRows` is NaN."""
    if isinstance(values, SparseRows):
        values = values.stored
    return bool(np.all(is_known(values)))


def filled(values: Any, others: Any = 0.0) -> Any:
    """Returns an array or tensor with other values in the place of NaN."""
    if tf.is_tensor(values):
        others = tf.cast(others, values.dtype)
        return tf.where(is_known(values), values, others * tf.ones_like(values))
    return np.where(is_known(values), values, others)


def encoded(unit: Unit, states: Any) -> Any:
    """Returns data (n, units) as (n, rows), as `unit.encode` does; NaN stays NaN."""
    known = is_known(states)
    if np.all(known):
        return unit.encode(states)
    rows = np.asarray(unit.encode(filled(states)))
    return np.where(unit.by_row(np.asarray(known)), rows, np.nan)


def pooling(model: Any) -> Any:
    """Returns the `pooled` of `moments` for data of a model, or `None`.

    Columns with gaps borrow from each other where these mean that few examples have a
    unit. A latent unit is there in each.
    """
    return model.visible.pooled if model.missing == "absent" else None


def check_columns(visible: Any, name: str) -> None:
    """Raises a ValueError if a column of data is not known in any row."""
    if isinstance(visible, SparseRows):
        known = np.zeros(visible.shape[1], bool)
        known[visible.matrix.indices[is_known(visible.matrix.data)]] = True
    else:
        known = np.asarray(is_known(visible)).any(0)
    empty = np.flatnonzero(~known)
    if len(empty):
        raise ValueError(
            f"Expected {name} with a known value in each column. Received: only NaN in "
            f"columns {empty.tolist()!r:.200}. Leave them out."
        )


def entries(
    visible: tf.Tensor, prediction: tf.Tensor, weights: tf.Tensor | None
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns each entry as an example of its own, with weight 0 if it is not known.

    Args:
        visible: tensor (B, V).
        prediction: tensor (B, V), or (B, q) of one unit of q categories.
        weights: tensor of B numbers, or `None`.

    Returns:
        tensors (B V, 1), (B V, 1) or (B, q), and (B V,).
    """
    known = tf.cast(is_known(visible), prediction.dtype)
    if weights is not None:
        known *= tf.reshape(tf.cast(weights, known.dtype), (-1, 1))
    states = tf.reshape(filled(visible), (-1, 1))
    if visible.shape[-1] == prediction.shape[-1]:
        prediction = tf.reshape(prediction, (-1, 1))
    return states, prediction, tf.reshape(known, [-1])
