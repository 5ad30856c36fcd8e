"""Sums of logarithms as logarithms of products of a few numbers, and what they need.

Layers are padded to a multiple of eight units, and the weights say how many ratios can
be multiplied without leaving the range of float32.
"""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_rbm.inference.messages.beliefs import check_binary
from keras_rbm.units.bernoulli import BernoulliParameters
from keras_rbm.units.categorical import CategoricalParameters

_BLOCK = 8
#: Beyond this weight a product of eight ratios may leave the range of float32, beyond
#: the second one a single ratio.
_LARGEST_BLOCKED_WEIGHT, _LARGEST_WEIGHT = 10.0, 40.0
#: Where exp(W) is cut off, so that it is finite also where it is not used.
_LARGEST_EXPONENT = 80.0
#: The bias of units that only pad a block.
_OFF = -80.0

#: A kernel W (q · U, H), or exp(W), and biases (n, q · U), (n, H).
Model = Sequence[tf.Tensor]
#: Where sweeps are: tensors (n, …), of which the last are those of the units.
State = tuple[tf.Tensor, ...]


def products(array, block, axis):
    """Returns products of `block` entries each, evenly spaced along an axis."""
    return functools.reduce(tf.multiply, tf.split(array, block, axis))


def sum_of_logs(array, block, axis):
    """Returns the sum of logarithms along an axis, whose size `block` divides."""

    @tf.custom_gradient
    def total(array):
        logs = tf.math.log(products(array, block, axis))
        return tf.reduce_sum(
            logs, axis
        ), lambda upstream: tf.expand_dims(upstream, axis) / array

    return total(array)


def odds_of(kernel):
    """Returns exp(W), finite also where it is not used."""
    largest = _LARGEST_EXPONENT
    return tf.exp(tf.clip_by_value(kernel, -largest, largest))


def with_safe_block(kernel, run):
    """Returns what `run` does with the largest block that is safe with the weights.

    Args:
        kernel: tensor, W.
        run: function of the block, an int. Block 0 means no products at all, but sums
            of logarithms.
    """
    largest = tf.reduce_max(tf.abs(kernel))
    return tf.cond(
        largest <= _LARGEST_BLOCKED_WEIGHT,
        lambda: run(_BLOCK),
        lambda: tf.cond(largest <= _LARGEST_WEIGHT, lambda: run(1), lambda: run(0)),
    )


def by_category(model, num_states):
    """Returns the model with arrays (q, U, H), (n, q, U) and (n, H)."""
    kernel, b, c = model
    rows, num_hidden = kernel.shape
    units = rows // num_states
    return (
        tf.reshape(kernel, (num_states, units, num_hidden)),
        tf.reshape(b, (b.shape[0], num_states, units)),
        c,
    )


class Layout(NamedTuple):
    """The order of rows for messages: category 0 of all units, then category 1, ….

    A category of all units is one piece of memory, and a sum over categories is one of
    q arrays. A binary unit is one row, that of its state 1. Both layers are padded to
    multiples of eight by units without weights, which are sure to be off.

    Attributes:
        num_units: int, visible units of the model.
        num_states: int, rows of the kernel for each: q, or 1 for binary units.
        num_hidden: int.
    """

    num_units: int
    num_states: int
    num_hidden: int

    @classmethod
    def of(cls, potentials):
        """Returns the layout for categorical or binary visible, binary hidden units.

        Raises:
            ValueError: if the units are others.
        """
        kernel, visible, hidden = potentials
        num_states = 1
        if isinstance(visible, CategoricalParameters) and isinstance(
            hidden, BernoulliParameters
        ):
            num_states = visible.num_states
        else:
            check_binary(potentials)
        rows, num_hidden = kernel.shape
        return cls(rows // num_states, num_states, num_hidden)

    def model(self, models):
        """Returns kernel and biases of B models in this order."""
        kernel = self._by_category(models.kernel[tf.newaxis])[0]
        b = self._by_category(models.visible_bias[..., tf.newaxis])[..., 0]
        off = np.zeros((self.num_states, b.shape[-1] // self.num_states), np.float32)
        off[min(self.num_states - 1, 1) :, self.num_units :] = _OFF
        pads = [[0, 0], [0, -self.num_hidden % _BLOCK]]
        c = tf.pad(models.hidden_bias, pads, constant_values=_OFF)
        return tf.pad(kernel, pads), b + off.ravel(), c

    def restored(self, visible, hidden, *pairs):
        """Returns beliefs of models in this order in the order of the kernel.

        Those of pairs are (B, rows, hidden units) or their mean, without B.
        """
        visible = self._rows(visible[..., tf.newaxis])[..., 0]
        pairs = [self._rows(array[..., : self.num_hidden]) for array in pairs]
        return [visible, hidden[:, : self.num_hidden], *pairs]

    def _by_category(self, array):
        """Returns (m, units · q, n) as (m, q · padded units, n)."""
        q, missing, width = self.num_states, -self.num_units % _BLOCK, array.shape[-1]
        units = tf.reshape(array, (-1, self.num_units, q, width))
        units = tf.transpose(units, (0, 2, 1, 3))
        units = tf.pad(units, [[0, 0], [0, 0], [0, missing], [0, 0]])
        return tf.reshape(units, (-1, q * (self.num_units + missing), width))

    def _rows(self, array):
        """Returns (…, q · padded units, n) as (…, units · q, n)."""
        *batch, rows, width = array.shape
        q, batch = self.num_states, [-1] if batch else []
        units = tf.reshape(array, (-1, q, rows // q, width))[:, :, : self.num_units]
        units = tf.transpose(units, (0, 2, 1, 3))
        return tf.reshape(units, (*batch, self.num_units * q, width))
