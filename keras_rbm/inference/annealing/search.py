"""The search for a model's mass, from several places.

Chains estimate the model's marginals, but chains that start in one place may stay
there, and a mode that few of them reach is lost in their mean. So chains start in
several places and are clustered by where they end. The weights of a short annealing run
from the mean of each cluster then tell how much of the model's mass lies there. A mode
that a single chain of a run has found may hold far more than its weight tells. So
chains follow the heaviest states of each run, and peaks that many states lead to
without noise; other runs begin from the means of these chains.
"""

import itertools

import numpy as np
import tensorflow as tf

from keras_rbm import random
from keras_rbm.inference.annealing.annealed_importance import anneal_forwards
from keras_rbm.inference.annealing.loop import block_ends
from keras_rbm.inference.annealing.peaks import ROWS_AT_ONCE, find_peaks
from keras_rbm.inference.annealing.regions import Pool, Regions
from keras_rbm.inference.annealing.single_site import Visited, single_site_sweeps
from keras_rbm.inference.annealing.tempered_path import (
    TemperedPath,
    spaced,
    temperatures,
)
from keras_rbm.inference.estimates import WIDTH, effective_number, with_rounding
from keras_rbm.inference.gibbs import ChainState, draw_states, sweep_noise
from keras_rbm.inference.traces import traced_by_size

#: Sweeps of chains, which are averaged over the second half: for chains that start
#: anywhere, and for chains that start at states that may already be samples.
_SWEEPS, _FEWER_SWEEPS = 100, 50
#: Chains of each kind of start, and of each exploratory run, as a share of M.
_FEW = 0.4
#: Temperatures of an exploratory annealing run, and of the runs from the new base: one
#: follows another until states have that many independent ancestors.
_LOOK, _REFINE, _ENOUGH_ANCESTORS = 100, (250, 500, 1000), 25
#: Share of the first base's means in those of the new base: a base as narrow as the
#: mode that was found would never reach another.
_BROAD = 0.3
#: States of either layer that go uphill, as a multiple of M.
_UPHILL = 20
#: States of each run, and peaks, that are followed, and the share of the first base's
#: means in the bases that they lead to, which should be narrow.
_FOLLOWED, _NARROW = 3, 0.1
#: Visited states are good enough as samples if no estimate of log Z, less two of its
#: errors, exceeds the log of their mass by this many nats.
_NEARLY_ALL = 0.02


class Search:
    """Near-samples of a model, and what annealing runs have found of log Z.

    Args:
        potentials: `Potentials` of B models, or a single one.
        num_chains: int, M.
        seed: int or integer tensor of shape (2,).

    Attributes:
        pool: `Pool` of the states that annealing runs have ended in.
        visited: `Visited` states that can be enumerated, or `None`; after `explore`.
        num_runs: int, the most annealing runs that the search can make.
    """

    def __init__(self, potentials, num_chains, seed):
        batch = potentials.batch_size
        self.potentials = potentials
        self.pool = Pool(1 if batch is None else int(batch), potentials.visible.encode)
        self.visited = None
        self.num_runs = 2 * len(_REFINE) + _FOLLOWED * (2 + len(_REFINE))
        self._num_chains = num_chains
        self._few = max(2, round(_FEW * num_chains))
        self._width = potentials.visible.num_rows
        self._seeds = (random.fold_in(seed, number) for number in itertools.count())

    def explore(self, first, chains=None):
        """Looks for regions with mass; returns the means that chains reach.

        Args:
            first: tensor (V,) or (B, V), visible natural parameters to start from.
            chains: tensor (C, V), states to start from as well, or `None`.
        """
        units, pool = self.potentials.visible, self.pool
        nowhere = tf.zeros(self._width)
        means, others = self._settled(self._starts(first, nowhere, chains), _SWEEPS)
        # Chains that move between modes soon leave a small mode: some do not move.
        models = self.potentials.repeat(self._few)
        staying = _given_any_hidden(models, self._rows, next(self._seeds))
        unmoved, stayed = _means(
            models, staying, tf.constant(_SWEEPS), next(self._seeds)
        )
        reached = self._mean_of_each(means[: self._rows])
        means = np.reshape(
            tf.concat([means, unmoved], 0), (-1, pool.batch, self._width)
        )
        pool.regions = Regions.of(means, next(self._seeds))
        centers = units.natural_for_mean(pool.regions.centers)
        looks = [self._for_models(first), self._for_models(nowhere), centers]
        looks = tf.concat(looks, 0)
        self.num_runs += len(looks)
        parts = self._look(looks)
        self._follow(pool.heaviest(_FOLLOWED, parts), units.mean(first))
        starts, seed = _UPHILL * self._num_chains, next(self._seeds)
        peaks = find_peaks(
            self.potentials, pool.regions, first, starts, _FOLLOWED, seed
        )
        self._follow(peaks, units.mean(first))
        states = tf.concat([others, stayed, *pool.states], 0)
        self.visited = Visited.by(self.potentials, states)
        return reached

    def refine(self, broad):
        """Anneals from the mean of near-samples until many of them are independent.

        Args:
            broad: tensor (V,) or (B, V), means that the base is mixed with.

        Returns:
            the natural parameters of the base, near-samples of the model (M · B, V),
            their ancestors, absent shares, and the lengths of the path, see
            `StartingPoint`.
        """
        units = self.potentials.visible
        enough = min(_ENOUGH_ANCESTORS, self._num_chains // 4)
        states, *_ = self._drawn()
        for count in _REFINE:
            means = self._mean_of_each(self._settled(states, _FEWER_SWEEPS)[0])
            means = (1.0 - _BROAD) * means + _BROAD * broad
            natural = units.natural_for_expected(means)
            bases = self._for_models(natural)
            lengths = self._anneal(bases, temperatures(_LOOK), self._few)
            lengths = self._anneal(bases, spaced(*lengths, count), self._num_chains)
            self._follow(self.pool.heaviest(_FOLLOWED), broad)
            states, ancestors, absent = self._drawn()
            if np.min(effective_number(ancestors)) >= enough:
                break
        # Without moves between modes: each already has states by its mass.
        models, sweeps = self.potentials.repeat(self._num_chains), _FEWER_SWEEPS
        _, states = _means(models, states, tf.constant(sweeps), next(self._seeds))
        return natural, states, ancestors, absent, lengths

    def least(self):
        """Returns a lower bound of log Z, (B,), at 97.5 %."""
        least = self.pool.lower_bound(self.num_runs)
        if self.visited is not None:
            least = np.maximum(least, self.visited.log_mass)
        return least - WIDTH * with_rounding(np.float64(0.0), least).numpy()

    @property
    def _rows(self):
        return self._few * self.pool.batch

    def _starts(self, first, nowhere, chains):
        """Returns states of chains that start in several places, (rows, V)."""
        units = self.potentials.visible
        places = [first, units.bias, nowhere]
        if tf.reduce_any(units.ends != 0.0):
            places += [*units.ends]
        starts = [
            TemperedPath.of(self.potentials, natural, self._few).sample_base(
                self._rows, next(self._seeds)
            )
            for natural in places
        ]
        models = self.potentials.repeat(self._few)
        starts.append(_given_any_hidden(models, self._rows, next(self._seeds)))
        if chains is not None and self.potentials.batch_size is None:
            starts.append(tf.cast(chains[: self._few], tf.float32))
        return tf.concat(starts, 0)

    def _settled(self, states, sweeps):
        """Returns each chain's means over sweeps, (rows, V), and their last states."""
        models = self.potentials.repeat(len(states) // self.pool.batch)
        states = single_site_sweeps(models, states, next(self._seeds))
        return _means(models, states, tf.constant(sweeps), next(self._seeds))

    def _anneal(self, bases, betas, chains):
        """Anneals from each of K bases (K, B, V); returns lengths along the way."""
        runs = len(bases)
        bases = tf.reshape(bases, (-1, self._width))
        bases = bases[0] if len(bases) == 1 else bases
        models = self.potentials.repeat(runs)
        new = anneal_forwards(models, bases, betas, chains, next(self._seeds))
        self.pool.add(new, runs)
        steps = np.reshape(new.steps, (-1, chains, runs * self.pool.batch))
        lengths = np.cumsum(np.sqrt(steps.var(1).mean(1) + 1e-12))
        return block_ends(betas), np.append(0.0, lengths)

    def _follow(self, states, broad):
        """Lets chains run from states (n, B, V), and anneals from the means of each."""
        # All at once: they share what single-site sweeps may cost.
        chains = tf.concat([tf.tile(state, (self._few, 1)) for state in states], 0)
        means, _ = self._settled(chains, _FEWER_SWEEPS)
        shape = len(states), self._few, self.pool.batch, self._width
        means = tf.reduce_mean(tf.reshape(means, shape), 1)
        means = (1.0 - _NARROW) * means + _NARROW * broad
        self._look(self.potentials.visible.natural_for_expected(means))

    def _look(self, bases):
        """Anneals quickly from each of K bases (K, B, V); returns in how many parts."""
        size = max(1, ROWS_AT_ONCE // self._rows)
        parts = range(0, len(bases), size)
        for number in parts:
            self._anneal(bases[number : number + size], temperatures(_LOOK), self._few)
        return len(parts)

    def _drawn(self):
        """Returns near-samples (M · B, V), their ancestors, and absent shares."""
        count = self._num_chains
        states, ancestors, absent = self.pool.draw(count, next(self._seeds))
        if self.visited is None:
            return states, ancestors, absent
        nearly_all = self.visited.log_mass > np.max(self.pool.lows, 0) - _NEARLY_ALL
        exact, unseen = self.visited.draw(
            self.potentials, self.pool.regions, count, next(self._seeds)
        )
        own = np.tile(nearly_all, count)[:, np.newaxis]
        numbers = np.arange(count)[:, np.newaxis]
        return (
            tf.where(own, exact, states),
            np.where(nearly_all, numbers, ancestors),
            np.where(nearly_all, unseen, absent),
        )

    def _for_models(self, natural):
        return tf.broadcast_to(natural, (1, self.pool.batch, self._width))

    def _mean_of_each(self, means):
        """Returns the mean of each model, (B, V), or (V,) of a single one."""
        means = tf.reshape(means, (-1, self.pool.batch, self._width))
        means = tf.reduce_mean(means, 0)
        return means[0] if self.potentials.batch_size is None else means


def _given_any_hidden(potentials, rows, seed):
    """Returns visible states (rows, V), given hidden states drawn without any input."""
    units = potentials.hidden
    inputs = tf.zeros((rows, units.num_rows))
    hidden = units.draw(inputs, random.fold_in(seed, 0))
    natural = potentials.visible_natural(hidden)
    return potentials.visible.draw(natural, random.fold_in(seed, 1))


@traced_by_size
def _means(potentials, visible, sweeps, seed):
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
