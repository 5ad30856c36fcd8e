"""The step of a growing model: from a batch to a new hidden unit, or none."""

from typing import NamedTuple

import tensorflow as tf

from keras_rbm import random
from keras_rbm.inference.growing import unit_search
from keras_rbm.inference.growing.resample_move import (
    Descended,
    FractionalParameters,
    fractional_chain,
    resample_move,
)
from keras_rbm.inference.potentials import Potentials
from keras_rbm.inference.weights import (
    effective_sample_size,
    random_rows,
    weighted_mean,
)
from keras_rbm.units.bernoulli import BernoulliParameters

#: Fewest held-out chains: with fewer, their error would be too random.
_LEAST_HELD_OUT = 20
#: Sweeps of the chains before a search, and their factor when chains start.
_SWEEPS, _BURN_IN = 5, 20
#: Most sweeps for the visible biases.
_BIAS_SWEEPS = 10
#: Most searches of a step before it ends without a unit.
_TRIES = 3
#: Relative ESS of held-out chains below which the next search has a stronger penalty.
_LOW_ESS = 0.2
_STRONGER = 3.0
#: Nats: a change that could gain more creates modes that the model did not have.
_LARGE_GAIN = 1.0
#: Least relative effective sample size of samples and held-out chains with a new unit.
_LEAST_ESS = 0.02
#: Standard errors, and relative rounding error, by which log Z may be too low.
_WIDTH, _ROUNDING = 3.0, 1e-5


class GrowingSamples(NamedTuple):
    """Samples that follow a model while it grows, and what is known from them.

    Attributes:
        chains: tensor (S + J, V), visible states: S for searches, then J held out.
        lineages: int tensor (J,), of the held-out chains, see `Descended`.
        log_partition: scalar, log Z: the sum of the held-out chains' estimates, or NaN
            if its starting value is not known.
        log_partition_error: scalar, its standard error.
        fitted_means: tensor (V,), the data's means that the biases were fitted to.
        started: bool scalar, whether the chains are samples of the model.
    """

    chains: tf.Tensor
    lineages: tf.Tensor
    log_partition: tf.Tensor
    log_partition_error: tf.Tensor
    fitted_means: tf.Tensor
    started: tf.Tensor

    @classmethod
    def new(cls, num_samples, num_visible, seed):
        """Returns random states, for S = `num_samples`; half as many are held out."""
        num_held_out = max(_LEAST_HELD_OUT, num_samples // 2)
        noise = random.uniform((num_samples + num_held_out, num_visible), seed)
        return cls(
            chains=tf.cast(noise < 0.5, tf.float32),
            lineages=tf.range(num_held_out),
            log_partition=tf.constant(float("nan")),
            log_partition_error=tf.constant(0.0),
            fitted_means=tf.zeros(num_visible),
            started=tf.constant(False),
        )

    @property
    def of_search(self):
        """Tensor (S, V), the samples of searches."""
        return self.chains[: -self.lineages.shape[0]]

    @property
    def held_out(self):
        """`Descended`, (J, V), the samples that no search uses."""
        return Descended(self.chains[-self.lineages.shape[0] :], self.lineages)


class Candidate(NamedTuple):
    """A hidden unit that a search has found, and the model with it.

    Attributes:
        unit: `HiddenUnits`, R = 1.
        visible_bias: tensor (V,), fitted.
        samples: tensor (S, V), samples of the model with the unit.
        held_out: `Descended`, (J, V), others, not used to choose the unit.
        log_ratio: scalar, log of the new model's Z over the old one's.
        gain: scalar, gain in the data's mean log-likelihood from the unit, nats,
            beyond what following the data gains.
        gain_error: scalar, its standard error, and that of `log_ratio`.
        search_ess: scalar, relative effective sample size of the search's samples.
        validation_ess: scalar, that of the held-out chains, if they went to the new
            model in a single step; 0 if an example would be more probable than 1.
    """

    unit: unit_search.HiddenUnits
    visible_bias: tf.Tensor
    samples: tf.Tensor
    held_out: Descended
    log_ratio: tf.Tensor
    gain: tf.Tensor
    gain_error: tf.Tensor
    search_ess: tf.Tensor
    validation_ess: tf.Tensor

    @classmethod
    def none(cls, samples):
        """Returns a unit of 0 that is not accepted, given `GrowingSamples`."""
        zero, zeros = tf.constant(0.0), tf.zeros_like(samples.chains[0])
        unit = unit_search.HiddenUnits(zeros[tf.newaxis], zero[tf.newaxis])
        scalars = [zero] * 5
        return cls(unit, zeros, samples.of_search, samples.held_out, *scalars)

    @property
    def validated(self):
        """Bool scalar: whether enough chains are effective to estimate the gain."""
        return tf.minimum(self.search_ess, self.validation_ess) > _LEAST_ESS

    @property
    def accepted(self):
        """Bool scalar: whether the unit is worth keeping."""
        return self.validated & (self.gain > 2.0 * self.gain_error)


class Growth(NamedTuple):
    """What a step has made of a model.

    Attributes:
        accepted: bool scalar, whether there is a new unit.
        unit: `HiddenUnits`, R = 1, the new unit.
        visible_bias: tensor (V,).
        samples: `GrowingSamples`.
        logs: dict of scalars, see `keras_rbm.rules.FrankWolfe`.
    """

    accepted: tf.Tensor
    unit: unit_search.HiddenUnits
    visible_bias: tf.Tensor
    samples: GrowingSamples
    logs: dict[str, tf.Tensor]


def grow(potentials, samples, visible, weights, seed, *, settings, l2, room):
    """Takes the step of a growing model with one batch.

    The chains make their sweeps, then units are searched, at most three, until one is
    accepted. Variables are left to the caller.

    Args:
        potentials: `Potentials` of binary visible units and `FractionalParameters`, all
            with coefficient 1; a model without units has one with coefficient 0.
        samples: `GrowingSamples` of the model.
        visible: tensor (N, V), the batch.
        weights: tensor (N,) that sum to 1; if all are 0, nothing changes.
        seed: seed tensor (2,).
        settings: `keras_rbm.rules.FrankWolfe`.
        l2: scalar, the penalty of a new unit.
        room: bool scalar, whether the model has room for one.

    Returns:
        `Growth`.
    """
    mean = weighted_mean(visible, weights)
    usable = (tf.reduce_sum(weights) > 0.0) & tf.reduce_all(tf.math.is_finite(mean))
    moving = random.fold_in(seed, 1)
    moved = _moved(potentials, samples, visible, weights, mean, moving)
    bias, samples = _select(usable, moved, (potentials.visible_bias, samples))
    potentials = potentials._replace(visible=BernoulliParameters(bias))
    num_samples = samples.of_search.shape[0]
    equal = tf.fill([num_samples], 1.0 / num_samples)
    phases = unit_search.DataAndSamples(visible, weights, samples.of_search, equal)

    def attempt(tries, l2, least_ess, unvalidated, _):
        fresh = random.fold_in(seed, 3 + tries)
        candidate = _candidate(potentials, samples, phases, mean, fresh, settings, l2)
        l2 *= tf.where(candidate.validation_ess < _LOW_ESS, _STRONGER, 1.0)
        least_ess = tf.minimum(least_ess, candidate.validation_ess)
        unvalidated += tf.cast(~candidate.validated, tf.float32)
        return tries + 1, l2, least_ess, unvalidated, candidate

    start = tf.constant(0), l2, tf.constant(1.0), tf.constant(0.0)
    tries, _, least_ess, unvalidated, candidate = tf.while_loop(
        lambda tries, *rest: room & usable & ~rest[-1].accepted & (tries < _TRIES),
        attempt,
        (*start, Candidate.none(samples)),
    )
    new = _with_unit(samples, candidate, mean)
    bias, samples = _select(
        candidate.accepted, (candidate.visible_bias, new), (bias, samples)
    )
    of_unit = {
        name: tf.where(candidate.accepted, getattr(candidate, name), 0.0)
        for name in ("gain", "gain_error", "search_ess")
    }
    logs = of_unit | {
        "rejected": tf.cast(tries, tf.float32)
        - tf.cast(candidate.accepted, tf.float32),
        "unvalidated": unvalidated,
        "validation_ess": least_ess,
        "log_partition": samples.log_partition,
        "log_partition_error": samples.log_partition_error,
    }
    return Growth(candidate.accepted, candidate.unit, bias, samples, logs)


def _select(condition, new, old):
    """Returns `new` if a bool scalar is true, else `old`, of the same structure."""
    return tf.nest.map_structure(lambda a, b: tf.where(condition, a, b), new, old)


def _moved(potentials, samples, visible, weights, mean, seed):
    """Returns visible biases and samples after the sweeps that precede a search.

    As long as no unit is in use, the biases are fitted, and log Z is known. Chains of a
    model that is taken up anew start at examples: a trained model has its modes there.
    """
    started = samples.started
    independent = tf.reduce_all(potentials.hidden.coefficients == 0.0)
    fitted = potentials.visible.natural_for_mean(mean)
    bias = tf.where(independent, fitted, potentials.visible_bias)
    log_partition = tf.reduce_sum(tf.math.softplus(fitted))
    rows = random_rows(
        visible, weights, samples.chains.shape[0], random.fold_in(seed, 0)
    )
    chains = fractional_chain(
        potentials._replace(visible=BernoulliParameters(bias)),
        tf.where(started, samples.chains, rows),
        random.fold_in(seed, 1),
        _SWEEPS * tf.where(started, 1, _BURN_IN),
    )
    numbers = tf.range(samples.lineages.shape[0])
    error = samples.log_partition_error
    return bias, GrowingSamples(
        chains=chains,
        lineages=tf.where(started, samples.lineages, numbers),
        log_partition=tf.where(independent, log_partition, samples.log_partition),
        log_partition_error=tf.where(independent, 0.0, error),
        fitted_means=tf.where(independent | ~started, mean, samples.fitted_means),
        started=tf.constant(True),
    )


def _candidate(potentials, samples, phases, mean, seed, settings, l2):
    """Searches a unit, fits the biases of the model with it, and measures its gain.

    Biases that follow the data's means gain a little on each batch and lose as much on
    the others, so this is not counted as a gain of the unit. What is left is estimated
    from the held-out chains: the search's samples were used to choose the unit, and
    would overestimate it.
    """
    unit = unit_search.find_unit(
        phases,
        random.fold_in(seed, 0),
        l2=l2,
        num_starts=settings.num_starts,
    )
    seed = random.fold_in(seed, 1)

    def effect(visible):
        return unit.softplus(visible)[:, 0]

    with_unit = _extended(potentials, unit, 1.0)
    matched = unit_search.match_means(
        with_unit,
        mean,
        phases.samples,
        effect(phases.samples),
        random.fold_in(seed, 0),
        max_sweeps=_BIAS_SWEEPS,
        drift=mean - samples.fitted_means,
    )
    fitted = with_unit._replace(visible=BernoulliParameters(matched.bias))

    def change(visible):
        shift = matched.bias - potentials.visible_bias
        return effect(visible) + tf.linalg.matvec(visible, shift)

    held_out = samples.held_out
    gain = tf.reduce_sum(phases.weights * change(phases.visible))
    moved = resample_move(
        held_out,
        change,
        _extended(potentials, unit, 0.0),
        fitted,
        random.fold_in(seed, 1),
        num_sweeps=_SWEEPS,
        is_large=gain - tf.reduce_mean(change(held_out.visible)) > _LARGE_GAIN,
    )
    log_partition = samples.log_partition + moved.log_ratio
    error = samples.log_partition_error + moved.error
    possible = _is_possible(fitted, phases, log_partition, error)
    num_samples = phases.samples.shape[0]
    return Candidate(
        unit=unit,
        visible_bias=matched.bias,
        samples=matched.visible,
        held_out=moved.samples,
        log_ratio=moved.log_ratio,
        gain=gain - moved.log_ratio - matched.followed,
        gain_error=moved.error,
        search_ess=effective_sample_size(effect(phases.samples)) / num_samples,
        validation_ess=tf.where(possible, moved.ess, 0.0),
    )


def _extended(potentials, unit, coefficient):
    """Returns the model with one more hidden unit."""
    hidden = FractionalParameters(
        tf.concat([potentials.hidden_bias, unit.bias], 0),
        tf.concat([potentials.hidden.coefficients, [coefficient]], 0),
    )
    kernel = tf.concat([potentials.kernel, tf.transpose(unit.weights)], 1)
    return Potentials(kernel, potentials.visible, hidden)


def _is_possible(model, phases, log_partition, error):
    """Returns whether no example has a probability above 1 under a model.

    If one has, log Z is too low: no chain is where the unit is on, so that none was
    heavier than others, and they seem to be enough.
    """
    energies = model.free_energy(phases.visible)
    energies = tf.where(phases.weights > 0.0, energies, float("inf"))
    margin = _WIDTH * error + _ROUNDING * tf.abs(log_partition)
    return ~(-tf.reduce_min(energies) > log_partition + margin)  # nor of an unknown one


def _with_unit(samples, found, mean):
    """Returns the `GrowingSamples` of the model with a unit, fitted to a mean."""
    error = samples.log_partition_error
    return samples._replace(
        chains=tf.concat([found.samples, found.held_out.visible], 0),
        lineages=found.held_out.lineages,
        log_partition=samples.log_partition + found.log_ratio,
        log_partition_error=tf.sqrt(error**2 + found.gain_error**2),
        fitted_means=mean,
    )
