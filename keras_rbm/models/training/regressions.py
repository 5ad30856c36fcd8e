"""Regressions of visible units on features, with a prior that held-out rows choose.

Targets are columns of a layer's first sufficient statistic, and what is found are its
natural parameters, so a model can start at them.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_rbm.units.bernoulli import Bernoulli
from keras_rbm.units.gaussian import LEAST_DEVIATION, Gaussian
from keras_rbm.units.joined_units import Joined, part_name

#: Steps at most; the largest mean gradient, in nats, at which they end.
_STEPS, _TOLERANCE = 100, 1e-3
#: Features beyond which the factor would be too large.
_MOST_FEATURES = 4096
#: Most products of a step, half a second, and the fewest rows that they must allow.
_PRODUCTS, _FEWEST_ROWS = 2e9, 500
#: Deviations of the prior to choose from, and columns of targets by which, at most.
_STDDEVS, _COLUMNS = (0.075, 0.11, 0.15, 0.21, 0.29, 0.4, 0.55, 0.75, 1.0), 32
_STDDEVS += 1.4, 2.0, 2.8, 4.0, 5.6, 8.0
#: More of them for real numbers, which are all but noise, or follow from x.
_OF_REAL = (0.01, 0.014, 0.02, 0.028, 0.04, 0.055, *_STDDEVS)
_OF_REAL += tuple(2.0**power for power in range(4, 13))
#: Fewest rows to choose by. As many folds of a fifth as hold out 500 rows, or all five.
_FEWEST, _HELD_OUT, _FOLDS = 50, 500, 5
#: Smallest gain that counts, as a share of the loss of held-out rows.
_LEAST_GAIN = 1e-3
#: Largest precision, in units of that of the targets, and steps towards it.
_PRECISION, _PRECISION_STEPS = 1e4, 20


class Regressions(NamedTuple):
    """Natural parameters of units given features.

    Attributes:
        kernel: array (X, V).
        bias: array (V,).
        log_precision: array (V,) of Gaussian units, `None` for binary ones.
    """

    kernel: np.ndarray
    bias: np.ndarray
    log_precision: np.ndarray | None = None

    def log_densities(self, features, targets):
        """Returns those of targets (N, V), but for what depends on these alone."""
        natural = features @ self.kernel + self.bias
        if self.log_precision is None:
            return targets * natural - np.logaddexp(0.0, natural)
        precision = np.exp(self.log_precision)
        errors = targets - natural / precision
        return 0.5 * (self.log_precision - precision * np.square(errors))


def most_rows(num_features, num_targets):
    """Returns how many rows regressions of this size can take in, 0 if too few."""
    if num_features > _MOST_FEATURES:
        return 0
    rows = int(_PRODUCTS / (num_features * num_targets)) - num_features
    return rows if rows >= _FEWEST_ROWS else 0


class Part(NamedTuple):
    """Columns of a layer that regressions predict.

    Attributes:
        columns: slice of the layer's statistics.
        regressions: function that finds the `Regressions` of such columns.
        log_precision: str, what the layer calls their log-precision, if they have one.
    """

    columns: slice
    regressions: Callable[..., Regressions]
    log_precision: str | None = None


def parts_of(unit, num_visible):
    """Returns the parts of a layer that have regressions, a list of `Part`.

    Args:
        unit: `Unit`.
        num_visible: int, of its columns of states.
    """
    joined = isinstance(unit, Joined)
    found, start = [], 0
    parts = unit.parts if joined else [(unit, num_visible)]
    for number, (each, count) in enumerate(parts):
        columns = slice(start, start := start + each.num_rows(count))
        if isinstance(each, Bernoulli):
            found.append(Part(columns, logistic_regressions))
        elif isinstance(each, Gaussian):
            name = "log_precision"
            name = part_name(name, number) if joined else name
            found.append(Part(columns, ridge_regressions, name))
    return found


def is_real(unit):
    """Returns whether units, or some of them, are `Gaussian`."""
    parts = [(unit, 0)] if not isinstance(unit, Joined) else unit.parts
    return any(isinstance(each, Gaussian) for each, _ in parts)


def logistic_regressions(features, targets, weights, penalty):
    """Returns the `Regressions` of binary targets.

    They minimize the mean negative log-likelihood of binary targets given features,
    plus `penalty sum_xv A_xv² / 2`. A quarter of the second moments of the features
    bounds the Hessian of each column [1], so one factor serves all columns and steps;
    the steps have momentum.

    Args:
        features: array (N, X).
        targets: array (N, V), between 0 and 1; NaN does not count.
        weights: array (N,), of the rows.
        penalty: float > 0.

    References:
        1. Böhning. Multinomial logistic regression algorithm. Annals of the Institute
           of Statistical Mathematics, 1992.
    """
    features, targets, weights = (
        np.asarray(part, np.float64) for part in (features, targets, weights)
    )
    count = len(features)
    weights = weights / np.sum(weights)
    known = targets == targets
    has_gaps = not known.all()
    targets = np.where(known, targets, 0.0)
    center, share = (weights @ part for part in (features, targets))
    if has_gaps:
        share = share / np.maximum(weights @ known, np.finfo(np.float64).tiny)
    share = np.clip(share, 0.5 / count, 1.0 - 0.5 / count)
    x, y = (tf.constant(part, tf.float64) for part in (features - center, targets))
    weighted = tf.constant(weights[:, np.newaxis]) * x
    bound = 0.25 * tf.matmul(x, weighted, transpose_a=True)
    # Equal features make it singular, but for the penalty and this; it stays a bound.
    extra = penalty + 1e-10 * tf.linalg.trace(bound) / len(center)
    factor = tf.linalg.cholesky(bound + extra * tf.eye(len(center), dtype=tf.float64))
    kernel = tf.zeros((len(center), len(share)), tf.float64)
    bias = tf.constant(np.log(share / (1.0 - share)))
    free = (share > 0.5 / count) & (share < 1.0 - 0.5 / count)  # others have no end
    last = ahead = kernel, bias
    for step in range(_STEPS):
        kernel, bias = ahead
        error = y - tf.sigmoid(tf.matmul(x, kernel) + bias)
        error = error * known if has_gaps else error
        ascent = tf.matmul(weighted, error, transpose_a=True) - penalty * kernel
        up = tf.linalg.matvec(error, weights, transpose_a=True) * free
        new = kernel + tf.linalg.cholesky_solve(factor, ascent), bias + 4.0 * up
        momentum = step / (step + 3.0)
        ahead = tuple(n + momentum * (n - o) for n, o in zip(new, last, strict=True))
        last = new
        if max(np.abs(ascent).max(), np.abs(up).max()) < _TOLERANCE:
            break
    kernel, bias = (part.numpy() for part in last)
    return Regressions(kernel, bias - center @ kernel)


def ridge_regressions(features, targets, weights, penalty):
    """Returns the `Regressions` of real-valued targets.

    With slopes B and residual precision γ of a column, its weights `A = γ B` minimize
    the mean negative log-likelihood plus `penalty sum_x A_x² / 2`: a ridge regression
    with penalty `penalty γ`, found by turns with γ, which counts the degrees of freedom
    that the slopes leave [1].

    Args:
        features: array (N, X).
        targets: array (N, V); NaN does not count.
        weights: array (N,), of the rows.
        penalty: float > 0.

    References:
        1. Hastie, Tibshirani, Friedman. The elements of statistical learning, 3.4.
           Springer, 2009.
    """
    features, targets, weights = (
        np.asarray(part, np.float64) for part in (features, targets, weights)
    )
    known = targets == targets
    if not known.all():
        found = []
        for column, rows in zip(targets.T[..., np.newaxis], known.T, strict=True):
            own = ridge_regressions(
                features[rows], column[rows], weights[rows], penalty
            )
            found.append(own)
        parts = zip(*found, strict=True)
        return Regressions(*(np.concatenate(part, -1) for part in parts))
    count = len(features)
    weights = weights / np.sum(weights)
    center, mean = weights @ features, weights @ targets
    x, y = features - center, targets - mean
    weighted = weights[:, np.newaxis] * x
    if count < len(center):
        rows = np.sqrt(weights)[:, np.newaxis] * x
        _, scales, axes = np.linalg.svd(rows, full_matrices=False)
        moments, axes = np.square(scales), axes.T
    else:
        moments, axes = np.linalg.eigh(weighted.T @ x)
    moments = np.maximum(moments, 0.0)[:, np.newaxis]
    along = axes.T @ (weighted.T @ y)
    variance = weights @ np.square(y)
    variance = np.where(variance > LEAST_DEVIATION**2 * mean**2, variance, 1.0)
    precision = 1.0 / variance
    for _ in range(_PRECISION_STEPS):
        shrunk = moments + penalty * precision + np.finfo(np.float64).tiny
        slopes = along / shrunk
        error = np.sum(slopes * (moments * slopes - 2.0 * along), 0) + variance
        left = 1.0 - (1.0 + np.sum(moments / shrunk, 0)) / count
        error = np.maximum(error, variance / _PRECISION)
        precision = np.sqrt(precision * np.maximum(left, 1.0 / count) / error)
    kernel = precision * (axes @ slopes)
    bias = precision * mean - center @ kernel
    return Regressions(kernel, bias, np.log(precision))


def chosen_stddev(features, targets, weights, stddev, parts):
    """Returns the deviation of a normal prior that suits regressions, by held-out rows.

    From the given one it goes to the next smaller or larger as long as held-out rows
    become more likely; for binary targets by a thousandth of their loss and by two
    standard errors.

    Args:
        features: array (N, X), in random order.
        targets: array (N, V); NaN does not count.
        weights: array (N,), of the rows.
        stddev: float > 0, with which to begin.
        parts: list of `Part`, the columns of targets.
    """
    features, targets, weights = (
        np.asarray(part, np.float64) for part in (features, targets, weights)
    )
    low, high = np.fmin.reduce(targets), np.fmax.reduce(targets)
    varies = high > low  # false if all are NaN
    real = any(part.log_precision for part in parts)
    taken = []
    for part in parts:
        varied = part.columns.start + np.flatnonzero(varies[part.columns])
        if len(varied):
            every = math.ceil(len(varied) / _COLUMNS)
            taken.append((targets[:, varied[::every]], part.regressions))
    if len(features) < _FEWEST or not taken:
        return stddev
    fifth = len(features) // 5
    folds = range(min(_FOLDS, math.ceil(_HELD_OUT / fifth)))
    scores = {}

    def score(value):
        if value not in scores:
            scores[value] = np.concatenate([held_out(value, fold) for fold in folds])
        return scores[value]

    def held_out(value, fold):
        away = np.arange(len(features)) // fifth == fold
        x, counts = features[~away], weights[~away]
        gains = 0.0
        for y, regressions in taken:
            found = regressions(x, y[~away], counts, 1.0 / (value**2 * len(x)))
            gains += np.nansum(found.log_densities(features[away], y[away]), axis=1)
        return weights[away] * gains

    def better(new, old):
        gain = score(new) - score(old)
        least = _LEAST_GAIN * abs(score(old).mean())
        least = max(least, 2.0 * gain.std() / np.sqrt(len(gain)))
        return gain.mean() > (0.0 if real else least)

    values = _OF_REAL if real else _STDDEVS
    if not all(part.log_precision for part in parts):  # weights of bits have no bound
        values = [value for value in values if value <= _STDDEVS[-1]]
    smaller = sorted((s for s in values if s < stddev), reverse=True)
    larger = sorted(s for s in values if s > stddev)
    for direction in (smaller, larger):
        best = stddev
        for value in direction:
            if not better(value, best):
                break
            best = value
        if best != stddev:
            return best
    return stddev
