"""Weighted samples: how many they count as, and how to draw from them."""

import numpy as np
import tensorflow as tf


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
