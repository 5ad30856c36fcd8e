"""How alike tables of numbers are: their columns, pairs of these, and their rows.

Columns and pairs are scored as SDMetrics does, rows by distances and by trees.
"""

import itertools
import math
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from keras_rbm._checks import import_optional

#: Fewest rows of a table.
_FEWEST = 20
#: Different whole numbers up to which a column counts as discrete.
_FEW_LEVELS = 20
#: Bins of a number beside a discrete column.
_BINS = 10
#: Pairs of real columns count from here on: Pearson's correlation, and Cramér's V.
_CORRELATED, _ASSOCIATED = 0.5, 0.3
#: Parts of rows that are left out in turn, folds, and drawn tables, for errors.
_PARTS, _FOLDS, _DRAWS = 10, 5, 200
#: Different words up to which scikit-learn takes them as categories.
_MOST_WORDS = 255


class Columns(NamedTuple):
    """What the columns of a table are.

    Attributes:
        names: list of their names.
        words: bool array (C,), whether numbers stand for words.
        discrete: bool array (C,), whether each value counts for itself: words, bools,
            categories, and whole numbers of at most 20 different values.
    """

    names: list
    words: np.ndarray
    discrete: np.ndarray

    @property
    def pairs(self):
        """Int array (P, 2), the columns of each pair."""
        return np.stack(np.triu_indices(len(self.names), 1), 1)


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


def checked(**frames):
    """Returns frames with the columns of the first, in its order.

    Raises:
        TypeError: if one is no frame.
        ValueError: if columns differ, or have no known value in the first; or there are
            too few rows.
    """
    pandas = import_optional("pandas", "holds tables")
    for name, frame in frames.items():
        if not isinstance(frame, pandas.DataFrame):
            raise TypeError(
                f"Expected {name} as a pandas.DataFrame. Received: {name} of type "
                f"{type(frame).__name__}. Make one: pandas.DataFrame(rows, "
                "columns=names)."
            )
    first = next(iter(frames))
    columns = list(frames[first].columns)
    for name, frame in frames.items():
        if sorted(map(repr, frame.columns)) != sorted(map(repr, set(columns))):
            raise ValueError(
                f"Expected {name} with the columns of {first}, each once. Received: "
                f"{list(frame.columns)!r:.200} in {name}, {columns!r:.200} in {first}. "
                "Rename columns, or drop those that are not in both."
            )
        if len(frame) < _FEWEST:
            raise ValueError(
                f"Expected at least {_FEWEST} rows of {name}. Received: {len(frame)}. "
                "Pass more rows."
            )
    empty = [name for name in columns if frames[first][name].isna().all()]
    if empty or not columns:
        raise ValueError(
            f"Expected columns of {first} with known values. Received: "
            + (f"only gaps in {empty!r:.200}. Drop them." if columns else "no columns.")
        )
    return {name: frame[columns] for name, frame in frames.items()}


def as_numbers(frames):
    """Returns frames of the same columns as arrays (N, C), and what columns are.

    Args:
        frames: dict of names to frames, of which the first says what columns are.

    Returns:
        List of float64 arrays, and `Columns`. Dates are seconds, words are numbers
        common to all frames, in the order in which they appear, gaps are NaN.

    Raises:
        TypeError: if a column has values without a hash.
        ValueError: if numbers are infinite, or a column of numbers has other values in
            another frame.
    """
    import pandas

    first, *others = frames
    names, kinds, columns = list(frames[first].columns), [], []
    for name in names:
        read = {key: _read(frame[name]) for key, frame in frames.items()}
        kinds.append(read[first][0])
        if kinds[-1] == "words":
            objects = [frame[name].astype(object) for frame in frames.values()]
            try:
                codes, _ = pandas.factorize(pandas.concat(objects, ignore_index=True))
            except TypeError as error:
                raise TypeError(
                    f"Expected words, numbers, dates or bools. Received: {error} in "
                    f"column {name!r}. Make them str, or drop the column."
                ) from error
            ends = np.cumsum([len(each) for each in objects])[:-1]
            columns.append(np.split(np.where(codes < 0, np.nan, codes), ends))
            continue
        for key in others:
            if read[key][0] not in (kinds[-1], "gaps"):
                raise ValueError(
                    f"Expected {kinds[-1]} in column {name!r} of {key}, as in {first}. "
                    f"Received: {read[key][0]}. Convert them, as by pandas.to_numeric "
                    "or pandas.to_datetime."
                )
        columns.append([numbers for _, numbers in read.values()])
        if any(np.isinf(numbers).any() for numbers in columns[-1]):
            raise ValueError(
                f"Expected finite numbers. Received: infinite ones in column {name!r}. "
                "Replace them by NaN."
            )
    tables = [np.stack(table, 1) for table in zip(*columns, strict=True)]
    discrete = [
        kind == "words" or (kind == "numbers" and _are_few(values))
        for kind, values in zip(kinds, tables[0].T, strict=True)
    ]
    words = np.array([kind == "words" for kind in kinds])
    return tables, Columns(names, words, np.array(discrete))


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


def told_apart(real, synthetic, words, seed):
    """Returns the AUC of trees that tell rows of as many synthetic ones, and its error.

    Args:
        real, synthetic: arrays (N, C).
        words: bool array (C,).
        seed: int.
    """
    from sklearn.model_selection import StratifiedKFold

    x = np.concatenate([real, synthetic])
    y = np.repeat([0, 1], [len(real), len(synthetic)])
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=seed).split(x, y)
    found = []
    for train, held in folds:
        chances = _guessed("AUC", x[train], y[train], x[held], words, seed, 1)
        found.append(_auc(chances, y[held] == 1))
    values, variances = np.transpose(found)
    # Not 0 where all are told: one row could have been the other way.
    variance = variances.mean() / _FOLDS + 0.25 / len(real) ** 2
    return float(values.mean()), math.sqrt(variance)


def predicted(tables, test, place, columns, rng):
    """Returns how well trees that learn from tables predict a column of a test.

    Args:
        tables: list of two arrays (N, C) whose column is known.
        test: array (M, C), also.
        place: int, the column.
        columns: `Columns`.
        rng: `numpy.random.Generator`.

    Returns:
        `(kind, scores, error)`: `"AUC"` for two classes, which the second table has,
        `"accuracy"` for more, `"R²"` for numbers; a score for each table, and the
        standard error of their difference, over test rows.
    """
    truth, states = test[:, place], np.unique(tables[1][:, place])
    kind = "AUC" if len(states) == 2 else "accuracy"
    kind = kind if columns.discrete[place] else "R²"
    words, seed = np.delete(columns.words, place), int(rng.integers(2**31))
    *others, held = (np.delete(table, place, 1) for table in (*tables, test))
    guesses = [
        _guessed(kind, x, table[:, place], held, words, seed, states[1])
        for x, table in zip(others, tables, strict=True)
    ]

    def scores(rows):
        if kind == "AUC":
            return [_auc(each[rows], truth[rows] == states[1])[0] for each in guesses]
        wrong = [truth[rows] - each[rows] for each in guesses]
        if kind == "accuracy":
            return [np.mean(each == 0.0) for each in wrong]
        return [
            1.0 - np.mean(each**2) / max(truth[rows].var(), 1e-300) for each in wrong
        ]

    draws = rng.integers(len(test), size=(_DRAWS, len(test)))
    differences = [np.subtract(*scores(rows)) for rows in draws]
    return kind, scores(np.arange(len(test))), float(np.nanstd(differences))


def _guessed(kind, x, y, held, words, seed, state):
    """Returns what trees that learn y from x guess for others, (M,).

    Of kind `"AUC"` they are chances of a state, else values.
    """
    from sklearn import ensemble
    from threadpoolctl import threadpool_limits

    if len(np.unique(y)) == 1:
        return np.full(len(held), y[0])
    name = "Regressor" if kind == "R²" else "Classifier"
    model = getattr(ensemble, f"HistGradientBoosting{name}")(
        categorical_features=words & (np.nan_to_num(x).max(0) < _MOST_WORDS),
        early_stopping=False,
        random_state=seed,
    )
    # Threads of small trees wait for each other, on busy cores for minutes.
    with threadpool_limits(1, "openmp"):
        model.fit(x, y)
        if kind != "AUC":
            return model.predict(held)
        return model.predict_proba(held)[:, model.classes_ == state].sum(1)


def _auc(scores, positive):
    """Returns the area under the ROC curve, and its variance by DeLong's formula."""
    above, below = scores[positive], scores[~positive]
    if not len(above) or not len(below):
        return math.nan, math.nan
    ranks = rankdata(scores)
    of_above = (ranks[positive] - rankdata(above)) / len(below)
    of_below = (ranks[~positive] - rankdata(below)) / len(above)
    variance = of_above.var() / len(above) + of_below.var() / len(below)
    return float(of_above.mean()), float(variance)


def _read(column):
    """Returns what a column holds, and its floats, or `None` for words."""
    import pandas

    if column.isna().all():
        return "gaps", np.full(len(column), np.nan)
    held = pandas.api.types.infer_dtype(column, skipna=True)
    if held in ("datetime64", "datetime", "date"):
        times = pandas.to_datetime(column, utc=True).astype("datetime64[us, UTC]")
        since = times - pandas.Timestamp(0, tz="UTC").as_unit("us")
        return "dates", since.dt.total_seconds().to_numpy(np.float64)
    if held in ("timedelta64", "timedelta"):
        seconds = pandas.to_timedelta(column).dt.total_seconds()
        return "durations", seconds.to_numpy(np.float64)
    if held in ("integer", "floating", "mixed-integer-float", "decimal"):
        return "numbers", column.to_numpy(np.float64, na_value=np.nan)
    return "words", None


def _are_few(values):
    values = np.unique(values[~np.isnan(values)])
    return len(values) <= _FEW_LEVELS and bool((values % 1.0 == 0.0).all())


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
