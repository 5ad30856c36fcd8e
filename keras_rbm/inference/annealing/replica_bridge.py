"""log Z by bridge sampling between the replicas of parallel tempering."""

import math

import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike

from keras_rbm import random
from keras_rbm.inference.annealing.bridge import bridge
from keras_rbm.inference.annealing.options import Options
from keras_rbm.inference.annealing.path import TemperedPath, temperatures
from keras_rbm.inference.annealing.replicas import (
    check_single,
    equalized_betas,
    moved_replicas,
    partners,
    start_replicas,
    taken,
    tempering_step,
)
from keras_rbm.inference.annealing.search import find_start
from keras_rbm.inference.estimates import FEWEST, LogPartition
from keras_rbm.inference.potentials import Potentials
from keras_rbm.inference.traces import full_precision

#: Replicas of a path from a searched base, less one.
_REPLICAS = 20
#: Sweeps of these replicas that space their temperatures, four times.
_SPACING = 15, 25, 55, 105
#: Sweeps that count at first, and the most of all if the interval is then too wide; the
#: last if a precision is asked for.
_STEPS = 200, 1000, 9000
#: The same of the ladder that training has left, and sweeps before.
_STEPS_OF_LADDER, _BEFORE = (100, 300, 4500), 50
#: Least number of independent states of each of a chain's replicas. With fewer, the
#: estimate depends on where the chains started.
_LEAST_STATES = 10.0
#: Standard errors by which the energy of the ladder's chains may change at first. A
#: larger change says that they are not this model's.
_MOST_CHANGE = 5.0


@full_precision()
def temper(
    potentials: Potentials,
    *,
    base: ArrayLike | None = None,
    chains: ArrayLike | None = None,
    num_chains: int = 100,
    precision: float | None = None,
    seed: int | tf.Tensor = 0,
) -> LogPartition:
    """Estimates log Z by bridge sampling between the replicas of parallel tempering.

    With `x(v) = log p*_{r+1}(v) - log p*_r(v)`, the ratio of neighboring partition
    functions `Delta = log Z_{r+1} - log Z_r` solves

    `mean of sigma(x(v) - Delta) over replica r
    = mean of sigma(Delta - x(v)) over replica r + 1`.

    This is the best of all bridge estimators for equally many states of both [1]. The
    sum of these ratios and log Z_0 is log Z. Replicas start at the states that a search
    for the model's mass finds, and first space their temperatures so that neighbors
    swap equally often.

    The standard error is that between chains, or between families of chains that start
    at states with a common ancestor, so dependent states are not counted twice. The
    interval is infinite at both ends if neighbors accept fewer than one in twenty
    swaps, if a chain's states make less than one round trip between beta = 0 and 1 on
    average, or if one of its replicas has fewer than ten independent states: then the
    estimate still depends on the start. A mode that no replica has met is invisible.

    Args:
        potentials: `Potentials` of a single model.
        base, chains, num_chains, precision, seed: see `anneal`.

    Returns:
        `LogPartition`, nats; `ess` is the number of independent states of the replica
        that has fewest, except the one at beta = 0.

    Raises:
        ValueError: if an argument is out of range, or there are several models.

    Example:

    >>> model = keras_rbm.inference.Potentials(tf.ones((6, 4)), [0.0] * 6, [0.0] * 4)
    >>> z = keras_rbm.inference.temper(model)
    >>> exact = keras_rbm.inference.exact_log_partition(model)
    >>> bool(abs(z.value - exact) < 5 * z.stderr)
    True

    References:
        1. Bennett. Efficient estimation of free energy differences from Monte Carlo
           data. Journal of Computational Physics, 1976.
    """
    options = Options(num_chains, precision, seed, base, chains).checked(potentials)
    check_single(potentials)
    return tempered(potentials, find_start(potentials, options), options)


def tempered(potentials, start, options):
    """Returns what `temper` does, from a `StartingPoint`."""
    path = TemperedPath(potentials, start.base)
    chains = start_replicas(path, temperatures(_REPLICAS), start.visible)
    seed = options.seed_of("tempering")
    chains = spaced_replicas(path, chains, random.fold_in(seed, -1))
    ancestors = start.ancestors[:, 0]
    result = bridged(path, chains, _STEPS, options, seed, ancestors)
    result = result.without_refuted_upper_end(start.lower_bound)
    return start.explained(result, "tempering")


def spaced_replicas(path, chains, seed):
    """Returns the chains after steps that move their temperatures."""
    for number, steps in enumerate(_SPACING):
        chains = moved_replicas(path, chains, random.fold_in(seed, number), steps)
        betas = equalized_betas(chains.betas, chains.swap_rates)
        chains = chains._replace(betas=betas)
    return chains


def moved_ladder(potentials, ladder, options):
    """Returns the chains of the `Ladder` of training after some sweeps, or `None`.

    Their states are samples already; there are none if they are not, as the model's
    parameters have been set since.
    """
    path, seed = ladder.path(potentials), options.seed_of("tempering")
    states = ladder.states(options.num_chains)
    chains = start_replicas(path, ladder.betas, states)
    # By the program that also counts: another would have to be traced, too.
    steps, own = tf.constant(_BEFORE), random.fold_in(seed, -1)
    *_, chains = _gains_of_neighbors(path, chains, steps, own)
    energies = [
        tf.cast(potentials.free_energy(states), tf.float64)
        for states in (ladder.chains, chains.visible[-1])
    ]
    means, variances = zip(*(tf.nn.moments(x, 0) for x in energies), strict=True)
    error = tf.sqrt(sum(v / len(x) for v, x in zip(variances, energies, strict=True)))
    # Not so if a state is not finite, either.
    if not abs(means[0] - means[1]) <= _MOST_CHANGE * error:
        return None
    return chains


def from_ladder(potentials, ladder, chains, options):
    """Returns what `temper` does, from a `moved_ladder`, with its learned bases.

    There is no estimate, `None`, if replicas do not travel.
    """
    path, seed = ladder.path(potentials), options.seed_of("tempering")
    result = bridged(path, chains, _STEPS_OF_LADDER, options, seed)
    return result if result.is_finite else None


def bridged(path, chains, steps, options, seed, ancestors=None):
    """Returns the estimate from replicas, after as many steps as make it precise.

    Args:
        steps: ints, how many at first, and at most in all.
        ancestors: int array (C,), equal for chains that are not independent.
    """
    log_z0 = chains.along(path).log_partition_of_base()[0]
    count = chains.visible.shape[1]
    first, *_, most = options.tries(steps)
    gains, accepted, done, more = None, 0.0, 0, first
    # What sweeps before have moved does not tell that these forget where they began.
    chains = chains._replace(journeys=tf.zeros_like(chains.journeys))
    while True:
        *new, chains = _gains_of_neighbors(
            path, chains, tf.constant(more), random.fold_in(seed, done + more)
        )
        if gains is not None:
            new = [tf.concat(pair, 0) for pair in zip(gains, new, strict=True)]
        low, high = gains = new
        done += more
        accepted += more * chains.swap_rates
        chains = chains._replace(swap_rates=accepted / done)
        ratios, shares = bridge(low, high)
        log_z = log_z0 + tf.reduce_sum(ratios)
        shares = tf.reduce_sum(shares, 0)
        ess = _effective(high)
        mixed = chains.mix & (ess >= _LEAST_STATES * count)
        stderr = _between_families(shares, ancestors)
        stderr = tf.where(mixed, stderr, tf.constant(math.inf, tf.float64))
        result = LogPartition.of_error(log_z, stderr, ess, log_z + shares)
        if done >= most or options.is_narrow(result):
            return result
        wanted = done * options.excess(result) ** 2
        more = int(min(max(2.0 * done, wanted), most)) - done  # of NaN the former


def _between_families(parts, ancestors):
    """Returns the standard error of the mean of the chains' contributions, (C,)."""
    chains = len(parts)
    if ancestors is None:
        ancestors = np.arange(chains)
    _, family = np.unique(ancestors, return_inverse=True)
    families = family.max() + 1
    if families < FEWEST:
        return tf.constant(math.inf, tf.float64)
    sums = tf.math.unsorted_segment_sum(parts, family, families)
    total = tf.reduce_sum(tf.square(sums)) * families / (families - 1)
    return tf.sqrt(total) / chains


def _effective(x):
    """Returns the least number of independent states of a replica, x (S, pairs, C).

    Means of n independent ones vary by 1 / n of what states do. Halves of a chain count
    as separate chains: states that drift are not independent.
    """
    half = len(x) // 2
    x = tf.concat([x[:half], x[-half:]], 2)
    chains = x.shape[2]
    of_means = tf.math.reduce_variance(tf.reduce_mean(x, 0), 1) * chains / (chains - 1)
    number = tf.math.reduce_variance(x, (0, 2)) / tf.maximum(of_means, 1e-300)
    number = tf.where(of_means > 0.0, tf.minimum(number, half), half)
    return chains * tf.reduce_min(number)


@tf.function(autograph=False)
def _gains_of_neighbors(path, chains, steps, seed):
    """Returns x of the pairs' lower and upper replicas, (S, R - 1, C), and chains."""
    replicas, count = chains.visible.shape[:2]
    is_even = np.arange(replicas - 1)[:, np.newaxis] % 2 == 0
    of_replicas = chains.along(path)

    def gains(even, odd):
        """Returns what each replica's state would gain with either neighbor, (R, C)."""
        # Swapping back gains what swapping has cost: only after another swap is it new.
        fresh, _ = odd.gain_of(of_replicas, chains.betas, partners(replicas)[0])
        moved = even.replica != odd.replica
        gain = tf.where(moved, fresh, even.gain)
        return taken(gain, odd.row), taken(odd.gain, odd.row)

    def step(index, chains, rates, low, high):
        chains, *rounds = tempering_step(path, chains, random.fold_in(seed, index))
        even, odd = gains(*rounds)
        low = low.write(index, tf.where(is_even, even[:-1], odd[:-1]))
        high = high.write(index, -tf.where(is_even, even[1:], odd[1:]))
        return index + 1, chains, rates + chains.swap_rates, low, high

    arrays = [
        tf.TensorArray(tf.float64, steps, element_shape=(replicas - 1, count))
        for _ in range(2)
    ]
    state = (tf.constant(0), chains, tf.zeros_like(chains.swap_rates), *arrays)
    state = tf.while_loop(lambda index, *_: index < steps, step, state)
    rates = state[2] / tf.cast(steps, tf.float32)
    chains = state[1]._replace(swap_rates=rates)
    return state[3].stack(), state[4].stack(), chains
