"""What do `compile()` and `fit` without arguments learn, beside a tuned run?

    python examples/defaults.py --files FOLDER

Trains by the defaults and by each setting of a grid, for several lengths; those of the
grid are rules, rates and sweeps, without a penalty of the weights and from small random
ones. The setting that is
best on validation data is the *tuned* run of that length; it and the defaults are
repeated with more seeds. Prints test log-likelihoods, and the default's share of what
the tuned run gains over the base rate, for which every column is independent of the
others. Writes each run into a file of results, and goes on from it after a cut.
`--model` takes another model: the score of deep ones is the variational bound.

FOLDER holds 20news_w100.mat (https://cs.nyu.edu/~roweis/data), the file of Caltech
Silhouettes and ww.fasta, an aligned protein family.
"""

import argparse
import json
import math
import pathlib
import warnings

import keras
import numpy as np
import scipy.io
import tensorflow as tf
from sklearn import datasets as tables

import keras_rbm as kr
from keras_rbm.optimizers import FallingRate

#: Hidden units of each data set: of real-valued data few, so that log Z is exact.
HIDDEN = {
    "digits": 64,
    "digits_flipped": 64,
    "wine": 16,
    "breast_cancer": 16,
    "news": 64,
    "small_mnist": 200,
    "small_mnist_flipped": 200,
    "caltech": 128,
    "mnist": 128,
    "ww": 50,
    "two_kinds": 8,
}
REAL = ("wine", "breast_cancer")
#: Settings: rule, sweeps, optimizer, and the rate, which falls to 0.
GRID = {
    f"{rule.upper()}-{k}, {optimizer} {rate}": (rule, k, optimizer, rate)
    for rule, k, optimizer, rate in [
        ("pcd", 1, "SGD", 0.05),
        ("pcd", 1, "SGD", 0.2),
        ("pcd", 5, "SGD", 0.05),
        ("pcd", 1, "Adam", 0.003),
        ("pcd", 1, "Adam", 0.01),
        ("pcd", 1, "Adam", 0.03),
        ("pcd", 1, "Adam", 0.1),
        ("cd", 1, "Adam", 0.01),
    ]
}
MODELS = {
    "rbm": lambda hidden, **kwargs: kr.RBM(hidden, **kwargs),
    "infinite_rbm": lambda hidden, **kwargs: kr.InfiniteRBM(hidden, **kwargs),
    "dbn": lambda hidden, **kwargs: kr.DBN(stack(hidden, **kwargs)),
    "dbm": lambda hidden, **kwargs: kr.DBM([hidden, hidden // 2], **kwargs),
}
HEADER = (
    "| data | epochs | base | default: test | validation | tuned: test | setting "
    "| share of the gain |"
)
#: Of the growing model: penalties.
PENALTIES = (0.001, 0.01, 0.03, 0.1)
#: Numbers of rows to learn from, to choose by and to score.
SIZES = {"mnist": (10_000, 2_000, 2_000), "small_mnist": (6_291, 2_000, 2_000)}


def main():
    """Runs what the file of results does not hold yet, and prints the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", choices=MODELS, default="rbm")
    parser.add_argument("--sets", nargs="+", choices=HIDDEN, default=HIDDEN)
    parser.add_argument("--files", type=pathlib.Path, help="folder with data")
    parser.add_argument("--epochs", nargs="+", type=int, default=[5, 20, 100, 200])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--defaults-only", action="store_true")
    parser.add_argument(
        "--sweeps", nargs="*", type=int, default=[], help="of PCD, also, by one seed"
    )
    parser.add_argument("--out", type=pathlib.Path, default="defaults.json")
    args = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    results = json.loads(args.out.read_text()) if args.out.exists() else {}

    def done(name, parts, epochs, setting, seed):
        key = f"{name} | {epochs} | {setting} | {seed}"
        if key not in results:
            results[key] = run(args.model, name, parts, epochs, setting, seed)
            print(key, results[key], flush=True)
            part = args.out.with_suffix(".part")
            part.write_text(json.dumps(results, indent=0) + "\n")
            part.replace(args.out)
        return results[key]

    for name in args.sets:
        parts = load(name, args.files)
        for epochs in args.epochs:
            here = name, parts, epochs
            chosen = ["default"]
            if not (args.defaults_only or name.endswith("_flipped")):
                found = {
                    setting: done(*here, setting, args.seeds[0])["validation"]
                    for setting in grid_of(args.model)
                }
                chosen.append(max(found, key=lambda setting: found[setting]))
            for setting in chosen:
                for seed in args.seeds:
                    done(*here, setting, seed)
            for sweeps in args.sweeps:
                done(*here, f"default, {sweeps} sweeps", args.seeds[0])
    print(table(results))


def grid_of(kind):
    """Returns the names of a model's settings."""
    if kind == "infinite_rbm":
        return [f"penalty {penalty}" for penalty in PENALTIES]
    return [*GRID]


def load(name, files):
    """Returns the training, validation and test rows of a data set."""
    if name.endswith("_flipped"):
        return [1.0 - rows for rows in load(name.removesuffix("_flipped"), files)]
    if name == "caltech":
        splits = ("train", "validation", "test")
        return [
            whole(
                kr.datasets.load("caltech101_silhouettes", split, manual_dir=str(files))
            )
            for split in splits
        ]
    if name in ("digits", "mnist", "small_mnist"):
        drawn = {"binarize": None}
        if name != "small_mnist":
            drawn = {"binarize": "sample", "redraw": False}
        source = name.removeprefix("small_")
        parts = [
            whole(kr.datasets.load(source, split, **drawn))
            for split in ("train", "validation", "test")
        ]
        sizes = SIZES.get(name, (None,) * 3)
        parts = [rows[:size] for rows, size in zip(parts, sizes, strict=True)]
        return [*map(small, parts)] if name == "small_mnist" else parts
    if name in REAL:
        rows = getattr(tables, f"load_{name}")().data.astype("float32")
    elif name == "two_kinds":
        rows = two_kinds(1500)
    elif name == "news":
        rows = scipy.io.loadmat(files / "20news_w100.mat")["documents"]
        rows = rows.toarray().T.astype("float32")
    else:
        rows = kr.datasets.fasta(files / "ww.fasta")[0]
    order = np.random.default_rng(0).permutation(len(rows))[:10_000]
    return np.split(rows[order], [int(0.7 * len(order)), int(0.85 * len(order))])


def two_kinds(count):
    """Returns images of 8×8 pixels, white on the left, or, of three in ten, the right.

    One pixel in twenty is flipped. No Gibbs sweep leads from one kind to the other.
    """
    rng = np.random.default_rng(0)
    left = np.tile(np.repeat([1.0, 0.0], 4), 8)
    rows = np.where(rng.random((count, 1)) < 0.7, left, 1.0 - left)
    flipped = rng.random(rows.shape) < 0.05
    return np.where(flipped, 1.0 - rows, rows).astype("float32")


def whole(data):
    """Returns all rows of a pipeline."""
    return np.concatenate([*data.batch(1000).as_numpy_iterator()])


def small(digits):
    """Returns MNIST's digits as 16×16 black and white pixels, like those of USPS."""
    images = digits.reshape(-1, 28, 28, 1)[:, 4:24, 4:24]
    images = tf.image.resize(images, (16, 16), antialias=True).numpy()
    return (images.reshape(-1, 256) > 0.5).astype("float32")


def run(kind, name, parts, epochs, setting, seed):
    """Trains and scores a model; returns a dict of what came out."""
    train, *held_out = parts
    visible = {}
    if name in REAL:
        visible["visible"] = "gaussian"
    elif name == "ww":
        visible["visible"] = kr.units.Categorical(21)
    base = kr.RBM(1, **visible)
    base.adapt(train)
    base.kernel.assign(np.zeros(base.kernel.shape))
    model = MODELS[kind](
        HIDDEN[name], seed=seed, **visible, **plain(kind, setting, seed)
    )
    model.compile(**compiled(kind, setting))
    scored = train[:2000], *held_out
    try:
        model.fit(train, epochs=epochs, verbose=0)
        found, error = scores(model, scored)
    except ValueError as problem:  # diverged
        print(problem)
        found, error = [float("-inf")] * 3, float("inf")
    names = ("train", "validation", "test")
    record = dict(zip(names, found, strict=True)) | {"error": error}
    return record | {
        "base": scores(base, scored)[0][-1],
        "constant": constant(model, train),
    }


def plain(kind, setting, seed):
    """Returns the arguments of a model for a setting of the grid."""
    by_default = setting.startswith("default")
    own = by_default or kind == "infinite_rbm"  # whose rule has penalties
    start = keras.initializers.RandomNormal(0.0, 0.01, seed)
    return {} if own else {"kernel_regularizer": None, "kernel_initializer": start}


def stack(hidden, seed, visible="bernoulli", **options):
    """Returns two RBMs, the upper one half as wide."""
    below = kr.RBM(hidden, seed=seed, visible=visible, **options)
    return [below, kr.RBM(hidden // 2, seed=seed + 1, **options)]


def compiled(kind, setting):
    """Returns the arguments of `compile` for a setting."""
    if setting == "default":
        return {}
    if setting.startswith("default"):
        sweeps = int(setting.split()[1])
        return {"rule": kr.rules.PersistentContrastiveDivergence(sweeps)}
    if kind == "infinite_rbm":
        return {"rule": kr.rules.FrankWolfe(l2=float(setting.split()[1]))}
    rule, k, optimizer, rate = GRID[setting]
    if rule == "cd":
        rule = kr.rules.ContrastiveDivergence(k)
    else:
        rule = kr.rules.PersistentContrastiveDivergence(k)
    optimizer = getattr(keras.optimizers, optimizer)(FallingRate(rate))
    return {"optimizer": optimizer, "rule": rule}


def scores(model, parts):
    """Returns mean log-likelihoods of data sets, and half the interval of log Z."""
    top = model.rbms[-1] if isinstance(model, kr.DBN) else model
    small = isinstance(model, kr.RBM) and model.hidden_units <= 16
    z = top.log_partition("exact" if small else "bidirectional")
    deep = isinstance(model, (kr.DBN, kr.DBM))
    score = model.log_likelihood_bound if deep else model.log_likelihood
    found = [mean(score(rows, log_partition=z)) for rows in parts]
    return found, float(z.upper - z.lower) / 2.0


def mean(values):
    return float(np.mean(values))


def constant(model, rows):
    """Returns the share of hidden units of an RBM that are always on or off."""
    if not isinstance(model, kr.RBM):
        return 0.0
    features = model.predict(rows, verbose=0)
    return mean((features.max(0) < 0.01) | (features.min(0) > 0.99))


def rows(results):
    """Returns a list of rows of the table, of what has been run by default."""
    runs, found = {}, []
    grid = {*GRID, *grid_of("infinite_rbm")}
    for key, record in results.items():
        name, epochs, setting, _ = key.split(" | ")
        runs.setdefault((name, int(epochs)), {}).setdefault(setting, []).append(record)
    for (name, epochs), settings in sorted(runs.items()):
        default = settings.pop("default", None)
        if default is None:
            continue
        settings = {key: run for key, run in settings.items() if key in grid}
        base = default[0]["base"]
        row = [name, epochs, f"{base:.2f}"]
        row += [spread([run[key] for run in default]) for key in ("test", "validation")]
        best = max(
            settings, key=lambda key: settings[key][0]["validation"], default=None
        )
        if best is None:
            found.append([*row, "", "", ""])
            continue
        tuned = [run["test"] for run in settings[best]]
        share = (mean([run["test"] for run in default]) - base) / (mean(tuned) - base)
        found.append([*row, spread(tuned), best, f"{share:.2f}"])
    return found


def sweep_rows(results, more):
    """Returns columns and rows of test log-likelihoods, by default and by PCD.

    Args:
        results: dict of records, those by default among them.
        more: dict of records by PCD, with several numbers of sweeps.
    """
    found = {}
    for key, record in (results | more).items():
        name, epochs, setting, _ = key.split(" | ")
        if setting in GRID:
            continue
        sweeps = int(setting.split()[1]) if setting != "default" else math.inf
        own = found.setdefault((name, int(epochs)), {})
        own.setdefault(sweeps, []).append(record["test"])
    columns = sorted({sweeps for own in found.values() for sweeps in own})
    lines = [
        [*key, *(spread(own[k]) if k in own else "" for k in columns)]
        for key, own in sorted(found.items())
        if len(own) > 1
    ]
    names = [f"PCD, k = {k}" if k < math.inf else "default" for k in columns]
    return names, lines


def table(results):
    """Returns all results so far, as Markdown."""
    lines = [HEADER, "---".join("|" * (HEADER.count("|")))]
    lines += [f"| {' | '.join(map(str, row))} |" for row in rows(results)]
    return "\n".join(lines)


def spread(values):
    """Returns mean and standard deviation over seeds."""
    deviation = f" ± {np.std(values, ddof=1):.2f}" if len(values) > 1 else ""
    return f"{mean(values):.2f}{deviation}"


if __name__ == "__main__":
    main()
