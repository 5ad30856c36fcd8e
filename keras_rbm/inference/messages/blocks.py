"""Message passing in the fastest form that is safe with the weights."""

from collections.abc import Callable

import tensorflow as tf

from keras_rbm.inference.messages.beliefs import Beliefs, BinaryModels
from keras_rbm.inference.messages.chunks import gradients_in_chunks, in_chunks
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
    odds = _odds(filled)

    def run(block):
        beliefs = in_chunks(lambda part: chunk(part, odds, block), filled, pairwise)
        # `tf.cond` cannot return None.
        return beliefs._replace(pairwise=tf.zeros(())) if pairwise is None else beliefs

    beliefs = _with_safe_block(models, run)
    pairs = beliefs.pairwise
    return beliefs._replace(
        visible=beliefs.visible[:, :num_visible],
        hidden=beliefs.hidden[:, :num_hidden],
        pairwise=None if pairwise is None else pairs[..., :num_visible, :num_hidden],
    )


def gradients_in_blocks(
    chunk: Callable[..., tuple[tf.Tensor, tf.Tensor, tf.Tensor]],
    models: BinaryModels,
    iterations: tf.Tensor,
    upstream: Beliefs,
    pairwise: str | None,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns gradients through message passing, with respect to kernel and biases.

    Args:
        chunk: function of a few models' exp(W) (W itself for block 0) and biases, of
            the `BinaryModels`, of rows of the other arguments, of the gradient with
            respect to the mean of pairs, and of the block, that returns gradients with
            respect to the first.
        models: `BinaryModels`.
        iterations: int tensor (B,), sweeps that were made.
        upstream: `Beliefs` of gradients with respect to the results.
        pairwise: as for `in_blocks`.
    """
    num_visible, num_hidden = models.kernel.shape
    visible, hidden = _missing(models)
    filled = _padded(models)
    odds = _odds(filled)
    rows = [
        iterations,
        tf.pad(upstream.visible, [[0, 0], [0, visible]]),
        tf.pad(upstream.hidden, [[0, 0], [0, hidden]]),
        upstream.log_partition,
    ]
    pairs = tf.zeros(filled.kernel.shape)
    if pairwise == "each":
        rows.append(tf.pad(upstream.pairwise, [[0, 0], [0, visible], [0, hidden]]))
    elif pairwise == "mean":
        pairs = tf.pad(upstream.pairwise, [[0, visible], [0, hidden]])

    def run(block):
        def of_part(part, *rows):
            model = odds if block else part.kernel, *part[1:3]
            return chunk(model, part, rows, pairs, block)

        kernel, *biases = gradients_in_chunks(of_part, filled, rows)
        return (kernel * odds if block else kernel), *biases

    kernel, b, c = _with_safe_block(models, run)
    return kernel[:num_visible, :num_hidden], b[:, :num_visible], c[:, :num_hidden]


def _odds(models):
    """Returns exp(W), finite also where it is not used."""
    largest = _LARGEST_EXPONENT
    return tf.exp(tf.clip_by_value(models.kernel, -largest, largest))


def _with_safe_block(models, run):
    """Returns what `run` does with the largest block that is safe with the weights."""
    largest = tf.reduce_max(tf.abs(models.kernel))
    return tf.cond(
        largest <= _LARGEST_BLOCKED_WEIGHT,
        lambda: run(_BLOCK),
        lambda: tf.cond(largest <= LARGEST_WEIGHT, lambda: run(1), lambda: run(0)),
    )


def _missing(models):
    """Returns how many units each layer lacks to a multiple of a block."""
    return [-size % _BLOCK for size in models.kernel.shape]


def _padded(models):
    """Returns the models, padded to a multiple of a block by units that are off."""
    visible, hidden = _missing(models)
    return BinaryModels(
        tf.pad(models.kernel, [[0, visible], [0, hidden]]),
        tf.pad(models.visible_bias, [[0, 0], [0, visible]], constant_values=_OFF),
        tf.pad(models.hidden_bias, [[0, 0], [0, hidden]], constant_values=_OFF),
        models.weights,
    )
