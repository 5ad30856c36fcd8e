"""Several labels of an example: a CRBM beside what else there is.

    python -m examples.papers.multilabel.experiment --data FOLDER
    python -m examples.papers.multilabel.experiment yeast --data FOLDER --methods crbm

One recipe for all sets, in which test rows choose nothing:

* `regressions`: a logistic regression for each label. One C for all labels is chosen by
  the log loss of three folds; `chains` and they have the same.
* `chains`: the mean of ten `ClassifierChain`s of them, in random orders.
* `network`: `MLPClassifier()`, 100 units.
* `forest`: a random forest of 500 trees.
* `crbm`: `CRBMClassifier()`, with all defaults.

All but the CRBM predict the labels that are likelier than not; for the regressions the
set of the greatest expected F1 is scored, too, as the CRBM finds it.

Without `--data` only the labels in blocks are learned. Each run writes a record of its
own, and is skipped if there is one.
"""

import argparse
import pathlib
import time
import warnings

import numpy as np
import tensorflow as tf
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import KFold
from sklearn.multioutput import ClassifierChain
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from examples.papers.multilabel.data import BLOCKS, load, names
from examples.papers.records import megabytes, write_record
from keras_rbm.inference import Potentials, label_sets
from keras_rbm.sklearn import CRBMClassifier

#: Values of C to choose from, and its folds; chains of an ensemble.
CS, FOLDS, CHAINS = (0.01, 0.1, 1.0, 10.0), 3, 10
#: Most labels of which couplings are recorded.
DRAWN = 20
#: Least probability of an outcome.
LEAST = 1e-4


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="of sets, by default all")
    parser.add_argument("--data", type=pathlib.Path, help="folder of NAME.npz")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=[*METHODS])
    parser.add_argument("--epochs", type=int, default=100, help="of the CRBM")
    records = pathlib.Path("docs/results/multilabel")
    parser.add_argument("--records", type=pathlib.Path, default=records)
    args = parser.parse_args()
    args.records.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    for name in args.names or (names(args.data) if args.data else BLOCKS):
        data = load(args.data, name)
        for method in args.methods:
            path = args.records / f"{name}.{method}.json"
            if not path.exists():
                start = time.perf_counter()
                found = METHODS[method](*data[:3], data[3], args)
                record = {"set": name, "method": method, "megabytes": megabytes()}
                record["seconds"] = time.perf_counter() - start
                write_record(path, record | found)
                print(record | found, flush=True)


def scores(states, y):
    """Returns percent: wrong labels, F1 of examples and of labels, right rows."""
    return {
        "hamming": 100 * np.mean(states != y),
        "f1": 100 * f1_score(y, states, average="samples", zero_division=1.0),
        "macro_f1": 100 * f1_score(y, states, average="macro", zero_division=0.0),
        "exact": 100 * np.mean(np.all(states == y, 1)),
    }


def of_shares(p, y):
    """Returns scores of p(y_i = 1 | x) of independent labels, and nats of a row."""
    p = np.clip(p, LEAST, 1 - LEAST)
    nats = np.mean(np.sum(np.where(y > 0, np.log(p), np.log1p(-p)), 1))
    return {"marginal": scores(p > 0.5, y), "log_likelihood": nats}


def scaled(x, test):
    """Returns features as `CRBMClassifier` scales them."""
    scaler = StandardScaler() if isinstance(x, np.ndarray) else MaxAbsScaler()
    return scaler.fit_transform(x), scaler.transform(test)


def shares_of(x, y, test, strength):
    """Returns p(y_i = 1 | x) of test rows, (N, L), by a regression for each label."""
    constant = np.repeat(y.mean(0, keepdims=True), test.shape[0], 0)
    for label in np.flatnonzero(np.ptp(y, axis=0)):
        model = LogisticRegression(C=strength, max_iter=500).fit(x, y[:, label])
        constant[:, label] = model.predict_proba(test)[:, 1]
    return constant


def chosen_strength(x, y):
    """Returns the C of all labels with the smallest log loss of held-out rows."""
    losses = []
    for strength in CS:
        folds = KFold(FOLDS, shuffle=True, random_state=0).split(x)
        nats = [
            of_shares(shares_of(x[own], y[own], x[away], strength), y[away])
            for own, away in folds
        ]
        losses.append(-np.mean([fold["log_likelihood"] for fold in nats]))
        if losses[-1] > min(losses):
            break
    return CS[int(np.argmin(losses))]


def regressions(x, y, test, labels, args):
    x, test = scaled(x, test)
    strength = chosen_strength(x, y)
    p = shares_of(x, y, test, strength)
    found = of_shares(p, labels) | {"C": strength}
    return found | {"f1": scores(best_for_f1(p, y.any(1).all()), labels)}


def best_for_f1(p, some):
    """Returns the sets of the greatest expected F1 of independent labels."""
    log_odds = np.float32(np.log(p + 1e-9) - np.log1p(1e-9 - p))
    width, parts = p.shape[1], []
    for rows in np.array_split(log_odds, max(1, p.size // 10_000)):
        uncoupled = tf.zeros((width, 1)), rows, tf.zeros((len(rows), 1))
        model = Potentials(*map(tf.convert_to_tensor, uncoupled))
        parts.append(label_sets.best_sets(model, "f1", empty=not some))
    return np.concatenate(parts)


def chains(x, y, test, labels, args):
    x, test = scaled(x, test)
    base = LogisticRegression(C=chosen_strength(x, y), max_iter=500)
    varied = np.flatnonzero(np.ptp(y, axis=0))
    p = np.repeat(y.mean(0, keepdims=True), test.shape[0], 0)
    p[:, varied] = np.mean(
        [
            ClassifierChain(base, order="random", random_state=seed)
            .fit(x, y[:, varied])
            .predict_proba(test)
            for seed in range(CHAINS)
        ],
        0,
    )
    return of_shares(p, labels)


def network(x, y, test, labels, args):
    model = MLPClassifier(random_state=0)
    x, test = scaled(x, test)
    return of_shares(model.fit(x, y).predict_proba(test), labels)


def forest(x, y, test, labels, args):
    model = RandomForestClassifier(500, random_state=0, n_jobs=-1).fit(x, y)
    p = np.zeros(labels.shape)
    for label, shares in enumerate(model.predict_proba(test)):
        known = list(model.classes_[label])
        p[:, label] = shares[:, known.index(1)] if 1 in known else 0.0
    return of_shares(p, labels)


def crbm(x, y, test, labels, args):
    model = CRBMClassifier(n_iter=args.epochs, random_state=0).fit(x, y)
    found = {}
    for decision in ("marginal", "mode", "f1"):
        states = model.set_params(decision=decision).predict(test)
        found[decision] = scores(states, labels)
    nats = model.log_likelihood(test, labels)
    found |= {
        "log_likelihood": np.mean(nats),
        "stderr": np.std(nats) / np.sqrt(len(nats)),
    }
    if y.shape[1] <= DRAWN:
        found["couplings"] = couplings(model.model_).tolist()
    return found


def couplings(crbm):
    """Returns the log odds ratio of each two labels, at mean features, others absent.

    It is F(i) + F(j) - F(neither) - F(both), of free energies given x = 0.
    """
    labels = crbm.num_visible
    one = np.eye(labels)
    two = np.maximum(one[:, np.newaxis], one).reshape(-1, labels)
    states = np.concatenate([two, one, np.zeros((1, labels))])
    features = np.zeros((len(states), crbm.num_features))
    energies = crbm.free_energy(features, states).numpy()
    both, single = energies[: labels**2], energies[labels**2 : -1]
    ratio = single[:, np.newaxis] + single - energies[-1]
    return (ratio - both.reshape(labels, labels)) * (1.0 - one)


METHODS = {
    "regressions": regressions,
    "chains": chains,
    "network": network,
    "forest": forest,
    "crbm": crbm,
}


if __name__ == "__main__":
    main()
