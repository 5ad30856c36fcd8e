"""One Frank-Wolfe step: finds, weights, fits and evaluates a hidden unit."""

from typing import NamedTuple

import tensorflow as tf

from keras_rbm import random
from keras_rbm.inference.growing.frank_wolfe import (
    HiddenUnits,
    best_coefficients,
    find_units,
)
from keras_rbm.inference.growing.refitting import Refit, refit
from keras_rbm.inference.growing.reweighting import (
    effective_sample_size,
    random_rows,
    weighted_mean,
)
from keras_rbm.inference.potentials import Potentials
from keras_rbm.units import FractionalParameters

#: Standard deviation of a search's random start.
_START = 0.01
#: Input to a unit that starts near an example, at that example; minus this at the mean.
_STEEPNESS = 2.0
#: Least relative effective sample size of samples and held-out chains with a new unit.
_LEAST_ESS = 0.02
#: Standard errors, and relative rounding error, by which log Z may be too low.
_WIDTH, _ROUNDING = 3.0, 1e-5


class Growth(NamedTuple):
    """A hidden unit for a model, and the model with it.

    Attributes:
        weights, bias, coefficient: tensors (V,), () and (), the unit.
        refit: `Refit` of the model with it.
        search_ess: scalar, relative effective sample size of the samples in the search.
        judged: bool scalar, whether enough samples and held-out chains are effective to
            estimate its gain.
        accepted: bool scalar, whether the unit is worth keeping: it was judged, and its
            gain is more than two errors.
    """

    weights: tf.Tensor
    bias: tf.Tensor
    coefficient: tf.Tensor
    refit: Refit
    search_ess: tf.Tensor
    judged: tf.Tensor
    accepted: tf.Tensor

    @classmethod
    def placeholder(cls, phases, held_out_chains):
        """Returns zeros of the same shapes, not accepted, as a loop's first value."""
        refit = Refit.placeholder(phases, held_out_chains)
        zero = tf.constant(0.0)
        weights = tf.zeros_like(refit.visible_bias)
        no = tf.constant(False)
        return cls(weights, zero, zero, refit, zero, no, no)


def grow(
    potentials,
    phases,
    held_out_chains,
    seed,
    *,
    objective,
    l2,
    num_starts,
    lbfgs_iterations,
    line_search,
    learn_temperature,
    log_partition,
    drift,
    bias_steps,
    gibbs_steps,
):
    """Finds a hidden unit and fits it in.

    Args:
        potentials: `Potentials` with `FractionalParameters` hidden units.
        phases: `DataAndSamples` with samples of the model, of equal weight.
        held_out_chains: `Descended`, other samples (J, V) of the model.
        seed: int or integer tensor of shape (2,).
        objective, l2, num_starts, lbfgs_iterations: for the search, see `find_units`.
        line_search: bool, whether the unit's coefficient may be less than 1.
        log_partition: pair of scalars, log Z of the model and its error, or NaN.
        learn_temperature, drift, bias_steps, gibbs_steps: for the fit, see `refit`.

    Returns:
        `Growth`.
    """
    starts = _starts(phases, num_starts, random.fold_in(seed, 0))
    units, values = find_units(phases, starts, l2, objective, lbfgs_iterations)
    best = tf.argmin(tf.where(tf.math.is_finite(values), values, float("inf")))
    unit = HiddenUnits(*(tf.gather(part, best)[tf.newaxis] for part in units))
    coefficient = _coefficient(unit, phases, l2) if line_search else tf.ones(1)

    def change(visible):
        return (coefficient * unit.softplus(visible))[:, 0]

    model = _extended(potentials, unit, coefficient)
    fitted = refit(
        model,
        change,
        phases,
        held_out_chains,
        random.fold_in(seed, 1),
        learn_temperature=learn_temperature,
        drift=drift,
        bias_steps=bias_steps,
        gibbs_steps=gibbs_steps,
        before=_extended(potentials, unit, tf.zeros(1)),
    )
    possible = _is_possible(model, fitted, phases, log_partition)
    fitted = fitted._replace(judge_ess=tf.where(possible, fitted.judge_ess, 0.0))
    ess = effective_sample_size(change(phases.samples)) / phases.samples.shape[0]
    judged = tf.minimum(ess, fitted.judge_ess) > _LEAST_ESS
    return Growth(
        weights=unit.weights[0],
        bias=unit.bias[0],
        coefficient=coefficient[0],
        refit=fitted,
        search_ess=ess,
        judged=judged,
        accepted=judged
        & (fitted.gain > 2.0 * fitted.gain_error)
        & (coefficient[0] > 0.0),
    )


def _is_possible(model, fitted, phases, log_partition):
    """Returns whether no example has a probability above 1 under the fitted model.

    If one has, log Z is too low: no chain is where the unit is on, so that none was
    heavier than others, and they seem to judge it well.
    """
    coefficients = fitted.scale * model.hidden.coefficients
    hidden = FractionalParameters(model.hidden_bias, coefficients)
    model = Potentials(model.kernel, fitted.visible_bias, hidden)
    energies = model.free_energy(phases.visible)
    energies = tf.where(phases.weights > 0.0, energies, float("inf"))
    value, error = log_partition
    value += fitted.log_ratio
    margin = _WIDTH * (error + fitted.gain_error) + _ROUNDING * tf.abs(value)
    return ~(-tf.reduce_min(energies) > value + margin)  # of an unknown one, too


def _coefficient(unit, phases, l2):
    """Returns the best coefficient of a unit, from 0 to 1, (1,)."""
    return best_coefficients(
        weighted_mean(unit.softplus(phases.visible), phases.weights),
        unit.softplus(phases.samples),
        phases.sample_weights,
        0.5 * l2 * unit.square(),
        tf.ones(1),
    )


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


def _extended(potentials, unit, coefficient):
    """Returns the model with one more hidden unit."""
    hidden = FractionalParameters(
        tf.concat([potentials.hidden_bias, unit.bias], 0),
        tf.concat([potentials.hidden.coefficients, coefficient], 0),
    )
    kernel = tf.concat([potentials.kernel, tf.transpose(unit.weights)], 1)
    return Potentials(kernel, potentials.visible, hidden)
