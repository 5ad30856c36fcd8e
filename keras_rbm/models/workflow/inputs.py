"""Checks and conversions of a model's inputs."""

import keras
import numpy as np
import tensorflow as tf

from keras_rbm.checks import is_int

#: Types that can be iterated over, but hold no batches.
_NO_BATCHES = (str, bytes, dict, set, frozenset, range, type)


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
    """Raises a TypeError if data are sparse, ragged, or have masked values."""
    if hasattr(data, "toarray"):
        kind, cure = "a sparse matrix", f"{name}.toarray()"
    elif isinstance(data, tf.SparseTensor):
        kind, cure = "a sparse matrix", f"tf.sparse.to_dense({name})"
    elif isinstance(data, tf.RaggedTensor):
        kind, cure = "a tensor of rows of several lengths", "rows of one length"
    elif isinstance(data, np.ma.MaskedArray) and np.ma.is_masked(data):
        kind, cure = "masked values", "rows without them"
    else:
        return
    raise TypeError(
        "Expected a dense array of shape (examples, units). Received: "
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
