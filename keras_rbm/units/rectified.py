"""Hidden units that are zero or positive: half a Gaussian, for inputs up to 1e4."""

import math
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from keras_rbm._checks import check_numbers
from keras_rbm.units.unit import LayerParameters, Unit, constant

#: Below this location a continued fraction replaces differences.
_TAIL = -3.0
#: Terms of the fraction: at `_TAIL` they have an error of 1e-7 of the mean.
_TERMS = 18
_NEWTON_STEPS = 3
#: Of a smaller probability XLA's `ndtri` is infinite in float32.
_LEAST_SHARE = 2.0**-25
#: Standard deviations up to which a natural parameter is searched.
LARGEST = 30.0


class HalfGaussian(NamedTuple):
    """The density proportional to `exp(eta h - gamma h² / 2)` on h ≥ 0.

    Attributes:
        location: tensor, `a = eta / sqrt(gamma)`.
        deviation: tensor, `1 / sqrt(gamma)`.
    """

    location: tf.Tensor
    deviation: tf.Tensor

    @classmethod
    def of(cls, natural, log_precision):
        """Returns the density for natural parameters and precisions of one shape."""
        deviation = tf.exp(-0.5 * log_precision)
        return cls(natural * deviation, deviation)

    def log_partition(self):
        """Returns `log(2 pi / gamma) / 2 + a² / 2 + log Phi(a)`."""
        # In the tail the last two cancel: their sum is minus the log of the hazard.
        near, tail = self._near(), self._tail()
        normal = 0.5 * math.log(2.0 * math.pi)
        inside = 0.5 * tf.square(near) + tf.math.log(_below(near)) + normal
        outside = -tf.math.log(tail + _over(tail))
        return tf.math.log(self.deviation) + self._where(inside, outside)

    def moments(self):
        """Returns `(mean of h, mean of gamma h²)`."""
        near, tail = self._near(), self._tail()
        density = tf.exp(-0.5 * tf.square(near)) * (2.0 * math.pi) ** -0.5
        mean = near + density / _below(near)
        rest = _rest(tail)
        far = 1.0 / (tail + rest)
        square = self._where(1.0 + near * mean, rest * far)
        return self.deviation * self._where(mean, far), square

    def sample(self, noise):
        """Returns h drawn with noise of the same shape, uniform on (0, 1).

        The noise is the probability of a larger h.
        """
        near, tail = self._near(), self._tail()
        share = tf.maximum(noise * _below(near), _LEAST_SHARE)
        direct = near - tf.math.ndtri(share)
        wanted = -tf.math.log(noise)
        h = 2.0 * wanted / (tf.sqrt(tf.square(tail) + 2.0 * wanted) + tail)
        start = tf.math.log(tail + _over(tail))
        for _ in range(_NEWTON_STEPS):
            hazard = tail + h + _over(tail + h)
            excess = h * (tail + 0.5 * h) + tf.math.log(hazard) - start - wanted
            h = tf.nn.relu(h - excess / hazard)
        return self.deviation * self._where(tf.nn.relu(direct), h)

    def _near(self):
        return tf.maximum(self.location, _TAIL)

    def _tail(self):
        return tf.maximum(-self.location, -_TAIL)

    def _where(self, inside, outside):
        return tf.where(self.location < _TAIL, outside, inside)


@keras.saving.register_keras_serializable("keras_rbm")
class MinPrecision(keras.constraints.Constraint):
    """Holds the logarithm of a precision at that of the least one, or above."""

    def __init__(self, min_precision):
        self.min_precision = min_precision

    def __call__(self, log_precision):
        return tf.maximum(log_precision, math.log(self.min_precision))

    def get_config(self):
        return {"min_precision": self.min_precision}


class HalfLineUnit(Unit):
    """Base of hidden units that are Gaussian on half-lines, with a floor of precisions.

    Args:
        min_precision: float in (0, 1], the least precision; training starts at 1.
    """

    hidden_only = True

    def __init__(self, min_precision: float = 0.05) -> None:
        check_numbers(min_precision=min_precision)
        if not 0.0 < min_precision <= 1.0:
            raise ValueError(
                "Expected 0 < min_precision ≤ 1, the precision that training starts "
                f"with. Received: min_precision={min_precision!r}. Leave it at 0.05."
            )
        self.min_precision = float(min_precision)

    def constraint(self, name):
        return (
            MinPrecision(self.min_precision)
            if name.startswith("log_precision")
            else None
        )

    def get_config(self) -> dict[str, Any]:
        return {"min_precision": self.min_precision}


def _below(x):
    """Returns Phi(x)."""
    return 0.5 * tf.math.erfc(-x * 0.5**0.5)


def _rest(t):
    """Returns 2 / (t + 3 / (t + …)), for t ≥ 3."""
    rest = tf.zeros_like(t)
    for term in range(_TERMS, 1, -1):
        rest = term / (t + rest)
    return rest


def _over(t):
    """Returns phi(t) / Phi(-t) - t = 1 / (t + 2 / (t + …)), for t ≥ 3."""
    return 1.0 / (t + _rest(t))


def natural_for_mean(units, mean, limit):
    """Returns natural parameters for a mean, between -limit and limit, by bisection.

    Args:
        units: `LayerParameters`, whose mean grows with the natural parameter.
        mean: tensor (..., units).
        limit: tensor (units,).
    """

    def halved(low, high):
        middle = 0.5 * (low + high)
        above = units.mean(middle) > mean
        return tf.where(above, low, middle), tf.where(above, middle, high)

    high = tf.broadcast_to(limit, tf.shape(mean))
    ends = tf.while_loop(lambda *_: True, halved, (-high, high), maximum_iterations=30)
    return 0.5 * sum(ends)


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
