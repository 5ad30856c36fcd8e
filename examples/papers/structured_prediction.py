"""Reproduces the tables of Ping & Ihler (2017): eight learners on six tasks.

    python examples/papers/structured_prediction.py --learners MLE-BP
    python examples/papers/structured_prediction.py --report

A run is one learner on one task at one learning rate and batch size. It stops early on
the validation error, and writes its history and, with the weights of the best epoch,
its test error to one JSON file. Interrupted, it goes on where it was; finished, it is
skipped. `--report` picks each cell's run by validation error alone and writes the page
with the published figures beside ours.

The paper does not say whether an image is corrupted once or anew in each epoch:
`--corruption fixed` and `fresh` are kept apart.
"""

import argparse
import itertools
import json
import pathlib
import time

import keras
import structured_prediction_report
from structured_prediction_report import TASKS

import keras_rbm as kr

BP, MF = kr.inference.BeliefPropagation, kr.inference.MeanField
RULES = kr.rules
# Name: rule, inference, epochs at most.
LEARNERS = {
    "LR": (None, None, 50),
    "CD-1": (lambda: RULES.ContrastiveDivergence(1), MF, 200),
    "CD-10": (lambda: RULES.ContrastiveDivergence(10), MF, 200),
    "CD-PercLoss": (lambda: RULES.ContrastiveDivergencePerceptron(10), MF, 200),
    "MLE-MF": (RULES.MaximumLikelihood, MF, 50),
    "MLE-BP": (RULES.MaximumLikelihood, BP, 50),
    "LSSVM": (RULES.MaxMargin, lambda: BP("max_product"), 50),
    "MSSVM": (RULES.MaxMargin, lambda: BP("mixed_product"), 50),
}


def corruption_of(task):
    """Returns a task's corruption: flips, or a square of background."""
    dataset, kind, amount = TASKS[task][:3]
    if kind == "noisy":
        return kr.datasets.flip(amount / 100)
    background = 1.0 if dataset == "caltech101_silhouettes" else 0.0
    return kr.datasets.occlude(amount, background)


def pairs_of(task, split, iterations, batch_size, redraw):
    """Returns batches of a task's (corrupted, clean) pairs."""
    clean = kr.datasets.load(TASKS[task][0], split, binarize="threshold")
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


def make_model(learner, rate, hidden_units):
    """Returns a compiled model; every loss is a sum over an image's pixels."""
    make_rule, make_inference, _ = LEARNERS[learner]
    optimizer = keras.optimizers.SGD(rate)
    metrics = [kr.metrics.PixelError()]
    if make_rule is None:
        model = keras.Sequential(
            [keras.Input((784,)), keras.layers.Dense(784, "sigmoid")]
        )
        model.compile(optimizer, loss=_summed_cross_entropy, metrics=metrics)
    else:
        model = kr.CRBM(hidden_units, inference=make_inference(), seed=0)
        model.compile(optimizer, rule=make_rule(), metrics=metrics)
    return model


def _summed_cross_entropy(y_true, y_pred):
    return 784.0 * keras.losses.binary_crossentropy(y_true, y_pred)


def test_errors(model, pairs):
    """Returns a model's per cent of wrong pixels, all and changed."""
    every, changed = kr.metrics.PixelError(), kr.metrics.ChangedPixelError()
    for noisy, clean in pairs:
        restored = model.predict_on_batch(noisy)
        changed.observe(noisy)
        every.update_state(clean, restored)
        changed.update_state(clean, restored)
    return {"all": float(every.result()), "changed": float(changed.result())}


class Progress(keras.callbacks.Callback):
    """Writes the history after every epoch, and reads it again after a cut."""

    def __init__(self, path, settings):
        super().__init__()
        self.path, self.settings = path, settings
        record = json.loads(path.read_text()) if path.exists() else {}
        self.epochs = record.get("epochs", [])

    def on_epoch_begin(self, epoch, logs=None):
        self.start = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        seconds = time.perf_counter() - self.start
        row = {name: float(value) for name, value in logs.items()}
        self.epochs[epoch:] = [row | {"seconds": seconds}]
        self.write()

    def write(self, **results):
        record = self.settings | results | {"epochs": self.epochs}
        self.path.write_text(json.dumps(record, indent=1))


def run(task, learner, corruption, rate, batch_size, hidden_units, out, patience):
    """Trains one model, unless its file says that it has been trained."""
    name = f"{task}.{corruption}.{learner}.{rate}.{batch_size}.{hidden_units}"
    path = out / f"{name}.json"
    if path.exists() and "test" in json.loads(path.read_text()):
        return
    print(f"\n{name}", flush=True)
    settings = {
        "task": task,
        "learner": learner,
        "corruption": corruption,
        "rate": rate,
        "batch_size": batch_size,
        "hidden_units": hidden_units,
    }
    model = make_model(learner, rate, hidden_units)
    redraw = corruption == "fresh"
    iterations = model.optimizer.iterations
    train = pairs_of(task, "train", iterations, batch_size, redraw)
    validation = pairs_of(task, "validation", None, 500, False)
    best = out / f"{name}.weights.h5"
    progress = Progress(path, settings)
    watched = {"monitor": "val_pixel_error", "mode": "min"}
    errors = [epoch["val_pixel_error"] for epoch in progress.epochs]
    threshold = min(errors, default=None)
    stopping = keras.callbacks.EarlyStopping(patience=patience, **watched)
    callbacks = [
        progress,
        keras.callbacks.ModelCheckpoint(
            best,
            save_best_only=True,
            save_weights_only=True,
            initial_value_threshold=threshold,
            **watched,
        ),
        stopping,
        keras.callbacks.BackupAndRestore(
            out / f"{name}.backup", double_checkpoint=True
        ),
    ]
    if learner in ("MLE-BP", "MLE-MF", "LSSVM", "MSSVM"):
        callbacks.append(kr.callbacks.IterationSchedule(lambda epoch: 7 + epoch))
    if learner == "MLE-BP":
        some = validation.take(1)
        callbacks.insert(0, kr.callbacks.BPConvergence(some))
    model.fit(
        train,
        validation_data=validation,
        epochs=LEARNERS[learner][2],
        callbacks=callbacks,
        verbose=2,
    )
    model.load_weights(best)
    chosen = min(range(len(progress.epochs)), key=lambda i: _validation(progress, i))
    if hasattr(model, "inference") and learner not in ("CD-1", "CD-10", "CD-PercLoss"):
        model.inference.max_iterations = 7 + chosen  # as many sweeps as in training
    errors = test_errors(model, pairs_of(task, "test", None, 500, False))
    validation_error = _validation(progress, chosen)
    progress.write(test=errors, validation=validation_error, best_epoch=chosen + 1)
    print(f"{name}: {errors}", flush=True)


def _validation(progress, epoch):
    return progress.epochs[epoch]["val_pixel_error"]


def main():
    args = parse_arguments()
    out = pathlib.Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    if args.report:
        structured_prediction_report.write(out, pathlib.Path(args.page))
        return
    grid = (args.tasks, args.learners, args.corruption, args.rates, args.batch_sizes)
    for combination in itertools.product(*grid):
        run(*combination, args.hidden, out, args.patience)


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument(
        "--learners", nargs="+", choices=LEARNERS, default=list(LEARNERS)
    )
    parser.add_argument(
        "--corruption",
        nargs="+",
        choices=("fixed", "fresh"),
        default=["fixed", "fresh"],
    )
    parser.add_argument("--rates", nargs="+", type=float, default=[0.1, 0.05, 0.02])
    parser.add_argument("--batch-sizes", nargs="+", type=int, default=[40])
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--patience", type=int, default=4, help="epochs")
    parser.add_argument("--out", default="out/structured_prediction")
    parser.add_argument("--report", action="store_true", help="write the page, no run")
    parser.add_argument("--page", default="docs/results/structured_prediction.md")
    return parser.parse_args()


if __name__ == "__main__":
    main()
