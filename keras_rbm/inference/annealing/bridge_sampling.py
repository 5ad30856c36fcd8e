"""log Z from the replicas of parallel tempering."""

import contextlib
import math
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_rbm import random
from keras_rbm.checks import as_array, check_counts
from keras_rbm.inference.annealing.tempered_path import TemperedPath
from keras_rbm.inference.annealing.tempering import parallel_tempering, tempering_step
from keras_rbm.inference.arguments import as_floats, check_model
from keras_rbm.inference.estimates import FEWEST, LogPartition
from keras_rbm.inference.gibbs import ChainState
from keras_rbm.inference.soundness import check_finite, check_normalizable

_RANGE = (tf.reduce_min, tf.reduce_max)
#: Tolerance, in nats, of the solution of each pair's equation.
_TOLERANCE = 1e-9
#: Least share of accepted swaps of each pair of neighbors, round trips of a chain, and
#: independent states of each of its replicas. With fewer, the estimate depends on where
#: the chains started.
_LEAST_SWAPS, _LEAST_ROUND_TRIPS, _LEAST_STATES = 0.05, 1.0, 10.0


def tempered_log_partition(
    potentials,
    *,
    betas=20,
    num_chains=100,
    steps=1000,
    base=None,
    initial_visible=None,
    ancestors=None,
    seed=0,
):
    """Estimates log Z by bridge sampling between the replicas of parallel tempering.

    With `x(v) = log p*_{r+1}(v) - log p*_r(v)`, the ratio of neighboring partition
    functions `Delta = log Z_{r+1} - log Z_r` solves

    `mean of sigma(x(v) - Delta) over replica r
    = mean of sigma(Delta - x(v)) over replica r + 1`.

    This is the best of all bridge estimators for equally many states of both [1]. The
    sum of these ratios and log Z_0 is log Z. The first fifth of the steps only spaces
    the temperatures by `equalized_betas` and lets the chains forget the start.

    The standard error is that between chains, or between families of chains that start
    at states with a common ancestor, so dependent states are not counted twice. The
    interval is infinite at both ends if neighbors accept fewer than one in twenty
    swaps, if a chain's states make less than one round trip between beta = 0 and 1 on
    average, or if one of its replicas has fewer than ten independent states: then the
    estimate still depends on the start. A mode that no replica has met is invisible.

    Args:
        potentials: `Potentials` of a single model.
        betas: initial inverse temperatures, as for `temperatures`.
        num_chains: int ≥ 2, C.
        steps: int ≥ 5, sweeps of each replica.
        base: tensor (V,), visible natural parameters at beta = 0; by default zeros.
        initial_visible: tensor (C, V), states that all replicas start from; by default
            drawn from the base-rate model.
        ancestors: int array (C,), equal for states that are not independent.
        seed: int or integer tensor of shape (2,).

    Returns:
        `LogPartition`, nats; `ess` is the number of independent states, measured by
        autocorrelation, of the replica that has fewest, except the one at beta = 0.

    Raises:
        ValueError: if an argument is out of range, or there are several models.

    Example:

    >>> model = keras_rbm.inference.Potentials(tf.ones((6, 4)), [0.0] * 6, [0.0] * 4)
    >>> z = keras_rbm.inference.tempered_log_partition(model, betas=5, steps=200)
    >>> exact = keras_rbm.inference.exact_log_partition(model)
    >>> bool(abs(z.value - exact) < 5 * z.stderr)
    True

    References:
        1. Bennett. Efficient estimation of free energy differences from Monte Carlo
           data. Journal of Computational Physics, 1976.
    """
    check_counts(2, num_chains=num_chains)
    check_counts(5, steps=steps)
    check_model(potentials)
    if ancestors is not None and np.shape(as_array(ancestors)) != (num_chains,):
        raise ValueError(
            f"Expected ancestors of shape ({num_chains},), one for each chain. "
            f"Received: {ancestors!r:.200}."
        )
    check_finite(potentials)
    check_normalizable(potentials)
    if base is None:
        base = tf.zeros(potentials.visible.num_rows)
    base = as_floats("base", base, (potentials.visible.num_rows,))
    path = TemperedPath(potentials, base)
    burn_in = steps // 5
    chains = parallel_tempering(
        potentials,
        num_samples=num_chains,
        steps=0,
        betas=betas,
        adapt=burn_in,
        base=base,
        initial_visible=initial_visible,
        seed=random.fold_in(seed, 0),
    )
    chains = chains._replace(journeys=tf.zeros_like(chains.journeys))
    steps = tf.constant(steps - burn_in)
    low, high, chains = _work(path, chains, steps, random.fold_in(seed, 1))
    ratios, parts = bridge(low, high)
    log_z = path.log_partition_of_base() + tf.reduce_sum(ratios)
    parts = tf.reduce_sum(parts, 0)
    stderr = _between_families(parts, ancestors)
    mixed = tf.reduce_min(chains.swap_rates) > _LEAST_SWAPS
    trips = tf.reduce_sum(chains.journeys // 2) / num_chains
    mixed &= trips >= _LEAST_ROUND_TRIPS
    ess = _effective(high)
    mixed &= ess >= _LEAST_STATES * num_chains
    stderr = tf.where(mixed, stderr, tf.constant(math.inf, tf.float64))
    return LogPartition.of_error(log_z, stderr, ess, log_z + parts)


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
    """Returns the least effective sample size of a replica, x being (S, pairs, C)."""
    import tensorflow_probability as tfp

    half = x.shape[0] // 2
    # Halves count as separate chains: states that drift are not independent.
    x = tf.concat([x[:half], x[-half:]], 2)
    x = tf.transpose(x, (0, 2, 1))
    with _no_warning_of_complex():
        sizes = tfp.mcmc.effective_sample_size(x, cross_chain_dims=1)
    varies = tf.math.reduce_variance(x, (0, 1)) > 0.0
    states = tf.cast(tf.shape(x)[0] * tf.shape(x)[1], tf.float64)
    return tf.reduce_min(tf.where(varies, sizes, states))


@contextlib.contextmanager
def _no_warning_of_complex():
    """TensorFlow warns of what TensorFlow Probability does with Fourier transforms."""
    logger = tf.get_logger()

    def is_other(record):
        return "casting an input of type complex" not in record.getMessage()

    logger.addFilter(is_other)
    try:
        yield
    finally:
        logger.removeFilter(is_other)


@tf.function(autograph=False)
def _work(path, chains, steps, seed):
    """Returns x of the pairs' lower and upper replicas, (S, R - 1, C), and chains."""
    pairs, count = chains.visible.shape[0] - 1, chains.visible.shape[1]
    betas = tf.repeat(chains.betas, count)[:, tf.newaxis]
    lows, highs = betas[:-count], betas[count:]

    def work(chains, replicas):
        rows = (
            tf.reshape(states[replicas], (pairs * count, states.shape[2]))
            for states in (chains.visible, chains.hidden_natural)
        )
        x = path.log_weight_difference(ChainState(*rows), lows, highs)
        return tf.reshape(x, (pairs, count))

    def step(index, chains, rates, low, high):
        chains = tempering_step(path, chains, random.fold_in(seed, index))
        rates += chains.swap_rates
        low = low.write(index, work(chains, slice(None, -1)))
        high = high.write(index, work(chains, slice(1, None)))
        return index + 1, chains, rates, low, high

    arrays = [
        tf.TensorArray(tf.float64, steps, element_shape=(pairs, count))
        for _ in range(2)
    ]
    state = (tf.constant(0), chains, tf.zeros_like(chains.swap_rates), *arrays)
    state = tf.while_loop(lambda index, *_: index < steps, step, state)
    rates = state[2] / tf.cast(steps, tf.float32)
    chains = state[1]._replace(swap_rates=rates)
    return state[3].stack(), state[4].stack(), chains


def bridge(low, high, parents=None):
    """Solves for the ratios of two models' partition functions.

    Args:
        low, high: tensors (S, pairs, C), float64, x, the upper model's log p* less
            the lower one's, of states of the lower and of the upper model of each
            pair, see `tempered_log_partition`.
        parents: int tensor (C,) or (pairs, C), the number, below C, of the state from
            which each upper state descends and which it may still equal: one of the
            lower states, or of C others. `None` if the c-th states of both belong to
            the same chain.

    Returns:
        `(ratios, parts)`: (pairs,), Delta, and (pairs, C), the first-order contribution
        to Delta of each chain, or of each lower state with its descendants. The mean
        of the contributions is 0.
    """
    extremes = tf.stack([reduce(x, (0, 2)) for x in (low, high) for reduce in _RANGE])
    left, right = tf.reduce_min(extremes, 0), tf.reduce_max(extremes, 0)

    def sides(delta):
        delta = delta[:, tf.newaxis]
        return _side(low - delta), _side(delta - high)

    def refine(delta, left, right, _):
        # Far from the solution both sides are tiny, but their logs nearly linear.
        up, down = sides(delta)
        excess = up.log_mean - down.log_mean
        left = tf.where(excess >= 0.0, delta, left)
        right = tf.where(excess <= 0.0, delta, right)
        newton = delta + excess / (up.slope + down.slope)
        inside = (newton > left) & (newton < right)
        new = tf.where(inside, newton, 0.5 * (left + right))
        return new, left, right, tf.reduce_max(tf.abs(new - delta))

    state = (0.5 * (left + right), left, right, tf.constant(1.0, tf.float64))
    delta = tf.while_loop(
        lambda *state: state[-1] > _TOLERANCE, refine, state, maximum_iterations=100
    )[0]
    up, down = sides(delta)
    slope = (up.slope + down.slope)[:, tf.newaxis]
    above, below = down.shares - 1.0, up.shares - 1.0
    if parents is not None:
        pairs, count = above.shape
        parents = tf.broadcast_to(tf.cast(parents, tf.int32), (pairs, count))
        place = parents + count * tf.range(pairs)[:, tf.newaxis]
        above = tf.math.unsorted_segment_sum(above, place, pairs * count)
        above = tf.reshape(above, (pairs, count))
    return delta, tf.math.divide_no_nan(below - above, slope)


class _Side(NamedTuple):
    """The mean of sigma(x) over states and chains, one side of the equation.

    Attributes:
        log_mean: (pairs,), its logarithm.
        slope: (pairs,), the derivative of `log_mean` with respect to x.
        shares: (pairs, C), each chain's mean, relative to the mean over all chains.
    """

    log_mean: tf.Tensor
    slope: tf.Tensor
    shares: tf.Tensor


def _side(x):
    log_sigma = tf.math.log_sigmoid(x)
    largest = tf.reduce_max(log_sigma, (0, 2), keepdims=True)
    relative = tf.exp(log_sigma - largest)
    mean = tf.reduce_mean(relative, (0, 2), keepdims=True)
    relative /= mean
    return _Side(
        log_mean=tf.squeeze(largest + tf.math.log(mean), (0, 2)),
        slope=tf.reduce_mean(relative * tf.math.sigmoid(-x), (0, 2)),
        shares=tf.reduce_mean(relative, 0),
    )
