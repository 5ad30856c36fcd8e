"""Runs compiled inference over many models, a few at a time."""

from collections.abc import Callable

import tensorflow as tf

from keras_rbm.inference.messages.beliefs import Beliefs, BinaryModels

#: Numbers in a chunk's (rows, V, H) array of messages, so that it fits into a cache.
CHUNK_SIZE = 2**20
#: Rows of a chunk of small models when the size of the batch is not known.
_MOST_ROWS = 16


def in_chunks(
    function: Callable[[BinaryModels], Beliefs],
    models: BinaryModels,
    pairwise: str | None,
    row_size: int | None = None,
) -> Beliefs:
    """Applies inference to a few models at a time, so that memory stays bounded.

    XLA does not compile the loop: one compilation of `function`, for chunks of a fixed
    size, serves every batch size, and two chunks may run at a time.

    Args:
        function: takes the `BinaryModels` of one chunk and returns their `Beliefs`.
        models: `BinaryModels`.
        pairwise: `"mean"`, `"each"` or `None`, what `function` returns for pairs.
        row_size: int, numbers that it computes with for a model, by default V · H.

    Returns:
        `Beliefs` of all models.
    """
    sizes = num_visible, num_hidden = models.kernel.shape
    mean = pairwise == "mean"
    count, rows, num_chunks = _plan(models, CHUNK_SIZE, row_size)
    filled = _filled_up(models, num_chunks * rows)

    dtypes = {"num_iterations": tf.int32, "converged": tf.bool}
    shapes = {"visible": [num_visible], "hidden": [num_hidden]}
    names = list(Beliefs._fields)
    names.remove("pairwise")
    if pairwise == "each":
        names.append("pairwise")
        shapes["pairwise"] = sizes
    arrays = {
        name: tf.TensorArray(
            dtypes.get(name, tf.float32),
            num_chunks,
            element_shape=(rows, *shapes.get(name, ())),
        )
        for name in names
    }

    def step(number, arrays, total):
        beliefs = function(_part(filled, number * rows, rows))
        arrays = {
            name: array.write(number, getattr(beliefs, name))
            for name, array in arrays.items()
        }
        return number + 1, arrays, total + beliefs.pairwise if mean else total

    _, arrays, total = tf.while_loop(
        lambda number, *_: number < num_chunks,
        step,
        (tf.constant(0), arrays, tf.zeros(sizes if mean else ())),
        parallel_iterations=2,
    )
    results = {
        name: tf.reshape(array.stack(), (-1, *shapes.get(name, ())))[:count]
        for name, array in arrays.items()
    }
    return Beliefs(**{"pairwise": total if mean else None} | results)


def gradients_in_chunks(
    function: Callable[..., tuple[tf.Tensor, tf.Tensor, tf.Tensor]],
    models: BinaryModels,
    rows: list[tf.Tensor],
    row_size: int | None = None,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns gradients with respect to kernel and biases, a few models at a time.

    A chunk is a quarter as large as in `in_chunks`, because it keeps some states.

    Args:
        function: takes the `BinaryModels` of one chunk and the same rows of `rows`, and
            returns gradients with respect to the kernel, or what takes its place, and
            the biases.
        models: `BinaryModels`.
        rows: list of tensors (B, …).
        row_size: as for `in_chunks`.
    """
    kernel = models.kernel
    count, size, num_chunks = _plan(models, CHUNK_SIZE // 4, row_size)
    filled = _filled_up(models, num_chunks * size)
    missing = num_chunks * size - count
    padded = [
        tf.pad(array, [[0, missing]] + [[0, 0]] * (array.shape.rank - 1))
        for array in rows
    ]
    biases = [
        tf.TensorArray(tf.float32, num_chunks, element_shape=(size, width))
        for width in kernel.shape
    ]

    def step(number, total, *arrays):
        start = number * size
        own = [_rows_of(array, start, size) for array in padded]
        found, *others = function(_part(filled, start, size), *own)
        arrays = [
            array.write(number, other)
            for array, other in zip(arrays, others, strict=True)
        ]
        return number + 1, total + found, *arrays

    _, total, *biases = tf.while_loop(
        lambda number, *_: number < num_chunks,
        step,
        (tf.constant(0), tf.zeros_like(kernel), *biases),
        parallel_iterations=2,
    )
    b, c = (
        tf.reshape(array.stack(), (-1, width))[:count]
        for array, width in zip(biases, kernel.shape, strict=True)
    )
    return total, b, c


def _plan(models, chunk_size, row_size):
    """Returns the number of models, how many to a chunk, and the number of chunks."""
    row_size = row_size or models.kernel.shape[0] * models.kernel.shape[1]
    rows = min(chunk_size // row_size, models.weights.shape[0] or _MOST_ROWS)
    rows = max(1, rows)
    count = tf.shape(models.visible_bias)[0]
    return count, rows, (count + rows - 1) // rows


def _filled_up(models, total):
    """Returns `total` models, padded with copies of the last one of weight 0."""
    count = tf.shape(models.visible_bias)[0]
    index = tf.minimum(tf.range(total), count - 1)
    return BinaryModels(
        models.kernel,
        tf.gather(models.visible_bias, index),
        tf.gather(models.hidden_bias, index),
        tf.pad(models.weights, [[0, total - count]]),
    )


def _part(models, start, rows):
    kernel, *arrays = models
    return BinaryModels(kernel, *(_rows_of(array, start, rows) for array in arrays))


def _rows_of(array, start, rows):
    sizes = (rows, *array.shape[1:])
    return tf.slice(array, [start] + [0] * len(sizes[1:]), sizes)
