"""Counts up to a limit."""

from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf
from scipy.special import gammaln

from keras_rbm._checks import check_counts
from keras_rbm.units.bernoulli import EXPECTED_MARGIN, logit
from keras_rbm.units.unit import LayerParameters, Unit, index_of_noise, is_whole


class _Fields(NamedTuple):
    bias: tf.Tensor
    log_binomial_coefficients: tf.Tensor


class BinomialParameters(LayerParameters, _Fields):
    """A layer of counts from 0 to n.

    `bias` of shape (units,) or (B, units); `log_binomial_coefficients`, (n + 1,), the
    logarithm of n choose k for each count k.
    """

    __slots__ = ()

    @property
    def num_trials(self):
        """int, n."""
        return self.log_binomial_coefficients.shape[0] - 1

    @property
    def states(self):
        return np.arange(self.num_trials + 1)

    def log_partition(self, natural):
        return self.num_trials * tf.math.softplus(natural)

    def mean(self, natural):
        return self.num_trials * tf.math.sigmoid(natural)

    def mode(self, natural):
        most = tf.floor((self.num_trials + 1.0) * tf.math.sigmoid(natural))
        return tf.minimum(most, float(self.num_trials))

    def sample(self, natural, noise):
        counts = tf.range(self.num_trials + 1.0, dtype=natural.dtype)
        return index_of_noise(
            self.log_binomial_coefficients + natural[..., tf.newaxis] * counts, noise
        )

    def base_measure(self, states):
        return tf.gather(
            self.log_binomial_coefficients, tf.cast(tf.round(states), tf.int32)
        )

    def natural_for_mean(self, mean):
        return logit(mean / self.num_trials)

    def natural_for_expected(self, mean):
        return logit(mean / self.num_trials, EXPECTED_MARGIN)


@keras.saving.register_keras_serializable("keras_rbm")
class Binomial(Unit):
    """Counts from 0 to n: the sum of n binary units that share their parameters.

    `A(eta) = n log(1 + exp(eta))`, mean `n sigmoid(eta)`, base measure
    `log(n! / (y! (n - y)!))`. For gray levels, answers on a scale, counts with a limit.
    Sampling needs memory for n + 1 numbers per unit.

    Args:
        num_trials: int ≥ 1, n.

    Raises:
        ValueError: if `num_trials` is not an int ≥ 1.

    Example:

    >>> rbm = keras_rbm.RBM(8, visible=keras_rbm.units.Binomial(16))
    """

    has_one_scale = True

    def __init__(self, num_trials: int) -> None:
        check_counts(num_trials=num_trials)
        self.num_trials = int(num_trials)

    @property
    def description(self):
        return f"whole numbers from 0 to {self.num_trials}"

    def parameters(self, bias):
        n, k = self.num_trials, np.arange(self.num_trials + 1)
        log_binomial_coefficients = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
        return BinomialParameters(
            bias, tf.constant(log_binomial_coefficients, bias.dtype)
        )

    def contains(self, states):
        return is_whole(states, self.num_trials)

    def get_config(self) -> dict[str, Any]:
        return {"num_trials": self.num_trials}
