"""Logistic regressions, from which a conditional model starts."""

import numpy as np
import tensorflow as tf

#: Steps at most; the largest mean gradient, in nats, at which they end.
_STEPS, _TOLERANCE = 100, 1e-3
#: Features beyond which the factor would be too large.
_MOST_FEATURES = 4096
#: Most products of a step, half a second, and the fewest rows that they must allow.
_PRODUCTS, _FEWEST_ROWS = 2e9, 500


def most_rows(num_features: int, num_targets: int) -> int:
    """Returns how many rows regressions of this size can take in, 0 if too few."""
    if num_features > _MOST_FEATURES:
        return 0
    rows = int(_PRODUCTS / (num_features * num_targets)) - num_features
    return rows if rows >= _FEWEST_ROWS else 0


def logistic_regressions(
    features: np.ndarray, targets: np.ndarray, weights: np.ndarray, penalty: float
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the weights (X, V) and biases (V,) of a regression for each column.

    They minimize the mean negative log-likelihood of binary targets given features,
    plus `penalty sum_xv A_xv² / 2`. A quarter of the second moments of the features
    bounds the Hessian of each column [1], so one factor serves all columns and steps;
    the steps have momentum.

    Args:
        features: array (N, X).
        targets: array (N, V), between 0 and 1.
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
    center, share = (weights @ part for part in (features, targets))
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
