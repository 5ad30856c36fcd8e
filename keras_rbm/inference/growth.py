"""One Frank-Wolfe step: a hidden unit found, weighed, fitted in, and judged."""

from typing import NamedTuple

import tensorflow as tf

from keras_rbm import random
from keras_rbm.inference.bridge_sampling import bridge
from keras_rbm.inference.frank_wolfe import (
    HiddenUnits,
    best_coefficients,
    effective_sample_size,
    find_units,
)
from keras_rbm.inference.moment_matching import match_means, total_softplus
from keras_rbm.inference.potentials import Potentials
from keras_rbm.units import FractionalParameters

#: Standard deviation of a search's random start.
_START = 0.01
#: Input of a start near an example, at the example; minus that at the mean.
_STEEPNESS = 2.0
#: Share of the samples that must still count when a unit reweights them.
_LEAST_SAMPLE_SIZE = 0.02


class Growth(NamedTuple):
    """A model with one more hidden unit, beside the one before.

    Attributes:
        weights, bias, coefficient: tensors (V,), () and (), the unit.
        visible_bias: tensor (V,), fitted.
        scale: scalar, factor of all coefficients.
        visible: tensor (S, V), samples.
        gain: scalar, of the mean log-likelihood of the data, nats.
        gain_error: scalar, its standard error.
        sample_size: scalar, share of the samples that counted in the search.
        acceptance: scalar, share of Metropolis steps accepted.
        accepted: bool scalar, whether the unit is worth keeping: its gain is more than
            the error, and enough samples counted.
    """

    weights: tf.Tensor
    bias: tf.Tensor
    coefficient: tf.Tensor
    visible_bias: tf.Tensor
    scale: tf.Tensor
    visible: tf.Tensor
    gain: tf.Tensor
    gain_error: tf.Tensor
    sample_size: tf.Tensor
    acceptance: tf.Tensor
    accepted: tf.Tensor

    @classmethod
    def none(cls, evidence):
        """Returns what stands for no growth, with the samples as they were."""
        zero = tf.constant(0.0)
        vector = tf.zeros_like(evidence.samples[0])
        return cls(
            vector, zero, zero, vector, zero, evidence.samples,
            zero, zero, zero, zero, tf.constant(False),
        )  # fmt: skip


@tf.function(autograph=False)
def grow(
    potentials,
    evidence,
    seed,
    *,
    objective,
    l2,
    num_starts,
    lbfgs_iterations,
    line_search,
    learn_temperature,
    bias_steps,
):
    """Finds a hidden unit and fits it in.

    Args:
        potentials: `Potentials` with `FractionalParameters` hidden units.
        evidence: `Evidence`; its samples are the model's, of equal weight.
        seed: int or integer tensor of shape (2,).
        objective, l2, num_starts, lbfgs_iterations: of the search, see `find_units`.
        line_search: bool, whether the unit may count less than once.
        learn_temperature: bool, whether the coefficients' scale is fitted too.
        bias_steps: int ≥ 1, sweeps at most.

    Returns:
        `Growth`. The gain is estimated by bridge sampling between the samples before
        and after.
    """
    starts = _starts(evidence, num_starts, random.fold_in(seed, 0))
    units, values = find_units(evidence, starts, l2, objective, lbfgs_iterations)
    best = tf.argmin(tf.where(tf.math.is_finite(values), values, float("inf")))
    unit = HiddenUnits(*(tf.gather(part, best)[tf.newaxis] for part in units))
    on_samples = unit.softplus(evidence.samples)
    on_data = tf.linalg.matvec(
        unit.softplus(evidence.visible), evidence.weights, transpose_a=True
    )
    coefficient = tf.ones(1)
    if line_search:
        penalty = 0.5 * l2 * unit.square()
        coefficient = best_coefficients(
            on_data, on_samples, evidence.sample_weights, penalty, coefficient
        )
    size = effective_sample_size(
        (coefficient * on_samples)[:, 0], evidence.sample_weights
    ) / tf.cast(tf.shape(on_samples)[0], tf.float32)

    extended = _extended(potentials, unit, coefficient)
    target = tf.linalg.matvec(evidence.visible, evidence.weights, transpose_a=True)

    def data_mean(function):
        return tf.reduce_sum(evidence.weights * function(evidence.visible))

    def total_of(model):
        return lambda visible: total_softplus(model, visible)

    total = data_mean(total_of(extended)) if learn_temperature else None
    matched = match_means(
        extended,
        target,
        evidence.samples,
        random.fold_in(seed, 1),
        max_sweeps=bias_steps,
        total=total,
    )

    def change(visible):
        """Returns the log weight of v after minus before."""
        difference = tf.linalg.matvec(visible, matched.bias - potentials.visible_bias)
        difference += coefficient * unit.softplus(visible)[:, 0]
        if learn_temperature:
            more = matched.scale - 1.0
            difference += more * total_softplus(extended, visible)
        return tf.cast(difference, tf.float64)

    ratio, parts = bridge(
        change(evidence.samples)[tf.newaxis, tf.newaxis],
        change(matched.visible)[tf.newaxis, tf.newaxis],
    )
    gain = tf.cast(data_mean(lambda v: tf.cast(change(v), tf.float32)), tf.float64)
    gain = tf.cast(gain - ratio[0], tf.float32)
    error = tf.math.reduce_std(parts) / tf.sqrt(tf.cast(tf.shape(parts)[1], tf.float64))
    error = tf.cast(error, tf.float32)
    accepted = (gain > error) & (size > _LEAST_SAMPLE_SIZE) & (coefficient[0] > 0.0)
    return Growth(
        unit.weights[0],
        unit.bias[0],
        coefficient[0],
        matched.bias,
        matched.scale,
        matched.visible,
        gain,
        error,
        size,
        matched.acceptance,
        accepted,
    )


def _starts(evidence, count, seed):
    """Returns `HiddenUnits` to start from: small random ones, and near examples.

    The latter are on for an example and off for the mean, which helps where 0 is a
    local optimum: there the penalty outweighs the curvature.
    """
    mean = tf.linalg.matvec(evidence.visible, evidence.weights, transpose_a=True)
    examples = random_rows(
        evidence.visible, evidence.weights, count // 2, random.fold_in(seed, 0)
    )
    away = examples - mean
    square = tf.reduce_sum(tf.square(away), -1, keepdims=True)
    weights = 2.0 * _STEEPNESS * tf.math.divide_no_nan(away, square)
    bias = -tf.linalg.matvec(weights, mean) - _STEEPNESS
    small = count - count // 2
    noise = _START * tf.random.stateless_normal(
        (small, tf.shape(mean)[0] + 1), random.fold_in(seed, 1), alg="philox"
    )
    return HiddenUnits(
        tf.concat([noise[:, :-1], weights], 0), tf.concat([noise[:, -1], bias], 0)
    )


def random_rows(rows, weights, count, seed):
    """Draws rows with replacement, each as often as its weight says.

    Args:
        rows: tensor (N, V).
        weights: tensor (N,), a sum of 1.
        count: int.
        seed: int or integer tensor of shape (2,).

    Returns:
        tensor (count, V).
    """
    cumulative = tf.cumsum(weights)
    place = random.uniform((count,), seed) * cumulative[-1]
    index = tf.searchsorted(cumulative, place, side="right")
    return tf.gather(rows, tf.minimum(index, tf.shape(rows)[0] - 1))


def _extended(potentials, unit, coefficient):
    """Returns the model with one more hidden unit."""
    hidden = FractionalParameters(
        tf.concat([potentials.hidden_bias, unit.bias], 0),
        tf.concat([potentials.hidden.coefficients, coefficient], 0),
    )
    kernel = tf.concat([potentials.kernel, tf.transpose(unit.weights)], 1)
    return Potentials(kernel, potentials.visible, hidden)
