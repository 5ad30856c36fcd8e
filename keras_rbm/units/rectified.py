"""Hidden units that are zero or positive."""

from typing import NamedTuple

import keras
import tensorflow as tf

from keras_rbm.units.layer_parameters import LayerParameters
from keras_rbm.units.truncated import (
    LARGEST,
    HalfGaussian,
    HalfLineUnit,
    natural_for_mean,
)
from keras_rbm.units.unit import constant


class _Fields(NamedTuple):
    """Parameters, or their statistics: h and `-gamma h² / 2`."""

    bias: tf.Tensor
    log_precision: tf.Tensor


class RectifiedParameters(LayerParameters, _Fields):
    """A layer of rectified units; `bias` (units,) or (B, units), the other (units,)."""

    __slots__ = ()

    @property
    def curvature(self):
        return tf.exp(self.log_precision)

    def _half(self, natural):
        return HalfGaussian.of(natural, self.log_precision)

    def log_partition(self, natural):
        return self._half(natural).log_partition()

    def mean(self, natural):
        return self._half(natural).moments()[0]

    def mode(self, natural):
        return tf.nn.relu(natural) * tf.exp(-self.log_precision)

    def sample(self, natural, noise):
        return self._half(natural).sample(noise)

    def natural_for_mean(self, mean):
        limit = LARGEST * tf.exp(0.5 * self.log_precision)
        return natural_for_mean(self, mean, limit)

    def statistics(self, states):
        return _Fields(states, self.base_measure(states))

    def expected_statistics(self, natural):
        mean, square = self._half(natural).moments()
        return _Fields(mean, -0.5 * square)

    def base_measure(self, states):
        return -0.5 * tf.exp(self.log_precision) * tf.square(states)


@keras.saving.register_keras_serializable("keras_rbm")
class Rectified(HalfLineUnit):
    """Hidden units h ≥ 0: a Gaussian truncated at zero, with a learned precision [1].

    Density proportional to `exp(eta h - gamma h² / 2)` on h ≥ 0: with
    `a = eta / sqrt(gamma)`, `A(eta) = log(2 pi / gamma) / 2 + a² / 2 + log Phi(a)`.

    Nothing holds a precision up while no sample has a positive input; if it
    falls to 0, a state that no chain has seen gets nearly all the probability. So each
    update ends with `gamma = max(gamma, min_precision)`.

    Args:
        min_precision: float in (0, 1], the least `gamma`.

    Raises:
        ValueError: if it is out of range.

    Example:

    >>> rbm = keras_rbm.RBM(8, hidden="rectified")

    References:
        1. Tubiana, Monasson. Emergence of compositional representations in restricted
           Boltzmann machines. Physical Review Letters, 2017.
    """

    def variables(self):
        return {"bias": (constant(0.0), True), "log_precision": (constant(0.0), True)}

    def parameters(self, bias, log_precision):
        return RectifiedParameters(bias, log_precision)
