"""Fits visible biases, and a temperature, until the model's means equal the data's."""

from typing import NamedTuple

import tensorflow as tf

from keras_rbm import random
from keras_rbm.inference.gibbs import (
    ChainState,
    metropolis_step,
    proposal,
    sweep_noise,
)
from keras_rbm.inference.growing.reweighting import (
    effective_sample_size,
    resampled_rows,
)
from keras_rbm.inference.potentials import Potentials
from keras_rbm.units import BernoulliParameters, FractionalParameters

#: Added to the variance of every statistic.
_LEAST_VARIANCE = 0.005
#: Largest share by which the coefficients' common factor changes in a sweep.
_SCALE_STEP = 0.05
#: Misfit at which the means count as equal.
_MATCHED = 1.1


class MatchedModel(NamedTuple):
    """A model whose means have been fitted.

    Attributes:
        bias: tensor (V,), of the visible units.
        scale: scalar, factor of all coefficients.
        visible: tensor (C, V), states of the chains.
        acceptance: scalar, share of the Metropolis steps accepted.
        followed: scalar, gain from following `drift`, nats.
    """

    bias: tf.Tensor
    scale: tf.Tensor
    visible: tf.Tensor
    acceptance: tf.Tensor
    followed: tf.Tensor


def total_softplus(potentials, visible):
    """Returns `sum_i c_i sp(w_i' v + d_i)`, (B,), which the temperature multiplies."""
    natural = potentials.hidden_natural(visible)
    return tf.reduce_sum(potentials.hidden.log_partition(natural), -1)


def match_means(
    potentials,
    target,
    visible,
    log_weights,
    seed,
    *,
    max_sweeps,
    drift=None,
    total=None,
):
    """Moves visible biases until the model's visible means equal the given ones.

    Biases `b` (and a factor `s` of all coefficients) are natural parameters, with
    statistics v (and `total_softplus`) whose covariance C under the model is the
    likelihood's curvature. After the k-th sweep of the chains they take the step
    `C^-1 (target - mean) / k`, so later sweeps average out the noise of earlier
    ones. The chains' weights follow at once, because chains that have yet to move
    would lead too far. Fitting ends when `(target - mean)' C^-1 (target - mean)` is no
    larger than chance explains.

    Args:
        potentials: `Potentials` of binary visible units.
        target: tensor (V,), the desired means.
        visible: tensor (C, V), C known, states of chains.
        log_weights: tensor (C,), with which the states are samples of the model.
        seed: int or integer tensor of shape (2,).
        max_sweeps: int ≥ 1.
        drift: tensor (V,), how far the target has moved since the biases were fitted:
            a model that only follows it gains `drift' C^-1 drift / 2`. `None` for 0.
        total: scalar, desired mean of `total_softplus`, or `None` to leave s at 1.

    Returns:
        `MatchedModel`.
    """
    if drift is None:
        drift = tf.zeros_like(target)
    if total is not None:
        target = tf.concat([target, [total]], 0)
        drift = tf.concat([drift, [0.0]], 0)
    sweeping, resampling = (random.fold_in(seed, stream) for stream in range(2))

    def statistics(visible, softplus):
        if total is None:
            return visible
        return tf.concat([visible, softplus[:, tf.newaxis]], 1)

    def model_at(position):
        if total is None:
            return potentials._replace(visible=BernoulliParameters(position))
        hidden = potentials.hidden
        coefficients = getattr(hidden, "coefficients", tf.ones_like(hidden.bias))
        hidden = FractionalParameters(hidden.bias, position[-1] * coefficients)
        return Potentials(potentials.kernel, position[:-1], hidden)

    def moments(state, shares):
        softplus = tf.reduce_sum(
            potentials.hidden.log_partition(state.hidden_natural), -1
        )
        x = statistics(state.visible, softplus)
        return x, tf.linalg.matvec(x, shares, transpose_a=True)

    def sweep(index, position, state):
        model = model_at(position)
        fresh = random.fold_in(sweeping, index)
        noise = sweep_noise(model, tf.shape(visible)[0], fresh).of_sweep(0)
        new = proposal(model, state.hidden_natural, noise).visible
        state, accepted = metropolis_step(model, state, new, noise)
        return state, tf.reduce_mean(tf.cast(accepted, tf.float32))

    def refreshed(index, state, log_weights):
        """Resamples if fewer than half of the chains are effective."""

        def resample():
            rows = resampled_rows(log_weights, random.fold_in(resampling, index))
            state_of_rows = ChainState(*(tf.gather(part, rows) for part in state))
            return state_of_rows, tf.zeros_like(log_weights)

        few = effective_sample_size(log_weights) < 0.5 * visible.shape[0]
        return tf.cond(few, resample, lambda: (state, log_weights))

    start = potentials.visible_bias
    if total is not None:
        start = tf.concat([start, [1.0]], 0)
    state = ChainState(visible, potentials.hidden_natural(visible))
    state, accepted = sweep(0, start, state)
    shares = tf.nn.softmax(log_weights)
    count = effective_sample_size(log_weights)
    x, mean = moments(state, shares)
    covariance = tf.matmul(x, shares[:, tf.newaxis] * x, transpose_a=True)
    covariance -= mean[:, tf.newaxis] * mean
    # With fewer chains than dimensions there are directions without variance.
    dimensions = tf.cast(tf.shape(mean)[0], tf.float32)
    share = dimensions / (dimensions + count)
    variance = tf.linalg.diag_part(covariance)
    covariance = (1.0 - share) * covariance
    covariance += tf.linalg.diag(share * variance + _LEAST_VARIANCE)
    root = tf.linalg.cholesky(covariance)

    def solved(difference):
        return tf.linalg.cholesky_solve(root, difference[:, tf.newaxis])[:, 0]

    def step(index, _, position, state, log_weights, accepted):
        x, mean = moments(state, tf.nn.softmax(log_weights))
        difference = target - mean
        direction = solved(difference)
        misfit = tf.reduce_sum(difference * direction) * count / dimensions
        direction /= tf.cast(index + 1, tf.float32)
        if total is not None:  # coupling changes the covariance: take small steps
            largest = _SCALE_STEP * position[-1]
            direction *= tf.minimum(1.0, largest / tf.abs(direction[-1]))
        position += direction
        log_weights += tf.linalg.matvec(x, direction)
        state, log_weights = refreshed(index, state, log_weights)
        state, rate = sweep(index + 1, position, state)
        return index + 1, misfit, position, state, log_weights, accepted + rate

    sweeps, _, position, state, log_weights, accepted = tf.while_loop(
        lambda index, misfit, *_: (index < max_sweeps) & (misfit > _MATCHED),
        step,
        (
            tf.constant(0),
            tf.constant(float("inf")),
            start,
            state,
            log_weights,
            accepted,
        ),
    )
    rows = resampled_rows(log_weights, random.fold_in(resampling, max_sweeps))
    size = potentials.num_visible
    return MatchedModel(
        position[:size],
        tf.constant(1.0) if total is None else position[-1],
        tf.gather(state.visible, rows),
        accepted / tf.cast(sweeps + 1, tf.float32),
        0.5 * tf.tensordot(drift, solved(drift), 1),
    )
