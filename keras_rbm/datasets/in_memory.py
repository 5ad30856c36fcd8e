"""Examples held in memory: arrays, sparse rows, or a whole dataset."""

import keras
import numpy as np
import scipy.sparse
import tensorflow as tf


def is_sparse(data):
    """Returns whether data are a SciPy sparse matrix or a `tf.SparseTensor`."""
    tensor = isinstance(data, (SparseRows, tf.SparseTensor))
    return tensor or scipy.sparse.issparse(data)


def as_dense(data, fill=None):
    """Returns a sparse batch as an array or tensor, and any other as it is.

    Args:
        data: array, tensor or sparse batch (B, V).
        fill: float, what an entry is that is not stored, see `SparseRows.of`.
    """
    if not is_sparse(data):
        return data
    if isinstance(data, tf.SparseTensor) and not hasattr(data.values, "numpy"):
        ordered = tf.sparse.reorder(data)
        if fill:  # NaN is no integer
            ordered = tf.cast(ordered, tf.float32)
        return tf.ensure_shape(tf.sparse.to_dense(ordered, fill), data.shape)
    return np.asarray(SparseRows.of(data, fill))


class SparseRows:
    """Rows (N, V) of a SciPy sparse matrix, in the place of an array.

    They have `shape`, `dtype` and `len`, and a slice, indices or bools choose some of
    them. What makes an array or a tensor of them gets dense rows: choose few before.

    As in SciPy, several values that are stored for one entry are added.

    Args:
        matrix: SciPy sparse array in canonical CSR format.
        fill: float, what an entry is that is not stored.
    """

    def __init__(self, matrix, fill):
        self.matrix = matrix
        self.fill = fill

    @classmethod
    def of(cls, data, fill=None):
        """Returns the rows of a SciPy sparse matrix or of an eager `tf.SparseTensor`.

        Args:
            data: these, or `SparseRows`.
            fill: float, see `SparseRows`; `None` is that of the rows, or 0.

        Raises:
            TypeError, ValueError: unless they are numbers of shape (N, V).
        """
        if isinstance(data, cls):
            return data if fill is None else cls(data.matrix, fill)
        shape = tuple(data.shape)
        if len(shape) != 2:
            raise ValueError(
                "Expected sparse rows of shape (examples, units). Received: shape "
                f"{shape}. Batch a dataset: dataset.batch(100)."
            )
        dtype = getattr(data.dtype, "as_numpy_dtype", data.dtype)
        if np.dtype(dtype).kind not in "biuf":
            raise TypeError(
                f"Expected sparse rows of numbers. Received: dtype {data.dtype}."
            )
        if isinstance(data, tf.SparseTensor):
            places = np.transpose(data.indices)
            data = scipy.sparse.coo_array((np.asarray(data.values), (*places,)), shape)
        matrix = scipy.sparse.csr_array(data)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        return cls(matrix, fill or 0.0)

    @classmethod
    def stacked(cls, batches, fill=None):
        """Returns the rows of several batches."""
        matrices = [cls.of(batch).matrix for batch in batches]
        return cls.of(scipy.sparse.vstack(matrices, "csr"), fill)

    @property
    def shape(self):
        """tuple, (N, V)."""
        return self.matrix.shape

    @property
    def dtype(self):
        """NumPy dtype of dense rows."""
        dtype = self.matrix.dtype
        return dtype if self.fill == 0.0 or dtype.kind == "f" else np.dtype(np.float32)

    @property
    def stored(self):
        """Array (n,): the stored values, and the fill, if there are other entries."""
        values = self.matrix.data
        if len(values) == self.matrix.shape[0] * self.matrix.shape[1]:
            return values
        return np.append(values, np.asarray(self.fill, self.dtype))

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, rows):
        return SparseRows(self.matrix[rows], self.fill)

    def __array__(self, dtype=None, copy=None):
        matrix = self.matrix
        dense = np.full(matrix.shape, self.fill, dtype or self.dtype)
        rows = np.repeat(np.arange(len(self)), np.diff(matrix.indptr))
        dense[rows, matrix.indices] = matrix.data
        return dense

    def gathered(self, rows):
        """Returns dense rows, float32 (…, V), by indices (…); in a pipeline, too."""

        def dense(rows):
            gathered = np.asarray(self[rows.ravel()], np.float32)
            return gathered.reshape(*rows.shape, self.shape[1])

        gathered = tf.numpy_function(dense, [rows], tf.float32, stateful=False)
        return tf.ensure_shape(gathered, (*rows.shape, self.shape[1]))


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
