"""log Z by bridge sampling between the replicas of parallel tempering."""

import contextlib
import math
from collections.abc import Iterator

import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike

from keras_rbm import random
from keras_rbm._checks import as_array, check_counts
from keras_rbm.inference.annealing.bridge_sampling import bridge
from keras_rbm.inference.annealing.tempered_path import TemperedPath, temperatures
from keras_rbm.inference.annealing.tempering import (
    adapted,
    check_single,
    partners,
    single_base,
    started,
    swapping_step,
    taken,
)
from keras_rbm.inference.arguments import as_floats, check_proper
from keras_rbm.inference.estimates import FEWEST, LogPartition
from keras_rbm.inference.full_precision import full_precision
from keras_rbm.inference.potentials import Potentials

#: Least number of independent states of each of a chain's replicas. With fewer, the
#: estimate depends on where the chains started.
_LEAST_STATES = 10.0


@full_precision()
def tempered_log_partition(
    potentials: Potentials,
    *,
    betas: ArrayLike = 20,
    num_chains: int = 100,
    steps: int = 1000,
    base: ArrayLike | None = None,
    initial_visible: ArrayLike | None = None,
    ancestors: ArrayLike | None = None,
    seed: int | tf.Tensor = 0,
) -> LogPartition:
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
    check_proper(potentials)
    check_single(potentials)
    check_counts(2, num_chains=num_chains)
    check_counts(5, steps=steps)
    if ancestors is not None and np.shape(as_array(ancestors)) != (num_chains,):
        raise ValueError(
            f"Expected ancestors of shape ({num_chains},), one for each chain. "
            f"Received: {ancestors!r:.200}."
        )
    betas = temperatures(betas)
    base = single_base(potentials, base)
    if initial_visible is not None:
        shape = (num_chains, potentials.num_visible)
        initial_visible = as_floats("initial_visible", initial_visible, shape)
    return bridged(
        potentials,
        base,
        betas,
        num_chains,
        steps,
        initial_visible,
        ancestors,
        random.as_seed(seed),
    )


def bridged(
    potentials: Potentials,
    base: tf.Tensor | None,
    betas: np.ndarray,
    num_chains: int,
    steps: int,
    initial_visible: tf.Tensor | None,
    ancestors: ArrayLike | None,
    seed: int | tf.Tensor,
) -> LogPartition:
    """Returns what `tempered_log_partition` does, for arguments that are sound."""
    path = TemperedPath(potentials, base)
    burn_in = steps // 5
    betas = tf.constant(betas, tf.float32)
    fresh = random.fold_in(seed, 0)
    chains = started(path, betas, num_chains, initial_visible, fresh)
    chains = adapted(path, chains, burn_in, fresh)
    chains = chains._replace(journeys=tf.zeros_like(chains.journeys))
    steps = tf.constant(steps - burn_in)
    low, high, chains = _work(path, chains, steps, random.fold_in(seed, 1))
    ratios, parts = bridge(low, high)
    log_z = path.log_partition_of_base() + tf.reduce_sum(ratios)
    parts = tf.reduce_sum(parts, 0)
    stderr = _between_families(parts, ancestors)
    ess = _effective(high)
    mixed = chains.mix & (ess >= _LEAST_STATES * num_chains)
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
    with no_warning_of_complex():
        sizes = tfp.mcmc.effective_sample_size(x, cross_chain_dims=1)
    varies = tf.math.reduce_variance(x, (0, 1)) > 0.0
    states = tf.cast(tf.shape(x)[0] * tf.shape(x)[1], tf.float64)
    return tf.reduce_min(tf.where(varies, sizes, states))


@contextlib.contextmanager
def no_warning_of_complex() -> Iterator[None]:
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
        chains, *rounds = swapping_step(path, chains, random.fold_in(seed, index))
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
