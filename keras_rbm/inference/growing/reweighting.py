"""Samples of one model carried over to another, and the ratio of their log Z."""

import math
from typing import NamedTuple

import tensorflow as tf

from keras_rbm import random
from keras_rbm.inference.annealing.bridge_sampling import bridge
from keras_rbm.inference.gibbs import gibbs_chain

#: Relative effective sample size that a step of samples from model to model leaves:
#: of a small change, and of a large one, whose modes samples must find as they form.
_KEPT, _KEPT_OF_LARGE = 0.5, 0.97
#: A change is large if a single step would leave less than that.
_LARGE = 0.3
#: Families of samples, in effect, below which the next ones have families of their own:
#: fewer would not tell how much they differ.
_LEAST_FAMILIES = 30
#: How many times as many sweeps samples make in each step of a large change.
_SWEEPS_OF_LARGE = 2
#: Steps at most.
_STEPS = 100
_HALVINGS = 20


class Descended(NamedTuple):
    """Samples with families: those of one may be copies, where sweeps do not mix.

    Attributes:
        visible: tensor (S, V).
        families: int tensor (S,), numbers from 0 to S - 1.
    """

    visible: tf.Tensor
    families: tf.Tensor

    @classmethod
    def independent(cls, visible):
        """Returns samples each of which is a family of its own."""
        return cls(visible, tf.range(visible.shape[0]))


class CarriedOver(NamedTuple):
    """Samples of a model, beside the one that they come from.

    Attributes:
        samples: `Descended`.
        log_ratio: scalar, log of the new model's Z over the old one's.
        error: scalar, standard error of `log_ratio`.
        ess: scalar, relative effective sample size of the old samples, had they gone
            in one step, from 1 / S to 1; 0 where the change of one is not a number.
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


def effective_sample_size(log_weights):
    """Returns (sum u)^2 / sum u^2 of states of weights u, a scalar from 1 to S."""
    return 1.0 / tf.reduce_sum(tf.square(tf.nn.softmax(log_weights)))


def resampled_rows(log_weights, seed):
    """Returns indices (S,) of as many states, each as often as its weight says.

    Args:
        log_weights: tensor (S,), S known.
        seed: int tensor of shape (2,).
    """
    import tensorflow_probability as tfp

    return tfp.experimental.mcmc.resample_systematic(
        tf.nn.log_softmax(log_weights),
        log_weights.shape[0],
        sample_shape=[],
        seed=seed,
    )


def random_rows(rows, weights, count, seed):
    """Draws rows with replacement, each as often as its weight says.

    Args:
        rows: tensor (N, V).
        weights: tensor (N,), a sum of 1.
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
    """Makes samples of one model samples of another, by sequential Monte Carlo [1].

    They are resampled with weights `exp(change)`, as `Z_new p_new = Z_old p_old
    exp(change)`, which moves mass between modes where sweeps do not, and then make
    sweeps. Bridge sampling [2] between before and after estimates `Z_new / Z_old`.
    Where the weights would leave fewer than half of the samples, they go by models
    between the two, `p*_old exp(t change)`, in steps that leave half each; where fewer
    than three in ten, in steps that leave 97 %, with twice as many sweeps: a mode that
    forms on the way is met only there. The error is that between families of samples
    with one ancestor, also those of earlier calls: sweeps that do not mix leave copies,
    which err alike; where they do mix, nothing is lost by adding up within families.

    Args:
        samples: `Descended`, S known, of the old model. For the estimate to be honest
            they must have had no part in the choice of the new one.
        change: function of states (B, V), by how much the new `log p*` is larger, (B,).
        potentials: `Potentials`, the new model.
        seed: int or integer tensor of shape (2,).
        num_sweeps: int ≥ 1.
        between: function of t in [0, 1] that returns the `Potentials` of
            `p*_old exp(t change)`, or `None` for a single step.
        is_large: bool scalar, whether the change is known to be large: samples of the
            old model cannot tell, where the new one has modes that it lacks.

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
    """Returns how far from 0 to `rest` a step may go, 1 / 100 at least."""

    def keeps(size):
        few = effective_sample_size(size * change) < kept * change.shape[0]
        return ~few  # also where it is not a number

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
    """Returns log(Z after / Z before) of both models' log weights, and each part of it.

    Parts (S,) are what each state before adds, with those that come from it.
    """
    before, after = (
        tf.cast(part, tf.float64)[tf.newaxis, tf.newaxis] for part in (before, after)
    )
    ratio, parts = bridge(before, after, parents)
    return ratio[0], parts[0]
