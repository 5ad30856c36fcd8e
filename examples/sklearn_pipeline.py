"""RBM features for scikit-learn's logistic regression, beside its own `BernoulliRBM`.

    python examples/sklearn_pipeline.py
    python examples/sklearn_pipeline.py --search

The data are those of scikit-learn's example plot_rbm_logistic_classification: digits
of 8x8 pixels, each also shifted by a pixel in four directions. Here the digits are
split before they are shifted, so that no test digit is a shifted training digit.
Prints the test accuracy of logistic regression on raw pixels and on the features of
both RBMs, with the seconds that fitting took. `--search` chooses learning rate and
rule of `RBMEstimator` by cross-validation first.
"""

import argparse
import time

import numpy as np
from scipy.ndimage import shift
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, train_test_split
from sklearn.neural_network import BernoulliRBM
from sklearn.pipeline import Pipeline

from keras_rbm.sklearn import RBMEstimator

GRID = {"rbm__learning_rate": [0.03, 0.1, 0.2], "rbm__rule": ["cd", "pcd"]}


def main():
    args = parse_arguments()
    train, test = digits()

    logistic = LogisticRegression(solver="newton-cholesky", C=1000.0, tol=1e-3)
    ours = RBMEstimator(  # for features of few epochs
        args.components,
        learning_rate=0.1,
        rule="pcd",
        n_iter=args.epochs,
        random_state=0,
    )
    theirs = BernoulliRBM(  # as in scikit-learn's example
        args.components, learning_rate=0.06, n_iter=args.epochs, random_state=0
    )
    pipeline = Pipeline([("rbm", ours), ("logistic", clone(logistic))])
    if args.search:
        search(pipeline, *train)
    classifiers = {
        "raw pixels": clone(logistic),
        "BernoulliRBM": Pipeline([("rbm", theirs), ("logistic", clone(logistic))]),
        "RBMEstimator": pipeline,
    }
    print("| logistic regression on | test accuracy | seconds |\n| --- | --- | --- |")
    for name, classifier in classifiers.items():
        start = time.perf_counter()
        classifier.fit(train[0], train[1])
        seconds = time.perf_counter() - start
        print(f"| {name} | {classifier.score(*test):.3f} | {seconds:.1f} |", flush=True)


def digits():
    """Returns pixels in [0, 1], labels and the digits' numbers, to train and to test.

    Of the test set there are no numbers.
    """
    pixels, labels = load_digits(return_X_y=True)
    parts = train_test_split(pixels / 16.0, labels, test_size=0.2, random_state=0)
    train, test, train_labels, test_labels = parts
    numbers = np.tile(np.arange(len(train)), 5)
    train = shifted(train), np.tile(train_labels, 5), numbers
    return train, (shifted(test), np.tile(test_labels, 5))


def shifted(pixels):
    """Returns pictures (N, 64), and these shifted by a pixel each way, (5 N, 64).

    Shifts come one after the other, all pictures of one shift together.
    """
    pictures = pixels.reshape(-1, 8, 8)
    moves = [(0, 0, 0), (0, -1, 0), (0, 1, 0), (0, 0, -1), (0, 0, 1)]
    return np.concatenate([shift(pictures, move, order=0) for move in moves]).reshape(
        -1, 64
    )


def search(pipeline, X, y, numbers):
    """Sets the parameters that are best in three-fold cross-validation, and prints all.

    All shifts of a digit are in one fold.
    """
    found = GridSearchCV(pipeline, GRID, cv=GroupKFold(3), refit=False)
    found.fit(X, y, groups=numbers)
    print("| parameters | accuracy in validation |\n| --- | --- |")
    scores = found.cv_results_["mean_test_score"]
    for parameters, score in zip(found.cv_results_["params"], scores, strict=True):
        print(f"| {parameters} | {score:.3f} |")
    print()
    pipeline.set_params(**found.best_params_)


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--components", type=int, default=100, help="hidden units")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--search", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
