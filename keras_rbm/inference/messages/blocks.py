"""Sums of logarithms as logarithms of products of a few numbers."""

import functools

import tensorflow as tf

from keras_rbm.inference.messages.beliefs import BinaryModels
from keras_rbm.inference.messages.log_messages import LARGEST_WEIGHT

_BLOCK = 8
#: Beyond this weight a product of eight ratios may leave the range of float32.
_LARGEST_BLOCKED_WEIGHT = 10.0
#: The bias of units that only pad a block.
_OFF = -80.0


def padded(models):
    """Returns the models, padded to a multiple of a block by units that are off."""
    visible, hidden = (-size % _BLOCK for size in models.kernel.shape)
    return BinaryModels(
        tf.pad(models.kernel, [[0, visible], [0, hidden]]),
        tf.pad(models.visible_bias, [[0, 0], [0, visible]], constant_values=_OFF),
        tf.pad(models.hidden_bias, [[0, 0], [0, hidden]], constant_values=_OFF),
        models.weights,
    )


def for_weights(kernel, run):
    """Returns `run(block)` for the largest block that is safe with these weights.

    Block 0 means no products at all, but sums of logarithms.
    """
    largest = tf.reduce_max(tf.abs(kernel))
    return tf.cond(
        largest <= _LARGEST_BLOCKED_WEIGHT,
        lambda: run(_BLOCK),
        lambda: tf.cond(largest <= LARGEST_WEIGHT, lambda: run(1), lambda: run(0)),
    )


def products(array, block, axis):
    """Returns products of `block` entries each, evenly spaced along an axis."""
    return functools.reduce(tf.multiply, tf.split(array, block, axis))


def sum_of_logs(array, block, axis):
    """Returns the sum of logarithms along an axis, whose size `block` divides."""
    return tf.reduce_sum(tf.math.log(products(array, block, axis)), axis)
