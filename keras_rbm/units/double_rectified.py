"""Hidden units with separate parameters for negative and positive states."""

from typing import NamedTuple

import keras
import tensorflow as tf

from keras_rbm.random import HALF_STEP
from keras_rbm.units import rectified
from keras_rbm.units.unit import LayerParameters, constant


class _Fields(NamedTuple):
    """Parameters, or their statistics.

    These are h, -|h|, and `-gamma h² / 2` of either side, 0 on the other.
    """

    bias: tf.Tensor
    threshold: tf.Tensor
    log_precision: tf.Tensor
    log_precision_below: tf.Tensor


class DoubleRectifiedParameters(LayerParameters, _Fields):
    """A layer of units; `bias` is (units,) or (B, units), other fields (units,)."""

    __slots__ = ()

    @property
    def curvature(self):
        return tf.exp(tf.minimum(self.log_precision, self.log_precision_below))

    def _halves(self, natural):
        """Returns both sides as `HalfGaussian`, and the log-odds of the upper one."""
        above = rectified.HalfGaussian.of(natural - self.threshold, self.log_precision)
        below = rectified.HalfGaussian.of(
            -natural - self.threshold, self.log_precision_below
        )
        return above, below, above.log_partition() - below.log_partition()

    def log_partition(self, natural):
        above, below, _ = self._halves(natural)
        both = tf.stack([above.log_partition(), below.log_partition()])
        return tf.reduce_logsumexp(both, 0)

    def mean(self, natural):
        return self.expected_statistics(natural).bias

    def mode(self, natural):
        above = tf.nn.relu(natural - self.threshold)
        below = tf.nn.relu(-natural - self.threshold)
        height = tf.square(above) * tf.exp(-self.log_precision)
        depth = tf.square(below) * tf.exp(-self.log_precision_below)
        return tf.where(
            height >= depth,
            above * tf.exp(-self.log_precision),
            -below * tf.exp(-self.log_precision_below),
        )

    def sample(self, natural, noise):
        above, below, odds = self._halves(natural)
        share = tf.math.sigmoid(odds)
        up = noise < share
        # The rest of the noise, after it has chosen a side, is uniform again.
        left = tf.where(up, noise, noise - share)
        left = tf.math.divide_no_nan(left, tf.where(up, share, 1.0 - share))
        left = tf.clip_by_value(left, HALF_STEP, 1.0 - HALF_STEP)
        return tf.where(up, above.sample(left), -below.sample(left))

    def natural_for_mean(self, mean):
        sharper = tf.maximum(self.log_precision, self.log_precision_below)
        limit = rectified.LARGEST * tf.exp(0.5 * sharper) + tf.abs(self.threshold)
        return rectified.natural_for_mean(self, mean, limit)

    def statistics(self, states):
        halves = self._halves_of(states)
        return _Fields(states, -tf.abs(states), *halves)

    def _halves_of(self, states):
        upper, lower = tf.nn.relu(states), tf.nn.relu(-states)
        return (
            -0.5 * tf.exp(self.log_precision) * tf.square(upper),
            -0.5 * tf.exp(self.log_precision_below) * tf.square(lower),
        )

    def expected_statistics(self, natural):
        above, below, odds = self._halves(natural)
        up, down = tf.math.sigmoid(odds), tf.math.sigmoid(-odds)
        (upper, upper_square), (lower, lower_square) = above.moments(), below.moments()
        return _Fields(
            up * upper - down * lower,
            -up * upper - down * lower,
            -0.5 * up * upper_square,
            -0.5 * down * lower_square,
        )

    def base_measure(self, states):
        upper, lower = self._halves_of(states)
        return upper + lower - self.threshold * tf.abs(states)


@keras.saving.register_keras_serializable("keras_rbm")
class DoubleRectified(rectified.HalfLineUnit):
    """Hidden units of two half-lines, each with its own mean and precision [1].

    Density proportional to `exp(eta h - theta |h| - gamma h² / 2)`, with `gamma` of the
    side that h is on. In the notation of [1] `theta_+ = theta - bias` and
    `theta_- = -theta - bias`. With theta = 0 and equal precisions they are Gaussian;
    with a large theta, nearly always 0; with a negative theta, bimodal.

    Nothing holds a precision up while no sample has an input on that side; if it
    falls to 0, a state that no chain has seen gets nearly all the probability. So each
    update ends with `gamma = max(gamma, min_precision)`.

    Args:
        min_precision: float in (0, 1], the least `gamma`.

    Raises:
        ValueError: if it is out of range.

    Example:

    >>> rbm = keras_rbm.RBM(8, hidden="double_rectified")

    References:
        1. Tubiana, Cocco, Monasson. Learning protein constitutive motifs from sequence
           data. eLife 8, 2019.
    """

    def variables(self):
        names = ("bias", "threshold", "log_precision", "log_precision_below")
        return {name: (constant(0.0), True) for name in names}

    def parameters(self, **values):
        return DoubleRectifiedParameters(**values)
