"""The partition function by annealing both ways."""

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
)

#: Share of the chains of one way that could be those of the other, at least.
_LEAST_OVERLAP = 0.1


def bidirectional(forward, backward, ancestors=None, least=-math.inf, absent=0.0):
    """Returns the estimate of log Z that annealing both ways gives together [1, 2].

    With log weights u of chains annealed forwards and r of as many annealed back from
    samples of the model, Bennett's acceptance ratio is the f that solves

        mean of sigma(u - f) = mean of sigma(f - r)

    the estimate of least variance that the two have to offer. In its error states of
    the same ancestor count as one. The interval is open above where chains of the two
    ways hardly overlap, where the states annealed back have few ancestors, and where
    other estimates refute it: annealing forwards, from any base, exceeds log Z by more
    than log 40 in 2.5 % of the cases at most. Its lower end is Markov's then.

    Args:
        forward, backward: tensors (M,) or (M, B), float64, log weights with log Z_0.
        ancestors: int array (M, B), equal where states annealed back are not
            independent; by default all are.
        least: array (B,), a lower bound of log Z that is known otherwise, at 97.5 %.
        absent: array (B,), share of the mass that is known to lie where none of the
            states annealed back is; it is added to the error.

    Returns:
        `LogPartition`; its `ess` is M where both ways agree everywhere.

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
    tests = {
        f"fewer than {FEWEST} independent states were annealed back": (
            tf.constant(families >= FEWEST)
        ),
        "chains annealed forwards and back hardly meet": overlap > _LEAST_OVERLAP,
        "other estimates find more mass": least < value + WIDTH * stderr,
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
    """Returns an estimate by annealing one way, with what both say of its error.

    A mode that no chain meets on its way forwards is invisible to it, and states that
    are no model samples to annealing back. Where the other way sees no more, the
    difference of the two estimates is added to the error; else the interval is open
    above. Its lower end is Markov's then; of annealing back, whose states are samples
    as far as the search has found, that of both.

    Args:
        one: `LogPartition`, of annealing one way.
        both: `LogPartition`, of the same chains and those of the other way.
        absent: as of `bidirectional`.
        reverse: bool, whether the one way is back.
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
