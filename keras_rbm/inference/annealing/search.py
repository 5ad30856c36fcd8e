"""The search for a model's mass, and where annealing starts: independent units.

The base model of a tempered path should be near the model. Of all models of independent
units the one with the model's own marginals has the least KL(model || base).

Chains estimate the model's marginals, but chains that start in one place may stay
there, and a mode that few of them reach is lost in their mean. So chains start in
several places and are clustered by where they end. The chain of each cluster that leads
to most mass is where an annealing run begins: at its mean. What a run has drawn, by
weight, is nearer to the mass around it than where it began. So another run begins from
the mean of that, and again, for as long as they find more. Other runs begin at peaks
that many states lead to without noise. The weights of all runs together tell how much
of the model's mass lies where; from its mean come the runs that count.
"""

import itertools

import numpy as np
import tensorflow as tf

from keras_rbm import random
from keras_rbm.inference.annealing.jumps import jumped
from keras_rbm.inference.annealing.peaks import find_peaks
from keras_rbm.inference.annealing.regions import (
    Pool,
    Regions,
    Visited,
    comparable,
    heaviest_rows,
    rows_by_weight,
)
from keras_rbm.inference.annealing.settings import SEARCH
from keras_rbm.inference.annealing.single_site import single_site_sweeps
from keras_rbm.inference.annealing.tempered_path import (
    Annealed,
    TemperedPath,
    anneal_forward,
    block_ends,
    spaced,
    temperatures,
)
from keras_rbm.inference.estimates import (
    FEWEST,
    WIDTH,
    weighted,
    with_rounding,
)
from keras_rbm.inference.gibbs import ChainState, draw_states, sweep_noise
from keras_rbm.inference.potentials import Potentials
from keras_rbm.inference.resampling import effective_number
from keras_rbm.inference.traces import traced_by_size


def num_models(potentials: Potentials) -> int:
    """Returns B as an int, 1 for a single model."""
    return 1 if potentials.batch_size is None else int(potentials.batch_size)


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

    def __init__(
        self, potentials: Potentials, num_chains: int, seed: int | tf.Tensor
    ) -> None:
        self.potentials = potentials
        self.pool = Pool(num_models(potentials), potentials.visible.encode)
        self.visited: Visited | None = None
        refined = len(SEARCH.refine)
        self.num_runs = 2 * refined + SEARCH.followed * (1 + refined)
        self.num_runs += (2 + SEARCH.fine_clusters) * SEARCH.rounds
        self._num_chains = num_chains
        self._few = max(4, round(SEARCH.few * num_chains))
        self._width = potentials.visible.num_rows
        self._seeds = (random.fold_in(seed, number) for number in itertools.count())

    def explore(self, first: tf.Tensor, chains: tf.Tensor | None = None) -> tf.Tensor:
        """Looks for regions with mass; returns the means that chains reach.

        Args:
            first: tensor (V,) or (B, V), visible natural parameters to start from.
            chains: tensor (C, V), states to start from as well, or `None`.
        """
        units, pool = self.potentials.visible, self.pool
        nowhere = tf.zeros(self._width)
        starts = self._starts(first, nowhere, chains)
        means, others = self._settled(starts, SEARCH.sweeps)
        # Chains that move between modes soon leave a small mode: some do not move.
        models = self.potentials.repeat(self._few)
        staying = _given_any_hidden(models, self._rows, next(self._seeds))
        unmoved, stayed = sweep_means(
            models, staying, tf.constant(SEARCH.sweeps), next(self._seeds)
        )
        reached = self._mean_of_each(means[: self._rows])
        means = np.reshape(
            tf.concat([means, unmoved], 0), (-1, pool.batch, self._width)
        )
        pool.regions = Regions.of(means, SEARCH.clusters, next(self._seeds))
        looks = [self._for_models(first), self._for_models(nowhere)]
        looks.append(self._promising(means, units.mean(first)))
        self._approach(tf.concat(looks, 0), units.mean(first))
        starts, seed = SEARCH.uphill * self._num_chains, next(self._seeds)
        peaks = find_peaks(
            self.potentials, pool.regions, first, starts, SEARCH.followed, seed
        )
        self._follow(peaks, units.mean(first))
        states = tf.concat([others, stayed, *pool.states], 0)
        self.visited = Visited.by(self.potentials, states)
        return reached

    def refine(
        self, broad: tf.Tensor
    ) -> tuple[
        tf.Tensor, tf.Tensor, np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray]
    ]:
        """Anneals from the mean of near-samples until many of them are independent.

        Args:
            broad: tensor (V,) or (B, V), means that the base is mixed with.

        Returns:
            the natural parameters of the base, near-samples of the model (M · B, V),
            their ancestors, missed masses, and the lengths of the path, see
            `StartingPoint`.
        """
        units = self.potentials.visible
        enough = min(SEARCH.enough_ancestors, self._num_chains // 4)
        states, *_ = self._drawn()
        for count in SEARCH.refine:
            means = self._mean_of_each(self._settled(states, SEARCH.fewer_sweeps)[0])
            means = (1.0 - SEARCH.broad) * means + SEARCH.broad * broad
            natural = units.natural_for_expected(means)
            bases = self._for_models(natural)
            chains = self._num_chains
            lengths = self._anneal(bases, temperatures(SEARCH.look), chains)
            lengths = self._anneal(bases, spaced(*lengths, count), chains)
            self._follow(self.pool.heaviest(SEARCH.followed), broad)
            states, ancestors, missed = self._drawn()
            if np.min(effective_number(ancestors)) >= enough:
                break
        # Without moves between modes: each already has states by its mass.
        models, sweeps = self.potentials.repeat(self._num_chains), SEARCH.fewer_sweeps
        _, states = sweep_means(models, states, tf.constant(sweeps), next(self._seeds))
        return natural, states, ancestors, missed, lengths

    def lower_bound(self) -> np.ndarray:
        """Returns a lower bound of log Z, (B,), at 97.5 %."""
        bound = self.pool.lower_bound(self.num_runs)
        if self.visited is not None:
            bound = np.maximum(bound, self.visited.log_mass)
        return bound - WIDTH * with_rounding(np.float64(0.0), bound).numpy()

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
        return sweep_means(models, states, tf.constant(sweeps), next(self._seeds))

    def _anneal(
        self, bases: tf.Tensor, betas: np.ndarray, chains: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Anneals from each of K bases (K, B, V); returns lengths along the way."""
        new = self._run(bases, betas, chains)
        steps = np.reshape(new.steps, (-1, chains, len(bases) * self.pool.batch))
        lengths = np.cumsum(np.sqrt(steps.var(1).mean(1) + 1e-12))
        return block_ends(betas), np.append(0.0, lengths)

    def _run(self, bases: tf.Tensor, betas: np.ndarray, chains: int) -> Annealed:
        """Anneals from each of K bases (K, B, V), and adds the states to the pool."""
        runs = len(bases)
        bases = tf.reshape(bases, (-1, self._width))
        bases = bases[0] if len(bases) == 1 else bases
        models = self.potentials.repeat(runs)
        seed, at_once = next(self._seeds), self._num_chains
        new = anneal_forward(models, bases, betas, chains, seed, at_once=at_once)
        self.pool.add(new, runs)
        return new

    def _follow(self, states, broad):
        """Lets chains run from states (n, B, V), and anneals from the means of each."""
        # All at once: they share what single-site sweeps may cost.
        chains = tf.concat([tf.tile(state, (self._few, 1)) for state in states], 0)
        means, _ = self._settled(chains, SEARCH.fewer_sweeps)
        shape = len(states), self._few, self.pool.batch, self._width
        means = tf.reduce_mean(tf.reshape(means, shape), 1)
        self._look(self._narrow(means, broad))

    def _look(self, bases):
        """Anneals quickly from each of K bases (K, B, V).

        Returns where chains end, (few, K, B, units), and their log weights.
        """
        looks = []
        for part in _parts(len(bases), self._rows):
            some = bases[part]
            new = self._run(some, temperatures(SEARCH.look), self._few)
            shape = self._few, len(some), self.pool.batch
            states = tf.reshape(new.visible, (*shape, -1))
            looks.append((states, comparable(np.reshape(new.log_weights, shape))))
        states, log_weights = zip(*looks, strict=True)
        return tf.concat(states, 1), np.concatenate(log_weights, 1)

    def _promising(self, means, broad):
        """Returns bases (K, B, V), of the chain that finds most in each cluster.

        Args:
            means: array (C, B, V), of each chain.
            broad: tensor (V,) or (B, V), means that each is mixed with.
        """
        clusters = Regions.of(means, SEARCH.fine_clusters, next(self._seeds))
        labels = clusters.labels(means)
        bases = self._narrow(tf.constant(means), broad)
        found, at_once = [], self._num_chains
        for part in _parts(len(means), self.pool.batch):
            some = bases[part]
            models, betas = self.potentials.repeat(len(some)), temperatures(SEARCH.look)
            some, seed = tf.reshape(some, (-1, self._width)), next(self._seeds)
            new = anneal_forward(models, some, betas, 1, seed, at_once=at_once)
            found.append(new.log_weights)
        log_weights = comparable(np.reshape(tf.concat(found, 0), labels.shape))
        rows = heaviest_rows(labels, log_weights, SEARCH.fine_clusters)
        return tf.gather(tf.reshape(bases, (-1, self._width)), rows)

    def _approach(self, bases, broad):
        """Anneals from each of K bases (K, B, V), and anew from what it draws there.

        A base is left once what is found from it no longer rises, or half of its chains
        count: of B models, those of all.
        """
        best = np.full((len(bases), self.pool.batch), -np.inf)
        for number in range(SEARCH.rounds):
            states, log_weights = self._look(bases)
            value, _, effective = weighted(tf.constant(log_weights))
            far = effective.numpy() < SEARCH.near * self._few
            rises = np.any((value.numpy() > best) & far, 1)
            if not rises.any() or number + 1 == SEARCH.rounds:
                break
            best = np.maximum(best, value)[rises]
            states = tf.boolean_mask(states, rises, axis=1)
            log_weights = log_weights[:, rises]
            bases = [
                self._bases_of(states[:, part], log_weights[:, part], broad)
                for part in _parts(len(best), self._rows)
            ]
            bases = tf.concat(bases, 0)

    def _bases_of(self, states, log_weights, broad):
        """Returns bases (K, B, V) with the means of chains from weighted states."""
        few, runs, batch, _ = states.shape
        log_weights = log_weights.reshape(few, -1)
        seed = next(self._seeds)
        rows = rows_by_weight(log_weights, np.zeros_like(log_weights, int), few, seed)
        rows = rows * runs * batch + np.arange(runs * batch)
        states = tf.gather(tf.reshape(states, (-1, states.shape[-1])), rows.ravel())
        models, sweeps = self.potentials.repeat(few * runs), SEARCH.fewer_sweeps
        means, _ = sweep_means(models, states, tf.constant(sweeps), next(self._seeds))
        means = tf.reduce_mean(tf.reshape(means, (few, runs, batch, -1)), 0)
        return self._narrow(means, broad)

    def _narrow(self, means, broad):
        """Returns bases (K, B, V) with nearly these means."""
        means = (1.0 - SEARCH.narrow) * means + SEARCH.narrow * broad
        return self.potentials.visible.natural_for_expected(means)

    def _drawn(self):
        """Returns near-samples (M · B, V), their ancestors, and missed masses."""
        count, seeds = self._num_chains, [next(self._seeds) for _ in range(4)]
        if self.visited is None:
            return self._jumped(*seeds)
        nearly_all = self.visited.log_mass > self.pool.known() - SEARCH.nearly_all
        exact, unseen = self.visited.draw(
            self.potentials, self.pool.regions, count, next(self._seeds)
        )
        numbers = np.tile(np.arange(count)[:, np.newaxis], self.pool.batch)
        if nearly_all.all():
            return exact, numbers, unseen
        states, ancestors, missed = self._jumped(*seeds)
        own = np.tile(nearly_all, count)[:, np.newaxis]
        return (
            tf.where(own, exact, states),
            np.where(nearly_all, numbers, ancestors),
            np.where(nearly_all, unseen, missed),
        )

    def _jumped(self, *seeds):
        """Returns what `_drawn` does, of states that runs have found and that jump.

        Of the states on their way as many are of each region as belong there, to less
        than one. A chain that stays where it was is drawn once.
        """
        pool, count, batch = self.pool, self._num_chains, self.pool.batch
        states, ancestors = pool.draw(count, seeds[0])
        # Of few chains one each, so that there are enough ancestors for an error.
        most = min(SEARCH.rows_at_once // len(states), count // FEWEST)
        snapshots = int(np.clip(most, 1, SEARCH.snapshots))
        units = min(self.potentials.num_hidden, self.potentials.num_visible)
        jumps = SEARCH.jumps_per_unit * units
        jumps = min(max(jumps, SEARCH.fewest_jumps), SEARCH.most_jumps)
        rounds = jumps // (2 * snapshots)
        others, _ = pool.draw(count, seeds[1])
        best = pool.heaviest(SEARCH.clusters, pool.parts)
        known = tf.concat([others, tf.reshape(best, (-1, states.shape[1]))], 0)
        states = jumped(self.potentials, states, known, rounds, snapshots, seeds[2])
        snapshots, *_, width = states.shape
        states = tf.reshape(states, (-1, width))
        labels = pool.labels(states).reshape(snapshots, count, batch)
        labels = labels.swapaxes(0, 1).reshape(-1, batch)  # by chains
        chosen = rows_by_weight(0.0 * labels, labels, count, seeds[3])
        chain, snapshot = np.divmod(chosen, snapshots)
        rows = (snapshot * count + chain) * batch + np.arange(batch)
        states = tf.gather(states, rows.ravel())
        ancestors = np.take_along_axis(ancestors, chain, 0)
        return states, ancestors, pool.missed_mass(states)

    def _for_models(self, natural):
        return tf.broadcast_to(natural, (1, self.pool.batch, self._width))

    def _mean_of_each(self, means):
        """Returns the mean of each model, (B, V), or (V,) of a single one."""
        means = tf.reshape(means, (-1, self.pool.batch, self._width))
        means = tf.reduce_mean(means, 0)
        return means[0] if self.potentials.batch_size is None else means


def _parts(count, rows):
    """Returns slices of `count` models of so many rows, few enough to fit in memory."""
    size = max(1, SEARCH.rows_at_once // rows)
    return [slice(start, start + size) for start in range(0, count, size)]


def _given_any_hidden(potentials, rows, seed):
    """Returns visible states (rows, V), given hidden states drawn without any input."""
    units = potentials.hidden
    inputs = tf.zeros((rows, units.num_rows))
    hidden = units.draw(inputs, random.fold_in(seed, 0))
    natural = potentials.visible_natural(hidden)
    return potentials.visible.draw(natural, random.fold_in(seed, 1))


@traced_by_size
def sweep_means(
    potentials: Potentials, visible: tf.Tensor, sweeps: tf.Tensor, seed: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
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
