"""Times growing an RBM to 200 units against training one of that size by CD-10.

Both on the 50,000 thresholded MNIST digits, in turns in one process: a tenth of the
units, then a tenth of the epochs. Compilation is not counted, nor the first unit,
which comes with it. Beside the times stands what they buy: test log-likelihoods by
annealed importance sampling.

Run: python examples/benchmarks/frank_wolfe.py
"""

import argparse
import time

import keras
import numpy as np

import keras_rbm as kr

TURNS = 10


def main():
    arguments = parse_arguments()
    units = arguments.units
    train, test = (
        np.concatenate(list(split.batch(10_000).as_numpy_iterator()))
        for split in (
            kr.datasets.load("mnist", name, binarize="threshold")
            for name in ("train", "test")
        )
    )
    penalty = keras.optimizers.schedules.InverseTimeDecay(0.08, 50, 1.0)
    grown = kr.InfiniteRBM(units + 1, seed=0)
    grown.adapt(train)
    options = {"num_samples": arguments.samples, "num_starts": 1}
    grown.compile(rule=kr.rules.FrankWolfe(penalty, **options))
    rows = np.random.default_rng(0)

    def grow():
        batch = train[rows.choice(len(train), arguments.batch_size, replace=False)]
        grown.train_on_batch(batch)

    grow()

    trained = kr.RBM(units, kernel_regularizer=None, seed=0)
    trained.adapt(train)
    trained.compile(
        keras.optimizers.SGD(0.05), rule=kr.rules.ContrastiveDivergence(10),
        steps_per_execution=10,
    )  # fmt: skip
    trained.fit(train[:1000], batch_size=100, verbose=0)

    growing = training = 0.0
    epochs = arguments.epochs // TURNS
    for turn in range(TURNS):
        start = time.perf_counter()
        wanted = units * (turn + 1) // TURNS
        for _ in range(units):  # of which it takes some, unless all are rejected
            if grown.hidden_units >= wanted:
                break
            grow()
        else:
            raise SystemExit(f"Ended with {grown.hidden_units} units of {wanted}.")
        growing += time.perf_counter() - start
        start = time.perf_counter()
        trained.fit(train, batch_size=100, epochs=epochs, verbose=0)
        training += time.perf_counter() - start
        print(
            f"{grown.hidden_units} units: {growing:.0f} s, "
            f"{(turn + 1) * epochs} epochs: {training:.0f} s",
            flush=True,
        )

    print("\n| model | time, s | ratio | test log-likelihood, nats |")
    print("| --- | --- | --- | --- |")
    for name, model, seconds in (
        (f"Frank-Wolfe, {units} units", grown.to_rbm(), growing),
        (f"CD-10, {units} units, {TURNS * epochs} epochs", trained, training),
    ):
        z = model.log_partition("ais", precision=0.1)
        score = np.mean(model.log_likelihood(test, log_partition=z))
        error = float(z.stderr)
        print(
            f"| {name} | {seconds:.0f} | {seconds / training:.2f} | "
            f"{score:.2f} ± {error:.2f} |"
        )


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--units", type=int, default=200)
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument(
        "--samples", type=int, default=5000, help="Frank-Wolfe's chains"
    )
    parser.add_argument("--batch-size", type=int, default=10_000, help="Frank-Wolfe's")
    arguments = parser.parse_args()
    if min(arguments.units, arguments.epochs) < TURNS:
        parser.error(f"--units and --epochs must be at least {TURNS}")
    return arguments


if __name__ == "__main__":
    main()
