"""Judges a synthetic table, whoever made it: is it like the real one, and new?"""

import math
from collections.abc import Hashable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from keras_rbm._checks import check_counts, import_optional
from keras_rbm.tables.frames import as_numbers, checked
from keras_rbm.tables.neighbors import adversarial_accuracy, distances, quantiles
from keras_rbm.tables.similarity import compared
from keras_rbm.tables.trees import predicted, told_apart

if TYPE_CHECKING:
    import pandas

#: Most rows of a table of which distances are computed, and from which trees learn.
_NEAREST, _LEARNED = 2000, 10_000
#: Test rows that are enough for trees, and rows of any table that know a target.
_ENOUGH, _KNOWN = 200, 20
#: Standard errors from which on a value is said to differ, and columns that are named.
_ERRORS, _NAMED = 3.0, 3
_DRAWS = 200  # for the error of a median
#: What a measure of which 0.5 is best says below, near and above it.
_TOLD = "closer than other real rows", "not told apart", "told apart"


class Measure(NamedTuple):
    """One line of a `TableReport`.

    Attributes:
        value: float.
        error: float, its standard error; of `target` that of `value - real`.
        real: float, what other real rows have, or would have.
        sentence: str, what it means.
    """

    value: float
    error: float
    real: float
    sentence: str

    def __str__(self):
        return f"{_shown(self.value)} ± {_shown(self.error)}  {self.sentence}"


class TableReport(NamedTuple):
    """The result of `table_report`, which prints a line for each measure.

    Attributes:
        column_shapes: `Measure`, SDMetrics' score of single columns, 1 if alike.
        pair_trends: `Measure`, its score of the pairs of columns that are related in
            the real table. NaN if none are.
        all_pair_trends: `Measure`, the same of all pairs.
        classifier: `Measure`, area under the ROC curve (AUC) of trees that tell
            synthetic from real rows, 0.5 if they cannot.
        target: `Measure` of predictions learned from synthetic rows, `real` of those
            learned from real ones; or `None`.
        closest_record: `Measure`, how far the nearest real row is, 1 if as far as from
            other real rows, 0 for copies.
        copies: `Measure`, share of rows that equal a real one.
        neighbors: `Measure`, adversarial accuracy of nearest neighbors, 0.5 if alike, 0
            for copies.
        privacy_loss: `Measure`, that of test rows less that of real ones, above 0 if
            rows themselves were learned; or `None` without test rows.
        columns: `pandas.DataFrame` with a row for each column: its `kind`, and the
            shape's `score`, beside that of other `real` rows.
        pairs: `pandas.DataFrame` with a row for each pair: `first`, `second`, the
            trend's `score`, that of other `real` rows, and whether they are `related`.
    """

    column_shapes: Measure
    pair_trends: Measure
    all_pair_trends: Measure
    classifier: Measure
    target: Measure | None
    closest_record: Measure
    copies: Measure
    neighbors: Measure
    privacy_loss: Measure | None
    columns: "pandas.DataFrame"
    pairs: "pandas.DataFrame"

    @property
    def measures(self) -> dict[str, Measure]:
        """Dict of names to measures, those that were computed."""
        named = self._asdict().items()
        return {name: each for name, each in named if isinstance(each, Measure)}

    def frame(self) -> "pandas.DataFrame":
        """Returns the measures as a `pandas.DataFrame`, one in a row."""
        import pandas

        frame = pandas.DataFrame(self.measures.values())
        return frame.set_index(pandas.Index(self.measures, name="measure"))

    def __str__(self):
        return "\n".join(
            f"{name.replace('_', ' '):<15}  {measure}"
            for name, measure in self.measures.items()
        )


def table_report(
    real: "pandas.DataFrame",
    synthetic: "pandas.DataFrame",
    *,
    test: "pandas.DataFrame | None" = None,
    target: Hashable | None = None,
    seed: int = 0,
) -> TableReport:
    """Compares a synthetic table with the real one: is it alike, useful, and new?

    *Columns and pairs*: the two scores of SDMetrics' `QualityReport` [1]. Whole numbers
    of at most 20 different values are discrete. Errors are by leaving out tenths of
    both tables. Beside them are the scores of other real rows: `test`, or else a random
    half of `real` beside the other half.

    *Classifier*: `AUC = P(f(s) > f(r))`, how often boosted trees find a synthetic row s
    more synthetic than a real row r, in five folds of as many rows of each. Real rows
    are `test` if there are 200, else `real`: then copies give less than 0.5. *Target*:
    the same trees learn a column from as many synthetic as real rows, and predict that
    of `test`: AUC for two classes, accuracy for more, R² for numbers. Its error is by
    drawing test rows again, and leaves out that of learning.

    *Distances*: `d(a, b) = Σ_columns min(|q_a - q_b|, 1)`, where q is a number's
    quantile among the real ones. Different words, or a gap and a value, are 1 apart. Up
    to 2,000 rows of a table are used. *Closest record*: the median distance from
    synthetic rows to the nearest real one, over that from test rows, or else from real
    rows to the nearest other. *Neighbors*: the share of rows whose nearest neighbor is
    of their own kind, averaged over real rows R and synthetic rows S [2]:

    `(P(d_RS > d_RR) + P(d_SR > d_SS)) / 2`

    d_RS is the distance from a real row to the nearest synthetic one. Ties count half.

    Args:
        real: `pandas.DataFrame` of at least 20 rows, those that the synthetic table was
            made from: numbers, words, categories, bools, dates, gaps.
        synthetic: `pandas.DataFrame` of the same columns.
        test: `pandas.DataFrame`, other real rows, which were not used.
        target: name of a column; needs `test`.
        seed: int ≥ 0, of folds and of the rows that are drawn.

    Returns:
        `TableReport`; print it, or draw it by `keras_rbm.plots.table_report`.

    Raises:
        ImportError: if pandas or scikit-learn is not installed.
        TypeError: if tables are no frames.
        ValueError: if columns differ, or hold other kinds of values, or only gaps in
            `real`; there are too few rows; or the target is no column, or does not
            vary.

    Example:

    >>> import pandas
    >>> from keras_rbm.tables.report import table_report
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=80)
    >>> real = pandas.DataFrame({"x": x, "above": np.where(x > 0, "yes", "no")})
    >>> report = table_report(real[:40], real[40:].apply(rng.permutation))
    >>> report.pair_trends.value < 0.8
    True
    >>> print(report.copies)
    0.000 ± 0.023  of the rows equal a real one; of real rows 0.000 equal another.

    References:
        1. SDMetrics. DataCebo, 2025. Version 0.32.
        2. Yale, Dash, Dutta, Guyon, Pavao, Bennett. Generation and evaluation of
           privacy preserving synthetic health data. Neurocomputing, 2020.
    """
    check_counts(0, seed=seed)
    given = {} if test is None else {"test": test}
    frames = checked(real=real, synthetic=synthetic, **given)
    import_optional("sklearn.ensemble", "learns to tell rows apart", "sklearn")
    numbers, columns = as_numbers(frames)
    rng = np.random.default_rng(seed)
    # In random order, so that the first rows are a sample.
    numbers = [table[rng.permutation(len(table))] for table in numbers]
    real, synthetic, test = [*numbers, None][:3]
    known = None if target is None else _known(real, synthetic, test, columns, target)
    *similar, of_columns, of_pairs = _similar(real, synthetic, test, columns)
    closest, *neighbors = _nearest(real, synthetic, test, columns, rng)
    told = _told(real, synthetic, test, columns, seed)
    learned = known and _learned(known, columns, target, rng)
    new = closest, _copies(real, synthetic, test), *neighbors
    return TableReport._make([*similar, told, learned, *new, of_columns, of_pairs])


def _known(real, synthetic, test, columns, target):
    """Returns the rows of each table that know the target."""
    names = columns.names
    is_name = isinstance(target, Hashable) and target in names
    if not is_name or len(names) < 2 or test is None:
        raise ValueError(
            "Expected target as one of at least two columns, and with it test=, real "
            "rows that no synthetic ones are made from. Received: "
            f"target={target!r:.200}, {'no ' * (test is None)}test, {names!r:.200}."
        )
    place = names.index(target)
    known = [rows[~np.isnan(rows[:, place])] for rows in (real, synthetic, test)]
    counts, vary = [len(rows) for rows in known], np.ptp(known[0][:, place]) > 0.0
    if min(counts) < _KNOWN or not vary or np.ptp(known[2][:, place]) == 0.0:
        raise ValueError(
            f"Expected a target that varies, and {_KNOWN} rows of each table that know "
            f"it. Received: target={target!r}, known in {counts} rows of real, "
            "synthetic and test. Choose another."
        )
    return known


def _similar(real, synthetic, test, columns):
    """Returns three measures, of columns and pairs, and the frames of each."""
    import pandas

    found, best, *means, size = compared(real, synthetic, test, columns.discrete)
    names = [str(name) for name in columns.names]
    pairs = [f"{names[i]}–{names[j]}" for i, j in columns.pairs]
    trends = np.where(found.related, found.trends, np.inf)
    related = f"pairs related in real, {found.related.sum()} of {len(pairs)}"
    kinds = (
        ("columns, 1 if alike", found.shapes, names),
        (related, trends, pairs),
        ("all pairs", found.trends, pairs),
    )
    measures = [
        Measure(
            *(value, error, other),
            f"mean of {kind}; {size:,} real rows reach {_shown(other)}, as many "
            f"synthetic ones {_shown(alike)}.{_worst(scores, each)}",
        )
        for value, other, alike, error, (kind, scores, each) in zip(
            *means, kinds, strict=True
        )
    ]
    index = pandas.Index(columns.names, tupleize_cols=False, name="column")
    first, second = columns.pairs.T
    of_columns = pandas.DataFrame({"score": found.shapes, "real": best.shapes}, index)
    kind = np.where(columns.discrete, "discrete", "continuous")
    of_columns.insert(0, "kind", kind)
    of_pairs = pandas.DataFrame({"first": index[first], "second": index[second]})
    of_pairs[["score", "real"]] = np.stack([found.trends, best.trends], 1)
    return *measures, of_columns, of_pairs.assign(related=found.related)


def _told(real, synthetic, test, columns, seed):
    rows = real if (few := test is None or len(test) < _ENOUGH) else test
    size = min(len(rows), len(synthetic), _LEARNED)
    value, error = told_apart(rows[:size], synthetic[:size], columns.words, seed)
    sentence = (
        f"AUC of trees that tell {size:,} rows from {'real' if few else 'test'} ones, "
        f"0.5 by guessing{', less for copies' * few}"
    )
    return _measure(value, error, 0.5, sentence, _TOLD)


def _learned(known, columns, target, rng):
    real, synthetic, test = known
    size = min(len(real), len(synthetic), _LEARNED)
    place, tables = columns.names.index(target), (synthetic[:size], real[:size])
    kind, (value, best), error = predicted(tables, test, place, columns, rng)
    sentence = (
        f"{kind} for {target} in test rows, learned from {size:,} synthetic rows; "
        f"{_shown(best)} from as many real ones"
    )
    return _measure(value, error, best, sentence, ("worse", "no clear loss", "better"))


def _copies(real, synthetic, test):
    others = real if test is None else test
    rows = np.nan_to_num(np.concatenate([real, synthetic, others]), nan=np.inf)
    index = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
    ends = len(real), len(real) + len(synthetic)
    of_real, of_synthetic, of_others = np.split(index, ends)
    counts = np.bincount(of_real, minlength=len(rows))
    copies, size = np.count_nonzero(counts[of_synthetic]), len(synthetic)
    best = float(np.mean(counts[of_others] > (test is None)))
    # Not 0 or 1: one more could have been a copy, or one less.
    share = (copies + 1.0) / (size + 2.0)
    error = math.sqrt(share * (1.0 - share) / (size + 3.0))
    also = "real rows {} equal another" if test is None else "test rows {} do"
    sentence = f"of the rows equal a real one; of {also.format(_shown(best))}."
    return Measure(copies / size, error, best, sentence)


def _nearest(real, synthetic, test, columns, rng):
    """Returns the measures of closest records, of neighbors, and of privacy loss."""
    moved = quantiles(real, columns.words)
    real, synthetic = moved(real[:_NEAREST]), moved(synthetic[:_NEAREST])
    of_real, of_synthetic = distances(real), distances(synthetic)
    between = distances(real, synthetic)
    size = min(len(real), len(synthetic))
    value, error = adversarial_accuracy(of_real, of_synthetic, between, size)
    sentence = "of nearest neighbors are of the own kind, 0.5 if alike, 0 for copies"
    neighbors = _measure(value, error, 0.5, sentence, _TOLD)
    far, usual, others, loss = between.min(0), of_real.min(1), "other real rows", None
    if test is not None:
        test = moved(test[:_NEAREST])
        usual, others = distances(test, real).min(1), "test rows"
        size = min(size, len(test))
        pairs = (of_real, between), (distances(test), distances(test, synthetic))
        (train, one), (held, two) = (
            adversarial_accuracy(own, of_synthetic, both, size) for own, both in pairs
        )
        sentence = (
            f"neighbors of test rows ({held:.3f}) less those of as many real rows "
            f"({train:.3f}), above 0 if rows themselves were learned"
        )
        words = "below 0", "not seen", "they were"
        loss = _measure(held - train, math.hypot(one, two), 0.0, sentence, words)
    drawn = [rng.choice(each, (_DRAWS, len(each))) for each in (far, usual)]
    tops, bases = (np.median(each, axis=1) for each in drawn)
    far, usual = float(np.median(far)), float(np.median(usual))
    ratios = tops[bases > 0.0] / bases[bases > 0.0]
    value, error = (far / usual, float(ratios.std())) if usual else (math.nan, math.nan)
    sentence = (
        f"times as far from the nearest real row as {others} are ({far:.3f} and "
        f"{usual:.3f}), 0 for copies"
    )
    far = _measure(value, error, 1.0, sentence, ("nearer", "as far", "farther"))
    return far, neighbors, loss


def _measure(value, error, real, sentence, words):
    """Returns a measure that says if it is clearly less, near, or clearly more."""
    differs = not abs(value - real) <= _ERRORS * error
    place = 1 + differs * (1 if value > real else -1)
    said = "not known" if math.isnan(value) else words[place]
    return Measure(value, error, real, f"{sentence}: {said}.")


def _worst(scores, names):
    """Returns a sentence with the lowest scores, those that are not known first."""
    order = np.argsort(np.nan_to_num(scores, nan=-1.0, posinf=2.0), kind="stable")
    order = [k for k in order[:_NAMED] if scores[k] != np.inf]
    named = [f"{names[k]} {_shown(scores[k])}" for k in order]
    return f" Worst: {', '.join(named)}." if named else ""


def _shown(number):
    return "–" if math.isnan(number) else f"{number:.3f}"
