"""Fits visible biases until the model's means equal the data's."""

from typing import NamedTuple

import tensorflow as tf

from keras_rbm import random
from keras_rbm.inference.gibbs import ChainState
from keras_rbm.inference.growing.fractional import fractional_sweep
from keras_rbm.inference.resampling import (
    effective_sample_size,
    resampled_rows,
    weighted_mean,
)
from keras_rbm.units.bernoulli import BernoulliParameters

#: Added to the variance of every unit.
_LEAST_VARIANCE = 0.005
#: Misfit at which the means count as equal.
_MATCHED = 1.1


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
