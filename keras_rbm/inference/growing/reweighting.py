"""Carries samples of one model over to another, and estimates the ratio of their Z."""

import math
from typing import NamedTuple

import tensorflow as tf

from keras_rbm import random
from keras_rbm.inference.annealing.bridge_sampling import bridge
from keras_rbm.inference.gibbs import gibbs_chain
from keras_rbm.inference.resampling import effective_sample_size, systematic_rows

#: Relative effective sample size that remains after a step from model to model: for a
#: small change, and for a large one, whose modes samples must find as they form.
_KEPT, _KEPT_OF_LARGE = 0.5, 0.97
#: A change is large if a single step would leave less than this.
_LARGE = 0.3
#: Least effective number of families. With fewer, whose spread would not be known, each
#: sample becomes a family of its own.
_LEAST_FAMILIES = 30
#: Factor of the number of sweeps in each step of a large change.
_SWEEPS_OF_LARGE = 2
#: The least step is 1 / `_STEPS`.
_STEPS = 100
_HALVINGS = 20


class Descended(NamedTuple):
    """Samples in families: those of one family may be copies, if sweeps do not mix.

    Attributes:
        visible: tensor (S, V).
        families: int tensor (S,), numbers from 0 to S - 1.
    """

    visible: tf.Tensor
    families: tf.Tensor

    @classmethod
    def independent(cls, visible):
        """Returns samples that are each a family of their own."""
        return cls(visible, tf.range(visible.shape[0]))


class CarriedOver(NamedTuple):
    """Samples of a new model, carried over from an old one.

    Attributes:
        samples: `Descended`.
        log_ratio: scalar, log of the new model's Z over the old one's.
        error: scalar, standard error of `log_ratio`.
        ess: scalar, relative effective sample size that the old samples would have
            after a single step, from 1 / S to 1; 0 if the change of one is NaN.
    """

    samples: Descended
    log_ratio: tf.Tensor
    error: tf.Tensor
    ess: tf.Tensor


def log_mean_exp(values, weights):
    """Returns log of the weighted mean of exp(values), over axis 0."""
    log_weights = tf.math.log(weights)
    log_weights = tf.reshape(log_weights, [-1] + [1] * (values.shape.rank - 1))
    return tf.reduce_logsumexp(log_weights + values, 0)


def weighted_mean(values, weights):
    """Returns the mean (D,) of rows (N, D) with weights (N,) that sum to 1."""
    return tf.linalg.matvec(values, weights, transpose_a=True)


def resampled_rows(log_weights, seed):
    """Returns indices (S,) of S states, drawn in proportion to their weights.

    Args:
        log_weights: tensor (S,), S known.
        seed: int tensor of shape (2,).
    """
    shift = tf.random.stateless_uniform((), seed)
    return systematic_rows(log_weights, log_weights.shape[0], shift)


def random_rows(rows, weights, count, seed):
    """Draws rows with replacement, in proportion to their weights.

    Args:
        rows: tensor (N, V).
        weights: tensor (N,) that sum to 1.
        count: int.
        seed: int or integer tensor of shape (2,).

    Returns:
        tensor (count, V).
    """
    cumulative = tf.cumsum(weights)
    place = random.uniform((count,), seed) * cumulative[-1]
    index = tf.searchsorted(cumulative, place, side="right")
    return tf.gather(rows, tf.minimum(index, tf.shape(rows)[0] - 1))


def carry_over(
    samples, change, potentials, seed, *, num_sweeps, between=None, is_large=False
):
    """Turns samples of a model into samples of another by sequential Monte Carlo [1].

    Samples are resampled with weights `exp(change)`, because `Z_new p_new = Z_old p_old
    exp(change)`, and then make sweeps. Resampling moves mass between modes where sweeps
    do not. Bridge sampling [2] between before and after estimates `Z_new / Z_old`.

    If the weights would leave fewer than half of the samples, they pass through models
    between the two, `p*_old exp(t change)`, in steps that leave half each. If fewer
    than three in ten would remain, steps leave 97 % and make twice as many sweeps:
    only there do samples meet a mode that forms on the way. The error is that between
    families of samples with a common ancestor, also one from earlier calls. Sweeps that
    do not mix leave copies with the same errors; if they mix, adding up within families
    loses nothing.

    Args:
        samples: `Descended`, S known, of the old model. For an honest estimate they
            must not have been used to choose the new model.
        change: function of states (B, V) that returns the increase of `log p*`, (B,).
        potentials: `Potentials`, the new model.
        seed: int or integer tensor of shape (2,).
        num_sweeps: int ≥ 1.
        between: function of t in [0, 1] that returns the `Potentials` of
            `p*_old exp(t change)`, or `None` for a single step.
        is_large: bool scalar, whether the change is known to be large. Samples of the
            old model cannot tell if the new one has modes that the old one lacks.

    Returns:
        `CarriedOver`.

    References:
        1. Del Moral, Doucet, Jasra. Sequential Monte Carlo samplers. JRSS B, 2006.
        2. Bennett. Efficient estimation of free energy differences from Monte Carlo
           data. Journal of Computational Physics, 1976.
    """
    visible, families = samples
    count = visible.shape[0]
    ess = effective_sample_size(change(visible)) / count
    ess = tf.where(tf.math.is_nan(ess), 0.0, ess)
    large = tf.constant(False) if between is None else (ess < _LARGE) | is_large
    kept = tf.where(large, _KEPT_OF_LARGE, _KEPT)
    num_sweeps *= tf.where(large, _SWEEPS_OF_LARGE, 1)

    def step(index, t, visible, families, parts, ratio):
        x = change(visible)
        size = 1.0 - t if between is None else _step_size(x, 1.0 - t, kept)
        rows = resampled_rows(size * x, random.fold_in(seed, 2 * index))
        model = potentials if between is None else between(t + size)
        moved = gibbs_chain(
            model,
            tf.gather(visible, rows),
            random.fold_in(seed, 2 * index + 1),
            num_sweeps=num_sweeps,
        )
        gain, new = _bridged(size * x, size * change(moved), rows)
        parts += tf.math.unsorted_segment_sum(new, families, count)
        families = tf.gather(families, rows)
        return index + 1, t + size, moved, families, parts, ratio + gain

    state = (
        tf.constant(0),
        tf.constant(0.0),
        visible,
        families,
        tf.zeros(count, tf.float64),
        tf.constant(0.0, tf.float64),
    )
    _, _, visible, families, parts, ratio = tf.while_loop(
        lambda index, t, *_: (t < 1.0 - 1e-6) & (index < 2 * _STEPS), step, state
    )
    error = tf.math.reduce_std(parts) / math.sqrt(count)
    ratio, error = (tf.cast(x, tf.float32) for x in (ratio, error))
    sizes = tf.math.unsorted_segment_sum(tf.ones(count), families, count)
    few = count**2 / tf.reduce_sum(tf.square(sizes)) < _LEAST_FAMILIES
    families = tf.where(few, tf.range(count), families)
    return CarriedOver(Descended(visible, families), ratio, error, ess)


def _step_size(change, rest, kept):
    """Returns how far from 0 to `rest` a step may go, at least 1 / 100."""

    def keeps(size):
        few = effective_sample_size(size * change) < kept * change.shape[0]
        return ~few  # also true for NaN

    def halve(index, low, high):
        middle = 0.5 * (low + high)
        far = keeps(middle)
        return index + 1, tf.where(far, middle, low), tf.where(far, high, middle)

    _, size, _ = tf.while_loop(
        lambda index, *_: index < _HALVINGS,
        halve,
        (tf.constant(0), tf.zeros_like(rest), rest),
    )
    size = tf.where(keeps(rest), rest, tf.maximum(size, 1.0 / _STEPS))
    return tf.minimum(size, rest)


def _bridged(before, after, parents):
    """Returns log(Z after / Z before) from both models' log weights, and its parts.

    The parts, (S,), are what each state before adds, together with its descendants.
    """
    before, after = (
        tf.cast(part, tf.float64)[tf.newaxis, tf.newaxis] for part in (before, after)
    )
    ratio, parts = bridge(before, after, parents)
    return ratio[0], parts[0]
