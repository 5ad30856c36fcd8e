"""Means of weighted states, and draws from them."""

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
    """Returns (sum u)^2 / sum u^2 for states with weights u, a scalar from 1 to S."""
    return 1.0 / tf.reduce_sum(tf.square(tf.nn.softmax(log_weights)))


def resampled_rows(log_weights, seed):
    """Returns indices (S,) of S states, drawn in proportion to their weights.

    Args:
        log_weights: tensor (S,), S known.
        seed: int tensor of shape (2,).
    """
    import tensorflow_probability as tfp

    return tfp.experimental.mcmc.resample_systematic(
        tf.nn.log_softmax(log_weights),
        log_weights.shape[0],
        sample_shape=[],
        seed=seed,
    )


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
