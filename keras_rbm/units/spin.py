"""Spins: units of two states, -1 and 1."""

from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf

from keras_rbm.elementary import softplus
from keras_rbm.units.bernoulli import MEAN_MARGIN
from keras_rbm.units.layer_parameters import LayerParameters
from keras_rbm.units.unit import Unit, constant

_LARGEST = 1.0 - 2.0 * MEAN_MARGIN


class SpinStatistics(NamedTuple):
    """Statistics of spins: `bias` is the state."""

    bias: tf.Tensor


class _Fields(NamedTuple):
    bias: tf.Tensor


class SpinParameters(LayerParameters, _Fields):
    """A layer of spins: `bias` of shape (units,) or (B, units)."""

    __slots__ = ()
    finite = True

    @property
    def values(self):
        return np.tile(np.float32([-1.0, 1.0]), (self.num_units, 1))

    def log_partition(self, natural):
        return softplus(2.0 * natural) - natural

    def mean(self, natural):
        return tf.math.tanh(natural)

    def mode(self, natural):
        return tf.where(natural > 0.0, tf.ones_like(natural), -1.0)

    def sample(self, natural, noise):
        up = noise < tf.math.sigmoid(2.0 * natural)
        return tf.where(up, tf.ones_like(natural), -1.0)

    def statistics(self, states):
        return SpinStatistics(states)

    def expected_statistics(self, natural):
        return SpinStatistics(tf.math.tanh(natural))

    def natural_for_mean(self, mean):
        return tf.math.atanh(tf.clip_by_value(mean, -_LARGEST, _LARGEST))


@keras.saving.register_keras_serializable("keras_rbm")
class Spin(Unit):
    """Units of two states, -1 and 1, as in the Ising model.

    `A(eta) = log(2 cosh(eta))`, mean `tanh(eta)`. The same models as of Bernoulli
    units, in parameters that do not prefer one of the states.

    Example:

    >>> rbm = keras_rbm.RBM(8, visible="spin", hidden="spin")
    """

    description = "-1 or 1"

    def variables(self):
        return {"bias": (constant(0.0), True)}

    def parameters(self, bias):
        return SpinParameters(bias)

    def contains(self, states):
        return (states == -1.0) | (states == 1.0)

    def fitted(self, mean, variance):
        return {"bias": np.arctanh(np.clip(mean, -_LARGEST, _LARGEST))}
