"""Holds the examples of arrays or of a dataset in memory."""

import keras
import tensorflow as tf

from keras_rbm.datasets.sparse_rows import SparseRows, is_sparse


def hold_in_memory(data):
    """Returns tensors that hold all examples of arrays or of a finite dataset.

    Sparse matrices become `SparseRows`.
    """
    if not isinstance(data, tf.data.Dataset):
        return map_present(_as_tensor, _lists_as_tuples(data))
    if data.cardinality() == tf.data.INFINITE_CARDINALITY:
        raise ValueError(
            "Expected a finite dataset. Received: data with infinite cardinality. "
            "Call take(count) on it, and leave out repeat()."
        )
    try:
        blocks = list(data.batch(1024))
    except tf.errors.InvalidArgumentError as error:
        raise ValueError(
            "Expected a dataset of single examples, all of one shape. Received: "
            f"element_spec={data.element_spec!r:.200}. Call unbatch() on batches."
        ) from error
    if not blocks:
        raise ValueError(
            "Expected at least one example. Received: data=an empty dataset. "
            "Check the filters and the split that made it."
        )
    return map_present(lambda *parts: tf.concat(parts, 0), *blocks)


def count_examples(examples):
    """Returns the common length of the first axis of all tensors in a nest."""
    shapes = [tuple(x.shape) for x in tf.nest.flatten(examples) if x is not None]
    counts = {shape[0] if shape else 0 for shape in shapes}
    if len(counts) != 1 or counts == {0}:
        raise ValueError(
            "Expected arrays with the examples on their first axis, the same, positive "
            f"number in all. Received: data with shapes {shapes}."
        )
    return int(counts.pop())


def map_present(function, *nests):
    """`tf.nest.map_structure` that keeps `None` components."""
    return tf.nest.map_structure(
        lambda *parts: None if parts[0] is None else function(*parts), *nests
    )


def gather(examples, rows):
    """Returns examples (…, V) by their indices (…), dense; works in a pipeline, too."""
    if isinstance(examples, SparseRows):
        return examples.gathered(rows)
    return tf.gather(examples, rows)


def _as_tensor(array):
    if is_sparse(array):
        return SparseRows.of(array)
    try:
        tensor = tf.convert_to_tensor(array)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"Expected arrays of numbers. Received: data with a {type(array).__name__} "
            "that cannot become a tensor."
        ) from error
    if tensor.dtype.is_floating:
        tensor = tf.cast(tensor, keras.config.floatx())
    return tf.identity(tensor)


def _lists_as_tuples(nest):
    # tf.data packs a list into one tensor.
    if isinstance(nest, list | tuple) and not hasattr(nest, "_fields"):
        return tuple(_lists_as_tuples(part) for part in nest)
    if isinstance(nest, dict):
        return {name: _lists_as_tuples(part) for name, part in nest.items()}
    return nest
