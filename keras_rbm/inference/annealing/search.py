"""The search for a model's mass, and where annealing starts: independent units.

The base model of a tempered path should be near the model. Of all models of independent
units the one with the model's own marginals has the least KL(model || base).

Chains estimate the model's marginals, but chains that start in one place may stay
there, and a mode that few of them reach is lost in their mean. So chains start in
several places and are clustered by where they end. The weights of a short annealing run
from the mean of each cluster then tell how much of the model's mass lies there. A mode
that a single chain of a run has found may hold far more than its weight tells. So
chains follow the heaviest states of each run, and peaks that many states lead to
without noise; other runs begin from the means of these chains.
"""

import itertools
import math
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike

from keras_rbm import random
from keras_rbm._checks import check_counts
from keras_rbm.inference.annealing.jumps import jumped
from keras_rbm.inference.annealing.peaks import find_peaks
from keras_rbm.inference.annealing.regions import (
    Pool,
    Regions,
    Visited,
    rows_by_weight,
)
from keras_rbm.inference.annealing.settings import SEARCH
from keras_rbm.inference.annealing.single_site import single_site_sweeps
from keras_rbm.inference.annealing.tempered_path import (
    TemperedPath,
    anneal_forward,
    block_ends,
    per_model,
    spaced,
    temperatures,
)
from keras_rbm.inference.arguments import (
    check_proper,
    checked_base,
    checked_states,
    spectral_gap,
)
from keras_rbm.inference.estimates import (
    FEWEST,
    HALF_MARKOV,
    WIDTH,
    LogPartition,
    weighted,
    with_rounding,
)
from keras_rbm.inference.full_precision import full_precision
from keras_rbm.inference.gibbs import ChainState, draw_states, sweep_noise
from keras_rbm.inference.potentials import Potentials
from keras_rbm.inference.resampling import effective_number
from keras_rbm.inference.traces import traced_by_size

#: Least `spectral_gap` at which annealing follows the model.
_LEAST_GAP = 0.03
_STREAMS = "start", "forward", "backward", "tempering", "gibbs"
_BLIND = "No data are known (no fit, no adapt): the search began without them."


class StartingPoint(NamedTuple):
    """A base model for B models, samples of them, and how to space temperatures.

    Attributes:
        base: tensor (V,) or (B, V), visible natural parameters at beta = 0.
        visible: tensor (M, V) or (M · B, V), states that are nearly model samples, or
            `None` without a search.
        ancestors: int array (M, B); states with the same ancestor are not independent.
        betas, lengths: arrays (n,), inverse temperatures and the thermodynamic length
            from 0 up to each.
        lower_bound: array (B,), of log Z, at 97.5 %.
        missed_mass: array (B,), share of the mass that is known to lie in regions
            without any of the states.
        note: str, a remark for the estimates, or `""`.
        age: int, how often the states have moved with the model since the search.
        is_slow: bool, whether two layers of unbounded units are so near the limit of
            normalizability that chains do not reach all of the mass.
    """

    base: tf.Tensor
    visible: tf.Tensor | None
    ancestors: np.ndarray
    betas: np.ndarray
    lengths: np.ndarray
    lower_bound: np.ndarray
    missed_mass: np.ndarray
    note: str = ""
    age: int = 0
    is_slow: bool = False

    def explained(self, estimate: LogPartition, method: str) -> LogPartition:
        """Returns an estimate from here, with a note, and an open end if `is_slow`."""
        if not self.is_slow:
            return estimate.explained(method, self.note)
        return estimate.with_open_ends(
            "The error of log Z is not known: two layers of unbounded units are near "
            "the limit of normalizability, where chains need too many sweeps. Use a "
            "smaller kernel, or units with finitely many states in one of the layers."
        )

    def temperatures(
        self, betas: ArrayLike | None = None, default: int = 1000
    ) -> np.ndarray:
        """Returns inverse temperatures: those given, or a number of well-spaced ones.

        Steps of equal thermodynamic length add equally to the variance of the log
        weights [1].

        Args:
            betas: a sequence, as for `temperatures`; or int, the number of steps of
                equal measured length; `None` for `default` steps.

        References:
            1. Grosse, Maddison, Salakhutdinov. Annealing between distributions by
               averaging moments. NIPS 2013.
        """
        if betas is not None and np.ndim(betas):
            return temperatures(betas)
        count = len(temperatures(default if betas is None else betas)) - 1
        return spaced(self.betas, self.lengths, count)


@full_precision()
def find_starting_point(
    potentials: Potentials,
    base: ArrayLike | None = None,
    chains: ArrayLike | None = None,
    *,
    num_chains: int = 100,
    seed: int | tf.Tensor = 0,
) -> StartingPoint:
    """Finds a base model near the model, with samples of it.

    Args:
        potentials: `Potentials`, B models if the biases have a batch dimension.
        base: tensor (V,) or (B, V), visible natural parameters of independent units
            with the means of the data, or `None` if they are not known.
        chains: tensor (C, V), states that a single model's own chains have reached,
            such as those of a learning rule, or `None`.
        num_chains: int ≥ 2, M.
        seed: int or integer tensor of shape (2,).

    Returns:
        `StartingPoint`.
    """
    base, chains = checked_search(potentials, base, chains, num_chains)
    return starting_point(potentials, base, chains, num_chains, random.as_seed(seed))


def starting_point(
    potentials: Potentials,
    base: tf.Tensor | None,
    chains: tf.Tensor | None,
    num_chains: int,
    seed: tf.Tensor,
    search: bool = True,
) -> StartingPoint:
    """Returns what `find_starting_point` does, for arguments that are sound.

    Args:
        search: bool. With `False` it is the given base, or zeros, from which the field
            anneals in equal steps, without states.
    """
    units = potentials.visible
    first = tf.zeros(units.num_rows) if base is None else base
    if not search:
        batch = num_models(potentials)
        independent = np.tile(np.arange(num_chains)[:, np.newaxis], batch)
        even, nothing = np.array([0.0, 1.0]), np.zeros(batch)
        return StartingPoint(
            first, None, independent, even, even, nothing - np.inf, nothing
        )
    search = Search(potentials, num_chains, seed)
    reached = search.explore(first, chains)
    broad = reached if base is None else units.mean(first)
    natural, states, ancestors, missed, lengths = search.refine(broad)
    note = _BLIND if base is None else ""
    is_slow = spectral_gap(potentials) < _LEAST_GAP
    found = natural, states, ancestors, *lengths, search.lower_bound(), missed, note
    return StartingPoint(*found, is_slow=is_slow)


def continued(
    potentials: Potentials, start: StartingPoint, num_chains: int, seed: tf.Tensor
) -> StartingPoint:
    """Returns a starting point for a model that has changed a little since a search.

    Its temperatures are those of before. Its states move with the model, and its base
    with them. They do not meet mass that has arisen elsewhere, so short runs from other
    places look for it: what these find is the lower bound of log Z.

    Raises:
        ValueError: if it is not a starting point that was searched for, in a model of
            this shape, with as many chains.
    """
    models = num_models(potentials)
    sound = isinstance(start, StartingPoint) and start.visible is not None
    if not sound or np.shape(start.ancestors) != (num_chains, models):
        raise ValueError(
            f"Expected a start that was searched for, of {models} models with "
            f"{num_chains} chains each. Received: start={start!r:.200}. Leave it out."
        )
    states = checked_states(potentials, "start.visible", start.visible)
    rows = potentials.repeat(len(states) // models)
    seed = random.fold_in(seed, start.age)  # the same noise would not mix the states
    means, states = _means(rows, states, tf.constant(SEARCH.fewer_sweeps), seed)
    units = potentials.visible
    means = tf.reduce_mean(tf.reshape(means, (num_chains, models, -1)), 0)
    means = (1.0 - SEARCH.broad) * means + SEARCH.broad * units.mean(start.base)
    base = units.natural_for_expected(tf.reshape(means, tf.shape(start.base)))
    return start._replace(
        base=base,
        visible=states,
        lower_bound=_elsewhere(potentials, num_chains, random.fold_in(seed, -1)),
        age=start.age + 1,
        is_slow=spectral_gap(potentials) < _LEAST_GAP,
    )


def _elsewhere(potentials, num_chains, seed):
    """Returns a lower bound of log Z, (B,), at 97.5 %, by runs from two places."""
    places = None, potentials.visible.bias
    found = []
    for number, base in enumerate(places):
        few = max(2, round(SEARCH.few * num_chains))
        betas, own = temperatures(SEARCH.look), random.fold_in(seed, number)
        runs = anneal_forward(potentials, base, betas, few, own).log_weights
        value = weighted(per_model(runs, potentials))[0]
        found.append(np.reshape(value, -1) - HALF_MARKOV - math.log(len(places)))
    return np.max(found, 0)


def checked_search(
    potentials: Potentials,
    base: ArrayLike | None,
    chains: ArrayLike | None,
    num_chains: int,
) -> tuple[tf.Tensor | None, tf.Tensor | None]:
    """Returns base and chains as tensors; raises an error unless all can be used."""
    check_proper(potentials)
    check_counts(2, num_chains=num_chains)
    base = checked_base(potentials, base)
    if chains is not None:
        chains = checked_states(potentials, "chains", chains)
    return base, chains


def seeds_of(seed: int | tf.Tensor) -> dict[str, tf.Tensor]:
    """Returns a dict with the seed of each part of an estimate, tensors (2,)."""
    seed = random.as_seed(seed)
    return {name: random.fold_in(seed, i) for i, name in enumerate(_STREAMS)}


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
        self.num_runs = 2 * refined + SEARCH.followed * (2 + refined)
        self._num_chains = num_chains
        self._few = max(2, round(SEARCH.few * num_chains))
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
        unmoved, stayed = _means(
            models, staying, tf.constant(SEARCH.sweeps), next(self._seeds)
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
        self._follow(pool.heaviest(SEARCH.followed, parts), units.mean(first))
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
        _, states = _means(models, states, tf.constant(sweeps), next(self._seeds))
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
        return _means(models, states, tf.constant(sweeps), next(self._seeds))

    def _anneal(
        self, bases: tf.Tensor, betas: np.ndarray, chains: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Anneals from each of K bases (K, B, V); returns lengths along the way."""
        runs = len(bases)
        bases = tf.reshape(bases, (-1, self._width))
        bases = bases[0] if len(bases) == 1 else bases
        models = self.potentials.repeat(runs)
        seed, at_once = next(self._seeds), self._num_chains
        new = anneal_forward(models, bases, betas, chains, seed, at_once=at_once)
        self.pool.add(new, runs)
        steps = np.reshape(new.steps, (-1, chains, runs * self.pool.batch))
        lengths = np.cumsum(np.sqrt(steps.var(1).mean(1) + 1e-12))
        return block_ends(betas), np.append(0.0, lengths)

    def _follow(self, states, broad):
        """Lets chains run from states (n, B, V), and anneals from the means of each."""
        # All at once: they share what single-site sweeps may cost.
        chains = tf.concat([tf.tile(state, (self._few, 1)) for state in states], 0)
        means, _ = self._settled(chains, SEARCH.fewer_sweeps)
        shape = len(states), self._few, self.pool.batch, self._width
        means = tf.reduce_mean(tf.reshape(means, shape), 1)
        means = (1.0 - SEARCH.narrow) * means + SEARCH.narrow * broad
        self._look(self.potentials.visible.natural_for_expected(means))

    def _look(self, bases):
        """Anneals quickly from each of K bases (K, B, V); returns in how many parts."""
        size = max(1, SEARCH.rows_at_once // self._rows)
        parts = range(0, len(bases), size)
        for number in parts:
            some = bases[number : number + size]
            self._anneal(some, temperatures(SEARCH.look), self._few)
        return len(parts)

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
        rounds = SEARCH.jumps // (2 * snapshots)
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
