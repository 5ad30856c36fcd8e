"""Checks of rows: whether they can be states of a layer, and what looks wrong."""

import math
import warnings

import numpy as np
import tensorflow as tf

from keras_rbm.datasets.in_memory import SparseRows
from keras_rbm.inference.missing import filled, is_known
from keras_rbm.models.data.rows import (
    as_rows,
    check_no_bytes,
    is_numeric,
    parts_of_rows,
    row_chunks,
    several_inputs,
)
from keras_rbm.units.bernoulli import are_binary

#: What to do with values that are no states.
SCALE = "Scale the data (to [0, 1]: MinMaxScaler(clip=True))"


def values_of(rows, unit):
    """Yields all values of rows, some at a time; of sparse ones those that are stored.

    If a layer has several unit types, whose values differ, rows are made dense.
    """
    alike = unit is None or unit.unit_of_column(0) is unit
    if isinstance(rows, SparseRows) and alike:
        return [as_rows(rows.stored[np.newaxis])]
    return row_chunks(rows)


def all_within(part, low=None):
    """Returns a bool (): whether all values are finite, and none is below `low`."""
    low = part.dtype.min if low is None else low
    return tf.reduce_all((part >= low) & (part <= part.dtype.max))  # false for NaN


def are_sound(rows, unit, has_gaps):
    """Returns a bool tensor (): whether all rows can be states of a unit.

    `unit` and `has_gaps` are as for `check_rows`.
    """
    if unit is None:
        return all_within(filled(rows) if has_gaps else rows)
    sound = unit.contains(rows)
    if has_gaps:
        sound = tf.logical_or(sound, tf.logical_not(is_known(rows)))
    return tf.reduce_all(sound)


def check_rows(
    rows, name, width=None, unit=None, example=None, has_gaps=False, first_row=0
):
    """Raises a ValueError unless `rows` can be states of a layer.

    Args:
        rows: tensor or array that should be (examples, width).
        name: str, the argument's name.
        width: int or `None`.
        unit: `Unit` whose states they should be, or `None` for any numbers.
        example, has_gaps: shape of one example that need not be a vector, and whether
            there may be NaN, see `Part`.
        first_row: int, number of the first row, for messages.
    """
    if not hasattr(rows, "shape"):
        raise TypeError(
            f"Expected {name} as an array. Received: {type(rows).__name__}."
            f"{several_inputs(rows)}"
        )
    if isinstance(rows.shape, tf.TensorShape) and rows.shape.rank is None:
        return
    shape = tuple(rows.shape)
    if example is not None:
        fits = tf.TensorShape(example or shape[1:]).is_compatible_with(shape[1:])
        if not (fits and len(shape) > 1):
            raise ValueError(
                f"Expected {name} of shape (examples, …), the input of the backbone, "
                f"{example}. Received: {name}.shape={shape}."
            )
    elif len(shape) != 2 or (width is not None and shape[1] not in (None, width)):
        raise ValueError(
            f"Expected {name} of shape (examples, {width or 'units'}). Received: "
            f"{name}.shape={shape}. Flatten each example to a vector, and batch a "
            "dataset: dataset.batch(100)."
        )
    if isinstance(rows, (tf.TensorSpec, tf.SparseTensorSpec)):
        return
    if isinstance(rows, SparseRows) and math.prod(shape):
        _check_sparse(rows, name, unit, has_gaps)
        return
    if tf.is_tensor(rows) and not hasattr(rows, "numpy"):
        return
    values = np.asarray(rows)
    if not values.size:
        raise ValueError(
            f"Expected {name} of at least one example. Received: {name}.shape={shape}."
        )
    if not is_numeric(values):
        check_no_bytes(values)
        raise TypeError(
            f"Expected {name} to be numbers. Received: {name} of dtype {values.dtype}."
        )
    if has_gaps:
        known = is_known(values)
        if not known.all():
            state = values[known][0] if known.any() else 0
            values = np.where(known, values, state)
    low, high = float(values.min()) + 0.0, float(values.max()) + 0.0  # no -0
    if not np.isfinite([low, high]).all():
        cure = (
            "Remove or impute them first."
            if unit is None
            else "Replace infinite ones. If NaN stands for what is not known, pass "
            "missing='latent' to the model."
        )
        kind = "infinite" if has_gaps else "NaN or infinite"
        raise ValueError(f"Expected finite {name}. Received: {kind} values. {cure}")
    if unit is not None:
        _check_states(values, name, unit, known if has_gaps else True, first_row)


def _check_sparse(rows, name, unit, has_gaps):
    """Raises a ValueError unless sparse rows can be states; looks at what is stored."""
    if all(are_sound(values, unit, has_gaps) for values in values_of(rows, unit)):
        return
    first = 0
    for chunk in map(np.asarray, parts_of_rows(rows)):
        check_rows(chunk, name, None, unit, None, has_gaps, first)
        first += len(chunk)


def _check_states(values, name, unit, known, first_row):
    """Raises a ValueError unless an array of finite numbers can be states of a unit."""
    sound = unit.contains(values) | ~np.asarray(known)
    if np.all(sound):
        return
    row, column = np.argwhere(~np.asarray(sound))[0]
    kind = unit.unit_of_column(column)
    states = values if kind is unit else values[:, column]
    low, high = states.min() + 0.0, states.max() + 0.0  # no -0
    first = "Number categories from 0" if kind.encodes else SCALE
    cure = f"{first}, or use another unit (visible='gaussian' takes all numbers)."
    signs = (low, high) == (-1.0, 1.0) and np.isin(states, (-1, 0, 1)).all()
    if signs and not kind.encodes:
        cure = (
            "-1 and 1 are states of visible='spin'. If 0 stands for what is not rated, "
            "put NaN there, and pass missing='absent'."
        )
    raise ValueError(
        f"Expected {name}, states of {type(kind).__name__} units: {kind.description}. "
        f"Received: {values[row, column]:g} in row {first_row + row}, column {column}; "
        f"values from {low:g} to {high:g}. {cure}"
    )


def check_no_labels(targets):
    """Raises a ValueError if `targets` are classes, not states of visible units."""
    shape = getattr(targets, "shape", (1, 2))
    if isinstance(shape, tf.TensorShape) and shape.rank is None:
        return
    single = len(shape) == 1 or (len(shape) == 2 and shape[1] == 1)
    values = targets if isinstance(targets, np.ndarray) else np.zeros(1)
    words = values.dtype.kind in "OSU"
    if words or len(shape) == 1 or (single and values.max(initial=0) >= 2):
        raise ValueError(
            "Expected y of shape (examples, units), states 0 and 1. Received: "
            f"y.shape={tuple(shape)}, dtype {targets.dtype}. Turn classes into states: "
            "keras.utils.to_categorical(labels). Number words first: "
            "keras.layers.StringLookup, or np.unique(labels, return_inverse=True)[1]."
        )


def check_weights(weights):
    """Raises a ValueError unless `weights` can be the weights of examples."""
    if weights is None:
        return
    weights = np.asarray(weights)
    if weights.dtype.kind not in "biuf":
        raise TypeError(
            "Expected sample_weight to be numbers. Received: sample_weight of dtype "
            f"{weights.dtype}."
        )
    if weights.ndim not in (1, 2) or weights.size != len(weights):
        raise ValueError(
            "Expected a sample_weight for each example. Received: sample_weight "
            f"of shape {weights.shape}."
        )
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise ValueError(
            "Expected finite sample_weight ≥ 0. Received: sample_weight with "
            "negative, infinite or NaN values."
        )


def warn_of_means(chunks, unit, name):
    """Warns if rows are not states of units but means, which have no likelihood.

    Values of a function that is traced are not known.
    """
    if not tf.executing_eagerly():
        return
    for rows in chunks:
        values = np.asarray(rows)
        states = np.asarray(unit.is_state(values) | ~is_known(values))
        if not states.all():
            column = int(np.argwhere(~states)[0, 1])
            kind = unit.unit_of_column(column)
            some = name if kind is unit else f"column {column} of {name}"
            warnings.warn(
                f"Expected {some} to be states of {type(kind).__name__} units, whole "
                "numbers. Received: values between them, for which the result is not a "
                "log-likelihood. Draw states first: keras_rbm.datasets.binarize, or "
                f"{name} > 0.5.",
                stacklevel=4,
            )
            return


def warn_of_no_zeros(rows, unit):
    """Warns if state 0, of units that have it, is nowhere stored in sparse rows."""
    has_zero = unit.encodes or are_binary(unit)
    if not isinstance(rows, SparseRows) or not has_zero or np.any(rows.stored == 0):
        return
    warnings.warn(
        f"Expected stored zeros, state 0 of {type(unit).__name__} units. Received: "
        "sparse rows without any. For a model with missing= what is not stored is not "
        "known. If zeros were stored, eliminate_zeros() or a conversion has dropped "
        "them: make the matrix of (state, (row, column)), as scipy.sparse.coo_array.",
        stacklevel=3,
    )


def all_known(values):
    """Returns whether no entry of an array, tensor or `SparseRows` is NaN."""
    if isinstance(values, SparseRows):
        values = values.stored
    return bool(np.all(is_known(values)))


def check_columns(visible, name):
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
