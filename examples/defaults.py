"""What do `compile()` and `fit` without arguments learn, beside a tuned run?

    python examples/defaults.py --news 20news_w100.mat --manual-dir folder

Trains RBMs for ten epochs by each rule and optimizer of a grid, and by the defaults.
Prints of each data set the gain in test log-likelihood over the base rate, in nats: of
the defaults, of the run that validation data choose, and what the defaults reach of it.
The last table says which one setting is best on the data set where it does worst.
`--model` takes another model: of deep ones the gain is that of the variational bound,
of a conditional one, which restores rows with 10 % of the bits flipped, that of the
Bethe likelihood.
The news are https://cs.nyu.edu/~roweis/data/20news_w100.mat; the folder has the file of
Caltech Silhouettes.
"""

import argparse
import json
import pathlib
import warnings

import keras
import numpy as np
import scipy.io
from sklearn import datasets as tables

import keras_rbm as kr

SETS = ("digits", "mnist", "caltech", "news", "breast_cancer", "wine")
RATES = {
    "SGD": (0.03, 0.1, 0.3),
    "Adam": (0.001, 0.003, 0.005, 0.01, 0.02, 0.03, 0.05),
}
GRID = [
    (rule, optimizer, rate)
    for rule in ("cd", "pcd")
    for optimizer, rates in RATES.items()
    for rate in rates
]
#: Hidden units: of real-valued data few, so that log Z is exact.
HIDDEN = {"digits": 64, "mnist": 128, "caltech": 128, "news": 64}
MODELS = {
    "rbm": lambda hidden, **kwargs: kr.RBM(hidden, seed=0, **kwargs),
    "infinite_rbm": lambda hidden: kr.InfiniteRBM(hidden, seed=0),
    "dbn": lambda hidden: kr.DBN([hidden, hidden // 2], seed=0),
    "dbm": lambda hidden: kr.DBM([hidden, hidden // 2], seed=0),
    "crbm": lambda hidden: kr.CRBM(hidden, seed=0),
}
#: Of the growing model: penalties.
PENALTIES = (0.001, 0.01, 0.03, 0.1)


def main():
    """Runs what the file of results does not hold yet, and prints the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", choices=MODELS, default="rbm")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--news", help="20news_w100.mat")
    parser.add_argument("--manual-dir", help="folder of Caltech Silhouettes")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--defaults-only", action="store_true")
    parser.add_argument("--out", default="defaults.json")
    args = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    path = pathlib.Path(args.out)
    results = json.loads(path.read_text()) if path.exists() else {}
    for name in args.sets:
        parts = load(name, args)
        grid = GRID
        if args.model == "infinite_rbm":
            grid = [(penalty,) for penalty in PENALTIES]
        elif args.model == "crbm":
            grid = [setting for setting in GRID if setting[0] == "cd"]
        for setting in [*([] if args.defaults_only else grid), ("default",)]:
            key = " ".join(map(str, (name, *setting)))
            if key not in results:
                results[key] = run(args.model, name, parts, setting, args.epochs)
                print(key, results[key], flush=True)
                path.write_text(json.dumps(results, indent=0) + "\n")
    print(table(results))


def load(name, args):
    """Returns the training, validation and test rows of a data set."""
    if name in ("breast_cancer", "wine"):
        rows = getattr(tables, f"load_{name}")().data.astype("float32")
    elif name == "news":
        rows = scipy.io.loadmat(args.news)["documents"]
        rows = rows.toarray().T.astype("float32")
    else:
        name = {"caltech": "caltech101_silhouettes"}.get(name, name)
        options = {} if name.startswith("caltech") else {"binarize": "sample"}
        if options:
            options |= {"redraw": False}
        else:
            options = {"manual_dir": args.manual_dir}
        splits = [
            kr.datasets.load(name, split, **options)
            for split in ("train", "validation", "test")
        ]
        sizes = (10_000, 2_000, 2_000) if name == "mnist" else (10_000,) * 3
        return [
            np.concatenate(list(part.take(size).batch(1000).as_numpy_iterator()))
            for part, size in zip(splits, sizes, strict=True)
        ]
    order = np.random.default_rng(0).permutation(len(rows))[:10_000]
    return np.split(rows[order], [int(0.7 * len(order)), int(0.85 * len(order))])


def run(kind, name, parts, setting, epochs):
    """Returns the gains over the base rate in validation and test data, in nats."""
    train, *held_out = parts
    real = {"visible": "gaussian"} if name in ("breast_cancer", "wine") else {}
    hidden = HIDDEN.get(name, 16)
    base = kr.RBM(1, **real)
    base.adapt(train)
    base.kernel.assign(np.zeros(base.kernel.shape))
    model = MODELS[kind](hidden, **real)
    if setting == ("default",):
        model.compile()
    elif kind == "infinite_rbm":
        model.compile(rule=kr.rules.FrankWolfe(l2=setting[0]))
    else:
        rule, optimizer, rate = setting
        rule = "maximum_likelihood" if kind == "crbm" else rule
        model.compile(getattr(keras.optimizers, optimizer)(rate), rule=rule)
    inputs = (noisy(train),) if kind == "crbm" else ()
    try:
        model.fit(*inputs, train, epochs=epochs, verbose=0)
        gains = np.subtract(scores(model, held_out), scores(base, held_out))
    except ValueError as error:  # diverged
        print(error)
        return [float("-inf")] * len(held_out)
    return gains.tolist()


def noisy(rows):
    """Returns rows with a tenth of their bits flipped."""
    return np.abs(rows - (np.random.default_rng(0).random(rows.shape) < 0.1))


def scores(model, parts):
    """Returns mean log-likelihoods of data sets, or lower bounds of them."""
    if isinstance(model, kr.CRBM):
        return [np.mean(model.log_likelihood(noisy(rows), rows)) for rows in parts]
    top = model.rbms[-1] if isinstance(model, kr.DBN) else model
    small = isinstance(model, kr.RBM) and model.hidden_units <= 16
    z = top.log_partition("exact" if small else "bidirectional")
    deep = isinstance(model, (kr.DBN, kr.DBM))
    score = model.log_likelihood_bound if deep else model.log_likelihood
    return [np.mean(score(rows, log_partition=z)) for rows in parts]


def table(results):
    """Returns the tables of all results so far, as Markdown."""
    gains = {}
    for key, (validation, test) in results.items():
        name, setting = key.split(" ", 1)
        gains.setdefault(name, {})[setting] = validation, test
    lines = ["| data | default | tuned | setting | reached |", "|---|---|---|---|---|"]
    shares = {}
    for name, runs in gains.items():
        grid = {k: v for k, v in runs.items() if k != "default"}
        best = max(grid, key=lambda setting: grid[setting][0], default=None)
        default = runs.get("default", (np.nan, np.nan))[1]
        tuned = grid[best][1] if grid else np.nan
        lines.append(
            f"| {name} | {default:.2f} | {tuned:.2f} | {best} | {default / tuned:.2f} |"
        )
        for setting, (_, test) in grid.items():
            shares.setdefault(setting, []).append(test / tuned)
    lines += ["", "| setting | least share | " + " | ".join(gains) + " |"]
    lines.append("|---" * (2 + len(gains)) + "|")
    for setting in sorted(shares, key=lambda setting: -min(shares[setting])):
        each = shares[setting]
        row = " | ".join(f"{share:.2f}" for share in each)
        lines.append(f"| {setting} | {min(each):.2f} | {row} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
