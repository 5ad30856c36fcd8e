"""Cheap substitutes for the likelihood, which need no partition function."""

import functools

import tensorflow as tf
from numpy.typing import ArrayLike

from keras_rbm import random
from keras_rbm._checks import check_counts
from keras_rbm.inference import unit_states
from keras_rbm.inference.arguments import checked_states
from keras_rbm.inference.missing import partial
from keras_rbm.inference.potentials import Potentials, log_conditional
from keras_rbm.inference.traces import full_precision, kind_of_models


@full_precision()
def pseudo_log_likelihood(potentials: Potentials, visible: ArrayLike) -> tf.Tensor:
    """Computes `sum_i log p(v_i | all other v)`, for finitely many visible states [1].

    For binary units each term is `log sigmoid(F(v with bit i flipped) - F(v))`; for
    values between two states it is minus the cross-entropy with them.

    Args:
        potentials: `Potentials`.
        visible: tensor (B, V), states.

    Returns:
        tensor (B,), nats; NaN for rows that are not states.

    Raises:
        ValueError: if visible units have infinitely many states, as Gaussian ones do.

    Example:

    >>> model = keras_rbm.inference.Potentials(tf.zeros((3, 2)), [0.0] * 3, [0.0] * 2)
    >>> pll = keras_rbm.inference.pseudo_log_likelihood(model, tf.ones((1, 3)))
    >>> print(pll.numpy().round(3))
    [-2.079]

    References:
        1. Besag. Statistical analysis of non-lattice data. The Statistician, 1975.
    """
    return tf.reduce_sum(conditional_log_probabilities(potentials, visible), -1)


@full_precision()
def conditional_log_probabilities(
    potentials: Potentials, visible: ArrayLike
) -> tf.Tensor:
    """Computes `log p(v_i | all other v)` of each unit, for finitely many states.

    `pseudo_log_likelihood` is their sum.

    Args:
        potentials: `Potentials`.
        visible: tensor (B, V), states.

    Returns:
        tensor (B, V), nats.

    Raises:
        ValueError: if visible units have infinitely many states, as Gaussian ones do.

    Example:

    >>> model = keras_rbm.inference.Potentials(tf.zeros((2, 1)), [0.0, 1.0], [0.0])
    >>> terms = keras_rbm.inference.conditional_log_probabilities(model, [[1.0, 1.0]])
    >>> print(terms.numpy().round(3))
    [[-0.693 -0.313]]
    """
    visible = checked_states(potentials, "visible", visible)
    return _traced(kind_of_models(potentials))(potentials, visible)


@functools.cache
def _traced(kind):
    """Returns the terms, traced once for any number of rows and of hidden units."""
    # A partial is counted by itself, and not with others of the same code.
    total = functools.partial(_of_units)
    return tf.function(total, autograph=False, reduce_retracing=True)


def _of_units(potentials, visible):
    states, natural = _states(potentials), potentials.hidden_natural(visible)

    def of(unit):
        chosen = tf.fill(tf.shape(visible)[:1], unit)
        return _log_conditional(potentials, states, visible, natural, chosen)

    units = tf.range(tf.shape(visible)[1])
    return tf.transpose(tf.map_fn(of, units, fn_output_signature=visible.dtype))


@full_precision()
def stochastic_pseudo_log_likelihood(
    potentials: Potentials,
    visible: ArrayLike,
    seed: int | tf.Tensor,
    observed: int | None = None,
    known: tf.Tensor | None = None,
) -> tf.Tensor:
    """Estimates `pseudo_log_likelihood` from one random unit of each example.

    Args:
        potentials: `Potentials`.
        visible: tensor (B, V), states.
        seed: int or integer tensor of shape (2,).
        observed: int or `None`; only the first `observed` visible units count, given
            the rest; by default all.
        known: bool tensor (B, V) or `None`; only these units count, given the rest.

    Returns:
        tensor (B,), nats; unbiased.

    Raises:
        ValueError: if visible units have infinitely many states, as Gaussian ones do.
    """
    visible = checked_states(potentials, "visible", visible)
    if observed is not None:
        check_counts(observed=observed)
    states, natural = _states(potentials), potentials.hidden_natural(visible)
    rows, num_visible = tf.unstack(tf.shape(visible))
    if known is None:
        size = tf.cast(observed or num_visible, visible.dtype)
        unit = tf.cast(random.uniform([rows], seed) * size, tf.int32)
    else:
        unit = unit_states.chosen_unit(known, seed)
        size = tf.reduce_sum(tf.cast(known, visible.dtype), -1)
    return size * _log_conditional(potentials, states, visible, natural, unit)


@full_precision()
def reconstruction_log_likelihood(
    potentials: Potentials, visible: ArrayLike, known: tf.Tensor | None = None
) -> tf.Tensor:
    """Computes `log p(v | h = E[h | v])`: how well v survives one way up and down.

    Defined for all unit types. It is not the learning objective of any rule, and can be
    good for a model whose likelihood is poor.

    Args:
        potentials: `Potentials`.
        visible: tensor (B, V), states.
        known: bool tensor (B, V) or `None`; only these units count.

    Returns:
        tensor (B,), nats.
    """
    visible = checked_states(potentials, "visible", visible)
    hidden = potentials.hidden.mean(potentials.hidden_natural(visible))
    natural = potentials.visible_natural_of_mean(hidden)
    units = potentials.visible if known is None else partial(potentials.visible, known)
    return log_conditional(units, visible, natural)


def _states(potentials):
    """Returns the visible units' `UnitStates`, or raises a ValueError."""
    units = potentials.visible.whole
    if not units.finite:
        raise ValueError(
            "Expected visible units of finitely many states for the pseudo-likelihood. "
            f"Received: {type(potentials.visible).__name__}. Compute the free energy, "
            "or estimate the likelihood."
        )
    return unit_states.UnitStates.of(units, potentials.kernel)


def _log_conditional(potentials, states, visible, natural, unit):
    """Returns log p(v_i | the other v) for unit i = `unit[n]` of example n.

    A value between two states counts as a mean: the result is minus the cross-entropy.
    """
    log_weights, shares = unit_states.conditional_log_weights(
        potentials, states, visible, natural, unit
    )
    log_p = tf.nn.log_softmax(log_weights)
    result = tf.reduce_sum(tf.math.multiply_no_nan(log_p, shares), -1)
    is_state = tf.reduce_sum(shares, -1) > 0.5
    return tf.where(is_state, result, float("nan"))
