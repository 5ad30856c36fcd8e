"""What comes into a model from outside: looking at it, and checking it."""

import keras
import numpy as np
import tensorflow as tf


def is_array(data):
    """Returns whether `data` is one array (not a dataset, generator or loader)."""
    return hasattr(data, "__array__") or isinstance(data, (list, tuple))


def first_batch(data):
    """Returns a first batch of data for `fit`, and the data with nothing missing.

    Args:
        data: array, `tf.data.Dataset`, `keras.utils.PyDataset` or generator.

    Returns:
        `(batch, data)`; a generator that was peeked into is chained anew.
    """
    if is_array(data):
        return data, data
    if isinstance(data, keras.utils.PyDataset):
        return data[0], data
    if isinstance(data, tf.data.Dataset):
        for batch in data.take(1):
            return batch, data
        raise ValueError("Expected data of at least one batch. Received: no batch.")
    if hasattr(data, "__next__"):
        batch = next(data)
        return batch, _chained(batch, data)
    if hasattr(data, "__iter__") and not isinstance(data, (str, bytes, dict)):
        return next(iter(data)), data
    raise TypeError(
        "Expected an array, tf.data.Dataset, PyDataset or generator. Received: "
        f"{type(data).__name__}."
    )


def check_input_shape(shape):
    """Raises a ValueError unless a model can be built for inputs of this shape."""
    if len(shape) != 2 or shape[-1] is None or shape[-1] < 1:
        raise ValueError(
            "Expected an input of shape (examples, units) of known width. Received: "
            f"input_shape={tuple(shape)}. Flatten each example to a vector, or pass "
            "num_visible=."
        )


def as_arrays(x, y, sample_weight):
    """Returns the parts of array data as arrays or `None`, of one length."""
    arrays = [
        None if part is None else part if tf.is_tensor(part) else np.asarray(part)
        for part in (x, y, sample_weight)
    ]
    weights = arrays[2]
    if weights is not None:
        weights = np.asarray(weights, np.float64)
        if weights.ndim > 2 or weights.size != len(weights):
            raise ValueError(
                "Expected a sample_weight for each example. Received: sample_weight "
                f"of shape {weights.shape}."
            )
        if not (np.isfinite(weights) & (weights >= 0)).all():
            raise ValueError(
                "Expected finite sample_weight ≥ 0. Received: sample_weight with "
                "negative, infinite or NaN values."
            )
    lengths = [
        part.shape[0] if part.shape else 0 for part in arrays if part is not None
    ]
    if len(set(lengths)) > 1:
        raise ValueError(
            "Expected arrays of one length. Received: x, y, sample_weight of lengths "
            f"{lengths}."
        )
    return arrays


def unpack(data):
    """Returns `(x, y, sample_weight)` of a batch; an empty tuple stands for no y.

    A distributed dataset has no place for `None`.
    """
    x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
    return x, None if isinstance(y, tuple) and not y else y, sample_weight


def with_weights(x, y, sample_weight, batch_size):
    """Returns arrays as what Keras takes: with weights and no y, as a dataset.

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
    # Not itertools.chain: Keras takes generators alone.
    yield first
    yield from rest


def as_rows(data):
    """Returns an array or a (batched or unbatched) dataset as one float32 tensor."""
    if isinstance(data, tf.data.Dataset):
        spec = data.element_spec
        if isinstance(spec, (tuple, list)):
            data, spec = data.map(lambda x, *rest: x), spec[0]
        batches = list(data.batch(1024) if spec.shape.rank == 1 else data)
        data = tf.concat(batches, 0) if batches else tf.zeros((0, *spec.shape[-1:]))
    if tf.is_tensor(data):
        return tf.cast(data, tf.float32)
    try:
        return tf.convert_to_tensor(np.asarray(data, np.float32))
    except (TypeError, ValueError) as error:
        raise TypeError(
            "Expected an array of numbers of shape (examples, units), or a "
            f"tf.data.Dataset. Received: {type(data).__name__}."
        ) from error


def check_rows(rows, name, width=None, support=None):
    """Raises a ValueError unless `rows` can be states of a layer.

    Args:
        rows: tensor or array that should be (examples, width).
        name: str, the argument's name.
        width: int or `None`.
        support: `(low, high)` or `None`, what values must lie in.
    """
    shape = tuple(rows.shape)
    if len(shape) != 2 or (width is not None and shape[1] not in (None, width)):
        raise ValueError(
            f"Expected {name} of shape (examples, {width or 'units'}). Received: "
            f"{name}.shape={shape}. Flatten each example to a vector, and batch a "
            "dataset: dataset.batch(100)."
        )
    if tf.is_tensor(rows) and not hasattr(rows, "numpy"):
        return
    values = np.asarray(rows)
    if not values.size:
        raise ValueError(
            f"Expected {name} of at least one example. Received: {name}.shape={shape}."
        )
    if values.dtype.kind not in "biuf" and values.dtype != "bfloat16":
        raise TypeError(
            f"Expected {name} to be numbers. Received: {name} of dtype {values.dtype}."
        )
    low, high = float(values.min()) + 0.0, float(values.max()) + 0.0  # no -0
    if not np.isfinite([low, high]).all():
        raise ValueError(
            f"Expected finite {name}. Received: NaN or infinite values. Remove or "
            "impute them first."
        )
    if support is not None and (low < support[0] or high > support[1]):
        raise ValueError(
            f"Expected {name} in [{support[0]:g}, {support[1]:g}], the states of the "
            f"model's units. Received: values from {low:g} to {high:g}. Scale the "
            "data (or, in an RBM, use visible='gaussian')."
        )
