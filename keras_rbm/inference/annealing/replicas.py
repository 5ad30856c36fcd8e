"""Parallel tempering: chains at several temperatures that exchange their states."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike

from keras_rbm import random
from keras_rbm.inference.annealing.path import TemperedPath, temperatures
from keras_rbm.inference.arguments import (
    as_floats,
    check_model,
    check_sizes,
)
from keras_rbm.inference.gibbs import ChainState, checked_mask, sweep_noise
from keras_rbm.inference.potentials import Potentials

#: Least share of accepted swaps of each pair of neighbors, and round trips of a chain.
#: With fewer, states depend on where the chains started.
_LEAST_SWAPS, _LEAST_ROUND_TRIPS = 0.05, 1.0
#: Share of the model's states that may be as old as the chains, of many round trips.
_MOST_OLD = 0.02
#: Pairs count as rejecting at least this share of their swaps.
_LEAST_REJECTION = 1e-3


class TemperedChains(NamedTuple):
    """Chains of parallel tempering, R replicas of each of C chains.

    Attributes:
        visible: tensor (R, C, V), states; row r has inverse temperature `betas[r]`,
            so `visible[-1]` are states of the model.
        hidden_natural: tensor (R, C, H), `v'W + c` of the states.
        betas: tensor (R,), inverse temperatures, increasing from 0 to 1.
        bases, hidden_bases: tensors (R, rows of either layer), natural parameters
            `a_r` and `d_r` of each replica, whose model is that of `TemperedPath` with
            them for its bases.
        swap_rates: tensor (R - 1,), share of the proposed swaps of replicas r and
            r + 1 that were accepted.
        journeys: int tensor (R, C), how often each state has gone from one end of the
            temperatures to the other: even on its way down to beta = 0, odd on its way
            up to 1. Two are a round trip.
    """

    visible: tf.Tensor
    hidden_natural: tf.Tensor
    betas: tf.Tensor
    bases: tf.Tensor
    hidden_bases: tf.Tensor
    swap_rates: tf.Tensor
    journeys: tf.Tensor

    @property
    def round_trips(self) -> tf.Tensor:
        """Round trips between beta = 0 and 1 that a chain's states have made, mean."""
        return tf.reduce_sum(self.journeys // 2) / tf.shape(self.journeys)[1]

    @property
    def renewed(self) -> tf.Tensor:
        """Share of the model's states that have been at beta = 0 since the start."""
        return tf.reduce_mean(tf.cast(self.journeys[-1] > 0, tf.float32))

    @property
    def mix(self) -> tf.Tensor:
        """Bool, whether states have moved enough to have forgotten where they began.

        Neighbors accept one in twenty swaps, there is a round trip of each chain, and
        no more of the model's states are old than if all R of a chain traveled alike,
        each at a rate of 1 / R of its round trips: those of a mode that middle
        temperatures do not have stay where they are. A mode that no state has met is
        invisible.
        """
        enough = tf.reduce_min(self.swap_rates) > _LEAST_SWAPS
        enough &= self.round_trips >= _LEAST_ROUND_TRIPS
        of_a_state = tf.cast(self.round_trips, tf.float32) / self.visible.shape[0]
        return enough & (self.renewed >= 1.0 - tf.exp(-of_a_state) - _MOST_OLD)

    def along(self, path: TemperedPath) -> TemperedPath:
        """Returns the path with the bases of each replica."""
        return path._replace(base=self.bases, hidden_base=self.hidden_bases)


def start_replicas(path, betas, visible, count=None):
    """Returns `TemperedChains` at states (R, C, V), or (C, V) for all replicas.

    Bases of the path have a row for all replicas, or one for each.
    """
    betas = tf.cast(betas, tf.float32)
    replicas, hidden_base = betas.shape[0], path.hidden_base
    count = visible.shape[-2] if count is None else count
    visible = tf.broadcast_to(visible, (replicas, count, visible.shape[-1]))
    natural = path.potentials.hidden_natural(
        tf.reshape(visible, (replicas * count, visible.shape[-1]))
    )
    if hidden_base is None:
        hidden_base = tf.zeros_like(path.potentials.hidden.bias)
    return TemperedChains(
        visible,
        tf.reshape(natural, (replicas, count, natural.shape[-1])),
        betas,
        tf.broadcast_to(path.base, (replicas, path.base.shape[-1])),
        tf.broadcast_to(hidden_base, (replicas, hidden_base.shape[-1])),
        tf.zeros(replicas - 1),
        tf.zeros((replicas, count), tf.int32),
    )


class Swaps(NamedTuple):
    """Rows whose states swap replicas. The states move once, when all swaps are known.

    Attributes:
        rows: `ChainState` of R · C rows.
        terms: tensor (R · C, H), `hidden_log_partition` of each row in its replica.
        replica: int tensor (R, C), the replica of each row's state.
        row: int tensor (R, C), the number, below R, of the row of each replica's state.
        accepted: bool tensor (R, C), whether a replica has just swapped.
        gain: tensor (R, C), float64, log p* of each row's state in the replica that it
            could swap with last, less that in its own.
    """

    rows: ChainState
    terms: tf.Tensor
    replica: tf.Tensor
    row: tf.Tensor
    accepted: tf.Tensor | None = None
    gain: tf.Tensor | None = None

    def gain_of(self, path, betas, partner):
        """Returns `gain` with the given partners, and `hidden_log_partition` there.

        Bases of the path have a row for each replica.
        """
        replica = tf.reshape(self.replica, [-1])
        other = tf.gather(partner, replica)
        beta, other_beta = (
            tf.gather(betas, row)[:, tf.newaxis] for row in (replica, other)
        )
        other_path = path.rows(other)
        there = other_path.hidden_log_partition(self.rows, other_beta)
        gain = path.rows(replica).log_weight_difference(
            self.rows, beta, other_beta, self.terms, there, other_path.base
        )
        return tf.reshape(gain, tf.shape(self.replica)), there

    def swapped(self, path, betas, partner, uniform):
        """Returns the rows after swaps of replicas with their partners, (R,)."""
        gain, there = self.gain_of(path, betas, partner)
        of_replica = taken(gain, self.row)
        log_ratio = tf.cast(of_replica + tf.gather(of_replica, partner), tf.float32)
        # Both of a pair must decide by the same number, which is never 0.
        first = np.minimum(np.arange(len(partner)), partner)
        accepted = tf.math.log(tf.gather(uniform, first)) < log_ratio
        moves = taken(accepted, self.replica)
        return Swaps(
            self.rows,
            tf.where(tf.reshape(moves, (-1, 1)), there, self.terms),
            tf.where(moves, tf.gather(partner, self.replica), self.replica),
            tf.where(accepted, tf.gather(self.row, partner), self.row),
            accepted,
            tf.where(moves, -gain, gain),
        )


def swap_neighbors(path, rows, betas, seed):
    """Proposes swaps of neighbors: first of replicas 0, 2, … with the next, then 1, 3.

    Args:
        path: `TemperedPath` with bases (R, rows of either layer), one for each replica.
        rows: `ChainState` of R · C rows, C of each replica.
        betas: tensor (R,).
        seed: integer tensor of shape (2,).

    Returns:
        `(rows, swap_rates, even, odd)`: the rows after the swaps, the share of accepted
        ones (R - 1,), and the `Swaps` after either round.
    """
    replicas = betas.shape[0]
    count = tf.shape(rows.visible)[0] // replicas
    uniform = random.uniform((2, replicas, count), seed)
    replica = tf.repeat(tf.range(replicas), count)
    beta = tf.gather(betas, replica)[:, tf.newaxis]
    terms = path.rows(replica).hidden_log_partition(rows, beta)
    here = tf.tile(tf.range(replicas)[:, tf.newaxis], (1, count))
    swaps = Swaps(rows, terms, here, here)
    pairs = partners(replicas)
    even = swaps.swapped(path, betas, pairs[0], uniform[0])
    odd = even.swapped(path, betas, pairs[1], uniform[1])
    rates = [
        tf.reduce_mean(tf.cast(swaps.accepted, tf.float32), 1) for swaps in (even, odd)
    ]
    is_even = np.arange(replicas - 1) % 2 == 0
    rates = tf.where(is_even, rates[0][:-1], rates[1][:-1])
    number = tf.reshape(odd.row * count + tf.range(count), [-1])
    rows = ChainState(*(tf.gather(layer, number) for layer in rows))
    return rows, rates, even, odd


def tempering_step(path, chains, seed, clamp=None):
    """Makes one Gibbs sweep of every replica, then proposes swaps of neighbors.

    The visible states of replicas r and s are exchanged with probability
    `min(1, exp(f_r(v_s) + f_s(v_r) - f_r(v_r) - f_s(v_s)))`, `f_r = log p*_beta_r` as
    in `TemperedPath`: first for r = 0, 2, …, then for r = 1, 3, …. The step leaves
    the joint distribution of the replicas invariant.

    Args:
        path: `TemperedPath` of a single model.
        chains: `TemperedChains`, with bases of their own.
        seed: integer tensor of shape (2,).
        clamp: bool tensor (V,) or (C, V), units that keep their values, which must
            be the same in every replica. The others are drawn given these.

    Returns:
        `TemperedChains`, with the swap rates of this step, and the `Swaps` after either
        round.

    References:
        1. Desjardins, Courville, Bengio, Vincent, Delalleau. Tempered Markov chain
           Monte Carlo for training of restricted Boltzmann machines. AISTATS 2010.
    """
    replicas, count = chains.visible.shape[:2]
    count = tf.shape(chains.visible)[1] if count is None else count
    seeds = [random.fold_in(seed, index) for index in range(2)]
    noise = sweep_noise(path.potentials, replicas * count, seeds[0]).of_sweep(0)
    if clamp is not None and clamp.shape.rank == 2:
        clamp = tf.tile(clamp, (replicas, 1))
    path = chains.along(path)
    replica = tf.repeat(tf.range(replicas), count)
    beta = tf.gather(chains.betas, replica)[:, tf.newaxis]
    layers = chains.visible, chains.hidden_natural
    widths = [x.shape[2] or tf.shape(x)[2] for x in layers]
    rows = ChainState(
        *(tf.reshape(x, (-1, size)) for x, size in zip(layers, widths, strict=True))
    )
    rows = path.rows(replica).sweep(rows, beta, noise, clamp)
    rows, rates, even, odd = swap_neighbors(path, rows, chains.betas, seeds[1])
    visible, natural = (
        tf.reshape(x, (replicas, count, size))
        for x, size in zip(rows, widths, strict=True)
    )
    chains = chains._replace(
        visible=visible,
        hidden_natural=natural,
        swap_rates=rates,
        journeys=_arrived(taken(chains.journeys, odd.row), replicas),
    )
    return chains, even, odd


def partners(replicas):
    """Returns which replica each may swap with, in the even and in the odd round."""
    indices = np.arange(replicas, dtype=np.int32)
    pairs = [indices + np.where((indices - first) % 2 == 0, 1, -1) for first in (0, 1)]
    return [
        np.where((pair < 0) | (pair >= replicas), indices, pair).astype(np.int32)
        for pair in pairs
    ]


def taken(values, index):
    """Returns values (R, C) at places (R, C) along the first axis."""
    values, index = tf.transpose(values), tf.transpose(index)
    return tf.transpose(tf.gather(values, index, batch_dims=1))


def _arrived(journeys, replicas):
    """Returns the journeys, including those that have just ended."""
    replica = np.arange(replicas)[:, np.newaxis]
    there = (replica == 0) & (journeys % 2 == 0)
    there |= (replica == replicas - 1) & (journeys % 2 == 1)
    return journeys + tf.cast(there, tf.int32)


def equalized_betas(betas, swap_rates):
    """Returns temperatures that would swap equally often, given measured rates.

    The rejection rates of neighbors add up along the temperatures to the
    communication barrier. The new temperatures divide it, linearly interpolated, into
    equal parts [1, algorithm 2]. The two ends do not move.

    Args:
        betas: tensor (R,), increasing.
        swap_rates: tensor (R - 1,), see `TemperedChains`, averaged over many steps.

    Returns:
        tensor (R,).

    References:
        1. Syed, Bouchard-Côté, Deligiannidis, Doucet. Non-reversible parallel
           tempering: a scalable highly parallel MCMC scheme. JRSS B 2022.
    """
    betas, swap_rates = (tf.cast(x, tf.float32) for x in (betas, swap_rates))
    rejected = tf.maximum(1.0 - swap_rates, 0.0)
    rejected += _LEAST_REJECTION
    barrier = tf.concat([[0.0], tf.cumsum(rejected)], 0)
    last = betas.shape[0] - 1
    wanted = barrier[-1] * tf.range(1, last, dtype=tf.float32) / last
    # The segment that each wanted value falls into, and how far along it.
    index = tf.reduce_sum(tf.cast(barrier[1:-1] <= wanted[:, tf.newaxis], tf.int32), 1)
    share = (wanted - tf.gather(barrier, index)) / tf.gather(rejected, index)
    low, high = tf.gather(betas, index), tf.gather(betas, index + 1)
    return tf.concat([betas[:1], low + share * (high - low), betas[-1:]], 0)


def parallel_tempering(
    potentials: Potentials,
    *,
    num_samples: int = 100,
    steps: int = 1000,
    betas: ArrayLike = 10,
    base: ArrayLike | None = None,
    initial_visible: ArrayLike | None = None,
    clamp: ArrayLike | None = None,
    seed: int | tf.Tensor = 0,
) -> TemperedChains:
    """Draws states by parallel tempering.

    Each chain is a ladder of replicas from the base-rate model to the model. States
    mix at low inverse temperatures and climb the ladder, so chains visit modes
    between which block Gibbs hardly ever moves.

    Args:
        potentials: `Potentials` of a single model.
        num_samples: int ≥ 1, C independent chains.
        steps: int ≥ 0, sweeps of each replica, each with swaps.
        betas: inverse temperatures, as for `temperatures`; int K for K + 1
            equally spaced replicas.
        base: tensor (V,), visible natural parameters at beta = 0; by default zeros.
        initial_visible: tensor (C, V), states that all replicas start from; by
            default drawn from the base-rate model.
        clamp: bool tensor (V,) or (C, V), units that keep their starting value in
            every replica.
        seed: int or integer tensor of shape (2,).

    Returns:
        `TemperedChains`; its swap rates are averaged over the `steps`.

    Raises:
        ValueError: if an argument is out of range, or there are several models.

    Example:

    >>> model = keras_rbm.inference.Potentials(tf.zeros((3, 2)), [9.0] * 3, [0.0] * 2)
    >>> chains = keras_rbm.inference.parallel_tempering(
    ...     model, num_samples=2, steps=5, betas=3)
    >>> chains.visible.shape
    TensorShape([4, 2, 3])
    """
    check_model(potentials)
    check_single(potentials)
    check_sizes(num_samples=num_samples)
    check_sizes(0, steps=steps)
    betas = temperatures(betas)
    if base is None:
        base = tf.zeros(potentials.visible.num_rows)
    base = as_floats("base", base, (potentials.visible.num_rows,))
    path = TemperedPath(potentials, base)
    shape = (num_samples, potentials.num_visible)
    seed = random.as_seed(seed)
    if initial_visible is None:
        initial_visible = path.sample_base(num_samples, random.fold_in(seed, -1))
    visible = as_floats("initial_visible", initial_visible, shape)
    if clamp is not None:
        clamp = checked_mask(clamp, shape)
    chains = start_replicas(path, betas, visible, num_samples)
    return moved_replicas(path, chains, random.fold_in(seed, 4), steps, clamp)


def check_single(potentials):
    """Raises a ValueError if there are several models."""
    if potentials.batch_size is not None:
        raise ValueError(
            "Expected a single model for tempering. Received: biases with a batch "
            "dimension. Pass one model at a time, or sample by block Gibbs."
        )


def moved_replicas(path, chains, seed, steps, clamp=None):
    """Returns the chains after steps; their swap rates are averages of these."""
    return _run(path, chains, seed, tf.cast(steps, tf.int32), clamp)


@tf.function(autograph=False)
def _run(path, chains, seed, steps, clamp):

    def step(index, total, chains):
        chains, *_ = tempering_step(path, chains, random.fold_in(seed, index), clamp)
        return index + 1, total + chains.swap_rates, chains

    state = (tf.constant(0), tf.zeros_like(chains.swap_rates), chains)
    _, total, chains = tf.while_loop(lambda index, *_: index < steps, step, state)
    rates = tf.math.divide_no_nan(total, tf.cast(steps, tf.float32))
    return chains._replace(swap_rates=rates)
