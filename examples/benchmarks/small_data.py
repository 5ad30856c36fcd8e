"""How long small data take: `fit` beside scikit-learn's, and every first call.

    python examples/benchmarks/small_data.py

Ten epochs of digits, 1,797 × 64, with 64 hidden units, by PCD-1 with as many chains as
a batch has rows, the uncentered gradient and SGD, as `BernoulliRBM` trains. Both are
fitted in turn; figures are medians. The first calls are those of a new process, of
RBM(64) on digits, and of RBM(256) on 784 columns.
"""

import argparse
import statistics
import time

import keras  # noqa: E402
import numpy as np  # noqa: E402
from sklearn.datasets import load_digits  # noqa: E402
from sklearn.neural_network import BernoulliRBM  # noqa: E402

IMPORTED = time.perf_counter()

import keras_rbm as kr  # noqa: E402

LIBRARY = time.perf_counter() - IMPORTED
EPOCHS, RATE, UNITS = 10, 0.05, 64


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--batches", type=int, nargs="+", default=[10, 32, 100])
    args = parser.parse_args()
    data = (load_digits().data > 8).astype("float32")
    print(f"import keras_rbm, after keras: {LIBRARY:.2f} s\n")
    print(
        "| digits, 10 epochs, batch | first fit, s | a second model's | then | ", end=""
    )
    print("scikit-learn | ratio |\n| --- | --- | --- | --- | --- | --- |")
    for batch in args.batches:
        (first, model), (second, _) = (timed(new_fit, data, batch) for _ in range(2))
        ours, theirs = [], []
        for _ in range(args.repeats):
            ours.append(timed(fit, model, data, batch)[0])
            theirs.append(timed(scikit_learn, data, batch)[0])
        cells = [first, second, *map(statistics.median, (ours, theirs))]
        ratio = statistics.median(map(lambda a, b: a / b, ours, theirs))
        print(f"| {batch} | {' | '.join(f'{t:.2f}' for t in cells)} | {ratio:.2f} |")

    rows = (np.random.default_rng(0).random((1000, 784)) < 0.2).astype("float32")
    rbm = kr.RBM(256, seed=0)
    rbm.compile()
    print("\n| RBM(256), 784 columns, first call | s |\n| --- | --- |")
    for name, call in {
        "fit, one step": lambda: rbm.fit(rows[:100], batch_size=100, verbose=0),
        "predict": lambda: rbm.predict(rows, verbose=0),
        "sample": lambda: rbm.sample(10, steps=100, seed=0),
        'log_partition("bidirectional")': lambda: rbm.log_partition("bidirectional"),
        'log_partition("bidirectional") again': lambda: rbm.log_partition(
            "bidirectional"
        ),
        "score_report": lambda: kr.score_report(rbm, rows),
    }.items():
        print(f"| {name} | {timed(call)[0]:.2f} |", flush=True)


def timed(function, *arguments):
    """Returns seconds and the result."""
    start = time.perf_counter()
    result = function(*arguments)
    return time.perf_counter() - start, result


def new_fit(data, batch):
    """Fits a new model, and returns it."""
    model = kr.RBM(UNITS, kernel_regularizer=None, seed=0)
    rule = kr.rules.PersistentContrastiveDivergence(1, batch, centered=False)
    model.compile(keras.optimizers.SGD(RATE), rule=rule)
    fit(model, data, batch)
    return model


def fit(model, data, batch):
    model.fit(data, batch_size=batch, epochs=EPOCHS, verbose=0)


def scikit_learn(data, batch):
    options = dict(learning_rate=RATE, batch_size=batch, n_iter=EPOCHS, random_state=0)
    BernoulliRBM(UNITS, **options).fit(data)


if __name__ == "__main__":
    main()
