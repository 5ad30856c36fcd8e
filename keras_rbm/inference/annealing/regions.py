"""Regions where chains end up, and what lies there: weighted states of two kinds."""

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from keras_rbm import random
from keras_rbm.inference.annealing.settings import SEARCH
from keras_rbm.inference.annealing.tempered_path import Annealed
from keras_rbm.inference.estimates import HALF_MARKOV, weighted
from keras_rbm.inference.potentials import Potentials, finite_layers
from keras_rbm.inference.resampling import effective_sample_size, systematic_rows


class Regions(NamedTuple):
    """Clusters of states, for each of B models.

    Attributes:
        centers: float32 array (K, B, V); if there are fewer clusters, the last one is
            repeated.
        scale: array (B, V), by which distances are divided.
    """

    centers: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(cls, means: np.ndarray, count: int, seed: tf.Tensor) -> "Regions":
        """Returns K clusters, an int, of chains with the means (C, B, V)."""
        from scipy.cluster.vq import kmeans2

        rng = np.random.default_rng(np.abs(seed.numpy()))
        centers, scales = [], []
        for own in means.transpose(1, 0, 2):
            spread = own.std(0)
            wide = own.max() > 1.0  # not means of binary units
            scale = np.where(wide & (spread > 0.0), spread, 1.0)
            # Chains that are all in a few places give fewer clusters.
            with warnings.catch_warnings(), np.errstate(invalid="ignore"):
                warnings.simplefilter("ignore", UserWarning)
                points = (own / scale).astype(np.float64)
                _, labels = kmeans2(points, count, minit="++", seed=rng)
            found = [own[labels == label].mean(0) for label in np.unique(labels)]
            centers.append(found + [found[-1]] * (count - len(found)))
            scales.append(scale)
        centers = np.swapaxes(centers, 0, 1).astype(np.float32)
        return cls(centers, np.stack(scales).astype(np.float32))  # type: ignore[arg-type]

    def labels(self, states: np.ndarray) -> np.ndarray:
        """Returns the number of the nearest center, (n, B), of states (n, B, V)."""
        states, centers = states / self.scale, self.centers / self.scale
        inner = np.einsum("nbv,kbv->nkb", states, centers)
        return np.argmin(np.square(centers).sum(-1) - 2.0 * inner, 1)


class Pool:
    """States of several annealing runs of B models, with their weights.

    The weights of each run are unbiased, both overall and within a region. But a run
    usually finds no mass in a region that its chains hardly reach, and rarely far too
    much. So the mass of a region is averaged over the runs that have reached it, in
    proportion to their effective number of states in it.

    Args:
        batch: int, B.
        encode: function that turns states (n, V) into the vectors to be clustered.

    Attributes:
        regions: `Regions`.
        values, lows: lists of arrays (B,), each run's log Z, and log Z less two errors.
    """

    regions: Regions | None

    def __init__(
        self,
        batch: int,
        encode: Callable[[tf.Tensor], tf.Tensor] = tf.convert_to_tensor,
    ) -> None:
        self.batch, self.encode, self.regions = batch, encode, None
        self.states, self.values, self.lows = [], [], []
        self._runs, self._labels = [], []
        self._weights: np.ndarray | None = None  # of all states that were added

    def add(self, chains: Annealed, runs: int) -> None:
        """Adds chains (M · runs · B), of runs of M chains each."""
        log_weights = np.reshape(chains.log_weights, (-1, runs, self.batch))
        log_weights = comparable(log_weights)
        value, error, _ = (x.numpy() for x in weighted(tf.constant(log_weights)))
        self.states.append(chains.visible)
        self.values.extend(value)
        self.lows.extend(value + _less(2.0 * error))
        labels = self.labels(chains.visible)
        self._labels.append(labels.reshape(log_weights.shape))
        self._runs.append(log_weights)
        self._weights = None

    @property
    def parts(self) -> int:
        """How often states were added."""
        return len(self.states)

    def heaviest(self, count: int, parts: int = 1) -> tf.Tensor:
        """Returns the heaviest states (count, B, V) of the `parts` added last."""
        log_weights, labels = (
            np.concatenate([own.reshape(-1, self.batch) for own in all_[-parts:]])
            for all_ in (self._runs, self._labels)
        )
        rows = heaviest_rows(labels, log_weights, count)
        return tf.gather(tf.concat(self.states[-parts:], 0), rows)

    def lower_bound(self, most_runs: int) -> np.ndarray:
        """Returns a lower bound of log Z, (B,), at 97.5 %.

        Each run's estimate of Z is unbiased, and so is their mean; the largest of
        several is not. The number of runs may have depended on their results, so the
        sum is divided by the largest possible number of runs.
        """
        return logsumexp(self.values, 0) - np.log(most_runs) - HALF_MARKOV

    def known(self) -> np.ndarray:
        """Returns log Z less two errors, (B,), by the run or by all that find most.

        Of all runs, each where it has been: no single one may have met all modes.
        """
        log_weights = self.log_weights()
        value = logsumexp(log_weights, 0) + self._top()
        error = 1.0 / np.sqrt(effective_sample_size(tf.constant(log_weights)).numpy())
        return np.maximum(np.max(self.lows, 0), value + _less(2.0 * error))

    def _top(self):
        """Returns the largest log weight of each model, (B,)."""
        return np.max([run.max((0, 1)) for run in self._runs], 0)

    def log_weights(self) -> np.ndarray:
        """Returns the log weights of all states, less the largest, (n, B)."""
        if self._weights is None:
            self._weights = self._weighed()
        return self._weights

    def _weighed(self):
        top = self._top()
        numbers = np.arange(SEARCH.clusters)[:, np.newaxis, np.newaxis, np.newaxis]
        shares = []
        for run, labels in zip(self._runs, self._labels, strict=True):
            weights = np.exp(run - run.max(0)) * (labels == numbers)
            total, squares = weights.sum(1), np.square(weights).sum(1)
            shares.append(np.square(total) / np.maximum(squares, 1e-300))
        everyone = np.sum([share.sum(1) for share in shares], 0)[:, np.newaxis]
        result = []
        for run, labels, share in zip(self._runs, self._labels, shares, strict=True):
            share = np.log(np.maximum(share / np.maximum(everyone, 1e-300), 1e-300))
            share = np.take_along_axis(share, labels, 0)
            own = run - top + share - np.log(len(run))
            result.append(own.reshape(-1, self.batch))
        return np.concatenate(result)

    def draw(self, count: int, seed: tf.Tensor) -> tuple[tf.Tensor, np.ndarray]:
        """Returns states (count · B, V), drawn by weight, with their row numbers."""
        chosen = rows_by_weight(self.log_weights(), self._all_labels(), count, seed)
        rows = chosen * self.batch + np.arange(self.batch)
        return tf.gather(tf.concat(self.states, 0), rows.ravel()), chosen

    def _all_labels(self):
        return np.concatenate([own.reshape(-1, self.batch) for own in self._labels])

    def missed_mass(self, states: tf.Tensor) -> np.ndarray:
        """Returns the share of the mass in regions without any of the states, (B,).

        Args:
            states: tensor (n · B, V).
        """
        own = self.labels(states)
        return missed_mass(self.log_weights(), self._all_labels(), own)

    def labels(self, states: tf.Tensor) -> np.ndarray:
        """Returns the numbers of the regions of states (n · B, V), (n, B)."""
        rows = self.encode(states).numpy()
        return self.regions.labels(rows.reshape(-1, self.batch, rows.shape[1]))


def _less(share):
    """Returns what a share of Z takes from log Z."""
    return np.log1p(-np.minimum(share, 1.0 - 1e-9))


def comparable(log_weights: ArrayLike) -> np.ndarray:
    """Returns log weights, those that are not finite as the least of all."""
    return np.where(np.isfinite(log_weights), log_weights, -1e300)


def heaviest_rows(
    labels: np.ndarray, log_weights: np.ndarray, count: int
) -> np.ndarray:
    """Returns the heaviest state of each of the regions where these are heaviest.

    Args:
        labels: int array (n, B), the states' regions.
        log_weights: array (n, B), not NaN.
        count: int; if there are fewer regions, the heaviest state fills the rest.

    Returns:
        int array (count, B), numbers of rows of states (n · B, V).
    """
    batch = labels.shape[1]
    numbers = np.arange(max(labels.max() + 1, count))[:, np.newaxis, np.newaxis]
    own = np.where(labels == numbers, log_weights, -np.inf)
    best, rows = own.max(1), own.argmax(1)
    order = np.argsort(-best, 0)[:count]
    rows = np.take_along_axis(rows, order, 0)
    reached = np.take_along_axis(best, order, 0) > -np.inf
    return np.where(reached, rows, rows[:1]) * batch + np.arange(batch)


def rows_by_weight(
    log_weights: np.ndarray, labels: np.ndarray, count: int, seed: tf.Tensor
) -> np.ndarray:
    """Draws states of each model, so that each label has its share, to less than one.

    Args:
        log_weights: array (M, B).
        labels: int array (M, B).
        count: int, the number of states to draw.
        seed: int tensor (2,).

    Returns:
        int array (count, B), numbers of rows.
    """
    order = np.argsort(labels, 0, kind="stable")
    ordered = tf.constant(np.take_along_axis(log_weights, order, 0).T)
    shift = tf.cast(random.uniform(labels.shape[1:], seed), ordered.dtype)
    rows = systematic_rows(ordered, count, shift).numpy().T
    return np.take_along_axis(order, rows, 0)


def missed_mass(
    log_weights: np.ndarray, labels: np.ndarray, drawn: np.ndarray
) -> np.ndarray:
    """Returns the share of the weights of labels that no drawn state has, (B,).

    Args:
        log_weights, labels: arrays (M, B).
        drawn: int array (count, B), labels.
    """
    missing = [~np.isin(*pair) for pair in zip(labels.T, drawn.T, strict=True)]
    weights = np.exp(log_weights - log_weights.max(0))
    weights /= weights.sum(0)
    return (weights * np.stack(missing, 1)).sum(0)


class Visited(NamedTuple):
    """States of one layer that chains have visited, with their exact weights.

    The layer is the hidden one if it is finite, else the visible one.

    Attributes:
        states: tensor (n, B, units), states for each of B models.
        log_weights: array (n, B), float64, log p* with the other layer summed out;
            minus infinity for a repeated state.
        log_mass: array (B,), log of the sum of the weights: a lower bound of log Z,
            and nearly log Z if few states matter.
        of_hidden: bool, whether the states are of the hidden layer.
    """

    states: tf.Tensor
    log_weights: np.ndarray
    log_mass: np.ndarray
    of_hidden: bool

    @classmethod
    def by(cls, potentials: Potentials, visible: tf.Tensor) -> "Visited | None":
        """Returns each visible state, or its likeliest hidden state, as `Visited`.

        Args:
            potentials: `Potentials`, B models if the biases have a batch dimension.
            visible: tensor (n · B, V); row i belongs to model i modulo B.

        Returns `None` if neither layer is finite.
        """
        layers = finite_layers(potentials)
        if not layers:
            return None
        of_hidden = "hidden" in layers
        batch = 1 if potentials.batch_size is None else int(potentials.batch_size)
        models = potentials.repeat(len(visible) // batch)
        states = visible
        if of_hidden:
            states = models.hidden.mode(models.hidden_natural(visible))
            models = models.transpose()
        exact = tf.nest.map_structure(lambda x: tf.cast(x, tf.float64), models)
        log_weights = -exact.free_energy(tf.cast(states, tf.float64))
        log_weights = log_weights.numpy().reshape(-1, batch)
        states = tf.reshape(states, (*log_weights.shape, -1))
        log_weights[_repeated(states.numpy())] = -np.inf
        return cls(states, log_weights, logsumexp(log_weights, 0), of_hidden)

    def draw(
        self, potentials: Potentials, regions: Regions, count: int, seed: tf.Tensor
    ) -> tuple[tf.Tensor, np.ndarray]:
        """Returns visible states (count · B, V), drawn by weight, and missed masses."""
        batch = len(self.log_mass)
        means = tf.reshape(self.states, (-1, self.states.shape[2]))
        if self.of_hidden:
            models = potentials.repeat(len(means) // batch)
            means = models.visible.mean(models.visible_natural(means))
        else:
            means = potentials.visible.encode(means)
        labels = regions.labels(np.reshape(means, (-1, batch, means.shape[1])))
        seeds = [random.fold_in(seed, number) for number in range(2)]
        chosen = rows_by_weight(self.log_weights, labels, count, seeds[0])
        drawn = np.take_along_axis(labels, chosen, 0)
        missed = missed_mass(self.log_weights, labels, drawn)
        chosen = np.stack([chosen, np.tile(np.arange(batch), (count, 1))], -1)
        states = tf.gather_nd(self.states, chosen.reshape(-1, 2))
        if self.of_hidden:
            natural = potentials.repeat(count).visible_natural(states)
            states = potentials.visible.draw(natural, seeds[1])
        return states, missed


def _repeated(hidden):
    """Returns bools (n, B), whether a model's state (n, B, H) repeats another."""
    keys = hidden @ np.random.default_rng(0).random(hidden.shape[-1])
    order = np.argsort(keys, 0, kind="stable")
    ordered = np.take_along_axis(keys, order, 0)
    repeated = np.zeros_like(keys, bool)
    same = np.concatenate([0 * ordered[:1], np.diff(ordered, axis=0) == 0.0])
    same[0] = False
    np.put_along_axis(repeated, order, same.astype(bool), 0)
    return repeated
