"""Reproduces the tables of Ping & Ihler (2017): eight learners on six tasks.

    python -m examples.papers.structured_prediction.experiment --learners MLE-BP

A run is one learner on one task with one optimizer and learning rate. It stops early on
the validation error, and writes its history and, with the weights of the best epoch,
its test error to one JSON file among `--records`. Interrupted, it goes on where it was;
finished, it is skipped.

The paper does not say whether an image is corrupted once or again in each epoch:
`--corruption fixed` and `fresh` are kept apart.
"""

import argparse
import itertools
import json
import pathlib
import time

import keras

import keras_rbm as kr
from examples.papers.records import write_record

CALTECH = "caltech101_silhouettes"
# Name: data set, kind, amount, title.
TASKS = {
    "mnist_noisy_10": ("mnist", "noisy", 10, "MNIST, noisy 10 %"),
    "mnist_noisy_20": ("mnist", "noisy", 20, "MNIST, noisy 20 %"),
    "mnist_occluded_8": ("mnist", "occluded", 8, "MNIST, occluded 8×8"),
    "mnist_occluded_12": ("mnist", "occluded", 12, "MNIST, occluded 12×12"),
    "caltech_noisy_20": (CALTECH, "noisy", 20, "Caltech, noisy 20 %"),
    "caltech_occluded_12": (CALTECH, "occluded", 12, "Caltech, occluded 12×12"),
}
# More squares, of the figure.
OCCLUSIONS = (4, 8, 12, 16, 20, 24, 28)
FIGURE_TASKS = {
    name: ("mnist", "occluded", size, f"MNIST, occluded {size}×{size}")
    for size in OCCLUSIONS
    if (name := f"mnist_occluded_{size}") not in TASKS
}
ALL_TASKS = TASKS | FIGURE_TASKS
BP = kr.inference.BeliefPropagation
RULES = kr.rules


def MF():  # noqa: N802
    """Mean field from the corrupted image, which wrong fixed points are far from."""
    return kr.inference.MeanField(starts=["input"])


# Name: rule, inference, learning rate.
LEARNERS = {
    "LR": (None, None, 0.02),
    "CD-1": (lambda: RULES.ContrastiveDivergence(1), MF, 0.005),
    "CD-10": (lambda: RULES.ContrastiveDivergence(10), MF, 0.005),
    "CD-PercLoss": (lambda: RULES.ContrastiveDivergencePerceptron(10), MF, 0.2),
    "MLE-MF": (RULES.MaximumLikelihood, MF, 0.02),
    "MLE-BP": (RULES.MaximumLikelihood, BP, 0.02),
    "LSSVM": (RULES.MaxMargin, lambda: BP("max_product"), 0.02),
    "MSSVM": (RULES.MaxMargin, lambda: BP("mixed_product"), 0.02),
    # Not of the paper: cross-entropy of the marginals after five sweeps.
    "Marginals": (RULES.MarginalLoss, lambda: BP(max_iterations=5), 0.02),
}
# A fixed corruption of many images is soon learned by heart.
EPOCHS = {
    ("mnist", "fresh"): 12,
    ("mnist", "fixed"): 6,
    (CALTECH, "fresh"): 20,
    (CALTECH, "fixed"): 20,
}
OPTIMIZERS = ("sgd", "momentum", "decay", "average")
#: Where mean field starts, of the same weights: hidden biases, x, the higher bound.
STARTS = {"biases": ["independent"], "x": ["input"], "both": ["independent", "input"]}
SCHEDULED = ("MLE-MF", "MLE-BP", "LSSVM", "MSSVM")  # T = 7 + epoch sweeps


def corruption_of(task):
    """Returns a task's corruption: flips, or a square of background."""
    dataset, kind, amount, _ = ALL_TASKS[task]
    if kind == "noisy":
        return kr.datasets.flip(amount / 100)
    background = 1.0 if dataset == CALTECH else 0.0
    return kr.datasets.occlude(amount, background)


def pairs_of(task, split, iterations, batch_size, redraw):
    """Returns batches of a task's (corrupted, clean) pairs."""
    clean = kr.datasets.load(ALL_TASKS[task][0], split, binarize="threshold")
    corruption = corruption_of(task)
    seed = ("train", "validation", "test").index(split)
    if split != "train":
        return kr.datasets.corrupt(clean, corruption, seed=seed).batch(500).cache()
    order = {"seed": seed, "iterations": iterations}
    if not redraw:
        pairs = kr.datasets.corrupt(clean, corruption, seed=seed)
        return kr.datasets.shuffled_batches(pairs, batch_size, **order)
    batches = kr.datasets.shuffled_batches(clean, batch_size, **order)
    return kr.datasets.corrupt(batches, corruption, redraw=True, **order)


def make_optimizer(name, rate, steps, weight_decay=None):
    """Returns "sgd" at a fixed rate, as in the paper, or "momentum", which is quicker.

    With momentum 0.9 and a rate that falls to 0 along a cosine, a dozen epochs do the
    work of fifty. "decay" adds weight decay to it. "average" is momentum at a fixed
    rate; validation and test see the moving average of the weights over 1,000 steps.
    """
    if name == "sgd":
        return keras.optimizers.SGD(rate)
    if name == "average":
        return keras.optimizers.SGD(
            rate, momentum=0.9, use_ema=True, ema_momentum=0.999
        )
    schedule = keras.optimizers.schedules.CosineDecay(rate, steps)
    return keras.optimizers.SGD(schedule, momentum=0.9, weight_decay=weight_decay)


def make_model(learner, optimizer, hidden_units):
    """Returns a compiled model; every loss is a sum over an image's pixels."""
    make_rule, make_inference, _ = LEARNERS[learner]
    if make_rule is None:
        model = keras.Sequential(
            [keras.Input((784,)), keras.layers.Dense(784, "sigmoid")]
        )
        model.compile(optimizer, loss=_summed_cross_entropy)
    else:
        model = kr.CRBM(
            hidden_units,
            inference=make_inference(),
            visible_bias_initializer="zeros",
            kernel_regularizer=None,  # the optimizer decays weights
            seed=0,
        )
        model.compile(optimizer, rule=make_rule())
    return model


def _summed_cross_entropy(y_true, y_pred):
    return 784.0 * keras.losses.binary_crossentropy(y_true, y_pred)


def test_errors(model, pairs):
    """Returns a model's percentage of wrong pixels, all and changed."""
    every, changed = kr.metrics.PixelError(), kr.metrics.PixelError()
    for noisy, clean in pairs:
        restored = model.predict_on_batch(noisy)
        every.update_state(clean, restored)
        changed.update_state(clean, restored, noisy != clean)
    return {"all": float(every.result()), "changed": float(changed.result())}


def errors_by_start(model, pairs):
    """Returns the percentage of wrong pixels with mean field from each start."""
    errors = {}
    for name, starts in STARTS.items():
        inference = kr.inference.MeanField(
            starts=starts, max_iterations=model.inference.max_iterations
        )
        twin = kr.CRBM.from_config(model.get_config() | {"inference": inference})
        twin.set_weights(model.get_weights())
        errors[name] = test_errors(twin, pairs)["all"]
    return errors


class ValidationError(keras.callbacks.Callback):
    """Writes `val_pixel_error` into the logs.

    As a metric it would also be computed in training, where for most learners it takes
    an inference of its own.
    """

    def __init__(self, pairs):
        super().__init__()
        self.pairs = pairs

    def on_epoch_end(self, epoch, logs=None):
        logs["val_pixel_error"] = test_errors(self.model, self.pairs)["all"]


class Progress(keras.callbacks.Callback):
    """Keeps the history in a file, also over a cut, and stops early by it.

    Keras' EarlyStopping forgets at a cut how long it has waited.
    """

    def __init__(self, path, resumed, patience):
        super().__init__()
        self.path, self.patience = path, patience
        self.history = json.loads(path.read_text()) if resumed else {}

    @property
    def validation(self):
        return self.history.get("val_pixel_error", [])

    @property
    def best_epoch(self):
        """int: counted from 0."""
        return min(range(len(self.validation)), key=self.validation.__getitem__)

    def on_epoch_begin(self, epoch, logs=None):
        self.start = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        row = logs | {"seconds": time.perf_counter() - self.start}
        for name, value in row.items():
            self.history.setdefault(name, [])[epoch:] = [round(float(value), 4)]
        write_record(self.path, self.history)
        if epoch - self.best_epoch >= self.patience:
            self.model.stop_training = True


def run(settings, folder, records, patience):
    """Trains one model, unless its record says that it has been trained."""
    name = ".".join(map(str, settings.values()))
    record = records / f"{name}.json"
    if record.exists():
        return
    print(f"\n{name}", flush=True)
    task, learner, epochs = (settings[key] for key in ("task", "learner", "epochs"))
    order = (settings["batch_size"], settings["corruption"] == "fresh")
    steps = len(pairs_of(task, "train", 0, *order))
    optimizer = make_optimizer(
        settings["optimizer"],
        settings["rate"],
        epochs * steps,
        settings.get("weight_decay"),
    )
    model = make_model(learner, optimizer, settings["hidden_units"])
    if "sweeps" in settings:
        model.inference.max_iterations = settings["sweeps"]
    train = pairs_of(task, "train", optimizer.iterations, *order)
    validation = pairs_of(task, "validation", None, 500, False)
    best, backup = folder / f"{name}.weights.h5", folder / f"{name}.backup"
    progress = Progress(folder / f"{name}.json", backup.exists(), patience)
    model.fit(
        train,
        epochs=epochs,
        shuffle=False,  # batches are already
        callbacks=callbacks_of(settings, validation, progress, best, backup),
        verbose=2,
    )
    model.load_weights(best)
    if learner in SCHEDULED:  # as many sweeps as in training
        model.inference.max_iterations = 7 + progress.best_epoch
    test = pairs_of(task, "test", None, 500, False)
    results = {
        "patience": patience,
        "best_epoch": progress.best_epoch + 1,
        "validation": progress.validation[progress.best_epoch],
        "test": test_errors(model, test),
        "history": progress.history,
    }
    if LEARNERS[learner][1] is MF:
        results["by_start"] = errors_by_start(model, test)
    write_record(record, settings | results)
    print(f"{name}: {results['test']}", flush=True)


def callbacks_of(settings, validation, progress, best, backup):
    """Returns the callbacks of a run; those that log come first."""
    callbacks = [
        progress,
        keras.callbacks.ModelCheckpoint(
            best,
            monitor="val_pixel_error",
            mode="min",
            save_best_only=True,
            save_weights_only=True,
            initial_value_threshold=min(progress.validation, default=None),
        ),
    ]
    if settings["learner"] in SCHEDULED:
        schedule = kr.callbacks.IterationSchedule(lambda epoch: 7 + epoch)
        callbacks.insert(0, schedule)
    if settings["learner"] == "MLE-BP":
        callbacks.insert(0, kr.callbacks.BPConvergence(validation.take(1)))
    callbacks.insert(0, ValidationError(validation))
    if settings["optimizer"] == "average":  # a cut run begins again
        return [keras.callbacks.SwapEMAWeights(swap_on_epoch=True), *callbacks]
    backups = keras.callbacks.BackupAndRestore(backup, double_checkpoint=True)
    return [*callbacks, backups]


def main():
    args = parse_arguments()
    folder, records = pathlib.Path(args.out), pathlib.Path(args.records)
    for path in (folder, records):
        path.mkdir(parents=True, exist_ok=True)
    fixed = {"batch_size": args.batch_size, "hidden_units": args.hidden}
    grid = (args.tasks, args.corruption, args.learners, args.optimizers)
    for task, corruption, learner, optimizer in itertools.product(*grid):
        for rate in args.rates or [LEARNERS[learner][2]]:
            settings = {
                "task": task,
                "corruption": corruption,
                "learner": learner,
                "optimizer": optimizer,
                "rate": rate,
                "epochs": args.epochs or EPOCHS[ALL_TASKS[task][0], corruption],
            }
            extra = {"start": "input"} if LEARNERS[learner][1] is MF else {}
            if optimizer == "decay":
                extra["weight_decay"] = args.weight_decay
            if args.sweeps and learner.startswith("CD"):
                extra["sweeps"] = args.sweeps
            run(settings | fixed | extra, folder, records, args.patience)


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", nargs="+", choices=ALL_TASKS, default=list(TASKS))
    parser.add_argument(
        "--learners", nargs="+", choices=LEARNERS, default=list(LEARNERS)
    )
    parser.add_argument(
        "--corruption",
        nargs="+",
        choices=("fixed", "fresh"),
        default=["fixed", "fresh"],
    )
    parser.add_argument(
        "--optimizers", nargs="+", choices=OPTIMIZERS, default=["momentum"]
    )
    parser.add_argument("--rates", nargs="+", type=float, help="default: by learner")
    parser.add_argument("--weight-decay", type=float, default=0.01, help='of "decay"')
    parser.add_argument(
        "--sweeps", type=int, help="of mean field, for CD; 50 or the tolerance if none"
    )
    parser.add_argument("--batch-size", type=int, default=40)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--patience", type=int, default=4, help="epochs")
    parser.add_argument("--epochs", type=int, help="default: by data set")
    parser.add_argument("--out", default="out/structured_prediction")
    parser.add_argument("--records", default="docs/results/structured_prediction")
    return parser.parse_args()


if __name__ == "__main__":
    main()
