"""The tail of importance weights."""

import math

import tensorflow as tf

#: Fewer weights in the tail say nothing about it.
_LEAST_TAIL = 5
#: Number of observations that the weak prior of the shape counts as, and its mean.
_PRIOR_COUNT, _PRIOR_MEAN = 10.0, 0.5


def pareto_k(log_weights):
    """Returns the shape k of a generalized Pareto distribution of the largest weights.

    The estimator of Zhang and Stephens [1], shrunk toward 1/2 as in [2], for the
    `min(M / 5, 3 sqrt(M))` largest weights. Moments of the weights are finite below
    order 1 / k. From k = 0.7 on, means converge too slowly to be useful.

    Args:
        log_weights: tensor (M,) or (M, B).

    Returns:
        float64 tensor () or (B,). Minus infinity if the tail does not vary; infinity
        if M ≤ 20, because the tail then has fewer than five weights.

    References:
        1. Zhang, Stephens. A new and efficient estimation method for the generalized
           Pareto distribution. Technometrics, 2009.
        2. Vehtari, Simpson, Gelman, Yao, Gabry. Pareto smoothed importance sampling.
           JMLR 2024.
    """
    log_weights = tf.cast(log_weights, tf.float64)
    total = log_weights.shape[0]
    count = math.ceil(min(0.2 * total, 3.0 * math.sqrt(total)))
    if count < _LEAST_TAIL:
        return tf.fill(log_weights.shape[1:], tf.constant(math.inf, tf.float64))
    largest = tf.sort(log_weights, 0)[-count - 1 :]
    weights = tf.exp(largest - largest[-1])
    excess = weights[1:] - weights[0]
    k = _shape(excess, count)
    varies = excess[0] < (1.0 - 1e-9) * excess[-1]
    return tf.where(varies, k, -tf.constant(math.inf, tf.float64))


def _shape(excess, count):
    """Returns k of sorted excesses over a threshold, (count,) or (count, B)."""
    points = 30 + int(math.sqrt(count))
    tiny = tf.constant(1e-300, tf.float64)
    quartile = tf.maximum(excess[int(count / 4 + 0.5) - 1], tiny)
    number = tf.range(1, points + 1, dtype=tf.float64)
    scales = 1.0 - tf.sqrt(points / (number - 0.5))
    scales = tf.reshape(scales, [-1] + [1] * (excess.shape.rank - 1))
    theta = scales / (3.0 * quartile) + 1.0 / tf.maximum(excess[-1], tiny)
    shapes = tf.reduce_mean(tf.math.log1p(-theta[:, tf.newaxis] * excess), 1)
    profile = count * (tf.math.log(-theta / shapes) - shapes - 1.0)
    theta = tf.reduce_sum(theta * tf.nn.softmax(profile, 0), 0)
    k = tf.reduce_mean(tf.math.log1p(-theta * excess), 0)
    return (count * k + _PRIOR_COUNT * _PRIOR_MEAN) / (count + _PRIOR_COUNT)
