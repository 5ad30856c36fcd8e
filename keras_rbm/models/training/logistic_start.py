"""Logistic regressions, from which a conditional model starts, and their prior."""

import math

import numpy as np
import tensorflow as tf

#: Steps at most; the largest mean gradient, in nats, at which they end.
_STEPS, _TOLERANCE = 100, 1e-3
#: Features beyond which the factor would be too large.
_MOST_FEATURES = 4096
#: Most products of a step, half a second, and the fewest rows that they must allow.
_PRODUCTS, _FEWEST_ROWS = 2e9, 500
#: Deviations of the prior to choose from, and columns of targets by which, at most.
_STDDEVS, _COLUMNS = (0.15, 0.21, 0.29, 0.4, 0.55, 0.75, 1.0, 1.4, 2.0), 32
#: Fewest rows to choose by. As many folds of a fifth as hold out 500 rows, or all five.
_FEWEST, _HELD_OUT, _FOLDS = 50, 500, 5
#: Smallest gain that counts, as a share of the loss of held-out rows.
_LEAST_GAIN = 1e-3


def most_rows(num_features, num_targets):
    """Returns how many rows regressions of this size can take in, 0 if too few."""
    if num_features > _MOST_FEATURES:
        return 0
    rows = int(_PRODUCTS / (num_features * num_targets)) - num_features
    return rows if rows >= _FEWEST_ROWS else 0


def logistic_regressions(features, targets, weights, penalty):
    """Returns the weights (X, V) and biases (V,) of a regression for each column.

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
    return kernel, bias - center @ kernel


def chosen_stddev(features, targets, weights, stddev):
    """Returns the deviation of a normal prior that suits regressions, by held-out rows.

    From the given one it goes to the next smaller or larger as long as held-out rows
    become more likely, by a thousandth of their loss and by two standard errors.

    Args:
        features: array (N, X), in random order.
        targets: array (N, V), between 0 and 1; NaN does not count.
        weights: array (N,), of the rows.
        stddev: float > 0, with which to begin.
    """
    features, targets, weights = (
        np.asarray(part, np.float64) for part in (features, targets, weights)
    )
    low, high = np.fmin.reduce(targets), np.fmax.reduce(targets)
    varied = np.flatnonzero(high > low)  # false if all are NaN
    if len(features) < _FEWEST or not len(varied):
        return stddev
    every = max(1, math.ceil(len(varied) / _COLUMNS))
    targets = targets[:, varied[::every]]
    fifth = len(features) // 5
    folds = range(min(_FOLDS, math.ceil(_HELD_OUT / fifth)))
    scores = {}

    def score(value):
        if value not in scores:
            scores[value] = np.concatenate([held_out(value, fold) for fold in folds])
        return scores[value]

    def held_out(value, fold):
        away = np.arange(len(features)) // fifth == fold
        x, y, own = features[~away], targets[~away], weights[~away]
        kernel, bias = logistic_regressions(x, y, own, 1.0 / (value**2 * len(x)))
        natural = features[away] @ kernel + bias
        each = targets[away] * natural - np.logaddexp(0.0, natural)
        return weights[away] * np.nansum(each, axis=1)

    def better(new, old):
        gain = score(new) - score(old)
        least = _LEAST_GAIN * abs(score(old).mean())
        return gain.mean() > max(least, 2.0 * gain.std() / np.sqrt(len(gain)))

    smaller = sorted((s for s in _STDDEVS if s < stddev), reverse=True)
    larger = sorted(s for s in _STDDEVS if s > stddev)
    for direction in (smaller, larger):
        best = stddev
        for value in direction:
            if not better(value, best):
                break
            best = value
        if best != stddev:
            return best
    return stddev
