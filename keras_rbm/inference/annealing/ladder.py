"""Replicas below the chains of a model, and the bases that they learn."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_rbm.inference.annealing.tempered_path import TemperedPath
from keras_rbm.inference.gibbs import ChainState
from keras_rbm.inference.potentials import Potentials

#: How fast the means of each layer's units move, relative to the sum of the variances.
_RATE, _HIDDEN_RATE = 0.1, 0.4


class Ladder(NamedTuple):
    """Chains of a model, and replicas of it at lower inverse temperatures.

    Attributes:
        betas: tensor (R,), inverse temperatures, increasing from 0 to 1.
        bases, hidden_bases: tensors (R, rows of the kernel) and (R, H), natural
            parameters of each replica, as in `TemperedChains`.
        below: tensor (R - 1, L, V), states of the replicas below the model.
        chains: tensor (C, V), states of the model.
    """

    betas: tf.Tensor
    bases: tf.Tensor
    hidden_bases: tf.Tensor
    below: tf.Tensor
    chains: tf.Tensor

    def path(self, potentials: Potentials) -> TemperedPath:
        """Returns the path with the bases of each replica."""
        return TemperedPath(potentials, self.bases, self.hidden_bases)

    def states(self, count: int | tf.Tensor) -> tf.Tensor:
        """Returns states (R, count, V) of all replicas, repeated if there are fewer."""
        index = tf.range(count)
        of_model = tf.gather(self.chains, index % self.chains.shape[0])
        below = tf.gather(self.below, index % self.below.shape[1], axis=1)
        return tf.concat([below, of_model[tf.newaxis]], 0)


def changes_of_bases(
    path: TemperedPath, betas: tf.Tensor, on_ladders: ChainState, of_model: ChainState
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns changes by which replicas come nearer to the means of the model.

    They go along the gradient of the likelihood that a replica gives states of the
    model, in its bases. It is 0 where the replica's mean of visible units is that of
    the model, and its mean of hidden units is what they have at states of the model,
    seen at the replica's temperature. So modes keep some share at middle temperatures,
    where of common bases all but the largest vanish. The rates are so small that
    nothing overshoots where all units move together.

    Args:
        path: `TemperedPath` with bases (R, V) and (R, H), one for each replica.
        betas: tensor (R,).
        on_ladders: `ChainState` of R · C rows, C of each replica.
        of_model: `ChainState` of the model's chains.

    Returns:
        tensors (R, rows of the kernel) and (R, H), 0 for the first and last replica.
    """
    replicas, width = path.base.shape[0], path.hidden_base.shape[1]
    first, hidden = path.potentials.visible.first_of, path.potentials.hidden
    states, others = first(on_ladders.visible), first(of_model.visible)
    variance = tf.math.reduce_variance(tf.concat([states, others], 0), 0)
    means = tf.reduce_mean(tf.reshape(states, (replicas, -1, states.shape[1])), 1)
    off = tf.reduce_mean(others, 0) - means
    off = tf.math.divide_no_nan(_RATE * off, tf.reduce_sum(variance))

    def hidden_means(natural):
        """Returns means (R, C, H) of hidden units at states, given (1 or R, C, H)."""
        column = betas[:, tf.newaxis, tf.newaxis]
        natural = column * natural
        natural += (1.0 - column) * path.hidden_base[:, tf.newaxis]
        expected = hidden.expected_statistics(tf.reshape(natural, (-1, width)))
        return tf.reshape(expected.bias, (replicas, -1, width))

    own = tf.reshape(on_ladders.hidden_natural, (replicas, -1, width))
    others = hidden_means(of_model.hidden_natural[tf.newaxis])
    variance = tf.reduce_sum(tf.math.reduce_variance(others, 1), 1, keepdims=True)
    hidden_off = tf.reduce_mean(others, 1) - tf.reduce_mean(hidden_means(own), 1)
    # Binary units have a variance of at most 1 / 4 given v.
    hidden_off *= _HIDDEN_RATE / (0.25 * width + variance)
    ends = np.isin(np.arange(replicas), (0, replicas - 1))
    scale = tf.where(ends, 0.0, 1.0 / (1.0 - betas))[:, tf.newaxis]
    return scale * off, scale * hidden_off
