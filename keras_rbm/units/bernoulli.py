"""Binary units."""

from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf

from keras_rbm.elementary import softplus
from keras_rbm.units.layer_parameters import LayerParameters
from keras_rbm.units.unit import Unit, constant

#: Mean activations are kept this far from 0 and 1 before a logit is taken.
MEAN_MARGIN = 1e-3


class BernoulliStatistics(NamedTuple):
    """Statistics of Bernoulli units: `bias` is the state y."""

    bias: tf.Tensor


class _Fields(NamedTuple):
    bias: tf.Tensor


class BernoulliParameters(LayerParameters, _Fields):
    """A layer of binary units: `bias` of shape (units,) or (B, units)."""

    __slots__ = ()
    finite = True

    @property
    def values(self):
        return np.tile(np.float32([0.0, 1.0]), (self.num_units, 1))

    def log_partition(self, natural):
        return softplus(natural)

    def mean(self, natural):
        return tf.math.sigmoid(natural)

    def mode(self, natural):
        return tf.cast(natural > 0.0, natural.dtype)

    def sample(self, natural, noise):
        return tf.cast(noise < tf.math.sigmoid(natural), natural.dtype)

    def statistics(self, states):
        return BernoulliStatistics(states)

    def expected_statistics(self, natural):
        return BernoulliStatistics(tf.math.sigmoid(natural))

    def natural_for_mean(self, mean):
        mean = tf.clip_by_value(mean, MEAN_MARGIN, 1.0 - MEAN_MARGIN)
        return tf.math.log(mean) - tf.math.log1p(-mean)


@keras.saving.register_keras_serializable("keras_rbm")
class Bernoulli(Unit):
    """Binary units, states 0 and 1.

    `A(eta) = log(1 + exp(eta))`, mean `sigmoid(eta)`.

    Example:

    >>> rbm = keras_rbm.RBM(8, visible=keras_rbm.units.Bernoulli())
    """

    description = "0 or 1, or means of them"

    def variables(self):
        return {"bias": (constant(0.0), True)}

    def parameters(self, bias):
        return BernoulliParameters(bias)

    def contains(self, states):
        return (states >= 0) & (states <= 1)

    def is_state(self, states):
        return (states == 0) | (states == 1)

    def fitted(self, mean, variance):
        mean = np.clip(mean, MEAN_MARGIN, 1.0 - MEAN_MARGIN)
        return {"bias": np.log(mean) - np.log1p(-mean)}
