"""Moments of units that few examples have, shrunk towards those of all units."""

import numpy as np


def shrunk(
    mean: np.ndarray, variance: np.ndarray, count: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Returns moments as if each unit had `a` more examples, of all units alike.

    With the variance sigma^2 within units, and tau^2 of the units' means beyond what
    their numbers of examples explain, `a = sigma^2 / tau^2` is the best for units of
    one normal distribution [1]: units that differ little share their moments, those
    that differ much keep their own.

    Args:
        mean, variance: arrays (units, rows), moments of the encoded data.
        count: array (units, 1), number of examples that have a unit.

    Returns:
        the same two arrays, shrunk.

    References:
        1. Efron, Morris. Data analysis using Stein's estimator and its
           generalizations. JASA 1975.
    """
    total = count.sum()
    if not total or len(count) == 1:
        return mean, variance
    common = (count * mean).sum(0) / total
    squares = (count * variance).sum()
    within = squares / max(total - len(count), 1.0)
    apart = (count * np.square(mean - common)).sum() - (len(count) - 1) * within
    between = max(apart, 0.0) / (total - np.square(count).sum() / total)
    # The share of a unit's own moments, n / (n + a).
    weight = count * between
    both = weight + within
    own = np.divide(weight, both, np.ones_like(weight), where=both > 0.0)
    shifted = own * mean + (1.0 - own) * common
    spread = variance + np.square(mean - shifted)
    pooled = (count * variance).sum(0) / max(total - len(count), 1.0)
    return shifted, own * spread + (1.0 - own) * pooled
