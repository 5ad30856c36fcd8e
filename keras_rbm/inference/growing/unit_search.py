"""The search for the hidden unit that most improves the likelihood.

With `sp(a) = log(1 + exp(a))` and `a(v) = w' v + d`, a new unit changes the mean
log-likelihood by

    Delta L = mean_data sp(a) - log mean_model exp(sp(a))

exactly, where the second mean is over the model before the change and is estimated from
its samples.
"""

from typing import NamedTuple

import tensorflow as tf

from keras_rbm import random
from keras_rbm.inference.resampling import (
    log_mean_exp,
    random_rows,
    weighted_mean,
)

#: Standard deviation of a search's random start.
_START = 0.01
#: Input to a unit that starts near an example, at that example; minus this at the mean.
_STEEPNESS = 2.0
#: Most iterations of a search.
_ITERATIONS = 30


class DataAndSamples(NamedTuple):
    """The positive phase (data) and the negative phase (model samples).

    The weights of each sum to 1.

    Attributes:
        visible: tensor (N, V).
        weights: tensor (N,).
        samples: tensor (S, V).
        sample_weights: tensor (S,).
    """

    visible: tf.Tensor
    weights: tf.Tensor
    samples: tf.Tensor
    sample_weights: tf.Tensor


class HiddenUnits(NamedTuple):
    """Parameters of R hidden units: `weights` (R, V) and `bias` (R,)."""

    weights: tf.Tensor
    bias: tf.Tensor

    def softplus(self, visible):
        """Returns sp(w'v + d), (B, R)."""
        inputs = tf.matmul(visible, self.weights, transpose_b=True)
        return tf.math.softplus(inputs + self.bias)

    def square(self):
        """Returns |w|^2 + d^2, (R,)."""
        return tf.reduce_sum(tf.square(self.weights), -1) + tf.square(self.bias)


def penalized_loss(units, phases, l2):
    """Returns `l2/2 |w, d|^2 - Delta L`, (R,): exact up to the samples."""
    data = weighted_mean(units.softplus(phases.visible), phases.weights)
    growth = log_mean_exp(units.softplus(phases.samples), phases.sample_weights)
    return 0.5 * l2 * units.square() + growth - data


def find_unit(phases, seed, *, l2, num_starts):
    """Returns the best unit of a search, `HiddenUnits` with R = 1.

    Args:
        phases: `DataAndSamples`.
        seed: int or integer tensor of shape (2,).
        l2: scalar, the penalty's weight.
        num_starts: int ≥ 1.
    """
    starts = _starts(phases, num_starts, seed)
    units, values = minimize(phases, starts, l2, _ITERATIONS)
    best = tf.argmin(tf.where(tf.math.is_finite(values), values, float("inf")))
    return HiddenUnits(*(tf.gather(part, best)[tf.newaxis] for part in units))


def _starts(phases, count, seed):
    """Returns `HiddenUnits` to start from: near examples, and small random ones.

    The former are on for an example and off for the mean. The latter often end in the
    same local optimum, or at 0 if the penalty outweighs the curvature.
    """
    mean = weighted_mean(phases.visible, phases.weights)
    small = count // 2
    examples = random_rows(
        phases.visible, phases.weights, count - small, random.fold_in(seed, 0)
    )
    away = examples - mean
    square = tf.reduce_sum(tf.square(away), -1, keepdims=True)
    weights = 2.0 * _STEEPNESS * tf.math.divide_no_nan(away, square)
    bias = -tf.linalg.matvec(weights, mean) - _STEEPNESS
    noise = _START * tf.random.stateless_normal(
        (small, tf.shape(mean)[0] + 1), random.fold_in(seed, 1), alg="philox"
    )
    return HiddenUnits(
        tf.concat([noise[:, :-1], weights], 0), tf.concat([noise[:, -1], bias], 0)
    )


@tf.function(autograph=False)
def minimize(phases, starts, l2, max_iterations, tolerance=1e-4):
    """Minimizes `penalized_loss` by L-BFGS from several starts at once.

    Args:
        phases: `DataAndSamples`.
        starts: `HiddenUnits`, R of them. 0 is a saddle point.
        l2: float, the penalty's weight.
        max_iterations: int.
        tolerance: float, of the gradient's largest component.

    Returns:
        `(units, values)`: `HiddenUnits` and their losses (R,).
    """
    import tensorflow_probability as tfp

    @tf.function(autograph=False)  # L-BFGS calls it in ten places: trace it once
    def value_and_gradient(position):
        def value(position):
            return penalized_loss(_split(position), phases, l2)

        return tfp.math.value_and_gradient(value, position)

    start = tf.concat([starts.weights, starts.bias[:, tf.newaxis]], 1)
    result = tfp.optimizer.lbfgs_minimize(
        value_and_gradient,
        start,
        tolerance=tolerance,
        max_iterations=max_iterations,
        stopping_condition=tfp.optimizer.converged_all,
    )
    return _split(result.position), result.objective_value


def _split(position):
    return HiddenUnits(position[:, :-1], position[:, -1])
