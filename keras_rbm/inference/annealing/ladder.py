"""Replicas below the chains of a model, and the bases that they learn."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_rbm.inference.annealing.path import TemperedPath

#: Steps of the bases of each layer, relative to the sum of its units' variances.
_VISIBLE_STEP, _HIDDEN_STEP = 0.1, 0.4
#: Chains of the model from which on the steps are no smaller.
_ENOUGH_CHAINS = 100


class Ladder(NamedTuple):
    """Chains of a model, and replicas of it at lower inverse temperatures.

    Attributes:
        betas: tensor (R,), inverse temperatures, increasing from 0 to 1.
        bases, hidden_bases: tensors (R, rows of either layer), natural parameters of
            each replica, as in `TemperedChains`.
        below: tensor (R - 1, L, V), states of the replicas below the model.
        chains: tensor (C, V), states of the model.
    """

    betas: tf.Tensor
    bases: tf.Tensor
    hidden_bases: tf.Tensor
    below: tf.Tensor
    chains: tf.Tensor

    def path(self, potentials):
        """Returns the path with the bases of each replica."""
        return TemperedPath(potentials, self.bases, self.hidden_bases)

    def states(self, count):
        """Returns states (R, count, V) of all replicas, repeated if there are fewer."""
        index = tf.range(count)
        of_model = tf.gather(self.chains, index % self.chains.shape[0])
        below = tf.gather(self.below, index % self.below.shape[1], axis=1)
        return tf.concat([below, of_model[tf.newaxis]], 0)


def changes_of_bases(path, betas, on_ladders, of_model):
    """Returns changes by which replicas come nearer to the means of the model.

    They go along the gradient of the likelihood that a replica gives states of the
    model, in its bases. It is 0 where the replica's mean of visible units is that of
    the model, and its mean of hidden units is what they have at states of the model,
    seen at the replica's temperature. So modes keep some share at middle temperatures,
    where of common bases all but the largest vanish. Steps are relative to sums of
    variances, so that nothing overshoots where all units move together, and smaller for
    few chains, which would draw the replicas to where they are.

    Args:
        path: `TemperedPath` with bases (R, rows of either layer), one for each replica.
        betas: tensor (R,).
        on_ladders: `ChainState` of R · C rows, C of each replica.
        of_model: `ChainState` of the model's chains.

    Returns:
        tensors of the bases' shapes, 0 for the last replica.
    """
    changes = (
        _visible_change(path, on_ladders, of_model),
        _hidden_change(path, betas, on_ladders, of_model),
    )
    share = min(1.0, of_model.visible.shape[0] / _ENOUGH_CHAINS)
    is_model = np.arange(betas.shape[0]) == betas.shape[0] - 1
    scale = tf.where(is_model, 0.0, share / (1.0 - betas))[:, tf.newaxis]
    return scale * changes[0], scale * changes[1]


def _visible_change(path, on_ladders, of_model):
    first = path.potentials.visible.first_of
    of_replicas, of_model = first(on_ladders.visible), first(of_model.visible)
    means = tf.reshape(of_replicas, (path.base.shape[0], -1, path.base.shape[1]))
    off = tf.reduce_mean(of_model, 0) - tf.reduce_mean(means, 1)
    variances = tf.math.reduce_variance(tf.concat([of_replicas, of_model], 0), 0)
    return tf.math.divide_no_nan(_VISIBLE_STEP * off, tf.reduce_sum(variances))


def _hidden_change(path, betas, on_ladders, of_model):
    replicas, width = path.hidden_base.shape

    def means(natural, shift=0.0):
        """Returns means (R, C, rows) of hidden units at states, given (1 or R, …)."""
        beta = betas[:, tf.newaxis, tf.newaxis]
        natural = beta * natural + (1.0 - beta) * path.hidden_base[:, tf.newaxis]
        expected = path.potentials.hidden.expected_statistics(
            tf.reshape(natural + shift, (-1, width))
        )
        return tf.reshape(expected.bias, (replicas, -1, width))

    own = tf.reshape(on_ladders.hidden_natural, (replicas, -1, width))
    there = means(of_model.hidden_natural[tf.newaxis])
    off = tf.reduce_mean(there, 1) - tf.reduce_mean(means(own), 1)
    # A mean's derivative is the variance given v; of binary units at most 1 / 4.
    given = tf.reduce_mean(means(own, 0.5) - means(own, -0.5), 1)
    given = tf.maximum(tf.reduce_sum(given, 1), 0.25 * width)
    between = tf.reduce_sum(tf.math.reduce_variance(there, 1), 1)
    return _HIDDEN_STEP * off / (given + between)[:, tf.newaxis]
