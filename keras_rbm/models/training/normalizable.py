"""Keeps a model of two unbounded layers where its partition function is finite."""

from typing import Any

import numpy as np
import tensorflow as tf

from keras_rbm import random
from keras_rbm._replicas import add
from keras_rbm.models.layer_variables import layer_parameters

#: Least `spectral_gap` of a model in training: a little above where intervals of log Z
#: stay open.
LEAST_GAP = 0.035
#: Of the power method, which finds a norm that is a little too small, and its vectors.
_ITERATIONS, _VECTORS = 16, 8


def stay_normalizable(model: Any) -> None:
    """Shrinks the kernel of a model where Z may not be finite, in a training step.

    Only weights between unbounded units shrink, by one factor, until the
    `spectral_gap` is large enough.

    Args:
        model: `RBM` or `CRBM`.
    """
    visible = layer_parameters(model, "visible_{}", model.visible).curvature
    hidden = layer_parameters(model, "hidden_{}", model.hidden).curvature
    if model.kernel.trainable and _can_be_finite(visible) and _can_be_finite(hidden):
        kernel = tf.convert_to_tensor(model.kernel)
        # Were the vectors the same in each step, training would go where they miss.
        seed = random.fold_in(random.as_seed(0), model.optimizer.iterations)
        add([model.kernel], [_change(kernel, visible, hidden, seed)])


def _can_be_finite(curvature):
    """Returns whether there may be unbounded units; Bernoulli's constant says not."""
    values = tf.get_static_value(curvature)
    return values is None or bool(np.isfinite(values).any())


def _change(kernel, visible, hidden, seed):
    """Returns what to add to the kernel, given the units' curvatures."""
    visible, hidden = tf.math.rsqrt(visible), tf.math.rsqrt(hidden)  # 0 if bounded
    scaled = kernel * visible[:, tf.newaxis] * hidden
    largest = np.float32(np.sqrt(1.0 - LEAST_GAP))
    factor = tf.minimum(1.0, largest / tf.maximum(_spectral_norm(scaled, seed), 1e-6))
    change = (factor - 1.0) * kernel
    return tf.where(scaled != 0.0, change, tf.zeros_like(change))


def _spectral_norm(matrix, seed):
    """Returns the largest singular value by the power method."""
    vectors = random.uniform((matrix.shape[1], _VECTORS), seed) - 0.5
    for _ in range(_ITERATIONS):
        vectors /= tf.maximum(tf.norm(vectors, axis=0), 1e-30)
        vectors = tf.matmul(matrix, matrix @ vectors, transpose_a=True)
    return tf.sqrt(tf.reduce_max(tf.norm(vectors, axis=0)))
