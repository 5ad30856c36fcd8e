"""Classify digits by a deep belief network that is fine-tuned by backpropagation.

    python examples/dbn_classifier.py
    python examples/dbn_classifier.py --dataset mnist --labels 1000 0

Trains a stack of RBMs on all training images without their labels, then the network
that starts with their weights on those with labels, beside the same network started at
random. Prints the errors on the test set and writes `scores.json` and `filters.png`.
"""

import argparse
import json
import pathlib

import keras
import numpy as np
from progress import Progress

import keras_rbm as kr
from keras_rbm import plots

RECIPES = {
    "digits": dict(layers=[200, 200], epochs=[40, 20], tuning=100, batch_size=20),
    "mnist": dict(layers=[500, 500, 2000], epochs=[50, 30, 20], tuning=40),
}


def main():
    args = parse_arguments()
    out = pathlib.Path(args.out or f"out/dbn_{args.dataset}")
    out.mkdir(parents=True, exist_ok=True)
    (images, labels), validation, test = (
        load(args.dataset, split) for split in ("train", "validation", "test")
    )

    # Without labels: each RBM on what the one below makes of the images.
    dbn = kr.DBN(
        [
            kr.RBM(size, kernel_regularizer=None, seed=args.seed + i)
            for i, size in enumerate(args.layers)
        ]
    )
    dbn.adapt(images)
    dbn.compile(
        keras.optimizers.SGD(args.learning_rate, momentum=0.5),
        rule=kr.rules.ContrastiveDivergence(centered=False),
    )
    dbn.fit(
        images,
        epochs=args.epochs,
        batch_size=args.batch_size,
        callbacks=lambda index: [Progress()],
        verbose=0,
    )
    plots.filters(dbn.rbms[0]).savefig(out / "filters.png")

    # With labels: from the stack's weights, and from random ones.
    order = np.random.default_rng(args.seed).permutation(len(images))
    errors = {}
    for count in args.labels:
        chosen = order[: count or None]
        for start in ("pretrained", "random"):
            keras.utils.set_random_seed(args.seed)
            network = dbn.to_classifier(10, dropout=args.dropout)
            if start == "random":
                network = keras.models.clone_model(network)
            print(f"\nFine-tuning, {start} start, {len(chosen)} labels")
            errors[f"{start}, {len(chosen)} labels"] = tuned_error(
                network, images[chosen], labels[chosen], validation, test, args
            )
    print("\ntest error, ± its standard error")
    for start, error in errors.items():
        spread = (error * (100.0 - error) / len(test[0])) ** 0.5
        print(f"{error:6.2f} ± {spread:.2f} % {start}")
    few = min(len(order[: count or None]) for count in args.labels)
    pretrained, random = (
        errors[f"{start}, {few} labels"] for start in ("pretrained", "random")
    )
    print(
        f"\nFound: with {few} labels the pretrained network makes {pretrained:.1f} % "
        f"errors, from random weights {random:.1f} %."
    )
    record = vars(args) | {"errors": errors}
    (out / "scores.json").write_text(json.dumps(record, indent=1) + "\n")
    print(f"\nWrote scores.json, filters.png to {out}")


def load(name, split):
    """Returns a split's images and labels as arrays."""
    data = kr.datasets.load(name, split, with_labels=True)
    images, labels = zip(*data.batch(1000).as_numpy_iterator(), strict=True)
    return np.concatenate(images), np.concatenate(labels)


def tuned_error(network, images, labels, validation, test, args):
    """Trains a classifier; returns its test error, in percent, at the best epoch."""
    steps = -(-len(images) // args.batch_size)
    epochs = max(args.tuning, args.least_steps // steps)
    schedule = keras.optimizers.schedules.CosineDecay(args.tuning_rate, epochs * steps)
    network.compile(
        keras.optimizers.Adam(schedule),
        "sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    best = keras.callbacks.EarlyStopping(
        "val_accuracy", patience=epochs, restore_best_weights=True
    )
    network.fit(
        images,
        labels,
        batch_size=args.batch_size,
        epochs=epochs,
        validation_data=validation,
        callbacks=[best],
        verbose=0,
    )
    return round(100.0 * (1.0 - network.evaluate(*test, verbose=0)[1]), 3)


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dataset", choices=sorted(RECIPES), default="digits")
    parser.add_argument(
        "--labels", type=int, nargs="+", default=[100], help="how many; 0 for all"
    )
    parser.add_argument("--layers", type=int, nargs="+", help="hidden units")
    parser.add_argument("--epochs", type=int, nargs="+", help="of each RBM")
    parser.add_argument("--learning-rate", type=float, default=0.05, help="of the RBMs")
    parser.add_argument("--batch-size", type=int, default=100)
    parser.add_argument("--tuning", type=int, help="epochs with labels")
    parser.add_argument(
        "--least-steps", type=int, default=1000, help="with labels, if these are few"
    )
    parser.add_argument("--tuning-rate", type=float, default=0.001, help="of Adam")
    parser.add_argument("--dropout", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", help="folder, by default out/dbn_<dataset>")
    dataset = parser.parse_known_args()[0].dataset
    parser.set_defaults(**RECIPES[dataset])
    return parser.parse_args()


if __name__ == "__main__":
    main()
