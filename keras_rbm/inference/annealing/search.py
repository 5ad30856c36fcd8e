"""The search for a model's mass, and where annealing starts: independent units.

The base model of a tempered path should be near the model. Of all models of independent
units the one with the model's own marginals has the least KL(model || base).

Chains estimate the model's marginals, but chains that start in one place may stay
there. So annealing runs begin at several: at the data's mean, at the mean that chains
reach, and at peaks that many states lead to without noise. The weights of all runs
together tell how much of the model's mass lies where. States drawn by these weights
jump between the modes that states without noise lead to; from their mean come the runs
that count.
"""

import itertools
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_rbm import random
from keras_rbm.inference.annealing.chains import anneal_forward, block_ends
from keras_rbm.inference.annealing.jumps import Jumps, jumped
from keras_rbm.inference.annealing.modes import find_peaks
from keras_rbm.inference.annealing.path import TemperedPath, spaced, temperatures
from keras_rbm.inference.annealing.pool import (
    Pool,
    Regions,
    log_mass_of_visited,
    rows_by_weight,
)
from keras_rbm.inference.arguments import spectral_gap
from keras_rbm.inference.estimates import FEWEST, WIDTH, with_rounding
from keras_rbm.inference.gibbs import ChainState, draw_states, sweep_noise
from keras_rbm.inference.traces import traced_by_size
from keras_rbm.inference.weights import effective_number

#: Sweeps of chains that start anywhere, averaged over the second half: most have
#: forgotten their start after fifty. And of chains that may already be samples.
_SWEEPS, _FEWER_SWEEPS = 100, 50
#: Exploratory runs share the M chains: the peaks that are followed, and two others.
_FOLLOWED, _RUNS = 3, 5
#: Temperatures of an exploratory run, which need not be exact, of the last run, and of
#: the last one with jumps: of 24 parts too few chains would be left.
_LOOK, _LAST, _LAST_OF_PARTS = 100, 250, 1000
#: Share of the first base's means in those of a base: one as narrow as the mode that
#: was found would never reach another. Less in bases of exploratory runs.
_BROAD, _NARROW = 0.3, 0.1
#: Clusters of chains: shares of the mass are those of clusters. A mode that one chain
#: in ten has met must not be lost in a mean.
_CLUSTERS = 8
#: Jumps between modes that each near-sample tries, for each unit of the smaller layer,
#: and the fewest and most of all. One takes half the time of a sweep, and most fail.
#: After 200, models of six parts of ten units had not met all combinations of modes:
#: log Z was 0.3 too low, three of its errors.
_JUMPS_PER_UNIT, _FEWEST_JUMPS, _MOST_JUMPS = 20, 200, 1000
#: Share of near-samples that are of different chains, from which on annealing needs no
#: jumps on the way.
_MANY = 0.3
#: States of each near-sample on its way, over the second half of its jumps, from which
#: the share of each region is taken; and rows of all of them, for the sake of memory.
_SNAPSHOTS, _ROWS_AT_ONCE = 10, 10_000
#: Least `spectral_gap` at which annealing follows the model.
_LEAST_GAP = 0.03
_BLIND = "No data are known (no fit, no adapt): the search began without them."


class StartingPoint(NamedTuple):
    """A base model for B models, samples of them, and how to space temperatures.

    Attributes:
        base: tensor (V,) or (B, V), visible natural parameters at beta = 0.
        visible: tensor (M · B, V), states that are nearly model samples.
        ancestors: int array (M, B); states with the same ancestor are not independent.
        betas, lengths: arrays (n,), inverse temperatures and the thermodynamic length
            from 0 up to each.
        lower_bound: array (B,), of log Z, at 97.5 %.
        missed_mass: array (B,), share of the mass that is known to lie in regions
            without any of the states.
        note: str, a remark for the estimates, or `""`.
        is_slow: bool, whether two layers of unbounded units are so near the limit of
            normalizability that chains do not reach all of the mass.
        jumps: `Jumps` of hidden units between modes, for chains to be annealed, or
            `None`.
    """

    base: tf.Tensor
    visible: tf.Tensor
    ancestors: np.ndarray
    betas: np.ndarray
    lengths: np.ndarray
    lower_bound: np.ndarray
    missed_mass: np.ndarray
    note: str = ""
    is_slow: bool = False
    jumps: Jumps | None = None

    def explained(self, estimate, method):
        """Returns an estimate from here, with a note, and an open end if `is_slow`."""
        if not self.is_slow:
            return estimate.explained(method, self.note)
        return estimate.with_open_ends(
            "The error of log Z is not known: two layers of unbounded units are near "
            "the limit of normalizability, where chains need too many sweeps. Use a "
            "smaller kernel, or units with finitely many states in one of the layers."
        )

    def temperatures(self, count):
        """Returns inverse temperatures at `count` steps of equal length."""
        return spaced(self.betas, self.lengths, count)


def find_start(potentials, options, samples=None):
    """Returns a base model near the model, with samples of it.

    Args:
        potentials: `Potentials`.
        options: `Options`, checked.
        samples: `(states, ancestors)`, (M, V) and (M,), samples of a single model that
            are known from elsewhere, and numbers of their independent chains.
    """
    return _Search(potentials, options).start(samples)


class _Search:
    """Annealing runs and chains of B models, or a single one."""

    def __init__(self, potentials, options):
        batch = potentials.batch_size
        self.batch = 1 if batch is None else int(batch)
        self.potentials, self.count = potentials, options.num_chains
        self.few = max(4, options.num_chains // _RUNS)
        self.base, self.chains = options.base, options.chains
        self.width = potentials.visible.num_rows
        self.first = tf.zeros(self.width) if self.base is None else self.base
        seed = options.seed_of("start")
        self.groups, self.path_jumps, self.needs_jumps = None, None, False
        self._seeds = (random.fold_in(seed, number) for number in itertools.count())

    def start(self, samples):
        units = self.potentials.visible
        means, ends = self._settled(self._starts(), _SWEEPS)
        broad = units.mean(self.first)
        reached = self._mean_of_each(means[: self.few * self.batch])
        if self.base is None:
            broad = reached
        by_chain = np.reshape(means, (-1, self.batch, self.width))
        regions = Regions.of(by_chain, _CLUSTERS, next(self._seeds))
        self.pool = pool = Pool(regions, units.encode)
        peaks = find_peaks(
            self.potentials,
            regions,
            self.first,
            self.count,
            _FOLLOWED,
            next(self._seeds),
        )
        self._explore(means, peaks, broad)
        states, *_ = self._drawn(peaks)
        means = self._mean_of_each(self._settled(states, _FEWER_SWEEPS)[0])
        natural = units.natural_for_expected((1.0 - _BROAD) * means + _BROAD * broad)
        bases = self._for_models(natural)
        betas, lengths = self._lengths(bases, temperatures(_LOOK))
        last = _LAST_OF_PARTS if self.path_jumps else _LAST
        betas, lengths = self._lengths(bases, spaced(betas, lengths, last))
        if samples is None:
            states, ancestors, missed = self._drawn(peaks)
        else:
            states, ancestors = samples[0], samples[1][:, np.newaxis]
            missed = pool.missed_mass(states)
        bound = pool.lower_bound()
        ends = tf.concat([ends, *pool.states], 0)
        bound = np.maximum(bound, log_mass_of_visited(self.potentials, ends))
        return StartingPoint(
            natural,
            self._settled(states, _FEWER_SWEEPS)[1],
            ancestors,
            betas,
            lengths,
            bound - WIDTH * with_rounding(np.float64(0.0), bound).numpy(),
            missed,
            _BLIND if self.base is None else "",
            spectral_gap(self.potentials) < _LEAST_GAP,
            self.path_jumps,
        )

    def _starts(self):
        """Returns states of chains that start in several places, (rows, V)."""
        rows, models = self.few * self.batch, self.potentials.repeat(self.few)
        path = TemperedPath.of(self.potentials, self.first, self.few)
        # Given hidden states that are drawn without any input.
        seed, units = next(self._seeds), models.hidden
        inputs = tf.zeros((rows, units.num_rows))
        natural = models.visible_natural(units.draw(inputs, random.fold_in(seed, 0)))
        starts = [
            path.sample_base(rows, next(self._seeds)),
            models.visible.draw(natural, random.fold_in(seed, 1)),
        ]
        if self.chains is not None and self.potentials.batch_size is None:
            starts.append(tf.cast(self.chains[: self.few], tf.float32))
        return tf.concat(starts, 0)

    def _explore(self, means, peaks, broad):
        """Anneals from the first base, and from narrow ones at means and peaks."""
        chains = [tf.tile(state, (self.few, 1)) for state in peaks.highest]
        at_peaks, _ = self._settled(tf.concat(chains, 0), _FEWER_SWEEPS)
        shape = _FOLLOWED, self.few, self.batch, self.width
        at_peaks = tf.reduce_mean(tf.reshape(at_peaks, shape), 1)
        narrow = tf.concat([self._for_models(self._mean_of_each(means)), at_peaks], 0)
        narrow = (1.0 - _NARROW) * narrow + _NARROW * broad
        bases = self.potentials.visible.natural_for_expected(narrow)
        bases = tf.concat([self._for_models(self.first), bases], 0)
        self._run(bases, temperatures(_LOOK), self.few)

    def _lengths(self, bases, betas):
        """Anneals from a base; returns betas, and lengths along the way."""
        new = self._run(bases, betas, self.count)
        steps = np.reshape(new.steps, (-1, self.count, self.batch))
        lengths = np.cumsum(np.sqrt(steps.var(1).mean(1) + 1e-12))
        return block_ends(betas), np.append(0.0, lengths)

    def _run(self, bases, betas, chains):
        """Anneals from each of K bases (K, B, V), and adds the states to the pool."""
        runs = len(bases)
        bases = tf.reshape(bases, (-1, self.width))
        bases = bases[0] if len(bases) == 1 else bases
        models = self.potentials.repeat(runs)
        seed, jumps = next(self._seeds), self.path_jumps
        new = anneal_forward(models, bases, betas, chains, seed, jumps)
        self.pool.add(new, runs)
        return new

    def _settled(self, states, sweeps):
        """Returns each chain's means over sweeps, (rows, V), and their last states."""
        models = self.potentials.repeat(len(states) // self.batch)
        return sweep_means(models, states, tf.constant(sweeps), next(self._seeds))

    def _drawn(self, peaks):
        """Returns near-samples (M · B, V), their ancestors, and missed masses.

        Of the states on their way as many are of each region as belong there, to less
        than one. A chain that stays where it was is drawn once.
        """
        pool, count, batch = self.pool, self.count, self.batch
        states, ancestors = pool.draw(count, next(self._seeds))
        others, _ = pool.draw(count, next(self._seeds))
        known = tf.concat([others, peaks.others], 0)
        jumps = Jumps.between(self.potentials, known, self.groups)
        if jumps is None:
            return states, ancestors, pool.missed_mass(states)
        self.groups = jumps.groups
        # Of few chains one each, so that there are enough ancestors for an error.
        most = min(_ROWS_AT_ONCE // len(states), count // FEWEST)
        snapshots = int(np.clip(most, 1, _SNAPSHOTS))
        units = min(self.potentials.num_hidden, self.potentials.num_visible)
        number = min(max(_JUMPS_PER_UNIT * units, _FEWEST_JUMPS), _MOST_JUMPS)
        rounds = number // (2 * snapshots)
        if effective_number(ancestors).min() < _MANY * count:
            self.needs_jumps = self.potentials.hidden.finite
        self.path_jumps = jumps if self.needs_jumps else None
        states = jumped(
            self.potentials, states, jumps, rounds, snapshots, next(self._seeds)
        )
        states = tf.reshape(states, (-1, states.shape[-1]))
        labels = pool.labels(states).reshape(snapshots, count, batch)
        labels = labels.swapaxes(0, 1).reshape(-1, batch)  # by chains
        chosen = rows_by_weight(0.0 * labels, labels, count, next(self._seeds))
        chain, snapshot = np.divmod(chosen, snapshots)
        rows = (snapshot * count + chain) * batch + np.arange(batch)
        states = tf.gather(states, rows.ravel())
        ancestors = np.take_along_axis(ancestors, chain, 0)
        return states, ancestors, pool.missed_mass(states)

    def _for_models(self, natural):
        return tf.broadcast_to(natural, (1, self.batch, self.width))

    def _mean_of_each(self, means):
        """Returns the mean of each model, (B, V), or (V,) of a single one."""
        means = tf.reduce_mean(tf.reshape(means, (-1, self.batch, self.width)), 0)
        return means[0] if self.potentials.batch_size is None else means


@traced_by_size
def sweep_means(potentials, visible, sweeps, seed):
    """Returns each chain's mean of E[v | h] over sweeps, and the last states."""

    def sweep(index, state, total):
        fresh = random.fold_in(seed, index)
        noise = sweep_noise(potentials, tf.shape(visible)[0], fresh).of_sweep(0)
        new = draw_states(potentials, state.hidden_natural, noise)
        means = potentials.visible.mean(potentials.visible_natural(new.hidden))
        total += tf.where(index < sweeps // 2, 0.0, means)
        new = ChainState(new.visible, potentials.hidden_natural(new.visible))
        for tensor, before in zip((*new, total), (*state, start), strict=True):
            tensor.set_shape(before.shape)  # lost if there are several models
        return index + 1, new, total

    state = ChainState(visible, potentials.hidden_natural(visible))
    start = tf.zeros_like(potentials.visible.encode(visible))
    _, state, total = tf.while_loop(
        lambda index, *_: index < sweeps, sweep, (tf.constant(0), state, start)
    )
    return total / tf.cast(sweeps - sweeps // 2, tf.float32), state.visible
