"""The partition function by annealing in both directions."""

import math

import numpy as np
import tensorflow as tf

from keras_rbm.inference.annealing.bridge_sampling import bridge
from keras_rbm.inference.estimates import (
    FEWEST,
    HALF_MARKOV,
    MARKOV,
    WIDTH,
    LogPartition,
    effective_number,
    weighted,
    with_rounding,
)

#: Least share of the chains of one direction that could be those of the other.
_LEAST_OVERLAP = 0.1


def bidirectional(forward, backward, ancestors=None, least=-math.inf, absent=0.0):
    """Estimates log Z from annealing in both directions [1, 2].

    With log weights u of chains annealed forwards and r of as many annealed back from
    samples of the model, Bennett's acceptance ratio is the f that solves

        mean of sigma(u - f) = mean of sigma(f - r)

    It has the least variance of all estimates that use both. For its error, states with
    the same ancestor count as one. The upper end of the interval is infinite if chains
    of the two directions hardly overlap, if the states annealed back have few
    ancestors, or if other estimates contradict it: annealing forwards, from any base,
    exceeds log Z by more than log 40 in at most 2.5 % of the cases. The lower end then
    follows from Markov's inequality.

    Args:
        forward, backward: tensors (M,) or (M, B), float64, log weights with log Z_0.
        ancestors: int array (M, B), equal for states annealed back that are not
            independent; by default all are independent.
        least: array (B,), a lower bound of log Z from elsewhere, at 97.5 %.
        absent: array (B,), share of the mass that is known to lie in regions without
            any of the states annealed back; it is added to the error.

    Returns:
        `LogPartition`; its `ess` is M if both directions agree everywhere.

    References:
        1. Bennett. Efficient estimation of free energy differences from Monte Carlo
           data. Journal of Computational Physics, 1976.
        2. Grosse, Ancha, Roy. Measuring the reliability of MCMC inference with
           bidirectional Monte Carlo. NIPS 2016.
    """
    shape = forward.shape[1:]
    chains = forward.shape[0]
    low, high = (
        tf.reshape(tf.cast(x, tf.float64), (chains, -1)) for x in (forward, backward)
    )
    if ancestors is None:
        ancestors = np.repeat(np.arange(chains)[:, np.newaxis], low.shape[1], 1)
    numbers = np.stack([np.unique(x, return_inverse=True)[1] for x in ancestors.T])
    families = effective_number(ancestors)
    value, parts = bridge(
        tf.transpose(low)[tf.newaxis], tf.transpose(high)[tf.newaxis], numbers
    )
    stderr = tf.math.reduce_std(parts, 1) / math.sqrt(chains - 1)
    stderr = tf.sqrt(tf.square(stderr) + np.square(np.log1p(-np.asarray(absent))))
    overlap = 2.0 * tf.reduce_mean(tf.sigmoid(low - value), 0)

    least = tf.maximum(weighted(low)[0] - HALF_MARKOV, least)
    most = value + WIDTH * with_rounding(stderr, value)
    tests = {
        f"fewer than {FEWEST} independent states were annealed back": (
            tf.constant(families >= FEWEST)
        ),
        "chains annealed forwards and back hardly meet": overlap > _LEAST_OVERLAP,
        "other estimates find more mass": least < most,
    }
    agree = tf.reduce_all(tf.stack([*tests.values()]), 0)
    failed = [name for name, test in tests.items() if not tf.reduce_all(test)]
    stderr = tf.where(agree, stderr, tf.constant(math.inf, tf.float64))
    result = LogPartition.of_error(
        tf.reshape(value, shape),
        tf.reshape(stderr, shape),
        tf.reshape(chains * overlap, shape),
        tf.concat([forward, backward], 0),
    )
    least = tf.reshape(least, shape)
    lower = tf.where(result.is_finite, result.lower, least)
    return result._replace(lower=lower, note=", and ".join(failed))


def checked(one, both, absent=0.0, reverse=False):
    """Returns an estimate by annealing one way, with an error that both ways inform.

    Annealing forwards cannot see a mode that none of its chains meets, and annealing
    back cannot see that its states are not model samples. If both estimates have a
    finite error, their difference is added to it. Otherwise the upper end of the
    interval is infinite. The lower end then follows from Markov's inequality; for
    annealing back, whose states are samples as far as is known, it is that of both.

    Args:
        one: `LogPartition`, of annealing one way.
        both: `LogPartition`, of the same chains and those of the other way.
        absent: as in `bidirectional`.
        reverse: bool, whether `one` is from annealing back.
    """
    difference = tf.abs(one.value - both.value)
    difference -= np.reshape(np.log1p(-np.asarray(absent)), difference.shape)
    stderr = tf.sqrt(tf.square(one.stderr) + tf.square(difference))
    known = one.is_finite & both.is_finite
    infinite = tf.fill(tf.shape(stderr), tf.constant(math.inf, tf.float64))
    lower = tf.where(one.is_finite, one.value - MARKOV, one.lower)
    ends = both.lower if reverse else lower, infinite
    return one._replace(
        note=both.note,
        stderr=tf.where(known, stderr, infinite),
        lower=tf.where(known, one.lower - 3 * difference, ends[0]),
        upper=tf.where(known, one.upper + 3 * difference, ends[1]),
    )
