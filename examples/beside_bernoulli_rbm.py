"""Are an `RBMEstimator`'s features as good as those of scikit-learn's `BernoulliRBM`?

    python examples/beside_bernoulli_rbm.py

Both learn features of gray digits (8 × 8, from 0 to 1), upright, inverted, and with
each digit also moved by one pixel in four directions; by default and at scikit-learn's
usual rates, with its batches of 10. A logistic regression then learns which digits they
are. Prints the share of test digits that it gets right, and the share of hidden units
that are constant on them. Writes each run into a file of results, and goes on from it
after a cut.
"""

import argparse
import json
import pathlib

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import BernoulliRBM

from keras_rbm.sklearn import RBMEstimator

SETS = ("digits", "inverted digits", "moved digits")
SETTINGS = {
    "default": {},
    "rate 0.1": {"learning_rate": 0.1, "batch_size": 10},
    "rate 0.01": {"learning_rate": 0.01, "batch_size": 10},
    "rate 0.001": {"learning_rate": 0.001, "batch_size": 10},
}
LEARNERS = {"RBMEstimator": RBMEstimator, "BernoulliRBM": BernoulliRBM}
#: With a rate of its own the estimator learns by the rule of `BernoulliRBM`.
RULE = {"rule": "pcd"}
UNITS = 100


def main():
    """Runs what the file of results does not hold yet, and prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--epochs", nargs="+", type=int, default=[10, 30])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--out", type=pathlib.Path, default="estimator.json")
    args = parser.parse_args()
    results = json.loads(args.out.read_text()) if args.out.exists() else {}
    for name in SETS:
        for epochs in args.epochs:
            for setting in SETTINGS:
                for learner in LEARNERS:
                    for seed in args.seeds:
                        key = f"{name} | {epochs} | {setting} | {learner} | {seed}"
                        if key not in results:
                            results[key] = run(name, epochs, setting, learner, seed)
                            print(key, results[key], flush=True)
                            args.out.write_text(json.dumps(results, indent=0) + "\n")
    for row in table(results):
        print(f"| {' | '.join(row)} |")


def run(name, epochs, setting, learner, seed):
    """Learns features and names; returns both shares."""
    train, train_names, test, test_names = load(name)
    options = SETTINGS[setting] | {"n_iter": epochs, "random_state": seed}
    if learner == "RBMEstimator" and setting != "default":
        options |= RULE
    rbm = LEARNERS[learner](UNITS, **options)
    features = rbm.fit_transform(train)
    classifier = LogisticRegression(C=100.0, max_iter=2000).fit(features, train_names)
    features = rbm.transform(test)
    constant = (features.max(0) < 0.01) | (features.min(0) > 0.99)
    return {
        "right": float(classifier.score(features, test_names)),
        "constant": float(constant.mean()),
    }


def load(name):
    """Returns rows and names to learn from, and to score."""
    images, names = load_digits(return_X_y=True)
    images = images.astype("float32") / 16.0
    if name == "inverted digits":
        images = 1.0 - images
    train, test, train_names, test_names = train_test_split(
        images, names, test_size=0.3, random_state=0
    )
    if name == "moved digits":
        train, train_names = moved(train), np.tile(train_names, 5)
    return train, train_names, test, test_names


def moved(rows):
    """Returns images, then all of them one pixel further, in four directions."""
    padded = np.pad(rows.reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)))
    places = (1, 1), (0, 1), (2, 1), (1, 0), (1, 2)
    parts = [padded[:, y : y + 8, x : x + 8] for y, x in places]
    return np.concatenate(parts).reshape(-1, 64)


def table(results):
    """Returns rows: a set, epochs, setting, and of each learner the two shares."""
    found = {}
    for key, record in results.items():
        *row, learner, _ = key.split(" | ")
        found.setdefault(tuple(row), {}).setdefault(learner, []).append(record)
    return [
        [*row, *(cell for name in LEARNERS for cell in cells(learners[name]))]
        for row, learners in found.items()
    ]


def cells(records):
    right = [100.0 * record["right"] for record in records]
    constant = 100.0 * np.mean([record["constant"] for record in records])
    spread = f" ± {np.std(right, ddof=1):.1f}" if len(right) > 1 else ""
    return f"{np.mean(right):.1f}{spread} %", f"{constant:.0f} %"


if __name__ == "__main__":
    main()
