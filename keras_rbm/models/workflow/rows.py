"""Arrays and datasets as rows of float32, all at once or a few at a time."""

import itertools

import numpy as np
import tensorflow as tf

from keras_rbm.models.workflow.inputs import (
    check_dense,
    check_source,
    is_array,
    is_numeric,
    unpack,
)

_ROWS_AT_ONCE = 1000


def as_rows(data):
    """Returns an array or a (batched or unbatched) dataset as one float32 tensor."""
    values = as_values(data)
    if tf.is_tensor(values):
        return tf.cast(values, tf.float32)
    return tf.convert_to_tensor(values.astype(np.float32))


def as_values(data):
    """Returns the same as an array of numbers, not copied if it already is one."""
    if isinstance(data, tf.data.Dataset):
        _check_elements(data)
        batches = list(_batches(data))
        width = first_spec(data).shape[-1:]
        return tf.concat(batches, 0) if batches else tf.zeros((0, *width))
    check_dense(data)
    if tf.is_tensor(data):
        dtype = tf.as_dtype(data.dtype)
        if dtype.is_integer or dtype.is_floating:
            return tf.convert_to_tensor(data)
    try:
        values = np.asarray(data)
        if values.dtype.kind == "O" and data is not None:
            values = values.astype(np.float32)
        numeric = is_numeric(values)
    except (TypeError, ValueError):
        numeric = False
    if not numeric:
        raise TypeError(
            "Expected an array of numbers of shape (examples, units), or a "
            f"tf.data.Dataset. Received: {getattr(data, 'dtype', type(data).__name__)}."
        )
    return values


def first_spec(dataset):
    """Returns the `TensorSpec` of the first component of a dataset's elements."""
    spec = dataset.element_spec
    return spec[0] if isinstance(spec, (tuple, list)) else spec


def _check_elements(dataset):
    """Raises a TypeError unless a dataset's elements begin with a tensor."""
    spec = first_spec(dataset)
    if not isinstance(spec, tf.TensorSpec) or spec.dtype == tf.string:
        raise TypeError(
            "Expected a dataset of numeric arrays, or of tuples that begin with one. "
            f"Received: element_spec={dataset.element_spec!r:.200}. Map it to these."
        )


def _batches(dataset):
    if isinstance(dataset.element_spec, (tuple, list)):
        dataset = dataset.map(lambda x, *rest: x)
    rank = dataset.element_spec.shape.rank
    return dataset.batch(_ROWS_AT_ONCE) if rank == 1 else dataset


def row_chunks(data):
    """Yields an array or a dataset as float32 tensors of some rows each."""
    if isinstance(data, tf.data.Dataset):
        _check_elements(data)
        yield from (tf.cast(batch, tf.float32) for batch in _batches(data))
        return
    if not is_array(data):
        check_source(data)
        yield from (as_rows(unpack(batch)[0]) for batch in data)
        return
    values = as_values(data)
    count = values.shape[0] if len(values.shape) else 0
    for start in range(0, max(count, 1), _ROWS_AT_ONCE):
        part = values[start : start + _ROWS_AT_ONCE] if len(values.shape) else values
        yield as_rows(part)


def map_rows(function, *values):
    """Applies a function of float32 tensors (B, V), … to many rows, in parts."""
    if not tf.executing_eagerly() or len(values[0]) <= _ROWS_AT_ONCE:
        return function(*(tf.cast(own, tf.float32) for own in values))
    parts = zip(*map(row_chunks, values), strict=True)
    return tf.concat([function(*rows) for rows in parts], 0)


def some_rows(values, count):
    """Returns at most `count` rows of an array, the same random ones each time."""
    if len(values) <= count:
        return values
    # Evenly spaced rows may all be alike, where data are periodic.
    chosen = np.sort(np.random.default_rng(0).choice(len(values), count, replace=False))
    return tf.gather(values, chosen) if tf.is_tensor(values) else values[chosen]


def moments(chunks, weights=None):
    """Returns mean and variance (V,), float32, of rows.

    Args:
        chunks: iterable of tensors (n, V).
        weights: iterable of as many arrays (n,), positive, or `None`.
    """
    count, mean, squares = 0, 0.0, 0.0
    weights = itertools.repeat(None) if weights is None else weights
    for chunk, own_weights in zip(chunks, weights, strict=False):
        rows = np.asarray(chunk, np.float64)
        own = np.average(rows, 0, own_weights)
        size = len(rows) if own_weights is None else np.sum(own_weights)
        total = count + size
        spread = np.square(rows - own)
        squares = squares + (
            spread.sum(0) if own_weights is None else own_weights @ spread
        )
        squares += np.square(own - mean) * count * size / total
        mean = mean + (own - mean) * size / total
        count = total
    return mean.astype(np.float32), (squares / count).astype(np.float32)
