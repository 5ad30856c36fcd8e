"""Reproduces Ping, Liu & Ihler (2016): infinite RBMs by Frank-Wolfe, against CD.

    experiment="python -m examples.papers.frank_wolfe.experiment"
    $experiment grow --set mnist --until 200
    $experiment grow --from 200 --until 700 --samples 30000
    $experiment train --set mnist --units 460
    $experiment features --set mnist --units 460
    $experiment components --set mnist --units 460
    $experiment time --set mnist --units 100 200 300 400 460

`grow` adds units, and scores the model at every 20; with `--from` it goes on from such
a size with other settings, since units that gain less need more chains. `train` runs
CD-10, PCD-10 or, with as many sweeps, parallel tempering from the grown model of some
size and from random starts of that size, with the same epochs. `features` classifies
features of several kinds, `components` those of models that `train` has left, where
hidden units see few principal components. `time` takes steps of growing from models of
several sizes in turns with epochs of CD. Each run writes a JSON file as it goes, and
goes on where it was cut; one that has a record is skipped, and says so.
"""

import argparse
import json
import pathlib
import time

import keras
import numpy as np

import keras_rbm as kr
from examples.papers.frank_wolfe import features, results, scores
from examples.papers.records import read_records, write_record

SETS = ("caltech101_silhouettes", "mnist")
STRIDE = 20
CHAINS = {
    "cd": kr.rules.ContrastiveDivergence,
    "pcd": kr.rules.PersistentContrastiveDivergence,
    "pt": kr.rules.ParallelTempering,
}


def main():
    args = parse_arguments()
    folder, records = pathlib.Path(args.out), pathlib.Path(args.records)
    for path in (folder, records):
        path.mkdir(parents=True, exist_ok=True)
    if args.command == "grow":
        grow(args, folder, records)
    elif args.command == "features":
        for kind in args.kinds:
            classify(args, kind, args.units, folder, records)
    elif args.command in ("components", "time"):
        run = project if args.command == "components" else clock
        for units in args.units:
            run(args, units, folder, records)
    else:
        for units in args.units:
            for start in args.starts:
                train(args, units, start, folder, records)


def load(name):
    """Returns dict of split to arrays of images and labels."""
    splits = {}
    for split in ("train", "validation", "test"):
        data = kr.datasets.load(name, split, binarize="threshold", with_labels=True)
        batches = list(data.batch(1000).as_numpy_iterator())
        splits[split] = tuple(map(np.concatenate, zip(*batches, strict=True)))
    return splits


def grow(args, folder, records):
    name = f"{args.set}.grow.{args.begin}"
    record = records / f"{name}.json"
    splits = load(args.set)
    if args.rows:
        splits["train"] = [part[: args.rows] for part in splits["train"]]
    images = splits["train"][0]
    keys = "set", "begin", "l2", "halving", "samples", "temperatures"
    settings = {key: vars(args)[key] for key in keys}
    settings["batch_size"] = min(args.batch_size, len(images))
    if args.rows:
        settings["rows"] = args.rows
    if is_done(record, settings):
        return
    if args.begin:
        rbm = load_grown(folder, args.set, args.begin)
        model = kr.InfiniteRBM.from_rbm(rbm, max_hidden_units=args.max_units)
    else:
        model = kr.InfiniteRBM(args.max_units, seed=0)
        model.adapt(images)
    model.compile(rule=frank_wolfe(args))
    resume = Resume(folder / f"{name}.backup")
    curve = Curve(folder / f"{name}.json", settings, resume, splits, args.until)
    no_more_units = keras.callbacks.EarlyStopping(
        "hidden_units", mode="max", patience=5
    )
    model.fit(
        images,
        batch_size=settings["batch_size"],
        epochs=10 * args.max_units,  # until there are so many units
        callbacks=[curve, no_more_units, resume],
        verbose=2,
    )
    write_record(record, curve.record | {"start": "grow"})
    print(f"Ended with {model.hidden_units} units.")


def frank_wolfe(args):
    penalty = keras.optimizers.schedules.InverseTimeDecay(args.l2, args.halving, 1.0)
    return kr.rules.FrankWolfe(penalty, num_samples=args.samples, num_starts=1)


class Resume(keras.callbacks.BackupAndRestore):
    """Keeps its files after `fit`, where the scoring may still be cut."""

    def __init__(self, path):
        self.resumes = path.exists()
        super().__init__(path, double_checkpoint=True, delete_checkpoint=False)


class Clock(keras.callbacks.Callback):
    """Keeps the seconds of each epoch in a file with the settings, over a cut."""

    def __init__(self, path, settings, resume):
        super().__init__()
        self.path = path
        self.record = settings | {"seconds": []}
        if resume.resumes:
            self.record = json.loads(path.read_text())
            if {key: self.record.get(key) for key in settings} != settings:
                raise ValueError(
                    f"Expected the settings of {path}. Received: {settings}. Give the "
                    "same, or another folder."
                )

    def on_epoch_begin(self, epoch, logs=None):
        self.start = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        seconds = round(time.perf_counter() - self.start, 2)
        self.record["seconds"][epoch:] = [seconds]
        write_record(self.path, self.record)

    def total(self):
        return round(sum(self.record["seconds"]), 1)


class Curve(Clock):
    """Scores a growing model at every 20 units, saves it there, and keeps the curve."""

    def __init__(self, path, settings, resume, splits, until):
        super().__init__(path, settings, resume)
        self.splits, self.until = splits, until
        self.record.setdefault("points", [])

    def on_epoch_end(self, epoch, logs=None):
        super().on_epoch_end(epoch)
        points, units = self.record["points"], self.model.hidden_units
        self.model.stop_training |= units >= self.until
        size = units // STRIDE * STRIDE
        if size <= max([self.record["begin"]] + [point["size"] for point in points]):
            return
        rbm = self.model.to_rbm()
        rbm.save(model_path(self.path.parent, self.record["set"], size))
        point = scores.score(rbm, self.splits, self.record["temperatures"], size)
        before = {"size": size, "units": units, "seconds": self.total()}
        energies = rbm.free_energy(self.splits["validation"][0])
        running = -float(np.mean(energies)) - logs["log_partition"]
        points.append(before | {"validation_running": running} | point)
        write_record(self.path, self.record)
        print(points[-1], flush=True)


def is_done(record, settings):
    """Returns whether there is a record, of these settings."""
    if not record.exists():
        return False
    before = json.loads(record.read_text())
    other = {k: before.get(k) for k in settings if before.get(k) != settings[k]}
    again = "For another run give other --records and --out."
    if other:
        raise SystemExit(f"{record} is there, with {other}. {again}")
    print(f"Skipped: {record} is there. {again}")
    return True


def model_path(folder, name, size):
    return folder / f"{name}.{size}.keras"


def load_grown(folder, name, size):
    path = model_path(folder, name, size)
    if not path.exists():
        raise SystemExit(
            f"There is no {path}: grow to it first, with an empty --records, or give "
            "the --out that has it."
        )
    return keras.saving.load_model(path)


def classify(args, kind, size, folder, records):
    """Writes the error of logistic regression on features of one kind."""
    record = records / f"{args.set}.features.{kind}.{size}.json"
    settings = {"set": args.set, "start": "features", "kind": kind, "size": size}
    if is_done(record, settings):
        return
    splits = load(args.set)
    grown = load_grown(folder, args.set, size)
    error = features.error_of(kind, splits, grown)
    images = splits["train"][0]
    units = images.shape[1] if kind == "pixels" else grown.hidden_units
    write_record(record, settings | {"units": units, "error": error})
    print(f"{record.stem}: {error:.2f} %", flush=True)


def clock(args, size, folder, records):
    """Writes the seconds of steps from a grown model, and of as many epochs of CD."""
    record = records / f"{args.set}.time.{size}.json"
    settings = {"set": args.set, "start": "time", "size": size}
    settings |= {"samples": args.samples, "batch_size": args.batch_size}
    if is_done(record, settings):
        return
    images = load(args.set)["train"][0]
    rbm = load_grown(folder, args.set, size)
    grown = kr.InfiniteRBM.from_rbm(rbm, max_hidden_units=size + 10 * args.turns)
    grown.compile(rule=frank_wolfe(args))
    trained = kr.RBM(rbm.hidden_units, kernel_regularizer=None, seed=0)
    trained.adapt(images)
    rule = kr.rules.ContrastiveDivergence(10, centered=False)
    trained.compile(keras.optimizers.SGD(0.01), rule=rule, steps_per_execution=10)
    growing = grown, min(args.batch_size, len(images))
    training = trained, 100

    def seconds(model, batch_size):
        start = time.perf_counter()
        model.fit(images, batch_size=batch_size, verbose=0)
        return round(time.perf_counter() - start, 3)

    seconds(*growing), seconds(*training)  # compiles
    before = grown.hidden_units
    turns = [(seconds(*growing), seconds(*training)) for _ in range(args.turns)]
    found = dict(zip(("growing", "training"), zip(*turns, strict=True), strict=True))
    found["gained"] = grown.hidden_units - before
    write_record(record, settings | found)
    print(f"{record.stem}: {found}", flush=True)


def project(args, size, folder, records):
    """Writes errors of a grown model's and others' features of few components."""
    record = records / f"{args.set}.components.{size}.json"
    settings = {"set": args.set, "start": "components", "size": size}
    settings |= {"rate": args.rate, "epochs": args.epochs}
    if is_done(record, settings):
        return
    splits = load(args.set)
    models = {"grown": load_grown(folder, args.set, size)}
    for start in args.starts:
        path = folder / f"{trained_name(args, size, start)}.keras"
        if not path.exists():
            raise SystemExit(f"There is no {path}: `train` it first, with this --out.")
        models[start] = keras.saving.load_model(path)
    errors = {}
    for name, model in models.items():
        errors[name] = features.errors_by_components(model, splits)
        print(f"{record.stem}: {name} {errors[name]}", flush=True)
    settings["units"] = models["grown"].hidden_units
    write_record(record, settings | {"errors": errors})


def trained_name(args, size, start):
    rates = f"{args.rate:g}" + (f"-{args.last_rate:g}" if args.last_rate else "")
    return f"{args.set}.{args.rule}.{start}.{size}.{rates}.{args.epochs}"


def train(args, size, start, folder, records):
    """Runs one of `CHAINS` from the grown model or from a random start."""
    name = trained_name(args, size, start)
    record = records / f"{name}.json"
    settings = {"set": args.set, "start": start, "size": size, "rate": args.rate}
    settings |= {"last_rate": args.last_rate, "epochs": args.epochs}
    settings |= {"batch_size": args.cd_batch_size, "temperatures": args.temperatures}
    if args.rule != "cd":
        settings["rule"] = args.rule
    if is_done(record, settings):
        return
    print(f"\n{name}", flush=True)
    splits = load(args.set)
    images = splits["train"][0]
    if start == "fw":
        grown = load_grown(folder, args.set, size)
        plain = grown.get_config() | {"kernel_regularizer": None}
        rbm = kr.RBM.from_config(plain)
        rbm.set_weights(grown.get_weights())
    else:
        units = grown_units(records, args.set, size)
        rbm = kr.RBM(units, kernel_regularizer=None, seed=int(start))
        rbm.adapt(images)
    rule = CHAINS[args.rule](10, centered=False)
    steps = args.epochs * -(-len(images) // args.cd_batch_size)
    rate = keras.optimizers.schedules.PolynomialDecay(args.rate, steps, args.last_rate)
    rbm.compile(keras.optimizers.SGD(rate), rule=rule, steps_per_execution=10)
    settings["units"] = rbm.hidden_units
    resume = Resume(folder / f"{name}.backup")
    clock = Clock(folder / f"{name}.json", settings, resume)
    rbm.fit(
        images,
        batch_size=args.cd_batch_size,
        epochs=args.epochs,
        callbacks=[clock, resume],
        verbose=2,
    )
    rbm.save(folder / f"{name}.keras")
    # AIS, by which the older records were scored, leaves all intervals of PT open.
    method = "bidirectional" if args.rule == "pt" else "ais"
    result = scores.score(rbm, splits, args.temperatures, size, method)
    result["chains"] = scores.follow_chains(rbm, splits["test"][0])
    write_record(record, clock.record | {"seconds": clock.total()} | result)
    print(result, flush=True)


def grown_units(records, name, size):
    """Returns the units of the grown model of a size, which may be a few more."""
    runs = [run for run in read_records(records) if run["set"] == name]
    for stage in results.stages(runs):
        for point in stage["points"]:
            if point["size"] == size:
                return point["units"]
    raise ValueError(f"Expected a size that was grown and scored. Received: {size}.")


def parse_arguments():
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--set", choices=SETS, default="mnist")
    shared.add_argument("--temperatures", type=int, default=10_000, help="at most")
    shared.add_argument("--out", default="out/frank_wolfe", help="models and backups")
    shared.add_argument("--records", default="docs/results/frank_wolfe")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)

    growing = argparse.ArgumentParser(add_help=False)
    growing.add_argument("--batch-size", type=int, default=50_000)
    growing.add_argument("--samples", type=int, default=20_000, help="number of chains")
    growing.add_argument("--l2", type=float, default=0.04, help="of the first unit")
    growing.add_argument("--halving", type=int, default=50, help="units that halve it")

    command = commands.add_parser("grow", parents=[shared, growing])
    command.add_argument("--max-units", type=int, default=700)
    command.add_argument(
        "--from", type=int, default=0, dest="begin", help="units of a scored model"
    )
    command.add_argument("--until", type=int, default=10**9, help="units to stop at")
    command.add_argument("--rows", type=int, help="of the training set; all if none")

    command = commands.add_parser("time", parents=[shared, growing])
    command.add_argument("--units", nargs="+", type=int, default=[scores.CLASSIFIED])
    command.add_argument("--turns", type=int, default=10)

    trained = argparse.ArgumentParser(add_help=False)
    trained.add_argument("--units", nargs="+", type=int, default=[scores.CLASSIFIED])
    trained.add_argument("--starts", nargs="+", default=["fw", *"01234"])
    trained.add_argument("--rule", choices=CHAINS, default="cd")
    trained.add_argument("--epochs", type=int, default=10)
    trained.add_argument("--rate", type=float, default=0.05, help="at first")
    trained.add_argument("--last-rate", type=float, default=0.0, help="falls to it")
    trained.add_argument("--cd-batch-size", type=int, default=100)
    for name in ("train", "components"):
        commands.add_parser(name, parents=[shared, trained])

    command = commands.add_parser("features", parents=[shared])
    kinds = features.KINDS
    command.add_argument("--units", type=int, default=scores.CLASSIFIED)
    command.add_argument("--kinds", nargs="+", choices=kinds, default=list(kinds))
    return parser.parse_args()


if __name__ == "__main__":
    main()
