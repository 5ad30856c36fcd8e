"""Weighted samples: their means, how many they count as, and draws from them."""

import numpy as np
import tensorflow as tf

from keras_rbm import random


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
