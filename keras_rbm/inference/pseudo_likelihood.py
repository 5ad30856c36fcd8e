"""Cheap stand-ins for the likelihood, which need no partition function."""

import tensorflow as tf

from keras_rbm import random
from keras_rbm.checks import check_counts
from keras_rbm.inference.arguments import checked_states
from keras_rbm.inference.potentials import log_conditional
from keras_rbm.units import BernoulliParameters


def pseudo_log_likelihood(potentials, visible):
    """Computes `sum_i log p(v_i | all other v)`, for binary visible units.

    Each term is `log sigmoid(F(v with bit i flipped) - F(v))` [1]; for values between
    0 and 1 minus the cross-entropy with them.

    Args:
        potentials: `Potentials`.
        visible: tensor (B, V), states.

    Returns:
        tensor (B,), nats.

    Raises:
        ValueError: if the visible units are not binary.

    Example:

    >>> model = keras_rbm.inference.Potentials(tf.zeros((3, 2)), [0.0] * 3, [0.0] * 2)
    >>> pll = keras_rbm.inference.pseudo_log_likelihood(model, tf.ones((1, 3)))
    >>> print(pll.numpy().round(3))
    [-2.079]

    References:
        1. Besag. Statistical analysis of non-lattice data. The Statistician, 1975.
    """
    visible = checked_states(potentials, "visible", visible)
    return _pseudo_log_likelihood(potentials, visible)


@tf.function(autograph=False, reduce_retracing=True)
def _pseudo_log_likelihood(potentials, visible):
    natural = _binary_hidden_natural(potentials, visible)

    def add(total, unit):
        chosen = tf.zeros_like(total, tf.int32) + unit
        return total + _log_conditional(potentials, visible, natural, chosen)

    return tf.foldl(add, tf.range(tf.shape(visible)[1]), tf.zeros_like(natural[:, 0]))


def stochastic_pseudo_log_likelihood(potentials, visible, seed, observed=None):
    """Estimates `pseudo_log_likelihood` from one random unit of each example.

    Args:
        potentials: `Potentials`.
        visible: tensor (B, V), states.
        seed: int or integer tensor of shape (2,).
        observed: int or `None`, visible units that count, the first ones, given the
            rest; by default all.

    Returns:
        tensor (B,), nats; unbiased.

    Raises:
        ValueError: if the visible units are not binary.
    """
    visible = checked_states(potentials, "visible", visible)
    if observed is not None:
        check_counts(observed=observed)
    natural = _binary_hidden_natural(potentials, visible)
    rows, num_visible = tf.unstack(tf.shape(visible))
    size = tf.cast(observed or num_visible, visible.dtype)
    unit = tf.cast(random.uniform([rows], seed) * size, tf.int32)
    return size * _log_conditional(potentials, visible, natural, unit)


def reconstruction_log_likelihood(potentials, visible):
    """Computes `log p(v | h = E[h | v])`: how well v survives one way up and down.

    Defined for all unit types. It is not the learning objective of any rule, and a
    model can have a good one with a poor likelihood.

    Args:
        potentials: `Potentials`.
        visible: tensor (B, V), states.

    Returns:
        tensor (B,), nats.
    """
    visible = checked_states(potentials, "visible", visible)
    hidden = potentials.hidden.mean(potentials.hidden_natural(visible))
    natural = potentials.visible_natural(hidden)
    return log_conditional(potentials.visible, visible, natural)


def _binary_hidden_natural(potentials, visible):
    if not isinstance(potentials.visible, BernoulliParameters):
        raise ValueError(
            "Expected binary visible units: the pseudo-likelihood is computed for "
            f"states 0 and 1 only. Received: {type(potentials.visible).__name__}."
        )
    return potentials.hidden_natural(visible)


def _log_conditional(potentials, visible, natural, unit):
    """Returns log p(v_i | the other v) for unit i = `unit[n]` of example n.

    A value between 0 and 1 counts as a probability: the result is minus the
    cross-entropy.
    """
    value = tf.gather(visible, unit, batch_dims=1)
    row = tf.cast(tf.gather(potentials.kernel, unit), natural.dtype)
    off = natural - value[:, tf.newaxis] * row
    log_partition = potentials.hidden.log_partition
    bias = tf.broadcast_to(potentials.visible_bias, tf.shape(visible))
    logit = tf.gather(bias, unit, batch_dims=1) + tf.reduce_sum(
        log_partition(off + row) - log_partition(off), -1
    )
    return value * logit - tf.math.softplus(logit)
