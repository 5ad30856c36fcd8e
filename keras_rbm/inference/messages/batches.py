"""Inference in a batch of models: a few at a time, until each of them has converged."""

import tensorflow as tf

#: Numbers in a chunk's largest array, such as its messages, which a cache shall hold.
CHUNK_SIZE = 2**20
#: Models in a chunk when the size of the batch is not known.
_MOST_ROWS = 16
#: States that are kept for the gradient.
_SLOTS = 16


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


def until_converged(sweep, state, max_iterations, tolerance):
    """Sweeps until all models have converged, or have made `max_iterations` sweeps.

    Args:
        sweep: function of the parts of `state` that returns `(state, change)`: the new
            state and the largest change of a belief, (B,).
        state: tuple of tensors (B, …), or of named tuples of them.
        max_iterations: int tensor ().
        tolerance: float tensor (), the change below which a model has converged.

    Returns:
        `(state, iterations, residual)`, the last two (B,).
    """

    def active(iterations, residual):
        return (iterations < max_iterations) & (residual >= tolerance)

    def step(state, iterations, residual):
        going = active(iterations, residual)
        new, change = sweep(*state)
        state = where_rows(going, new, state)
        residual = tf.where(going, change, residual)
        return state, iterations + tf.cast(going, tf.int32), residual

    rows = tf.shape(tf.nest.flatten(state)[0])[:1]
    start = (state, tf.zeros(rows, tf.int32), tf.fill(rows, float("inf")))
    return tf.while_loop(
        lambda state, *progress: tf.reduce_any(active(*progress)), step, start
    )


def where_rows(condition, one, two):
    """Chooses between trees of tensors (B, …), model by model."""

    def choose(one, two):
        rows = tf.reshape(condition, [-1] + [1] * (one.shape.rank - 1))
        return tf.where(rows, one, two)

    return tf.nest.map_structure(choose, one, two)


def gradients_of_sweeps(start, sweep, read, parameters, iterations, upstream):
    """Returns the gradient of a function of where the sweeps of n models end.

    Sweeps are differentiated one by one, from the last to the first, each at the state
    that it began with [1, 2]. Of T states 16 are kept, evenly spaced; those between are
    computed again from the one before. So memory does not grow with T, and up to 16
    sweeps cost nothing extra. The result is the derivative of what was computed,
    converged or not.

    Args:
        start: function of the parameters that returns the first state, a tree of
            tensors (n, …).
        sweep: function of the parameters and a state that returns the next state.
        read: function of the parameters and the last state that returns the results.
        parameters: tree of tensors.
        iterations: int tensor (n,), sweeps of each model.
        upstream: tree like the results, the gradient with respect to them.

    Returns:
        tree like `parameters`.

    References:
        1. Eaton, Ghahramani. Choosing a variable to clamp. AISTATS 2009 (back-belief
           propagation).
        2. Griewank, Walther. Algorithm 799: revolve. ACM Transactions on Mathematical
           Software, 2000 (checkpoints).
    """
    last = tf.reduce_max(iterations)
    spacing = tf.maximum((last + _SLOTS - 1) // _SLOTS, 1)

    def step(parameters, state, number):
        return where_rows(number < iterations, sweep(parameters, state), state)

    def advance(state, number, end):
        return tf.while_loop(
            lambda _, number: number < end,
            lambda state, number: (step(parameters, state, number), number + 1),
            (state, number),
        )[0]

    first = start(parameters)
    kept = [
        tf.TensorArray(
            part.dtype, _SLOTS, element_shape=part.shape, clear_after_read=False
        )
        for part in tf.nest.flatten(first)
    ]

    def keep(slot, state, kept):
        parts = zip(kept, tf.nest.flatten(state), strict=True)
        kept = [array.write(slot, part) for array, part in parts]
        begin = slot * spacing
        return slot + 1, advance(state, begin, tf.minimum(begin + spacing, last)), kept

    _, state, kept = tf.while_loop(
        lambda slot, *_: slot * spacing < last, keep, (tf.constant(0), first, kept)
    )
    totals, upstream = _pulled_back(read, parameters, state, upstream)

    def back(number, totals, upstream):
        slot = number // spacing
        state = tf.nest.pack_sequence_as(first, [array.read(slot) for array in kept])
        state = advance(state, slot * spacing, number)
        gradients, upstream = _pulled_back(
            lambda parameters, state: step(parameters, state, number),
            parameters,
            state,
            upstream,
        )
        return number - 1, _added(totals, gradients), upstream

    _, totals, upstream = tf.while_loop(
        lambda number, *_: number >= 0, back, (last - 1, totals, upstream)
    )
    gradients, _ = _pulled_back(lambda own, _: start(own), parameters, (), upstream)
    return _added(totals, gradients)


def _added(one, two):
    return tf.nest.map_structure(tf.add, one, two)


def _pulled_back(function, parameters, state, upstream):
    """Returns the gradients with respect to parameters and state."""
    # One tensor may be part of both, as the bias in the first state of messages.
    parameters, state = tf.nest.map_structure(tf.identity, (parameters, state))
    with tf.GradientTape() as tape:
        tape.watch((parameters, state))
        results = function(parameters, state)
    return tape.gradient(
        results, (parameters, state), upstream, unconnected_gradients="zero"
    )
