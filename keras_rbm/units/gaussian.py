"""Real-valued units with a learned precision."""

import math
import warnings
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from keras_rbm._checks import check_flags
from keras_rbm.units.unit import LayerParameters, Unit, constant

#: Standard deviation over mean up to which a unit counts as constant.
LEAST_DEVIATION = 1e-6
#: The same of one that is constant up to the rounding of float64.
_ROUNDING = 1e-10
#: Mean over standard deviation above which a warning is given.
MAX_OFFSET = 10.0


class GaussianStatistics(NamedTuple):
    """Statistics of Gaussian units: t and -gamma t^2 / 2, t = (y - shift) / scale."""

    bias: tf.Tensor
    log_precision: tf.Tensor


class _Fields(NamedTuple):
    bias: tf.Tensor
    log_precision: tf.Tensor
    shift: tf.Tensor
    scale: tf.Tensor


class GaussianParameters(LayerParameters, _Fields):
    """A layer of Gaussian units; all fields (units,), `bias` also (B, units)."""

    __slots__ = ()

    @property
    def precision(self):
        return tf.math.exp(self.log_precision)

    @property
    def curvature(self):
        return self.precision

    def log_partition(self, natural):
        return (
            0.5 * tf.math.square(natural) / self.precision
            + 0.5 * (math.log(2.0 * math.pi) - self.log_precision)
            + tf.math.log(self.scale)
        )

    def mean(self, natural):
        return self.shift + self.scale * natural / self.precision

    def mode(self, natural):
        return self.mean(natural)

    def sample(self, natural, noise):
        normal = tf.math.ndtri(noise)
        deviation = self.scale * tf.math.exp(-0.5 * self.log_precision)
        return self.mean(natural) + deviation * normal

    def first(self, encoded):
        return (encoded - self.shift) / self.scale

    def statistics(self, states):
        first = self.first(states)
        return GaussianStatistics(first, -0.5 * self.precision * tf.square(first))

    def expected_statistics(self, natural):
        first = natural / self.precision
        square = tf.square(first) + 1.0 / self.precision
        return GaussianStatistics(first, -0.5 * self.precision * square)

    def base_measure(self, states):
        return self.statistics(states).log_precision

    def natural_for_mean(self, mean):
        return self.precision * self.first(mean)


@keras.saving.register_keras_serializable("keras_rbm")
class Gaussian(Unit):
    """Real-valued units with a learned precision `gamma`.

    With `t = (y - shift) / scale`, a unit's density is proportional to
    `exp(eta t - gamma t^2 / 2)`: `A(eta) = eta^2 / (2 gamma) +
    log(2 pi / gamma) / 2 + log(scale)`, mean `shift + scale * eta / gamma`.
    The bias and `log gamma` are learned. Likelihoods are densities of `y` in its own
    units, for any shift and scale.

    A column that is constant, within a millionth of its mean, keeps scale 1, with a
    warning if it varies: float32 hardly resolves that. Subtract its mean beforehand.

    Args:
        standardize: bool. If `True`, `adapt` or the first `fit` sets `shift` and
            `scale` to the mean and standard deviation of the data, so that a learning
            rate means the same for every unit. If `False`, they stay 0 and 1, and
            bias and precision are set instead, for data that are already standardized.

    Raises:
        TypeError: if it is not a bool.

    Example:

    >>> data = np.random.default_rng(0).normal(5.0, 2.0, (500, 3))
    >>> rbm = keras_rbm.RBM(16, visible="gaussian", seed=0)
    >>> rbm.adapt(data)
    >>> float(rbm.visible_scale[0]) > 1.5
    True
    """

    def __init__(self, standardize: bool = True) -> None:
        check_flags(standardize=standardize)
        self.standardize = bool(standardize)

    @property
    def has_one_scale(self):
        return not self.standardize

    def variables(self):
        return {
            "bias": (constant(0.0), True),
            "log_precision": (constant(0.0), True),
            "shift": (constant(0.0), False),
            "scale": (constant(1.0), False),
        }

    def parameters(self, bias, log_precision, shift, scale):
        return GaussianParameters(bias, log_precision, shift, scale)

    def fitted(self, mean, variance):
        square = np.square(np.asarray(mean, float))
        is_constant = variance <= LEAST_DEVIATION**2 * square
        varies = is_constant & (variance > _ROUNDING**2 * square)
        if np.any(varies):
            warnings.warn(
                f"{np.sum(varies)} visible units vary by less than a millionth of "
                f"their means, such as {np.max(np.abs(mean[varies])):.3g}: float32 "
                "hardly resolves that, and they are taken as constant. Subtract the "
                "means in float64 beforehand.",
                stacklevel=3,
            )
        variance = np.where(is_constant, 1.0, variance)
        if self.standardize:
            zero = np.zeros_like(mean)
            fitted = {"shift": mean, "scale": np.sqrt(variance)}
            return fitted | {"bias": zero, "log_precision": zero}
        offset = np.max(np.abs(mean) / np.sqrt(variance))
        if offset > MAX_OFFSET:
            warnings.warn(
                f"A visible unit's mean is {offset:.3g} times its standard deviation: "
                "learning its bias and precision will be unstable. Use "
                "keras_rbm.units.Gaussian(standardize=True).",
                stacklevel=3,
            )
        return {"bias": mean / variance, "log_precision": -np.log(variance)}

    def get_config(self) -> dict[str, Any]:
        return {"standardize": self.standardize}
