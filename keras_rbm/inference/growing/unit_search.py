"""The hidden unit that most improves the likelihood, and visible biases that suit it.

With `sp(a) = log(1 + exp(a))` and `a(v) = w' v + d`, a new unit changes the mean
log-likelihood by

    Delta L = mean_data sp(a) - log mean_model exp(sp(a))

exactly, where the second mean is over the model before the change and is estimated from
its samples.
"""

from typing import NamedTuple

import tensorflow as tf

from keras_rbm import random
from keras_rbm.inference.gibbs import ChainState
from keras_rbm.inference.growing.resample_move import fractional_sweep
from keras_rbm.inference.weights import (
    effective_sample_size,
    log_mean_exp,
    random_rows,
    resampled_rows,
    weighted_mean,
)
from keras_rbm.units.bernoulli import BernoulliParameters

#: Standard deviation of a search's random start.
_START = 0.01
#: Input to a unit that starts near an example, at that example; minus this at the mean.
_STEEPNESS = 2.0
#: Most iterations of a search.
_ITERATIONS = 30
#: Added to the variance of every unit.
_LEAST_VARIANCE = 0.005
#: Misfit at which the means count as equal.
_MATCHED = 1.1


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


class MatchedModel(NamedTuple):
    """A model whose means have been fitted.

    Attributes:
        bias: tensor (V,), of the visible units.
        visible: tensor (C, V), states of the chains.
        followed: scalar, gain from following `drift`, nats.
    """

    bias: tf.Tensor
    visible: tf.Tensor
    followed: tf.Tensor


def match_means(potentials, target, visible, log_weights, seed, *, max_sweeps, drift):
    """Moves visible biases until the model's visible means equal the given ones.

    Biases are natural parameters, with statistics v whose covariance C under the model
    is the likelihood's curvature. After the k-th sweep of the chains they take the step
    `C^-1 (target - mean) / k`, so later sweeps average out the noise of earlier
    ones. The chains' weights follow at once, because chains that have yet to move
    would lead too far. Fitting ends when `(target - mean)' C^-1 (target - mean)` is no
    larger than chance explains.

    Args:
        potentials: `Potentials` of binary visible units and `FractionalParameters`.
        target: tensor (V,), the desired means.
        visible: tensor (C, V), C known, states of chains.
        log_weights: tensor (C,), with which the states are samples of the model.
        seed: int or integer tensor of shape (2,).
        max_sweeps: int ≥ 1.
        drift: tensor (V,), how far the target has moved since the biases were fitted:
            a model that only follows it gains `drift' C^-1 drift / 2`.

    Returns:
        `MatchedModel`.
    """
    sweeping, resampling = (random.fold_in(seed, stream) for stream in range(2))

    def sweep(index, bias, state):
        model = potentials._replace(visible=BernoulliParameters(bias))
        return fractional_sweep(model, state, random.fold_in(sweeping, index))

    def refreshed(index, state, log_weights):
        """Resamples if fewer than half of the chains are effective."""

        def resample():
            rows = resampled_rows(log_weights, random.fold_in(resampling, index))
            state_of_rows = ChainState(*(tf.gather(part, rows) for part in state))
            return state_of_rows, tf.zeros_like(log_weights)

        few = effective_sample_size(log_weights) < 0.5 * visible.shape[0]
        return tf.cond(few, resample, lambda: (state, log_weights))

    state = ChainState(visible, potentials.hidden_natural(visible))
    state = sweep(0, potentials.visible_bias, state)
    shares = tf.nn.softmax(log_weights)
    count = effective_sample_size(log_weights)
    dimensions = tf.cast(tf.shape(target)[0], tf.float32)
    root = _root_of_covariance(state.visible, shares, dimensions / (dimensions + count))

    def solved(difference):
        return tf.linalg.cholesky_solve(root, difference[:, tf.newaxis])[:, 0]

    def step(index, _, bias, state, log_weights):
        shares = tf.nn.softmax(log_weights)
        difference = target - weighted_mean(state.visible, shares)
        direction = solved(difference)
        misfit = tf.reduce_sum(difference * direction) * count / dimensions
        direction /= tf.cast(index + 1, tf.float32)
        bias += direction
        log_weights += tf.linalg.matvec(state.visible, direction)
        state, log_weights = refreshed(index, state, log_weights)
        state = sweep(index + 1, bias, state)
        return index + 1, misfit, bias, state, log_weights

    start = tf.constant(0), tf.constant(float("inf")), potentials.visible_bias
    _, _, bias, state, log_weights = tf.while_loop(
        lambda index, misfit, *_: (index < max_sweeps) & (misfit > _MATCHED),
        step,
        (*start, state, log_weights),
    )
    rows = resampled_rows(log_weights, random.fold_in(resampling, max_sweeps))
    return MatchedModel(
        bias,
        tf.gather(state.visible, rows),
        0.5 * tf.tensordot(drift, solved(drift), 1),
    )


def _root_of_covariance(visible, shares, shrinkage):
    """Returns the Cholesky factor (V, V) of weighted states' covariance.

    It is shrunk towards its diagonal: with fewer chains than dimensions there are
    directions without variance.
    """
    mean = weighted_mean(visible, shares)
    covariance = tf.matmul(visible, shares[:, tf.newaxis] * visible, transpose_a=True)
    covariance -= mean[:, tf.newaxis] * mean
    variance = tf.linalg.diag_part(covariance)
    covariance = (1.0 - shrinkage) * covariance
    covariance += tf.linalg.diag(shrinkage * variance + _LEAST_VARIANCE)
    return tf.linalg.cholesky(covariance)
