"""Spins: units of two states, -1 and 1."""

import keras
import numpy as np
import tensorflow as tf

from keras_rbm.units.bernoulli import EXPECTED_MARGIN, logit
from keras_rbm.units.layer_parameters import BiasFields, LayerParameters
from keras_rbm.units.unit import Unit


class SpinParameters(LayerParameters, BiasFields):
    """A layer of spins: `bias` of shape (units,) or (B, units)."""

    __slots__ = ()
    states = (-1.0, 1.0)

    def log_partition(self, natural: tf.Tensor) -> tf.Tensor:
        return tf.math.softplus(2.0 * natural) - natural

    def mean(self, natural: tf.Tensor) -> tf.Tensor:
        return tf.math.tanh(natural)

    def mode(self, natural: tf.Tensor) -> tf.Tensor:
        return tf.where(natural > 0.0, tf.ones_like(natural), -1.0)

    def sample(self, natural: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
        up = noise < tf.math.sigmoid(2.0 * natural)
        return tf.where(up, tf.ones_like(natural), -1.0)

    def natural_for_mean(self, mean: tf.Tensor) -> tf.Tensor:
        return 0.5 * logit(0.5 * (1.0 + mean))

    def natural_for_expected(self, mean: tf.Tensor) -> tf.Tensor:
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

    def parameters(self, bias: tf.Tensor) -> SpinParameters:
        return SpinParameters(bias)

    def contains(self, states: np.ndarray | tf.Tensor) -> np.ndarray | tf.Tensor:
        return (states == -1.0) | (states == 1.0)
