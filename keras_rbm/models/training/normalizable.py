"""Keeps a model of two unbounded layers where its partition function is finite."""

import numpy as np
import tensorflow as tf

from keras_rbm._replicas import add
from keras_rbm.models.layer_variables import layer_parameters

#: Least `spectral_gap` of a model in training: a little above where intervals of log Z
#: stay open.
LEAST_GAP = 0.035
#: How often a matrix is squared for a bound of its norm, at most 2.5 % too large for
#: 500 columns, and less for fewer.
_SQUARINGS = 7


def stay_normalizable(model):
    """Shrinks the kernel of a model where Z may not be finite, in a training step.

    Only weights between unbounded units shrink, by one factor, until the
    `spectral_gap` is large enough.

    Args:
        model: `RBM` or `CRBM`.
    """
    if isinstance(model.hidden, list):
        return  # of several layers, which `fit` only watches
    visible = layer_parameters(model, "visible_{}", model.visible).curvature
    hidden = layer_parameters(model, "hidden_{}", model.hidden).curvature
    if model.kernel.trainable and _can_be_finite(visible) and _can_be_finite(hidden):
        kernel = tf.convert_to_tensor(model.kernel)
        add([model.kernel], [_change(kernel, visible, hidden)])


def _can_be_finite(curvature):
    """Returns whether there may be unbounded units; Bernoulli's constant says not."""
    values = tf.get_static_value(curvature)
    return values is None or bool(np.isfinite(values).any())


def _change(kernel, visible, hidden):
    """Returns what to add to the kernel, given the units' curvatures."""
    visible, hidden = tf.math.rsqrt(visible), tf.math.rsqrt(hidden)  # 0 if bounded
    scaled = kernel * visible[:, tf.newaxis] * hidden
    largest = np.float32(np.sqrt(1.0 - LEAST_GAP))
    factor = tf.minimum(1.0, largest / tf.maximum(_norm_bound(scaled), 1e-6))
    change = (factor - 1.0) * kernel
    return tf.where(scaled != 0.0, change, tf.zeros_like(change))


def _norm_bound(matrix):
    """Returns an upper bound of the largest singular value s_1.

    With the Gram matrix G of n columns, `trace(G^p)^(1 / 2p)` is the sum of all s_i to
    the power 2p: between s_1 and `n^(1 / 2p)` times it.
    """
    wide = matrix.shape[0] < matrix.shape[1]
    gram = tf.matmul(matrix, matrix, transpose_a=not wide, transpose_b=wide)
    log_bound, power = tf.constant(0.0, matrix.dtype), 1
    for squaring in range(_SQUARINGS + 1):
        if squaring:
            gram, power = gram @ gram, 2 * power
        trace = tf.maximum(tf.linalg.trace(gram), 1e-30)
        log_bound += tf.math.log(trace) / power
        gram /= trace
    return tf.exp(0.5 * log_bound)
