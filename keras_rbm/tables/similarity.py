"""How alike the columns of two tables are, and their pairs, as SDMetrics scores."""

import itertools
from typing import NamedTuple

import numpy as np

#: Bins of a number beside a discrete column.
_BINS = 10
#: Pairs of real columns count from here on: Pearson's correlation, and Cramér's V.
_CORRELATED, _ASSOCIATED = 0.5, 0.3
#: Parts of rows that are left out in turn, for errors.
_PARTS = 10


class Similarity(NamedTuple):
    """Scores in [0, 1], of which 1 is alike, and NaN where there is none.

    Attributes:
        shapes: array (C,), of each column.
        trends: array (P,), of each pair of columns.
        related: bool array (P,), whether the columns of the real table are related.
    """

    shapes: np.ndarray
    trends: np.ndarray
    related: np.ndarray

    def means(self, related=None):
        """Returns means (3,) of shapes, of trends of related pairs, and of all."""
        related = self.related if related is None else related
        kinds = self.shapes, self.trends[related], self.trends
        known = [scores[~np.isnan(scores)] for scores in kinds]
        return np.array([each.mean() if each.size else np.nan for each in known])


def similarity(real, synthetic, discrete):
    """Returns the two scores of SDMetrics' `QualityReport`, of columns and of pairs.

    A column's shape, without gaps: of numbers `1 - max_t |F(t) - G(t)|` with the shares
    F and G of values up to t, of others `1 - 1/2 Σ_v |p(v) - q(v)|`. A pair's trend: of
    two numbers `1 - |ρ - ρ'| / 2` with Pearson's correlations of rows that know both,
    otherwise `1 - 1/2 Σ_ab |p(a, b) - q(a, b)|`, where gaps count as a value and a
    number is one of ten bins between the least and the largest of its own table. The
    columns of a pair are related if `|ρ| > 0.5`, or Cramér's V is above 0.3.

    Args:
        real: array (N, C), see `as_numbers`.
        synthetic: array (M, C).
        discrete: bool array (C,).

    Returns:
        `Similarity`, equal to SDMetrics 0.32 but for rounding.

    Example:

    >>> from keras_rbm.tables.similarity import similarity
    >>> real, other = np.array([[0, 0], [0, 1.0], [1, 5.0]]), np.array([[0, 1.0]])
    >>> similarity(real, other, np.array([True, False])).shapes.round(3).tolist()
    [0.667, 0.667]

    References:
        1. SDMetrics. DataCebo, 2025. Version 0.32.
    """
    shapes, levels = [], []
    for own, other, alone in zip(real.T, synthetic.T, discrete, strict=True):
        known = own[~np.isnan(own)], other[~np.isnan(other)]
        sizes = [len(each) for each in known]
        measure = _share_in_common if alone else _overlap
        shapes.append(measure(*known) if min(sizes) else np.nan)
        # NumPy sees one NaN: a gap is a value.
        both = np.unique(np.concatenate([own, other]), return_inverse=True)[1]
        levels.append(
            (both[: len(own)], both[len(own) :])
            if alone
            else (_binned(own), _binned(other))
        )
    varies = [
        all(len(np.unique(column[~np.isnan(column)])) != 1 for column in pair)
        for pair in zip(real.T, synthetic.T, strict=True)
    ]
    trends, related = [], []
    for i, j in itertools.combinations(range(len(discrete)), 2):
        if discrete[i] or discrete[j]:
            score, association = _contingency(levels[i], levels[j])
            related.append(association > _ASSOCIATED)
        elif varies[i] and varies[j]:
            own = _correlation(real[:, i], real[:, j])
            score = 1.0 - 0.5 * abs(
                own - _correlation(synthetic[:, i], synthetic[:, j])
            )
            related.append(abs(own) > _CORRELATED)
        else:
            score = np.nan
            related.append(False)
        trends.append(score)
    return Similarity(np.array(shapes), np.array(trends), np.array(related, bool))


def compared(real, synthetic, held, discrete):
    """Returns the `Similarity` of two tables, and what other real rows would have.

    Args:
        real: array (N, C), rows in random order.
        synthetic: array (M, C), also.
        held: array (L, C), other real rows, or `None` for a half of `real` beside the
            other half.
        discrete: bool array (C,).

    Returns:
        `(found, best, own, other, alike, errors, size)`: the `Similarity` of synthetic
        and of other rows; lists of the three `means` of synthetic rows, of others, and
        of as many synthetic ones, and of the errors of the first; and how many others
        there are.
    """
    found = similarity(real, synthetic, discrete)
    parts = [np.arange(len(table)) % _PARTS for table in (real, synthetic)]
    left = [
        similarity(real[parts[0] != k], synthetic[parts[1] != k], discrete)
        for k in range(_PARTS)
    ]
    if held is None:
        real, held = real[len(real) // 2 :], real[: len(real) // 2]
    size = min(len(held), len(synthetic))
    best, alike = (
        similarity(real, rows[:size], discrete) for rows in (held, synthetic)
    )
    means = [each.means(found.related).tolist() for each in (found, best, alike)]
    of_left = [each.means(found.related) for each in left]
    errors = np.sqrt(_PARTS - 1.0) * np.std(of_left, axis=0)
    return found, best, *means, errors.tolist(), size


def _overlap(own, other):
    own, other = (np.sort(values.round(14)) for values in (own, other))
    points = np.concatenate([own, other])
    shares = [
        np.searchsorted(values, points, side="right") / len(values)
        for values in (own, other)
    ]
    return 1.0 - np.abs(shares[0] - shares[1]).max()


def _share_in_common(own, other):
    values, index = np.unique(np.concatenate([own, other]), return_inverse=True)
    p, q = (
        np.bincount(part, minlength=len(values)) for part in np.split(index, [len(own)])
    )
    p = np.where(p, p, 1e-6)  # as SDMetrics counts what only the other has
    return 1.0 - 0.5 * np.abs(p / p.sum() - q / q.sum()).sum()


def _binned(column):
    """Returns the bins of a column: the largest value and gaps share the last."""
    gaps = np.isnan(column)
    known = column[~gaps]
    low, high = (known.min(), known.max()) if len(known) else (0.0, 1.0)
    if low == high:
        low, high = low - 0.5, high + 0.5
    bins = np.searchsorted(np.linspace(low, high, _BINS + 1), column, side="right")
    return np.where(gaps, _BINS + 1, bins)


def _contingency(one, two):
    """Returns the score of a pair, and Cramér's V of the real table."""
    import pandas

    width = max(each.max() for each in two) + 1
    own, other = (a.astype(np.int64) * width + b for a, b in zip(one, two, strict=True))
    index, cells = pandas.factorize(np.concatenate([own, other]))
    p, q = (
        np.bincount(part, minlength=len(cells)) / len(part)
        for part in np.split(index, [len(own)])
    )
    score = 1.0 - 0.5 * np.abs(p - q).sum()
    rows, columns = (np.bincount(each[0]) / len(own) for each in (one, two))
    least = min(np.count_nonzero(rows), np.count_nonzero(columns)) - 1
    if least < 1:
        return score, np.nan
    seen = p > 0.0
    expected = rows[cells[seen] // width] * columns[cells[seen] % width]
    # χ² / n = Σ (p - e)² / e, where cells that no row has add e.
    squares = (p[seen] ** 2 / expected).sum() - 1.0
    return score, np.sqrt(max(squares, 0.0) / least)


def _correlation(x, y):
    known = ~(np.isnan(x) | np.isnan(y))
    x, y = x[known], y[known]
    if len(x) < 2 or (x == x[0]).all() or (y == y[0]).all():
        return np.nan
    x, y = x - x.mean(), y - y.mean()
    product = (x / np.linalg.norm(x)) @ (y / np.linalg.norm(y))
    return float(np.clip(product, -1.0, 1.0))
