"""What boosted trees learn from tables: to tell them apart, and to predict."""

import math

import numpy as np
from scipy.stats import rankdata

#: Folds, and drawn tables, for errors.
_FOLDS, _DRAWS = 5, 200
#: Different words up to which scikit-learn takes them as categories.
_MOST_WORDS = 255


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
