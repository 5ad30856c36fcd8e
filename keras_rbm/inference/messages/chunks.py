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
    row_size = row_size or num_visible * num_hidden
    rows = min(CHUNK_SIZE // row_size, models.weights.shape[0] or _MOST_ROWS)
    rows = max(1, rows)
    mean = pairwise == "mean"
    count = tf.shape(models.visible_bias)[0]
    num_chunks = (count + rows - 1) // rows
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
    def part(array):
        sizes = (rows, *array.shape[1:])
        return tf.slice(array, [start] + [0] * len(sizes[1:]), sizes)

    kernel, *arrays = models
    return BinaryModels(kernel, *map(part, arrays))
