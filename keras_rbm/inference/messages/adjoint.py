"""Gradients through the sweeps that an inference has made.

Sweeps are differentiated one by one, from the last to the first, each at the state that
it began with [1, 2]. Of T states 16 are kept, evenly spaced; those between are computed
again from the one before. So memory does not grow with T, and up to 16 sweeps cost
nothing extra. The result is the derivative of what was computed, converged or not.

1. Eaton, Ghahramani. Choosing a variable to clamp. AISTATS 2009 (back-belief
   propagation).
2. Griewank, Walther. Algorithm 799: revolve. ACM Transactions on Mathematical Software,
   2000 (checkpoints).
"""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from keras_rbm.inference.messages.beliefs import Beliefs, stopped
from keras_rbm.inference.messages.sweeps import where_rows

#: States that are kept.
_SLOTS = 16


def gradients_of_sweeps(
    start: Callable[[Any], Any],
    sweep: Callable[[Any, Any], Any],
    read: Callable[[Any, Any], Any],
    parameters: Any,
    iterations: tf.Tensor,
    upstream: Any,
) -> Any:
    """Returns the gradient of a function of where the sweeps of n models end.

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
    kept = tf.nest.map_structure(
        lambda part: tf.TensorArray(
            part.dtype, _SLOTS, element_shape=part.shape, clear_after_read=False
        ),
        first,
    )

    def keep(slot, state, kept):
        kept = _each(lambda array, part: array.write(slot, part), kept, state)
        begin = slot * spacing
        return slot + 1, advance(state, begin, tf.minimum(begin + spacing, last)), kept

    _, state, kept = tf.while_loop(
        lambda slot, *_: slot * spacing < last, keep, (tf.constant(0), first, kept)
    )
    totals, upstream = _pulled_back(read, parameters, state, upstream)

    def back(number, totals, upstream):
        slot = number // spacing
        state = _each(lambda array, _: array.read(slot), kept, first)
        state = advance(state, slot * spacing, number)
        found, upstream = _pulled_back(
            lambda parameters, state: step(parameters, state, number),
            parameters,
            state,
            upstream,
        )
        return number - 1, _added(totals, found), upstream

    _, totals, upstream = tf.while_loop(
        lambda number, *_: number >= 0, back, (last - 1, totals, upstream)
    )
    parameters = tf.nest.map_structure(tf.identity, parameters)
    with tf.GradientTape() as tape:
        tape.watch(parameters)
        first = start(parameters)
    found = tape.gradient(first, parameters, upstream, unconnected_gradients="zero")
    return _added(totals, found)


def _each(function, arrays, states):
    """Maps a function over `TensorArray`s, which have no structure for `tf.nest`."""
    pairs = zip(tf.nest.flatten(arrays), tf.nest.flatten(states), strict=True)
    return tf.nest.pack_sequence_as(states, [function(*pair) for pair in pairs])


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


def with_gradient(
    beliefs: Beliefs,
    parameters: Any,
    gradient: Callable[[Beliefs], Any],
) -> Beliefs:
    """Returns beliefs through which gradients pass, once.

    Args:
        beliefs: `Beliefs`, computed from the parameters.
        parameters: tree of tensors.
        gradient: function of the gradients with respect to `visible`, `hidden`,
            `pairwise` and `log_partition`, as `Beliefs` without the rest, that returns
            those with respect to the parameters.

    Returns:
        `Beliefs` of the same values. A second derivative is an error.
    """
    leaves, fixed = tf.nest.flatten(parameters), stopped(beliefs)
    names = ["visible", "hidden", "log_partition"]
    names += [] if beliefs.pairwise is None else ["pairwise"]
    nothing = dict.fromkeys(Beliefs._fields)

    @tf.custom_gradient
    def first_derivative(*inputs):
        upstream = inputs[len(leaves) :]
        known = nothing | dict(zip(names, upstream, strict=True))
        return tf.nest.flatten(gradient(Beliefs(**known))), _refuse

    @tf.custom_gradient
    def attached(*leaves):
        values = [tf.identity(getattr(fixed, name)) for name in names]
        return values, lambda *upstream: first_derivative(*leaves, *upstream)

    return fixed._replace(**dict(zip(names, attached(*leaves), strict=True)))


def _refuse(*_):
    raise ValueError(
        "Expected first derivatives of beliefs only. Received: a gradient through "
        "inference that another GradientTape records, as of a gradient penalty. Take "
        "it under tape.stop_recording() of the other, or use finite differences."
    )
