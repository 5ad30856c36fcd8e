"""Weighted samples: their means, how many they count as, their tail, and draws."""

import math

import numpy as np
import tensorflow as tf

from keras_rbm import random

#: Fewer weights in the tail say nothing about it.
_LEAST_TAIL = 5
#: Number of observations that the weak prior of the shape counts as, and its mean.
_PRIOR_COUNT, _PRIOR_MEAN = 10.0, 0.5


def weighted_mean(values, weights):
    """Returns the mean (D,) of rows (N, D) with weights (N,) that sum to 1."""
    return tf.linalg.matvec(values, weights, transpose_a=True)


def log_mean_exp(values, weights):
    """Returns log of the weighted mean of exp(values), over axis 0."""
    log_weights = tf.math.log(weights)
    log_weights = tf.reshape(log_weights, [-1] + [1] * (values.shape.rank - 1))
    return tf.reduce_logsumexp(log_weights + values, 0)


def effective_sample_size(log_weights):
    """Returns (sum w)^2 / sum w^2, () or (B,), of log weights (M,) or (M, B)."""
    return 1.0 / tf.reduce_sum(tf.square(tf.nn.softmax(log_weights, 0)), 0)


def effective_number(ancestors):
    """Returns the effective number of different ancestors, (B,), among (M, B)."""
    sizes = [np.unique(column, return_counts=True)[1] for column in ancestors.T]
    return np.array([size.sum() ** 2 / np.square(size).sum() for size in sizes])


def systematic_rows(log_weights, count, shift):
    """Draws rows in proportion to their weights by systematic resampling [1].

    A run of neighboring rows is drawn as often as its weight says, to less than one: a
    small mode is neither missed nor drawn too often by chance.

    Args:
        log_weights: tensor (M,) or (B, M).
        count: int, the number of rows to draw.
        shift: tensor () or (B,), uniform in [0, 1).

    Returns:
        int32 tensor (count,) or (B, count), increasing.

    References:
        1. Douc, Cappé, Moulines. Comparison of resampling schemes for particle
           filtering. ISPA 2005.
    """
    # Logarithms keep small weights that a cumulative sum in float32 would lose.
    ends = tf.math.cumulative_logsumexp(tf.nn.log_softmax(log_weights), -1)
    width = tf.constant(1.0 / count, ends.dtype)
    places = tf.linspace(tf.zeros((), ends.dtype), 1.0 - width, count)
    places = tf.math.log(places + width * shift[..., tf.newaxis])
    rows = tf.searchsorted(ends, places, side="right")
    return tf.minimum(rows, log_weights.shape[-1] - 1)


def resampled_rows(log_weights, seed):
    """Returns indices (S,) of S states, drawn in proportion to their weights.

    Args:
        log_weights: tensor (S,), S known.
        seed: int tensor of shape (2,).
    """
    shift = tf.random.stateless_uniform((), seed)
    return systematic_rows(log_weights, log_weights.shape[0], shift)


def random_rows(rows, weights, count, seed):
    """Draws rows with replacement, in proportion to their weights.

    Args:
        rows: tensor (N, V).
        weights: tensor (N,) that sum to 1.
        count: int.
        seed: int or integer tensor of shape (2,).

    Returns:
        tensor (count, V).
    """
    cumulative = tf.cumsum(weights)
    place = random.uniform((count,), seed) * cumulative[-1]
    index = tf.searchsorted(cumulative, place, side="right")
    return tf.gather(rows, tf.minimum(index, tf.shape(rows)[0] - 1))


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
