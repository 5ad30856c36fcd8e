"""Samples of one model carried over to another, and the ratio of their log Z."""

import math
from typing import NamedTuple

import tensorflow as tf

from keras_rbm import random
from keras_rbm.inference.bridge_sampling import bridge
from keras_rbm.inference.gibbs import gibbs_chain


class CarriedOver(NamedTuple):
    """Samples of a model, beside the one that they come from.

    Attributes:
        visible: tensor (S, V).
        log_ratio: scalar, log of the new model's Z over the old one's.
        error: scalar, standard error of `log_ratio`.
        ess: scalar, relative effective sample size of the old samples, from 1 / S to 1;
            0 where the change of one is not a number.
    """

    visible: tf.Tensor
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


def carry_over(visible, change, potentials, seed, *, num_sweeps):
    """Makes samples of one model samples of another, by sequential Monte Carlo [1].

    They are resampled with weights `exp(change)`, as `Z_new p_new = Z_old p_old
    exp(change)`, which moves mass between modes where sweeps do not, and then make
    sweeps. Bridge sampling [2] between before and after estimates `Z_new / Z_old`.

    Args:
        visible: tensor (S, V), S known, samples of the old model. For the estimate to
            be honest they must have had no part in the choice of the new one.
        change: function of states (B, V), by how much the new `log p*` is larger, (B,).
        potentials: `Potentials`, the new model.
        seed: int or integer tensor of shape (2,).
        num_sweeps: int ≥ 1.

    Returns:
        `CarriedOver`.

    References:
        1. Del Moral, Doucet, Jasra. Sequential Monte Carlo samplers. JRSS B, 2006.
        2. Bennett. Efficient estimation of free energy differences from Monte Carlo
           data. Journal of Computational Physics, 1976.
    """
    before = change(visible)
    rows = resampled_rows(before, random.fold_in(seed, 0))
    moved = gibbs_chain(
        potentials,
        tf.gather(visible, rows),
        random.fold_in(seed, 1),
        num_sweeps=num_sweeps,
    )
    ratio, error = _bridged(before, change(moved), rows)
    ess = effective_sample_size(before) / visible.shape[0]
    ess = tf.where(tf.math.is_nan(ess), 0.0, ess)
    return CarriedOver(moved, ratio, error, ess)


def _bridged(before, after, parents):
    """Returns log(Z after / Z before) and its error from both models' log weights.

    Sweeps that do not mix leave copies of the parents, which err alike.
    """
    before, after = (
        tf.cast(part, tf.float64)[tf.newaxis, tf.newaxis] for part in (before, after)
    )
    ratio, parts = bridge(before, after, parents)
    error = tf.math.reduce_std(parts) / math.sqrt(parts.shape[1])
    return tf.cast(ratio[0], tf.float32), tf.cast(error, tf.float32)
