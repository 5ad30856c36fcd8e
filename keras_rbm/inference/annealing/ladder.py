"""Replicas below the chains of a model, and the bases that their means ask for."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

#: How fast a replica's mean moves to where it belongs, relative to its variance.
_MEAN_RATE = 0.1


class Ladder(NamedTuple):
    """Chains of a model, and replicas of it at lower inverse temperatures.

    Attributes:
        betas: tensor (R,), inverse temperatures, increasing from 0 to 1.
        bases: tensor (R, rows of the kernel), visible natural parameters of each
            replica, as in `TemperedChains`.
        below: tensor (R - 1, L, V), states of the replicas below the model.
        chains: tensor (C, V), states of the model.
    """

    betas: tf.Tensor
    bases: tf.Tensor
    below: tf.Tensor
    chains: tf.Tensor

    def states(self, count: int | tf.Tensor) -> tf.Tensor:
        """Returns states (R, count, V) of all replicas, repeated if there are fewer."""
        index = tf.range(count)
        of_model = tf.gather(self.chains, index % self.chains.shape[0])
        below = tf.gather(self.below, index % self.below.shape[1], axis=1)
        return tf.concat([below, of_model[tf.newaxis]], 0)


def change_of_bases(
    states: tf.Tensor, of_model: tf.Tensor, data_mean: tf.Tensor, betas: tf.Tensor
) -> tf.Tensor:
    """Returns changes of the bases by which replicas come nearer to their means.

    A replica belongs at `(1 - beta²) data_mean + beta² model_mean`: so modes of the
    model keep some share at middle temperatures, where of a common base all but the
    largest vanish. A change of natural parameters, times their covariance, is that of
    the mean. It is so small that it does not overshoot where all units move together.

    Args:
        states: tensor (R, C, rows), first statistics of the replicas' states.
        of_model: tensor (C', rows), of the model's chains.
        data_mean: tensor (rows,).
        betas: tensor (R,).

    Returns:
        tensor (R, rows), 0 for the first and the last replica.
    """
    replicas, width = states.shape[0], data_mean.shape[0]
    rows = tf.concat([tf.reshape(states[:-1], (-1, width)), of_model], 0)
    variance = tf.reduce_sum(tf.math.reduce_variance(rows, 0))
    share = tf.square(betas)[:, tf.newaxis]
    goal = data_mean + share * (tf.reduce_mean(of_model, 0) - data_mean)
    off = goal - tf.reduce_mean(states, 1)
    ends = np.isin(np.arange(replicas), (0, replicas - 1))
    rate = tf.where(ends, 0.0, _MEAN_RATE / (1.0 - betas))[:, tf.newaxis]
    return tf.math.divide_no_nan(rate * off, variance)
