"""Distances of rows, and what nearest neighbors say of two tables."""

import math

import numpy as np


def quantiles(real, words):
    """Returns a function of rows to rows for `distances`: numbers become quantiles.

    Args:
        real: array (N, C), whose quantiles they are.
        words: bool array (C,), columns that stay as they are.
    """
    known = [column[~np.isnan(column)] for column in real.T]

    def columns(rows):
        for column, values, is_words in zip(rows.T, known, words, strict=True):
            if not is_words:
                points, counts = np.unique(values, return_counts=True)
                middle = (np.cumsum(counts) - 0.5 * counts) / len(values)
                column = np.interp(column, points, middle)
            yield np.nan_to_num(column, nan=-9.0)  # more than 1 from all values

    return lambda rows: np.stack(list(columns(rows)), 1)


def distances(rows, others=None):
    """Returns `Σ_columns min(|a - b|, 1)`, (N, M), infinite from a row to itself."""
    total = np.zeros((len(rows), len(rows if others is None else others)))
    for x, y in zip(rows.T, (rows if others is None else others).T, strict=True):
        difference = np.abs(np.subtract.outer(x, y))
        total += np.minimum(difference, 1.0, out=difference)
    if others is None:
        np.fill_diagonal(total, np.inf)
    return total


def adversarial_accuracy(one, two, between, size):
    """Returns the adversarial accuracy of as many rows of two tables, and its error.

    Args:
        one, two: arrays (N, N) and (M, M), `distances` within either table.
        between: array (N, M).
        size: int, how many rows, the first, are compared.
    """
    one, two, between = (each[:size, :size] for each in (one, two, between))
    told = [
        np.where(near == other, 0.5, near < other)
        for near, other in (
            (one.min(1), between.min(1)),
            (two.min(1), between.min(0)),
        )
    ]
    variance = 0.25 * sum(shares.var() for shares in told) / size
    # Not 0 where all are told: one of them could have been the other way.
    return float(np.mean(told)), math.sqrt(variance + 0.25 / size**2)
