"""An estimate of the partition function and its error."""

import math
from typing import NamedTuple

import tensorflow as tf


class LogPartition(NamedTuple):
    """An estimate of log Z, in nats; fields of shape (), or (B,) for B models.

    Attributes:
        value: the estimate.
        stderr: its standard error (0 if exact, NaN if not known: `"bethe"`,
            `"mean_field"`, whose `ess` is NaN too, and the ends of the first).
        lower: lower end of the interval `log(Z ± 3 standard errors)`; `-inf` where
            they exceed Z. It covers the estimate's chance, not its bias. Of
            `"reverse_ais"`: the mean of upper bounds, ± 3 standard errors.
        upper: upper end.
        ess: effective sample size of the weights, 1 to the number of chains.
        log_weights: (M,) or (M, B), each chain's estimate of log Z.
    """

    value: tf.Tensor
    stderr: tf.Tensor
    lower: tf.Tensor
    upper: tf.Tensor
    ess: tf.Tensor
    log_weights: tf.Tensor

    @classmethod
    def exact(cls, value):
        """Returns a known log Z as a LogPartition."""
        value = tf.cast(value, tf.float64)
        zero = tf.zeros_like(value)
        infinite = tf.fill(tf.shape(value), tf.constant(math.inf, tf.float64))
        return cls(value, zero, value, value, infinite, value[tf.newaxis])

    @classmethod
    def without_error(cls, value, lower=math.nan, upper=math.nan):
        """Returns a deterministic estimate of log Z whose error is not known."""
        value = tf.cast(value, tf.float64)
        unknown = tf.fill(tf.shape(value), tf.constant(math.nan, tf.float64))
        lower, upper = (
            tf.zeros_like(value) + tf.cast(x, value.dtype) for x in (lower, upper)
        )
        return cls(value, unknown, lower, upper, unknown, value[tf.newaxis])

    @classmethod
    def from_bounds(cls, values):
        """Returns the mean of stochastic bounds of log Z, three errors either way.

        Args:
            values: tensor (M,) or (M, B), such as
                `reverse_annealed_importance_sampling` returns.
        """
        if values.shape[0] is not None and values.shape[0] < 2:
            raise ValueError(
                "Expected at least two chains, for a standard error. Received: "
                f"{values.shape[0]}."
            )
        values = tf.cast(values, tf.float64)
        chains = tf.cast(tf.shape(values)[0], tf.float64)
        value = tf.reduce_mean(values, 0)
        variance = tf.reduce_sum(tf.square(values - value), 0) / (chains - 1.0)
        stderr = tf.sqrt(variance / chains)
        ess = tf.fill(tf.shape(value), chains)
        return cls(
            value, stderr, value - 3.0 * stderr, value + 3.0 * stderr, ess, values
        )

    @classmethod
    def from_log_weights(cls, log_weights):
        """Returns the estimate that unbiased weights of Z imply.

        `log Z ~ logmeanexp(log w)`, standard error by the delta method,
        `sd(w) / (sqrt(M) mean(w))`.

        Args:
            log_weights: tensor (M,) or (M, B).
        """
        log_weights = tf.cast(log_weights, tf.float64)
        chains = tf.cast(tf.shape(log_weights)[0], tf.float64)
        value = tf.reduce_logsumexp(log_weights, 0) - tf.math.log(chains)
        weights = tf.exp(log_weights - value)
        variance = tf.reduce_sum(tf.square(weights - 1.0), 0) / (chains - 1.0)
        stderr = tf.sqrt(variance / chains)
        margin = 3.0 * stderr
        lower = tf.where(
            margin < 1.0,
            value + tf.math.log1p(-tf.minimum(margin, 1.0)),
            tf.constant(-math.inf, tf.float64),
        )
        ess = tf.square(tf.reduce_sum(weights, 0)) / tf.reduce_sum(
            tf.square(weights), 0
        )
        upper = value + tf.math.log1p(margin)
        return cls(value, stderr, lower, upper, ess, log_weights)
