"""Exact beliefs of many small models at once, by enumerating the smaller layer."""

import numpy as np
import tensorflow as tf

from keras_rbm.inference.messages.adjoint import with_gradient
from keras_rbm.inference.messages.beliefs import Beliefs, BinaryModels
from keras_rbm.inference.messages.chunks import gradients_in_chunks, in_chunks
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
    smaller, larger = sorted(models.kernel.shape)
    row_size = 2**smaller * larger

    def chunk(part):
        return _chunk(*part, pairwise=pairwise)

    def gradient(upstream):
        rows = [upstream.visible, upstream.hidden, upstream.log_partition]
        pairs = upstream.pairwise if pairwise == "mean" else None
        if pairwise == "each":
            rows.append(upstream.pairwise)
        return gradients_in_chunks(
            lambda part, *rows: _chunk_gradients(*part, rows, pairs, pairwise=pairwise),
            fixed,
            rows,
            row_size,
        )

    fixed = BinaryModels(*map(tf.stop_gradient, models))
    beliefs = in_chunks(chunk, fixed, pairwise, row_size)
    return with_gradient(beliefs, tuple(models[:3]), gradient)


@compiled
def _chunk(kernel, b, c, weights, *, pairwise):
    return _enumerated(kernel, b, c, weights, pairwise)


@compiled
def _chunk_gradients(kernel, b, c, weights, rows, pairs, *, pairwise):
    """Returns gradients with respect to kernel and biases.

    Args:
        kernel, b, c, weights, pairwise: as for `_enumerated`.
        rows: gradients with respect to visible and hidden beliefs, log Z and, for
            `"each"`, pairs.
        pairs: gradient with respect to the mean of the pairs, or `None`.
    """
    upstream = rows if pairs is None else [*rows, pairs]
    with tf.GradientTape() as tape:
        tape.watch((kernel, b, c))
        beliefs = _enumerated(kernel, b, c, weights, pairwise)
        results = [beliefs.visible, beliefs.hidden, beliefs.log_partition]
        results += [] if pairwise is None else [beliefs.pairwise]
    return tape.gradient(results, (kernel, b, c), list(upstream))


def _enumerated(kernel, b, c, weights, pairwise):
    """Enumerates the smaller layer of a few models."""
    num_visible, num_hidden = kernel.shape
    if num_visible <= num_hidden:
        return _visible_enumerated(kernel, b, c, weights, pairwise)
    beliefs = _visible_enumerated(tf.transpose(kernel), c, b, weights, pairwise)
    pairs = beliefs.pairwise
    return beliefs._replace(
        visible=beliefs.hidden,
        hidden=beliefs.visible,
        pairwise=None if pairs is None else tf.linalg.matrix_transpose(pairs),
    )


def _visible_enumerated(kernel, b, c, weights, pairwise):
    """Enumerates the visible layer."""
    count = kernel.shape[0]
    states = np.arange(2**count)[:, np.newaxis] >> np.arange(count) & 1
    states = tf.constant(states, tf.float32)
    own, inputs = c[:, tf.newaxis], tf.matmul(states, kernel)
    natural = own + inputs  # (n, 2^V, H)
    # Relative to the best state without coupling, so that large biases cancel exactly.
    log_weights = -tf.matmul(tf.nn.relu(-b), states, transpose_b=True)
    log_weights -= tf.matmul(tf.nn.relu(b), 1.0 - states, transpose_b=True)
    log_weights += tf.reduce_sum(_softplus_gain(own, inputs), -1)
    base = tf.reduce_sum(tf.nn.relu(b), -1) + tf.reduce_sum(tf.math.softplus(c), -1)
    log_partition = base + tf.reduce_logsumexp(log_weights, -1)
    shares = tf.nn.softmax(log_weights)
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


def _softplus_gain(own, inputs):
    """Returns `softplus(own + inputs) - softplus(own)`, exactly also for large own."""
    larger = tf.where(own > 0.0, tf.maximum(inputs, -own), tf.nn.relu(own + inputs))
    rest = tf.math.softplus(-tf.abs(own + inputs)) - tf.math.softplus(-tf.abs(own))
    return larger + rest
