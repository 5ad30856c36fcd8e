"""Checks and conversions of a model's inputs."""

import warnings

import keras
import numpy as np
import tensorflow as tf

from keras_rbm.checks import is_int

#: Types that can be iterated over, but hold no batches.
_NO_BATCHES = (str, bytes, dict, set, frozenset, range, type)
#: How far from 0 and 1 scaled data may be.
_ROUNDING = 1e-5


def is_array(data):
    """Returns whether `data` is one array (not a dataset, generator or loader)."""
    return hasattr(data, "__array__") or isinstance(data, (list, tuple))


def first_batches(data, rows=1):
    """Returns the first batches of a source, and the source with all its batches.

    Args:
        data: `tf.data.Dataset`, `keras.utils.PyDataset` or generator.
        rows: int ≥ 1, how many examples are enough.

    Returns:
        `(batches, data)`: a list of at least one batch, and the data. A generator is
        returned with its first batches put back.
    """
    check_source(data)
    batches, count = [], 0
    for batch in data:
        batches.append(batch)
        x = unpack(batch)[0]
        count += x.shape[0] if getattr(x, "shape", None) else 1
        if count >= rows:
            break
    if not batches:
        raise ValueError("Expected data of at least one batch. Received: no batch.")
    return batches, _chained(batches, data) if hasattr(data, "__next__") else data


def check_source(data):
    """Raises a TypeError unless `data` is a source of batches, not an array."""
    loaders = (tf.data.Dataset, keras.utils.PyDataset)
    iterable = hasattr(data, "__iter__") and not isinstance(data, _NO_BATCHES)
    check_dense(data)
    if not isinstance(data, loaders) and not iterable:
        raise TypeError(
            "Expected an array, tf.data.Dataset, PyDataset or generator. Received: "
            f"{type(data).__name__}."
        )


def check_dense(data, name="x"):
    """Raises a TypeError if data are sparse (SciPy or TensorFlow) or ragged."""
    if hasattr(data, "toarray"):
        kind, cure = "sparse matrix", f"{name}.toarray()"
    elif isinstance(data, tf.SparseTensor):
        kind, cure = "sparse matrix", f"tf.sparse.to_dense({name})"
    elif isinstance(data, tf.RaggedTensor):
        kind, cure = "tensor of rows of several lengths", "rows of one length"
    else:
        return
    raise TypeError(
        "Expected a dense array of shape (examples, units). Received: a "
        f"{kind}, {type(data).__name__}. Pass {cure}."
    )


def check_input_shape(shape, model):
    """Raises a ValueError unless a model is or can be built for inputs of a shape."""
    known = isinstance(shape, (tuple, list, tf.TensorShape)) and len(shape) > 0
    if not known or not all(size is None or is_int(size) for size in shape):
        raise ValueError(
            "Expected input_shape as a tuple of ints and None. Received: input_shape="
            f"{shape!r:.200}."
        )
    if model.built:
        width = model.input_spec.axes[-1]
        if shape[-1] != width:
            raise ValueError(
                f"Expected an input of width {width}, for which '{model.name}' is "
                f"built. Received: input_shape={tuple(shape)}. Make a new model."
            )
        return
    if len(shape) != 2 or shape[-1] is None or shape[-1] < 1:
        raise ValueError(
            "Expected an input of shape (examples, units) of known width. Received: "
            f"input_shape={tuple(shape)}. Flatten each example to a vector, or pass "
            "num_visible=."
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


def as_arrays(x, y, sample_weight):
    """Returns the parts of array data as arrays or `None`, of one length."""
    parts = {"x": x, "y": y, "sample_weight": sample_weight}
    arrays = [_as_array(part, name) for name, part in parts.items()]
    check_weights(arrays[2])
    lengths = [
        part.shape[0] if len(part.shape) else 0 for part in arrays if part is not None
    ]
    if len(set(lengths)) > 1:
        raise ValueError(
            "Expected arrays of one length. Received: x, y, sample_weight of lengths "
            f"{lengths}."
        )
    return arrays


def _as_array(part, name):
    if part is None:
        return part
    check_dense(part, name)
    if tf.is_tensor(part):
        return part
    try:
        array = np.asarray(part)
        if array.dtype.kind == "O" and hasattr(part, "columns"):
            array = array.astype(np.float32)  # a frame of bools and numbers
        return array
    except ValueError as error:
        if hasattr(part, "columns"):
            raise ValueError(
                f"Expected {name} to be numbers. Received: a frame with words. Turn "
                "them into numbers with keras_rbm.units.from_dataframe(frame), which "
                "also returns their unit types."
            ) from error
        raise ValueError(
            f"Expected {name} as one array. Received: a {type(part).__name__} of parts "
            "of different shapes. Pass pairs as x and y."
        ) from error


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


def unpack(data):
    """Returns `(x, y, sample_weight)` of a batch; an empty tuple stands for no y.

    A distributed dataset cannot hold `None`.
    """
    x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
    return x, None if isinstance(y, tuple) and not y else y, sample_weight


def with_weights(x, y, sample_weight, batch_size):
    """Returns arrays as Keras takes them: as a dataset if there are weights but no y.

    Keras drops `sample_weight` from arrays without `y`.

    Returns:
        `(x, y, sample_weight)`.
    """
    if y is not None or sample_weight is None:
        return x, y, sample_weight
    dataset = tf.data.Dataset.from_tensor_slices((x, sample_weight))
    dataset = dataset.batch(batch_size or 32)
    return dataset.map(lambda x, weight: (x, (), weight)), None, None


def _chained(first, rest):
    # Not itertools.chain: Keras takes only generators.
    yield from first
    yield from rest


def is_numeric(values):
    """Returns whether a NumPy array holds real numbers."""
    return values.dtype.kind in "biuf" or values.dtype == "bfloat16"


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
