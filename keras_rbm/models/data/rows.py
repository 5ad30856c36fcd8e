"""Arrays, datasets and other sources as rows of numbers, all or a few at a time."""

import math
from collections.abc import Iterator
from typing import Any, TypeAlias

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike

from keras_rbm.datasets.in_memory import SparseRows, as_dense, is_sparse
from keras_rbm.inference.missing import filled, is_known
from keras_rbm.inference.traces import full_precision

#: What `fit` and the like take: arrays, or a source of batches.
Data: TypeAlias = ArrayLike | tf.data.Dataset | keras.utils.PyDataset | Iterator[Any]
#: Types that can be iterated over, but hold no batches.
_NO_BATCHES = (str, bytes, dict, set, frozenset, range, type)
#: Rows that are computed at once, and numbers of them, if rows are wide.
ROWS_AT_ONCE, _NUMBERS_AT_ONCE = 1000, 2**21


def is_array(data):
    """Returns whether `data` is one array (not a dataset, generator or loader)."""
    array = hasattr(data, "__array__") or isinstance(data, (list, tuple))
    return array or is_sparse(data)


def is_numeric(values):
    """Returns whether a NumPy array holds real numbers."""
    return values.dtype.kind in "biuf" or values.dtype == "bfloat16"


def unpack(data):
    """Returns `(x, y, sample_weight)` of a batch; an empty tuple stands for no y.

    A distributed dataset cannot hold `None`.
    """
    x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
    return x, None if isinstance(y, tuple) and not y else y, sample_weight


def as_batch(x, y=None, sample_weight=None):
    """Returns a batch of parts, as `unpack` takes it."""
    if sample_weight is not None:
        return x, () if y is None else y, sample_weight
    return x if y is None else (x, y)


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


def _chained(first, rest):
    # Not itertools.chain: Keras takes only generators.
    yield from first
    yield from rest


def dense_source(source, dense):
    """Returns a `PyDataset` or generator; as a dataset if its batches are sparse.

    Args:
        source: a source of batches.
        dense: function of the parts of a batch that returns them dense.
    """
    if not isinstance(source, keras.utils.PyDataset) and not hasattr(
        source, "__next__"
    ):
        return source  # such as a distributed dataset
    batches, source = first_batches(source)
    if any(map(is_sparse, tf.nest.flatten(unpack(batches[0])))):
        return as_dataset(source, dense)
    return source


def as_dataset(source, dense):
    """Returns a `PyDataset` or generator as a dataset of dense batches."""
    batches, source = first_batches(source)

    def parts(batch):
        return as_batch(*dense(*unpack(batch)))

    def spec(part):
        return tf.TensorSpec((None, *part.shape[1:]), tf.as_dtype(part.dtype))

    dataset = tf.data.Dataset.from_generator(
        lambda: map(parts, source),
        output_signature=tf.nest.map_structure(spec, parts(batches[0])),
    )
    count = getattr(source, "num_batches", None)
    if count is None:
        return dataset
    return dataset.apply(tf.data.experimental.assert_cardinality(count))


def check_source(data):
    """Raises a TypeError unless `data` is a source of batches, not an array."""
    loaders = (tf.data.Dataset, keras.utils.PyDataset)
    iterable = hasattr(data, "__iter__") and not isinstance(data, _NO_BATCHES)
    check_regular(data)
    if not isinstance(data, loaders) and not iterable:
        raise TypeError(
            "Expected an array, tf.data.Dataset, PyDataset or generator. Received: "
            f"{type(data).__name__}.{several_inputs(data)}"
        )


def several_inputs(data):
    """Returns the cure for a dict of inputs, or nothing for others."""
    if not isinstance(data, dict):
        return ""
    return (
        " Take one part, of a dataset by dataset.map(lambda row: "
        f"row[{next(iter(data), 'x')!r}]), concatenate them, or end a Keras model of "
        "several inputs with the layer keras_rbm.layers.Marginals."
    )


def check_regular(data):
    """Raises a TypeError if data are ragged, records or have masked values."""
    if isinstance(data, tf.RaggedTensor):
        kind, cure = "a tensor of rows of several lengths", "rows of one length"
    elif isinstance(data, np.ma.MaskedArray) and np.ma.is_masked(data):
        kind, cure = "masked values", "rows without them"
    elif getattr(getattr(data, "dtype", None), "names", None):
        kind, cure = "records", "pandas.DataFrame(records)"
    else:
        return
    raise TypeError(
        "Expected an array of shape (examples, units). Received: "
        f"{kind}, {type(data).__name__}. Pass {cure}."
    )


def check_no_bytes(data):
    """Raises a TypeError if any of the data, which are no numbers, are bytes."""
    values = np.array(data, object).flat if hasattr(data, "__array__") else ()
    if any(isinstance(each, bytes) for each in values):
        raise TypeError(
            "Expected numbers. Received: byte strings, as from an ARFF file. Decode "
            "each such column of a frame: column.str.decode('utf-8')."
        )


def as_array(part, name, fill=None):
    """Returns a part of array data as an array, tensor or `SparseRows`, or `None`.

    `fill` is what entries of sparse rows are that are not stored.
    """
    if part is None:
        return part
    check_regular(part)
    if is_sparse(part):
        return SparseRows.of(part, fill)
    if tf.is_tensor(part):
        return part
    try:
        return _numbers(part)
    except ValueError as error:
        if hasattr(part, "columns"):
            check_no_bytes(part)
            raise ValueError(
                f"Expected {name} to be numbers. Received: a frame with words. "
                "keras_rbm.sklearn.TableModel takes it as it is; as numbers: table = "
                "keras_rbm.tables.Table().fit(frame), table.transform(frame), and "
                "visible=table.visible."
            ) from error
        raise ValueError(
            f"Expected {name} as one array. Received: a {type(part).__name__} of parts "
            "of different shapes. Pass pairs as x and y."
        ) from error


def _numbers(data):
    """Returns an array; of objects that are numbers, bools or nothing as float32."""
    array = np.asarray(data)
    if array.dtype.kind != "O":
        return array
    absent = np.vectorize(lambda each: each is None or each != each, otypes=[bool])
    try:
        gaps = absent(array)
    except (TypeError, ValueError):  # pandas.NA has no truth value
        import pandas

        gaps = pandas.isna(array)
    if not gaps.any() and not hasattr(data, "columns"):
        return array
    return np.where(gaps, np.nan, array).astype(np.float32)


def as_rows(data):
    """Returns an array or a (batched or unbatched) dataset as one float32 tensor."""
    values = as_values(data)
    if tf.is_tensor(values):
        return tf.cast(values, tf.float32)
    return tf.convert_to_tensor(np.array(values, np.float32))


def as_values(data, fill=None):
    """Returns the same as an array of numbers, not copied if it already is one.

    Sparse rows stay so; `fill` is what entries of them are that are not stored.
    """
    if isinstance(data, tf.data.Dataset):
        batches = list(_batches(data))
        width = _first_spec(data).shape[-1:]
        if batches and is_sparse(batches[0]):
            return SparseRows.stacked(batches, fill)
        return tf.concat(batches, 0) if batches else tf.zeros((0, *width))
    check_regular(data)
    if is_sparse(data):
        taken = SparseRows.of if tf.executing_eagerly() else as_dense
        return taken(data, fill)
    if tf.is_tensor(data):
        dtype = tf.as_dtype(data.dtype)
        if dtype.is_integer or dtype.is_floating:
            return tf.convert_to_tensor(data)
    try:
        values = _numbers(data)
        if values.dtype.kind == "O" and data is not None:
            values = values.astype(np.float32)
        numeric = is_numeric(values)
    except (TypeError, ValueError):
        numeric = False
    if not numeric:
        check_no_bytes(data)
        raise TypeError(
            "Expected an array of numbers of shape (examples, units), or a "
            f"tf.data.Dataset. Received: {getattr(data, 'dtype', type(data).__name__)}."
        )
    return values


def held_rows(data, fill=None):
    """Returns the same as `as_rows`, but of sparse rows what is stored."""
    values = as_values(data, fill)
    return values if isinstance(values, SparseRows) else as_rows(values)


def row_chunks(data, fill=None):
    """Yields an array or a dataset as float32 tensors of some rows each.

    `fill` is what entries of sparse rows are that are not stored.
    """
    if isinstance(data, tf.data.Dataset):
        yield from (as_rows(as_dense(batch, fill)) for batch in _batches(data))
        return
    if not is_array(data):
        check_source(data)
        yield from (as_rows(as_dense(unpack(batch)[0], fill)) for batch in data)
        return
    yield from map(as_rows, parts_of_rows(as_values(data, fill)))


def weighted_chunks(data, weights=None, fill=None):
    """Yields `row_chunks`, each with the weights (n,) of its rows, or `None`.

    `weights` are those of an array; batches have their own.
    """
    if is_array(data):
        yield from _with_weights(row_chunks(data, fill), weights)
        return
    if isinstance(data, tf.data.Dataset):
        data = _batched(data)
    check_source(data)
    for batch in data:
        x, _, given = unpack(batch)
        yield as_rows(as_dense(x, fill)), given


def parts_of_rows(values, width=1):
    """Yields an array, tensor or `SparseRows` in parts of some rows each.

    `width` is the length of what is made of a row, if that is longer.
    """
    if not len(values.shape):
        yield values
        return
    size = _rows_at_once(max(width, math.prod(values.shape[1:])))
    for start in range(0, max(values.shape[0], 1), size):
        yield values[start : start + size]


def encoded(unit, states):
    """Returns data (n, units) as (n, rows), as `unit.encode` does; NaN stays NaN."""
    known = is_known(states)
    if np.all(known):
        return unit.encode(states)
    rows = np.asarray(unit.encode(filled(states)))
    return np.where(unit.by_row(np.asarray(known)), rows, np.nan)


def encoded_chunks(unit, states, weights=None):
    """Yields visible states, encoded, as float32 tensors of some rows each.

    Each comes with the weights of its rows, or `None`.
    """
    parts = parts_of_rows(states, unit.num_rows(states.shape[1]))
    yield from _with_weights((encoded(unit, as_rows(part)) for part in parts), weights)


def _with_weights(chunks, weights):
    """Yields each chunk with the weights of its rows, or `None`."""
    start = 0
    for chunk in chunks:
        stop = start + len(chunk)
        yield chunk, None if weights is None else weights[start:stop]
        start = stop


def _rows_at_once(width):
    return max(1, min(ROWS_AT_ONCE, _NUMBERS_AT_ONCE // max(width, 1)))


def map_rows(function, *arrays, rows_at_once=None, dtype=tf.float32):
    """Applies a function of tensors (B, V), … to many rows of arrays, in parts."""
    if not tf.executing_eagerly():
        return function(*(tf.cast(array, dtype) for array in arrays))
    width = max(math.prod(array.shape[1:]) for array in arrays)
    count, size = arrays[0].shape[0], rows_at_once or _rows_at_once(width)
    with full_precision():
        if count <= size:
            return function(*(tf.cast(array, dtype) for array in arrays))
        parts = (
            [tf.cast(array[start : start + size], dtype) for array in arrays]
            for start in range(0, count, size)
        )
        return tf.concat([function(*part) for part in parts], 0)


def some_rows(values, count):
    """Returns at most `count` rows of an array, the same random ones each time."""
    if len(values) <= count:
        return values
    # Evenly spaced rows may all be alike, where data are periodic.
    chosen = np.sort(np.random.default_rng(0).choice(len(values), count, replace=False))
    return chosen_rows(values, chosen)


def chosen_rows(values, chosen):
    """Returns some rows of an array, tensor or `SparseRows`, by their indices."""
    return tf.gather(values, chosen) if tf.is_tensor(values) else values[chosen]


def moments(chunks, pooled=None):
    """Returns mean and variance (V,), float32, of rows.

    Args:
        chunks: iterable of pairs of a tensor (n, V), whose NaN do not count, and the
            weights (n,) of its rows, of which those of 0 do not count, or `None`.
        pooled: function of mean, variance and count (V,) that returns better moments of
            columns with few numbers; it is called if there is NaN. Or `None`.
    """
    count = mean = squares = np.zeros(())
    number, has_gaps = 0, False
    for chunk, weights in chunks:
        rows = np.asarray(chunk, np.float64)
        weights = np.ones(len(rows)) if weights is None else np.ravel(weights)
        rows, weights = rows[weights > 0], weights[weights > 0]
        known, number = rows == rows, number + len(rows)
        has_gaps |= not known.all()
        added = weights @ known
        total = np.where(count + added > 0, count + added, 1.0)
        center = weights @ np.where(known, rows, 0.0) / np.where(added > 0, added, 1.0)
        shift = center - mean
        squares = squares + weights @ np.square(np.where(known, rows - center, 0.0))
        squares += np.square(shift) * count * added / total
        mean, count = mean + shift * added / total, count + added
    if not number:
        raise ValueError(
            "Expected a row of a weight above 0, of data that have not been read to "
            "their end. Received: none."
        )
    variance = squares / np.where(count > 0, count, 1.0)
    if pooled is not None and has_gaps:
        mean, variance = pooled(mean, variance, count)
    return mean.astype(np.float32), variance.astype(np.float32)


def _first_spec(dataset):
    """Returns the `TensorSpec` of the first component of a dataset's elements."""
    spec = dataset.element_spec
    return spec[0] if isinstance(spec, (tuple, list)) else spec


def _batches(dataset):
    """Returns batches of the first component of a dataset's elements."""
    dataset = _batched(dataset)
    if isinstance(dataset.element_spec, (tuple, list)):
        dataset = dataset.map(lambda x, *rest: x)
    return dataset


def _batched(dataset):
    """Returns a dataset of batches, whatever its elements are."""
    spec = _first_spec(dataset)
    kinds = tf.TensorSpec, tf.SparseTensorSpec
    if not isinstance(spec, kinds) or spec.dtype == tf.string:
        raise TypeError(
            "Expected a dataset of numeric arrays, or of tuples that begin with one. "
            f"Received: element_spec={dataset.element_spec!r:.200}."
            f"{several_inputs(spec) or ' Map it to these.'}"
        )
    return dataset.batch(ROWS_AT_ONCE) if spec.shape.rank == 1 else dataset
