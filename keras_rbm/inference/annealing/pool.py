"""Regions where chains end up, and what is known of their mass."""

import warnings
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from scipy.special import logsumexp

from keras_rbm import random
from keras_rbm.inference.estimates import HALF_MARKOV, weighted
from keras_rbm.inference.potentials import finite_layers
from keras_rbm.inference.weights import systematic_rows


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
    def of(cls, means, count, seed):
        """Returns K clusters, an int, of chains with the means (C, B, V)."""
        from scipy.cluster.vq import kmeans2

        rng = np.random.default_rng(np.abs(seed.numpy()))
        centers, scales = [], []
        for chain_means in means.transpose(1, 0, 2):
            spread = chain_means.std(0)
            wide = chain_means.max() > 1.0  # not means of binary units
            scale = np.where(wide & (spread > 0.0), spread, 1.0)
            # Chains that are all in a few places give fewer clusters.
            with warnings.catch_warnings(), np.errstate(invalid="ignore"):
                warnings.simplefilter("ignore", UserWarning)
                points = (chain_means / scale).astype(np.float64)
                _, labels = kmeans2(points, count, minit="++", seed=rng)
            clusters = [
                chain_means[labels == label].mean(0) for label in np.unique(labels)
            ]
            centers.append(clusters + [clusters[-1]] * (count - len(clusters)))
            scales.append(scale)
        centers = np.swapaxes(centers, 0, 1).astype(np.float32)
        return cls(centers, np.stack(scales).astype(np.float32))  # type: ignore[arg-type]

    def labels(self, states):
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
        regions: `Regions`.
        encode: function that turns states (n, V) into the vectors to be clustered.

    Attributes:
        states: list of tensors, of all runs.
        values: list of arrays (B,), each run's log Z.
    """

    def __init__(self, regions, encode=tf.convert_to_tensor):
        self.regions, self.encode = regions, encode
        self.batch = regions.centers.shape[1]
        self.states, self.values, self._runs, self._labels = [], [], [], []

    def add(self, chains, runs):
        """Adds chains (M · runs · B), of runs of M chains each."""
        log_weights = np.reshape(chains.log_weights, (-1, runs, self.batch))
        log_weights = comparable(log_weights)
        self.states.append(chains.visible)
        self.values.extend(weighted(tf.constant(log_weights))[0].numpy())
        labels = self.labels(chains.visible)
        self._labels.append(labels.reshape(log_weights.shape))
        self._runs.append(log_weights)

    def lower_bound(self):
        """Returns a lower bound of log Z, (B,), at 97.5 %.

        Each run's estimate of Z is unbiased, and so is their mean; the largest of
        several is not.
        """
        return logsumexp(self.values, 0) - np.log(len(self.values)) - HALF_MARKOV

    def log_weights(self):
        """Returns the log weights of all states, less the largest, (n, B)."""
        top = np.max([run.max((0, 1)) for run in self._runs], 0)
        numbers = np.arange(len(self.regions.centers)).reshape(-1, 1, 1, 1)
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
            log_weights = run - top + share - np.log(len(run))
            result.append(log_weights.reshape(-1, self.batch))
        return np.concatenate(result)

    def draw(self, count, seed):
        """Returns states (count · B, V), drawn by weight, with their row numbers."""
        chosen = rows_by_weight(self.log_weights(), self._all_labels(), count, seed)
        rows = chosen * self.batch + np.arange(self.batch)
        return tf.gather(tf.concat(self.states, 0), rows.ravel()), chosen

    def missed_mass(self, states):
        """Returns the share of the mass in regions without any of the states, (B,).

        Args:
            states: tensor (n · B, V).
        """
        pairs = zip(self._all_labels().T, self.labels(states).T, strict=True)
        missing = np.stack([~np.isin(*pair) for pair in pairs], 1)
        weights = np.exp(self.log_weights())
        return (weights * missing).sum(0) / weights.sum(0)

    def labels(self, states):
        """Returns the numbers of the regions of states (n · B, V), (n, B)."""
        rows = self.encode(states).numpy()
        return self.regions.labels(rows.reshape(-1, self.batch, rows.shape[1]))

    def _all_labels(self):
        return np.concatenate([part.reshape(-1, self.batch) for part in self._labels])


def comparable(log_weights):
    """Returns log weights, those that are not finite as the least of all."""
    return np.where(np.isfinite(log_weights), log_weights, -1e300)


def heaviest_rows(labels, log_weights, count):
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
    of_label = np.where(labels == numbers, log_weights, -np.inf)
    best, rows = of_label.max(1), of_label.argmax(1)
    order = np.argsort(-best, 0)[:count]
    rows = np.take_along_axis(rows, order, 0)
    reached = np.take_along_axis(best, order, 0) > -np.inf
    return np.where(reached, rows, rows[:1]) * batch + np.arange(batch)


def rows_by_weight(log_weights, labels, count, seed):
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


def log_mass_of_visited(potentials, visible):
    """Returns a lower bound of log Z, (B,): the log mass of different states.

    The states are those of a finite layer, the likeliest hidden state of each row or
    else the visible ones, and their mass is exact, with the other layer summed out.
    The bound is minus infinity if neither layer is finite.

    Args:
        potentials: `Potentials`, B models if the biases have a batch dimension.
        visible: tensor (n · B, V); row i belongs to model i modulo B.
    """
    layers = finite_layers(potentials)
    batch = 1 if potentials.batch_size is None else int(potentials.batch_size)
    if not layers:
        return np.full(batch, -np.inf)
    models, states = potentials.repeat(len(visible) // batch), visible
    if "hidden" in layers:
        states = models.hidden.mode(models.hidden_natural(visible))
        models = models.transpose()
    exact = tf.nest.map_structure(lambda x: tf.cast(x, tf.float64), models)
    log_weights = -exact.free_energy(tf.cast(states, tf.float64))
    log_weights = log_weights.numpy().reshape(-1, batch)
    bounds = []
    for number in range(batch):
        _, first = np.unique(states.numpy()[number::batch], axis=0, return_index=True)
        bounds.append(logsumexp(log_weights[first, number]))
    return np.array(bounds)
