"""Whether rows can be states of a layer of units."""

import warnings

import numpy as np
import tensorflow as tf

from keras_rbm.models.workflow.inputs import is_numeric

#: How far from 0 and 1 scaled data may be.
_ROUNDING = 1e-5


def check_rows(rows, name, width=None, unit=None):
    """Raises a ValueError unless `rows` can be states of a layer.

    Args:
        rows: tensor or array that should be (examples, width).
        name: str, the argument's name.
        width: int or `None`.
        unit: `Unit` whose states they should be, or `None` for any numbers.
    """
    if not hasattr(rows, "shape"):
        raise TypeError(
            f"Expected {name} as an array. Received: {type(rows).__name__}."
        )
    if isinstance(rows.shape, tf.TensorShape) and rows.shape.rank is None:
        return
    shape = tuple(rows.shape)
    if len(shape) != 2 or (width is not None and shape[1] not in (None, width)):
        raise ValueError(
            f"Expected {name} of shape (examples, {width or 'units'}). Received: "
            f"{name}.shape={shape}. Flatten each example to a vector, and batch a "
            "dataset: dataset.batch(100)."
        )
    if isinstance(rows, tf.TensorSpec):
        return
    if tf.is_tensor(rows) and not hasattr(rows, "numpy"):
        return
    values = np.asarray(rows)
    if not values.size:
        raise ValueError(
            f"Expected {name} of at least one example. Received: {name}.shape={shape}."
        )
    if not is_numeric(values):
        raise TypeError(
            f"Expected {name} to be numbers. Received: {name} of dtype {values.dtype}."
        )
    low, high = float(values.min()) + 0.0, float(values.max()) + 0.0  # no -0
    if not np.isfinite([low, high]).all():
        raise ValueError(
            f"Expected finite {name}. Received: NaN or infinite values. Remove or "
            "impute them first."
        )
    if unit is not None:
        _check_states(values, name, unit)


def _check_states(values, name, unit):
    """Raises a ValueError unless an array of finite numbers can be states of a unit."""
    sound = unit.contains(values)
    if np.all(sound):
        return
    row, column = np.argwhere(~np.asarray(sound))[0]
    own = unit.unit_of_column(column)
    others = values if own is unit else values[:, column]
    low, high = others.min() + 0.0, others.max() + 0.0  # no -0
    raise ValueError(
        f"Expected {name}, states of {type(own).__name__} units: {own.description}. "
        f"Received: {values[row, column]:g} in row {row}, column {column}; values "
        f"from {low:g} to {high:g}. Scale the data, number categories from 0, or use "
        "another unit (visible='gaussian' takes all numbers)."
    )


def check_no_labels(targets):
    """Raises a ValueError if `targets` are classes, not states of visible units."""
    shape = getattr(targets, "shape", (1, 2))
    if isinstance(shape, tf.TensorShape) and shape.rank is None:
        return
    single = len(shape) == 1 or (len(shape) == 2 and shape[1] == 1)
    values = targets if isinstance(targets, np.ndarray) else np.zeros(1)
    words = values.dtype.kind in "OSU"
    if words or len(shape) == 1 or (single and values.max(initial=0) > 1):
        raise ValueError(
            "Expected y of shape (examples, units), states 0 and 1. Received: "
            f"y.shape={tuple(shape)}, dtype {targets.dtype}. Turn classes into states: "
            "keras.utils.to_categorical(labels). Number words first: "
            "keras.layers.StringLookup, or np.unique(labels, return_inverse=True)[1]."
        )


def warn_of_means(chunks, unit, name):
    """Warns if rows are not states of units but means, which have no likelihood."""
    for rows in chunks:
        states = np.asarray(unit.is_state(np.asarray(rows)))
        if not states.all():
            column = int(np.argwhere(~states)[0, 1])
            own = unit.unit_of_column(column)
            some = name if own is unit else f"column {column} of {name}"
            warnings.warn(
                f"Expected {some} to be states of {type(own).__name__} units, whole "
                "numbers. Received: values between them, for which the result is not a "
                "log-likelihood. Draw states first: keras_rbm.datasets.binarize, or "
                f"{name} > 0.5.",
                stacklevel=4,
            )
            return


def warn_of_values_outside(chunks, name):
    """Warns if rows for binary units are not from 0 to 1, up to rounding."""
    for rows in chunks:
        low, high = np.min(rows, initial=0.0), np.max(rows, initial=1.0)
        if low < -_ROUNDING or high > 1.0 + _ROUNDING:
            warnings.warn(
                f"Expected {name} from 0 to 1, states of binary units or their means. "
                f"Received: values from {low:g} to {high:g}. Features of such values "
                "mean little. Scale the data as for fit.",
                stacklevel=4,
            )
            return
