"""How often do intervals of log Z hold the truth?

    python examples/calibration.py
    python examples/calibration.py --models 200 --sets digits mnist mnist_sampled \
        caltech101_silhouettes bars random grey_digits

The first takes some minutes, the second some hours. Both train RBMs of 2 to 20 hidden
units, whose log Z can be enumerated, by several rules, with and without `adapt`, for 1
to 100 epochs, and estimate log Z of each with default arguments. They print the share
of intervals that hold the truth, and write a record of each model to
`calibration.json`; a run that was cut goes on there.
"""

import argparse
import json
import pathlib
import time
import warnings

import keras
import numpy as np

import keras_rbm as kr

METHODS = ("ais", "bidirectional", "reverse_ais", "tempering")
RULES = ("cd", "pcd", "parallel_tempering", "grown")
SETS = (
    "digits",
    "mnist",
    "mnist_sampled",
    "caltech101_silhouettes",
    "bars",
    "random",
    "grey_digits",
)


def main():
    args = parse_arguments()
    path = pathlib.Path(args.out)
    records = json.loads(path.read_text()) if path.exists() else []
    for number in range(len(records), args.models):
        settings = draw_settings(number, args.sets)
        rbm = trained(settings, args.manual_dir, args.bank)
        records.append(settings | judge(rbm, args.methods))
        path.write_text(json.dumps(records, indent=0) + "\n")
        print(number, settings, flush=True)
    print(table(records, args.methods))


def draw_settings(number, sets):
    """Returns the settings of a model, a function of its number."""
    rng = np.random.default_rng(number)
    name = sets[number % len(sets)]
    rule = str(rng.choice(RULES))
    epochs = int(rng.choice([1, 10, 100]))
    return {
        "set": name,
        "rule": "pcd" if name == "grey_digits" and rule == "grown" else rule,
        "units": int(rng.integers(2, 21)),
        "epochs": epochs,
        "rate": float(rng.choice([0.01, 0.05])),
        "adapt": bool(rng.integers(2)),
        "scale": float(np.exp(rng.uniform(np.log(0.1), np.log(3.0)))),
        "seed": number,
    }


def trained(settings, manual_dir=None, bank=None):
    """Returns an RBM of the bank, or a new one."""
    if bank is None:
        return train(settings, manual_dir)
    path = pathlib.Path(bank) / f"{settings['seed']}.keras"
    if path.exists():
        return keras.saving.load_model(path)
    rbm = train(settings, manual_dir)
    path.parent.mkdir(parents=True, exist_ok=True)
    rbm.save(path)
    return rbm


def train(settings, manual_dir=None):
    """Returns a trained RBM."""
    units, seed = settings["units"], settings["seed"]
    if settings["set"] == "random":
        rbm = kr.RBM(units, num_visible=100, seed=seed)
        rng = np.random.default_rng(seed)
        for variable in (rbm.kernel, rbm.visible_bias, rbm.hidden_bias):
            variable.assign(rng.normal(0.0, settings["scale"], variable.shape))
        return rbm
    data = examples(settings["set"], manual_dir)
    if settings["rule"] == "grown":
        grown = kr.InfiniteRBM(units, seed=seed)
        if settings["adapt"]:
            grown.adapt(data)
        grown.compile(rule=kr.rules.FrankWolfe(l2=0.05, num_samples=1000))
        grown.fit(data, epochs=units, verbose=0)
        return grown.to_rbm()
    real = settings["set"] == "grey_digits"
    gaussian = kr.units.Gaussian(standardize=settings["adapt"])
    visible = gaussian if real else "bernoulli"
    rbm = kr.RBM(units, visible=visible, kernel_regularizer=None, seed=seed)
    if settings["adapt"]:
        rbm.adapt(data)
    rate = 0.01 if real else settings["rate"]
    rule = settings["rule"]
    if rule == "pcd":
        rule = kr.rules.PersistentContrastiveDivergence(1)
    rbm.compile(keras.optimizers.SGD(rate), rule=rule)
    rbm.fit(data, batch_size=50, epochs=settings["epochs"], verbose=0)
    return rbm


def examples(name, manual_dir):
    """Returns at most 5,000 examples of a data set."""
    if name == "bars":
        data = kr.datasets.load("bars_and_stripes", size=4)
        return np.repeat(as_array(data), 30, 0)
    options = {"manual_dir": manual_dir} if name.startswith("caltech") else {}
    binarize = {"mnist": "threshold", "mnist_sampled": "sample", "digits": "sample"}
    data = kr.datasets.load(
        {"mnist_sampled": "mnist", "grey_digits": "digits"}.get(name, name),
        binarize=binarize.get(name),
        **options,
    )
    return as_array(data.take(5000))


def as_array(dataset):
    return dataset.batch(5000).get_single_element().numpy()


def judge(rbm, methods):
    """Returns log Z and, by method, how far the estimate and its interval are off."""
    truth = float(rbm.log_partition("exact").value)
    record = {"log_partition": truth}
    for method in methods:
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            z = rbm.log_partition(method)
        ends = (z.value, z.stderr, z.lower, z.upper)
        error, stderr, lower, upper = (float(x) for x in ends)
        record[method] = {
            "error": error - truth,
            "stderr": stderr,
            "lower": lower - truth,
            "upper": upper - truth,
            "seconds": round(time.perf_counter() - start, 2),
        }
    return record


def table(records, methods):
    """Returns the table of the guide, as Markdown."""
    lines = [
        "| method | hold | rms z | largest | open | < 1 nat | seconds, most |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for method in methods:
        found = [record[method] for record in records]
        holds = np.mean([r["lower"] <= 0.0 <= r["upper"] for r in found])
        closed = [r for r in found if np.isfinite(r["stderr"])]
        scores = np.abs([r["error"] / max(r["stderr"], 1e-12) for r in closed])
        narrow = np.mean([r["upper"] - r["lower"] < 1.0 for r in found])
        seconds = [r["seconds"] for r in found]
        lines.append(
            f"| `{method}` | {holds:.1%} | {np.sqrt(np.mean(scores**2)):.2f} "
            f"| {scores.max():.1f} | {1 - len(closed) / len(found):.1%} "
            f"| {narrow:.1%} | {np.median(seconds):.1f}, {max(seconds):.1f} |"
        )
    return "\n".join(lines)


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", type=int, default=21)
    parser.add_argument(
        "--sets", nargs="+", choices=SETS, default=["digits", "bars", "random"]
    )
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument(
        "--manual-dir", help="folder of source files, see datasets.load"
    )
    parser.add_argument("--bank", help="folder of trained models")
    parser.add_argument("--out", default="calibration.json")
    return parser.parse_args()


if __name__ == "__main__":
    main()
