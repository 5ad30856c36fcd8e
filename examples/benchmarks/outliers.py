"""Outlier detectors with default arguments on the sets of ODDS: ROC AUC and seconds.

    python examples/benchmarks/outliers.py --data FOLDER

The folder has files *.mat with X and y, 1 for an outlier, as ODDS has them
(https://odds.cs.stonybrook.edu). 60 % of the rows are for `fit`, which sees no labels
and takes outliers as they are, the others are scored. Columns are standardized by the
former. Seconds are those of `fit` and of the scores. `IsolationForest` has the mean of
five seeds. The detectors of PyOD are there if it is installed (`pip install pyod`); a
dash is for scores that are not finite.

The sets, and the protocol of standardized splits, are those of

1. Rayana. ODDS library. Stony Brook University, 2016.
2. Zhao, Nasrullah, Li. PyOD: a Python toolbox for scalable outlier detection. JMLR 20,
   2019.
"""

import argparse
import importlib
import importlib.util
import pathlib
import time
import warnings

import numpy as np
import scipy.io
from sklearn.covariance import EllipticEnvelope
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.neighbors import LocalOutlierFactor
from sklearn.preprocessing import StandardScaler

from keras_rbm.sklearn import RBMOutlierDetector


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--sets", nargs="+", help="names of files, by default all")
    args = parser.parse_args()
    found = {path.stem: path for path in sorted(args.data.glob("*.mat"))}
    names = args.sets or [*found]
    if not names or not found.keys() >= set(names):
        parser.error(f"expected files NAME.mat in {args.data}, received {[*found]}")
    kinds = detectors()
    print(f"| set | rows | columns | outliers | {' | '.join(kinds)} |")
    print("| --- " * (4 + len(kinds)) + "|")
    figures = []
    for name in names:
        train, test, labels, share = loaded(found[name])
        figures.append(
            [measured(*kind, train, test, labels) for kind in kinds.values()]
        )
        shape = f"{len(train) + len(test)} | {train.shape[1]} | {100 * share:.1f} %"
        print_row(f"{name} | {shape}", figures[-1])
    print_row("mean | | |", np.mean(figures, 0))


def print_row(head, pairs):
    cells = (f"{auc:.3f}, {took:.1f} s" if auc == auc else "–" for auc, took in pairs)
    print(f"| {head} | {' | '.join(cells)} |", flush=True)


def detectors():
    """Returns a dict of names to functions of a seed, and the seeds for each."""
    found = {
        "RBMOutlierDetector": (lambda seed: RBMOutlierDetector(random_state=seed), [0]),
        "IsolationForest": (lambda seed: IsolationForest(random_state=seed), range(5)),
        "EllipticEnvelope": (lambda seed: EllipticEnvelope(random_state=seed), [0]),
        "LocalOutlierFactor": (lambda seed: LocalOutlierFactor(novelty=True), [0]),
    }
    if importlib.util.find_spec("pyod"):
        for name in ("ECOD", "KNN", "PCA"):
            kind = getattr(importlib.import_module(f"pyod.models.{name.lower()}"), name)
            found[f"PyOD {name}"] = (lambda seed, kind=kind: kind()), [0]
    return found


def loaded(path):
    """Returns rows of `fit`, other rows, the latter's labels, the share of outliers."""
    table = scipy.io.loadmat(path)
    rows, labels = np.float64(table["X"]), table["y"].ravel()
    parts = train_test_split(rows, labels, test_size=0.4, random_state=0)
    scaler = StandardScaler().fit(parts[0])
    return *map(scaler.transform, parts[:2]), parts[3], np.mean(labels)


def measured(new, seeds, train, test, labels):
    """Returns the means over seeds of ROC AUC and seconds; NaN if not finite."""
    pairs = []
    for seed in seeds:
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyOD divides by zero deviations
            scores = outlier_scores(new(seed).fit(train), test)
        took = time.perf_counter() - start
        finite = np.isfinite(scores).all()
        pairs.append((roc_auc_score(labels, scores) if finite else np.nan, took))
    return np.mean(pairs, 0)


def outlier_scores(detector, rows):
    """Returns numbers that are high for outliers: PyOD's sign is the opposite."""
    if hasattr(detector, "score_samples"):
        return -detector.score_samples(rows)
    return detector.decision_function(rows)


if __name__ == "__main__":
    main()
