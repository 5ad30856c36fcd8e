"""Naive mean field."""

import tensorflow as tf

from keras_rbm.elementary import binary_entropy
from keras_rbm.inference.arguments import check_model
from keras_rbm.inference.messages.beliefs import (
    HUGE,
    Beliefs,
    BinaryModels,
    as_limits,
    check_options,
    checked_weights,
    pairwise_products,
    without_batch,
)


def mean_field(
    potentials,
    *,
    max_iterations=100,
    tolerance=1e-3,
    damping=0.0,
    weights=None,
    pairwise="mean",
):
    """Approximates a binary model by independent units.

    Updates one layer given the other: `v = sigmoid(W h + b)`, `h = sigmoid(v' W + c)`,
    from `h = sigmoid(c)`. Without damping no update lowers the bound

        log Z ≥ v' W h + b' v + c' h + S(v) + S(h),   S the entropy.

    Args:
        potentials: `Potentials` of binary units.
        max_iterations: int ≥ 1, sweeps (both layers) at most; may be a tensor or
            variable.
        tolerance: float ≥ 0; a model has converged when no mean changed by as much
            in a sweep.
        damping: float in [0, 1), weight of the old means.
        weights: tensor (B,), of the models in `pairwise="mean"`; by default 1 / B.
        pairwise: `"mean"`, `"each"` or `None`, see `Beliefs`.

    Returns:
        `Beliefs`, `log_partition` is the lower bound.

    Raises:
        ValueError: if a unit is not binary or an option is out of range.

    Example:

    >>> model = keras_rbm.inference.Potentials([[2.0]], [0.0], [-1.0])
    >>> bound = keras_rbm.inference.mean_field(model).log_partition
    >>> exact = keras_rbm.inference.exact_log_partition(model)
    >>> float(bound) < float(exact)
    True

    References:
        1. Peterson, Anderson. A mean field theory learning algorithm for neural
           networks. Complex Systems, 1987.
    """
    check_model(potentials)
    check_options(max_iterations, tolerance, damping, pairwise)
    weights = checked_weights(weights)
    limits = as_limits(max_iterations, tolerance)
    beliefs = _iterate(potentials, weights, *limits, float(damping), pairwise)
    if potentials.batch_size is None:
        return without_batch(beliefs, pairwise)
    return beliefs


@tf.function(autograph=False)
def _iterate(potentials, weights, max_iterations, tolerance, damping, pairwise):
    kernel, b, c, weights = BinaryModels.of(potentials, weights)

    def damped(new, old):
        return (1.0 - damping) * new + damping * old

    def active(iterations, residual):
        return (iterations < max_iterations) & (residual >= tolerance)

    def step(v, h, iterations, residual):
        going = active(iterations, residual)
        new_v = damped(tf.sigmoid(b + tf.matmul(h, kernel, transpose_b=True)), v)
        new_h = damped(tf.sigmoid(c + tf.matmul(new_v, kernel)), h)
        change = tf.maximum(
            tf.reduce_max(tf.abs(new_v - v), -1), tf.reduce_max(tf.abs(new_h - h), -1)
        )
        return (
            tf.where(going[:, tf.newaxis], new_v, v),
            tf.where(going[:, tf.newaxis], new_h, h),
            iterations + tf.cast(going, tf.int32),
            tf.where(going, change, residual),
        )

    v, h, iterations, residual = tf.while_loop(
        lambda v, h, *state: tf.reduce_any(active(*state)),
        step,
        (
            tf.sigmoid(b),
            tf.sigmoid(c),
            tf.zeros_like(b[:, 0], tf.int32),
            tf.fill(tf.shape(b)[:1], HUGE),
        ),
    )
    coupling = tf.reduce_sum(tf.matmul(v, kernel) * h, -1)
    bound = coupling + sum(
        tf.reduce_sum(bias * mean + binary_entropy(mean), -1)
        for bias, mean in ((b, v), (c, h))
    )
    pairs = pairwise_products(v, h, weights, pairwise)
    return Beliefs(v, h, pairs, bound, iterations, residual < tolerance, residual)
