"""Sums of logarithms as logarithms of products of a few ratios, if none overflows."""

import functools
from collections.abc import Callable

import tensorflow as tf

from keras_rbm.inference.messages.beliefs import Beliefs, BinaryModels
from keras_rbm.inference.messages.chunks import in_chunks
from keras_rbm.inference.messages.log_messages import LARGEST_WEIGHT

_BLOCK = 8
#: Beyond this weight a product of eight ratios may leave the range of float32.
_LARGEST_BLOCKED_WEIGHT = 10.0
#: Where exp(W) is cut off, so that it is finite also where it is not used.
_LARGEST_EXPONENT = 80.0
#: The bias of units that only pad a block.
_OFF = -80.0


def in_blocks(
    chunk: Callable[..., Beliefs], models: BinaryModels, pairwise: str | None
) -> Beliefs:
    """Runs message passing with the largest block that is safe with the weights.

    Args:
        chunk: function of a few `BinaryModels`, exp(W) and the block, an int, that
            returns their `Beliefs`. Block 0 means no products at all, but sums of
            logarithms.
        models: `BinaryModels`.
        pairwise: `"mean"`, `"each"` or `None`, what `chunk` returns for pairs.

    Returns:
        `Beliefs` of all models.
    """
    num_visible, num_hidden = models.kernel.shape
    filled = _padded(models)
    exponents = tf.clip_by_value(filled.kernel, -_LARGEST_EXPONENT, _LARGEST_EXPONENT)
    odds = tf.exp(exponents)

    def run(block):
        beliefs = in_chunks(lambda part: chunk(part, odds, block), filled, pairwise)
        # `tf.cond` cannot return None.
        return beliefs._replace(pairwise=tf.zeros(())) if pairwise is None else beliefs

    largest = tf.reduce_max(tf.abs(models.kernel))
    beliefs = tf.cond(
        largest <= _LARGEST_BLOCKED_WEIGHT,
        lambda: run(_BLOCK),
        lambda: tf.cond(largest <= LARGEST_WEIGHT, lambda: run(1), lambda: run(0)),
    )
    pairs = beliefs.pairwise
    return beliefs._replace(
        visible=beliefs.visible[:, :num_visible],
        hidden=beliefs.hidden[:, :num_hidden],
        pairwise=None if pairwise is None else pairs[..., :num_visible, :num_hidden],
    )


def _padded(models):
    """Returns the models, padded to a multiple of a block by units that are off."""
    visible, hidden = (-size % _BLOCK for size in models.kernel.shape)
    return BinaryModels(
        tf.pad(models.kernel, [[0, visible], [0, hidden]]),
        tf.pad(models.visible_bias, [[0, 0], [0, visible]], constant_values=_OFF),
        tf.pad(models.hidden_bias, [[0, 0], [0, hidden]], constant_values=_OFF),
        models.weights,
    )


def products(array: tf.Tensor, block: int, axis: int) -> tf.Tensor:
    """Returns products of `block` entries each, evenly spaced along an axis."""
    return functools.reduce(tf.multiply, tf.split(array, block, axis))


def sum_of_logs(array: tf.Tensor, block: int, axis: int) -> tf.Tensor:
    """Returns the sum of logarithms along an axis, whose size `block` divides."""
    return tf.reduce_sum(tf.math.log(products(array, block, axis)), axis)
