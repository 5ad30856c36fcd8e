"""The ratio of two partition functions by bridge sampling."""

from typing import NamedTuple

import tensorflow as tf

_RANGE = (tf.reduce_min, tf.reduce_max)
#: Tolerance, in nats, of the solution of each pair's equation.
_TOLERANCE = 1e-9


def bridge(low, high, parents=None):
    """Solves for the ratios of two models' partition functions.

    Args:
        low, high: tensors (S, pairs, C), float64, x, the upper model's log p* less
            the lower one's, of states of the lower and of the upper model of each
            pair, see `temper`.
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

    # As exact as TFP's `find_root_chandrupatla`, in half of its time: the logs are so
    # nearly linear that Newton's method needs few steps.
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
