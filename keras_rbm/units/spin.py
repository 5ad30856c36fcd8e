"""Spins: units of two states, -1 and 1."""

import keras
import tensorflow as tf

from keras_rbm.units.bernoulli import EXPECTED_MARGIN, logit
from keras_rbm.units.layer_parameters import BiasFields, LayerParameters
from keras_rbm.units.unit import Unit


class SpinParameters(LayerParameters, BiasFields):
    """A layer of spins: `bias` of shape (units,) or (B, units)."""

    __slots__ = ()
    states = (-1.0, 1.0)

    def log_partition(self, natural):
        return tf.math.softplus(2.0 * natural) - natural

    def mean(self, natural):
        return tf.math.tanh(natural)

    def mode(self, natural):
        return tf.where(natural > 0.0, tf.ones_like(natural), -1.0)

    def sample(self, natural, noise):
        up = noise < tf.math.sigmoid(2.0 * natural)
        return tf.where(up, tf.ones_like(natural), -1.0)

    def natural_for_mean(self, mean):
        return 0.5 * logit(0.5 * (1.0 + mean))

    def natural_for_expected(self, mean):
        return 0.5 * logit(0.5 * (1.0 + mean), EXPECTED_MARGIN)


@keras.saving.register_keras_serializable("keras_rbm")
class Spin(Unit):
    """Units of two states, -1 and 1, as in the Ising model.

    `A(eta) = log(2 cosh(eta))`, mean `tanh(eta)`. The models are the same as with
    Bernoulli units, but the parameters treat both states alike.

    Example:

    >>> rbm = keras_rbm.RBM(8, visible="spin", hidden="spin")
    """

    description = "-1 or 1"
    has_one_scale = True

    def parameters(self, bias):
        return SpinParameters(bias)

    def contains(self, states):
        return (states == -1.0) | (states == 1.0)
