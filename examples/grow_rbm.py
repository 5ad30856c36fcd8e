"""Grow a restricted Boltzmann machine unit by unit, and see when to stop.

    python examples/grow_rbm.py
    python examples/grow_rbm.py --dataset mnist --units 200

Prints units, gain, free-energy gap and likelihood as they grow and writes `growth.png`
(likelihood against the number of units), `filters.png` (in order of insertion),
`samples.png`, and `rbm.keras`, the result as an RBM to train further.
"""

import argparse
import pathlib

import keras
import matplotlib.pyplot as plt
import numpy as np

import keras_rbm as kr
from keras_rbm import plots

# What is good for each data set; every figure can be changed on the command line.
# The penalty of a unit is the first one, divided by 1 + units / halving. Better and
# slower for MNIST: --l2 0.04 --samples 20000 --batch-size 50000.
RECIPES = {
    "digits": dict(units=60, batch_size=1197, l2=0.05, halving=20, samples=2000),
    "mnist": dict(units=200, batch_size=10_000, l2=0.08, halving=50, samples=5000),
    "caltech101_silhouettes": dict(
        units=200, batch_size=4100, l2=0.3, halving=50, samples=5000
    ),
}


def main():
    args = parse_arguments()
    out = pathlib.Path(args.out or f"out/grow_{args.dataset}")
    out.mkdir(parents=True, exist_ok=True)

    # Data: binary vectors, all in memory: a step sees thousands of them at once.
    train, validation, test = (
        as_array(kr.datasets.load(args.dataset, split, binarize="threshold"))
        for split in ("train", "validation", "test")
    )
    part = train[: len(validation)]

    # Model: a step, one batch, adds one unit. Growing ends with the validation
    # likelihood, and the best model is restored.
    penalty = keras.optimizers.schedules.InverseTimeDecay(args.l2, args.halving, 1.0)
    grown = kr.InfiniteRBM(args.units, seed=args.seed)
    grown.adapt(train)
    grown.compile(rule=kr.rules.FrankWolfe(penalty, num_samples=args.samples))
    history = grown.fit(
        train,
        batch_size=args.batch_size,
        epochs=10 * args.units,  # until there are so many units
        callbacks=[
            kr.callbacks.FreeEnergyGap(part, validation),
            kr.callbacks.LogLikelihood(validation),
            Rows(),
            keras.callbacks.EarlyStopping(
                "log_likelihood",
                mode="max",
                patience=args.patience,
                restore_best_weights=True,
            ),
        ],
        verbose=0,
    )

    if not grown.hidden_units:
        print("\nNo unit gained enough. Try a smaller --l2.")
        return
    z = grown.log_partition("ais", precision=args.precision)
    score = np.mean(grown.log_likelihood(test, log_partition=z))
    print(
        f"\nFound: {grown.hidden_units} units, with a test log-likelihood of "
        f"{score:.2f} nats [{score + z.value - z.upper:.2f}, "
        f"{score + z.value - z.lower:.2f}], by AIS, pixels set by a threshold"
    )
    curve(history.history).savefig(out / "growth.png", dpi=120)
    plots.filters(grown).savefig(out / "filters.png")
    states = grown.sample(100, steps=1000, initial_visible=test[:100], seed=args.seed)
    plots.samples(grown.reconstruct(states), title="Samples").savefig(
        out / "samples.png"
    )
    grown.to_rbm().save(out / "rbm.keras")
    print(f"Wrote growth.png, filters.png, samples.png and rbm.keras to {out}")


class Rows(keras.callbacks.Callback):
    """Prints a row of a table after each epoch."""

    def on_train_begin(self, logs=None):
        self.units = 0
        print("units  last step's gain  free-energy gap  validation log-likelihood")

    def on_epoch_end(self, epoch, logs=None):
        added = logs["hidden_units"] > self.units
        self.units = logs["hidden_units"]
        gain = f"{logs['gain']:16.3f}" if added else f"{'rejected':>16}"
        print(
            f"{logs['hidden_units']:5.0f}  {gain}  "
            f"{logs['free_energy_gap']:15.3f}  {logs['log_likelihood']:25.2f}",
            flush=True,
        )


def as_array(dataset):
    return np.concatenate(list(dataset.batch(1000).as_numpy_iterator()))


def curve(history):
    """Draws likelihood and free-energy gap against the number of units."""
    figure, (likelihood, gap) = plt.subplots(
        1, 2, figsize=(8.0, 3.2), layout="constrained"
    )
    units = history["hidden_units"]
    likelihood.plot(units, history["log_likelihood"])
    likelihood.set(xlabel="hidden units", ylabel="validation log-likelihood, nats")
    gap.plot(units, history["free_energy_gap"])
    gap.set(xlabel="hidden units", ylabel="free-energy gap, nats")
    for axes in (likelihood, gap):
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dataset", choices=sorted(RECIPES), default="digits")
    parser.add_argument("--units", type=int, help="hidden units at most")
    parser.add_argument("--batch-size", type=int, help="examples for each unit")
    parser.add_argument("--l2", type=float, help="penalty of the first unit")
    parser.add_argument("--halving", type=int, help="units that halve the penalty")
    parser.add_argument("--samples", type=int, help="number of chains")
    parser.add_argument(
        "--patience", type=int, default=5, help="epochs without a better likelihood"
    )
    parser.add_argument("--precision", type=float, help="of log Z, nats")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", help="folder, by default out/grow_<dataset>")
    dataset = parser.parse_known_args()[0].dataset
    parser.set_defaults(**RECIPES[dataset])
    return parser.parse_args()


if __name__ == "__main__":
    main()
