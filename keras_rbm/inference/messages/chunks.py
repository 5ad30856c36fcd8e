"""Inference in many models, a few at a time, and gradients that are computed so."""

import tensorflow as tf

#: Numbers in a chunk's largest array, such as its messages, which a cache shall hold.
CHUNK_SIZE = 2**20
#: Models in a chunk when the size of the batch is not known.
_MOST_ROWS = 16


def in_chunks(function, models, rows, results, totals, row_size):
    """Applies a function to a few of B models at a time, so that memory stays bounded.

    XLA does not compile the loop: one compilation of `function`, for chunks of a fixed
    size, serves every batch size, and two chunks may run at a time.

    Args:
        function: of a chunk's parts of `models` and `rows`, that returns two lists:
            tensors (n, …), and sums over the models.
        models: list of tensors (B, …). The last chunk is filled up by its last model.
        rows: list of tensors (B, …), such as weights, which are filled up by zeros.
        results: list of `tf.TensorSpec`, what the first list has of each model.
        totals: list of zeros, of the shapes of the second list.
        row_size: int, numbers that it computes with for a model.

    Returns:
        the two lists for all models.
    """
    count = tf.shape(models[0])[0]
    size = max(1, min(CHUNK_SIZE // row_size, models[0].shape[0] or _MOST_ROWS))
    num_chunks = (count + size - 1) // size
    missing = num_chunks * size - count
    index = tf.minimum(tf.range(num_chunks * size), count - 1)
    filled = [tf.gather(array, index) for array in models]
    for array in rows:
        pads = [[0, missing]] + [[0, 0]] * (array.shape.rank - 1)
        filled.append(tf.pad(array, pads))
    arrays = [
        tf.TensorArray(spec.dtype, num_chunks, element_shape=(size, *spec.shape))
        for spec in results
    ]

    def step(number, arrays, totals):
        parts = []
        for array in filled:
            shape = size, *array.shape[1:]
            start = [number * size] + [0] * (len(shape) - 1)
            parts.append(tf.slice(array, start, shape))
        values, sums = function(*parts)
        arrays = [a.write(number, v) for a, v in zip(arrays, values, strict=True)]
        return number + 1, arrays, [a + b for a, b in zip(totals, sums, strict=True)]

    _, arrays, totals = tf.while_loop(
        lambda number, *_: number < num_chunks,
        step,
        (tf.constant(0), arrays, list(totals)),
        parallel_iterations=2,
    )
    stacks = [
        tf.reshape(array.stack(), (-1, *spec.shape))[:count]
        for array, spec in zip(arrays, results, strict=True)
    ]
    return stacks, list(totals)


def with_gradient(values, parameters, gradient):
    """Returns values, computed from parameters, through which gradients pass, once.

    Args:
        values: list of tensors.
        parameters: list of tensors.
        gradient: function of the gradients with respect to the values, that returns
            those with respect to the parameters.
    """

    @tf.custom_gradient
    def first_derivative(*inputs):
        return gradient(*inputs[len(parameters) :]), _refuse

    @tf.custom_gradient
    def attached(*leaves):
        fixed = [tf.stop_gradient(value) for value in values]
        return fixed, lambda *upstream: first_derivative(*leaves, *upstream)

    return attached(*parameters)


def _refuse(*_):
    raise ValueError(
        "Expected first derivatives of beliefs only. Received: a gradient through "
        "inference that another GradientTape records, as of a gradient penalty. Take "
        "it under tape.stop_recording() of the other, or use finite differences."
    )
