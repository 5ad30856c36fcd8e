"""Exact beliefs of many small models at once, by enumerating the smaller layer."""

import numpy as np
import tensorflow as tf

from keras_rbm.inference.messages.beliefs import Beliefs, BinaryModels
from keras_rbm.inference.messages.chunks import in_chunks
from keras_rbm.inference.traces import compiled, traced

#: Units of a layer that is enumerated for many models at once.
MOST_UNITS = 12
#: Units of a layer whose enumeration costs no more than a few sweeps.
CHEAP_UNITS = 8


@traced
def enumerated(models: BinaryModels, pairwise: str | None) -> Beliefs:
    """Returns the exact `Beliefs` of binary models, in float32.

    Args:
        models: `BinaryModels` with a layer of at most `MOST_UNITS` units.
        pairwise: as for `Beliefs`.
    """
    num_visible, num_hidden = models.kernel.shape
    smaller, larger = sorted((num_visible, num_hidden))
    swaps = num_hidden < num_visible

    def chunk(part):
        kernel, b, c, weights = part
        if not swaps:
            return _chunk(kernel, b, c, weights, pairwise=pairwise)
        beliefs = _chunk(tf.transpose(kernel), c, b, weights, pairwise=pairwise)
        pairs = beliefs.pairwise
        if pairs is not None:
            pairs = tf.linalg.matrix_transpose(pairs)
        return beliefs._replace(
            visible=beliefs.hidden, hidden=beliefs.visible, pairwise=pairs
        )

    return in_chunks(chunk, models, pairwise, 2**smaller * larger)


@compiled
def _chunk(kernel, b, c, weights, *, pairwise):
    """Enumerates the visible layer of a few models."""
    count = kernel.shape[0]
    states = np.arange(2**count)[:, np.newaxis] >> np.arange(count) & 1
    states = tf.constant(states, tf.float32)
    natural = c[:, tf.newaxis] + tf.matmul(states, kernel)  # (n, 2^V, H)
    log_weights = tf.matmul(b, states, transpose_b=True)
    log_weights += tf.reduce_sum(tf.math.softplus(natural), -1)
    log_partition = tf.reduce_logsumexp(log_weights, -1)
    shares = tf.exp(log_weights - log_partition[:, tf.newaxis])
    both = shares[:, :, tf.newaxis] * tf.sigmoid(natural)
    pairs = None
    if pairwise == "each":
        pairs = tf.einsum("sv,nsh->nvh", states, both)
    elif pairwise == "mean":
        mean = tf.reduce_sum(weights[:, tf.newaxis, tf.newaxis] * both, 0)
        pairs = tf.matmul(states, mean, transpose_a=True)
    return Beliefs(
        tf.matmul(shares, states),
        tf.reduce_sum(both, 1),
        pairs,
        log_partition,
        tf.ones_like(log_partition, tf.int32),
        tf.ones_like(log_partition, tf.bool),
        tf.zeros_like(log_partition),
    )
