"""Do chains that exchange states with tempered ones learn better, in equal time?

    python -m examples.mixing --files FOLDER --seconds 20

Trains RBMs by parallel tempering, the default rule, by PCD and CD, and by tempering of
all chains, each at three rates, which fall to 0. All get the same number of seconds;
the first fit, which compiles the step, is not counted. Of each rule the rate is taken
that is best on validation data, and repeated with more seeds. Prints test
log-likelihoods, in nats. Writes each run into a file of results, and goes on from it
after a cut.

FOLDER holds kunitz.fasta, an aligned protein family, RF00379.fasta, one of RNA
(https://rfam.org), and eur_chr21.npz, an array `haplotypes` of 0 and 1.
"""

import argparse
import json
import math
import pathlib
import time
import warnings

import keras
import numpy as np

import keras_rbm as kr
from examples import defaults

#: Hidden units of each data set.
HIDDEN = {
    "two_kinds": 8,
    "bars_and_stripes": 8,
    "zeros_and_ones": 200,
    "small_mnist": 200,
    "kunitz": 50,
    "rna": 50,
    "haplotypes": 50,
    "mnist": 500,
}
#: How many times as long a set is trained on.
LONGER = {"mnist": 10}
RULES = {
    "tempering": lambda: kr.rules.ParallelTempering(),
    "tempering of all chains": lambda: kr.rules.ParallelTempering(num_ladders=100),
    "PCD-3": lambda: kr.rules.PersistentContrastiveDivergence(),
    "CD-1": lambda: kr.rules.ContrastiveDivergence(),
}
#: Rates, as shares of that of `compile()`.
RATES = (0.3, 1.0, 3.0)


def main():
    """Runs what the file of results does not hold yet, and prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", choices=HIDDEN, default=HIDDEN)
    parser.add_argument("--files", type=pathlib.Path, help="folder with data")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--out", type=pathlib.Path, default="mixing.json")
    args = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    results = json.loads(args.out.read_text()) if args.out.exists() else {}

    def done(name, parts, rule, rate, seed):
        key = f"{name} | {rule} | {rate} | {seed}"
        if key not in results:
            results[key] = run(name, parts, rule, rate, seed, args.seconds)
            print(key, results[key], flush=True)
            args.out.write_text(json.dumps(results, indent=0) + "\n")
        return results[key]["validation"]

    for name in args.sets:
        parts = load(name, args.files)
        for rule in RULES:
            first = args.seeds[0]
            found = {rate: done(name, parts, rule, rate, first) for rate in RATES}
            best = max(RATES, key=lambda rate: found[rate])
            for seed in args.seeds[1:]:
                done(name, parts, rule, best, seed)
    for row in rows(results):
        print(f"| {' | '.join(row)} |")


def load(name, files):
    """Returns training, validation and test rows, and the type of the units."""
    if name == "two_kinds":
        return split(defaults.two_kinds(1500)), "bernoulli"
    if name == "bars_and_stripes":
        data = defaults.whole(kr.datasets.load("bars_and_stripes", "train", size=4))
        return [np.tile(data, (20, 1)), data, data], "bernoulli"
    if name == "haplotypes":
        rows = np.load(files / "eur_chr21.npz")["haplotypes"]
        return split(rows.astype("float32")), "bernoulli"
    if name in ("kunitz", "rna"):
        file, letters = {
            "kunitz": ("kunitz.fasta", kr.datasets.PROTEINS),
            "rna": ("RF00379.fasta", "ACGU-"),
        }[name]
        rows = kr.datasets.fasta(files / file, letters)[0]
        return split(rows), kr.units.Categorical(len(letters))
    if name == "small_mnist":
        return defaults.load(name, files), "bernoulli"
    if name == "mnist":
        drawn = {"binarize": "sample", "redraw": False}
        return [
            defaults.whole(kr.datasets.load("mnist", part, **drawn))
            for part in ("train", "validation", "test")
        ], "bernoulli"
    return [zeros_and_ones(part) for part in ("train", "validation", "test")], (
        "bernoulli"
    )


def zeros_and_ones(part):
    """Returns the digits 0 and 1 of MNIST, black and white, at most 8,000."""
    data = kr.datasets.load("mnist", part, binarize="threshold", with_labels=True)
    data = data.filter(lambda image, label: label < 2)
    data = data.map(lambda image, label: image)
    return defaults.whole(data)[:8000]


def split(rows):
    """Returns seven tenths of the rows, and the halves of the rest."""
    rows = rows[np.random.default_rng(0).permutation(len(rows))]
    return np.split(rows, [int(0.7 * len(rows)), int(0.85 * len(rows))])


def run(name, parts, rule, share, seed, seconds):
    """Trains for some seconds; returns a dict of scores and the number of epochs."""
    (train, *held_out), visible = parts
    model = new(name, visible, rule, share, seed, train)
    model.fit(train, verbose=0)  # compiles
    begin, epochs = time.perf_counter(), max(1, 4000 // len(train))
    model.fit(train, epochs=epochs, verbose=0)
    epochs *= LONGER.get(name, 1) * seconds / (time.perf_counter() - begin)
    model = new(name, visible, rule, share, seed, train)
    begin = time.perf_counter()
    try:
        model.fit(train, epochs=max(1, round(epochs)), verbose=0)
        took = time.perf_counter() - begin
        method = "exact" if HIDDEN[name] <= 16 else "bidirectional"
        z = model.log_partition(method)
        scores = [float(np.mean(model.log_likelihood(x, z))) for x in held_out]
        error = float(z.upper - z.lower) / 2.0
    except ValueError as problem:  # diverged
        print(problem)
        scores, error, took = [-math.inf] * 2, math.inf, 0.0
    record = dict(zip(("validation", "test"), scores, strict=True))
    return record | {"error": error, "epochs": round(epochs), "seconds": took}


def new(name, visible, rule, share, seed, train):
    """Returns a compiled model, whose rate is a share of the default's."""
    model = kr.RBM(HIDDEN[name], visible=visible, seed=seed)
    rate = min(0.05, 0.03 * (64.0 / train.shape[1]) ** 0.75)
    adam = keras.optimizers.Adam(kr.optimizers.FallingRate(share * rate), beta_1=0.5)
    model.compile(adam, rule=RULES[rule]())
    return model


def rows(results):
    """Returns rows of the table: of each set, and of each rule at its best rate."""
    runs = {}
    for key, record in results.items():
        name, rule, rate, _ = key.split(" | ")
        own = runs.setdefault(name, {}).setdefault(rule, {})
        own.setdefault(rate, []).append(record)
    found = []
    for name, rules in runs.items():
        row = [name]
        for rule in RULES:
            of_rates = rules.get(rule)
            if of_rates is None:
                row.append("")
                continue
            best = max(of_rates, key=lambda rate: of_rates[rate][0]["validation"])
            row.append(defaults.spread([run["test"] for run in of_rates[best]]))
        found.append(row)
    return found


if __name__ == "__main__":
    main()
