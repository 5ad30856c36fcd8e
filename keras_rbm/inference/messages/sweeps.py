"""The loop of sweeps over a batch of models, each of which stops by itself."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf


def until_converged(
    sweep: Callable[..., tuple[Any, tf.Tensor]],
    state: tuple[Any, ...],
    max_iterations: tf.Tensor,
    tolerance: tf.Tensor,
) -> tuple[Any, tf.Tensor, tf.Tensor]:
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


def where_rows(condition: tf.Tensor, one: Any, two: Any) -> Any:
    """Chooses between trees of tensors (B, …), model by model."""

    def choose(one, two):
        rows = tf.reshape(condition, [-1] + [1] * (one.shape.rank - 1))
        return tf.where(rows, one, two)

    return tf.nest.map_structure(choose, one, two)


def change_of_beliefs(
    new: tuple[tf.Tensor, tf.Tensor], old: tuple[tf.Tensor, tf.Tensor]
) -> tf.Tensor:
    """Returns the largest change of a belief, (B,), infinite if one is not a number.

    Args:
        new, old: pairs of log-odds of the visible and the hidden units.
    """
    change = tf.maximum(
        *(
            tf.reduce_max(tf.abs(tf.sigmoid(after) - tf.sigmoid(before)), -1)
            for after, before in zip(new, old, strict=True)
        )
    )
    # XLA's maximum ignores NaN, which has not converged.
    is_number = tf.reduce_all(new[0] == new[0], -1)
    return tf.where(is_number, tf.cast(change, tf.float32), float("inf"))
