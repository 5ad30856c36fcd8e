"""Does a CRBM by default predict bits as well as logistic regression?

    python examples/beside_logistic_regression.py

`CRBM(50)`, `compile()` and 30 epochs of `fit`, beside one logistic regression for each
bit, with the penalty that is best on the test rows, which favors it. The bits are the
pixels of images a tenth of whose pixels were flipped once, or which of the seven
segments of a display are lit for the digit in an image. Prints the share of wrong bits.
Writes each run into a file of results, and goes on from it after a cut.
"""

import argparse
import json
import pathlib
import time

import keras
import numpy as np
from sklearn.linear_model import LogisticRegression

import keras_rbm as kr
from keras_rbm.models.training.regressions import logistic_regressions

PENALTIES = (0.03, 0.1, 0.3, 1.0, 3.0)
#: Numbers of training rows; all of a set at most.
ROWS = {
    "digits": (150, 300, 600, 1200),
    "segments": (150, 300, 600, 1200),
    "mnist": (500, 2000, 10_000, 50_000),
}
#: Of 0 to 9: top, upper left and right, middle, lower left and right, bottom.
SEGMENTS = [
    [int(bit) for bit in bits]
    for bits in "1110111 0010010 1011101 1011011 0111010 "
    "1101011 1101111 1010010 1111111 1111011".split()
]


def main():
    """Runs what the file of results does not hold yet, and prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", choices=ROWS, default=ROWS)
    parser.add_argument("--rows", nargs="+", type=int, help="instead of all sizes")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--out", type=pathlib.Path, default="crbm.json")
    args = parser.parse_args()
    results = json.loads(args.out.read_text()) if args.out.exists() else {}
    for name in args.sets:
        for rows in args.rows or ROWS[name]:
            data = load(name, rows)
            settings = [f"regression, C = {c}" for c in PENALTIES]
            settings += [f"CRBM, seed {seed}" for seed in args.seeds]
            for setting in settings:
                key = f"{name} | {rows} | {setting}"
                if key not in results:
                    results[key] = run(data, setting, args.epochs)
                    print(key, results[key], flush=True)
                    args.out.write_text(json.dumps(results, indent=0) + "\n")
            results[f"{name} | {rows} | input"] = changed(data)
    args.out.write_text(json.dumps(results, indent=0) + "\n")
    for row in ["data | rows | input | logistic regression | CRBM", "-|-|-|-|-"]:
        print(f"| {row} |")
    for row in table(results):
        print(f"| {' | '.join(row)} |")


def load(name, rows):
    """Returns features and bits to learn from, and to predict."""
    parts = []
    for seed, split in enumerate(("train", "test")):
        source = "digits" if name == "segments" else name
        data = kr.datasets.load(source, split, binarize="threshold", with_labels=True)
        pairs = zip(*data.batch(1000).as_numpy_iterator(), strict=True)
        images, labels = (np.concatenate(part) for part in pairs)
        if split == "train":
            images, labels = images[:rows], labels[:rows]
        if name == "segments":
            parts += [images, np.array(SEGMENTS, "float32")[labels]]
        else:
            flips = np.random.default_rng(seed).random(images.shape) < 0.1
            parts += [np.abs(images - flips), images]
    return parts


def changed(data):
    """Returns the share of bits that are wrong in the input, or `None`."""
    *_, x, y = data
    return float(np.mean(x != y)) if x.shape == y.shape else None


def run(data, setting, epochs):
    """Learns and predicts; returns the share of wrong bits and the seconds."""
    x, y, test_x, test_y = data
    start = time.perf_counter()
    if setting.startswith("CRBM"):
        crbm = kr.CRBM(50, seed=int(setting.split()[-1]))
        crbm.compile()
        crbm.fit(x, y, epochs=epochs, verbose=0)
        predicted = crbm.predict(test_x, verbose=0) > 0.5
    else:
        predicted = regression(x, y, test_x, float(setting.split()[-1]))
    wrong = float(np.mean(predicted != test_y))
    return {"wrong": wrong, "seconds": round(time.perf_counter() - start, 1)}


def regression(x, y, test_x, c):
    """Returns what a regression for each column of y predicts."""
    if y.shape[1] < 100:
        return np.transpose([one(x, column, test_x, c) for column in y.T])
    # All columns at once: the same to 1e-3, in a hundredth of the time.
    found = logistic_regressions(x, y, np.ones(len(x)), 1.0 / (c * len(x)))
    return test_x @ found.kernel + found.bias > 0.0


def one(x, column, test_x, c):
    if column.min() == column.max():
        return np.full(len(test_x), column[0])
    return LogisticRegression(C=c, max_iter=1000).fit(x, column).predict(test_x)


def table(results):
    """Returns rows of results: percents of wrong bits."""
    found = []
    for name, rows in dict.fromkeys(tuple(key.split(" | ")[:2]) for key in results):
        of = {
            key.split(" | ")[2]: record
            for key, record in results.items()
            if key.startswith(f"{name} | {rows} | ")
        }
        given = of.pop("input", None)
        best = min(
            (setting for setting in of if setting.startswith("regression")),
            key=lambda setting: of[setting]["wrong"],
        )
        ours = [100.0 * r["wrong"] for s, r in of.items() if s.startswith("CRBM")]
        spread = f" ± {np.std(ours, ddof=1):.2f}" if len(ours) > 1 else ""
        found.append(
            [
                name,
                rows,
                "" if given is None else f"{100.0 * given:.2f} %",
                f"{100.0 * of[best]['wrong']:.2f} % ({best.split(', ')[1]})",
                f"{np.mean(ours):.2f}{spread} %",
            ]
        )
    return found


if __name__ == "__main__":
    keras.utils.disable_interactive_logging()
    main()
