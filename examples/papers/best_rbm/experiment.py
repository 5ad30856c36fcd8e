"""The best RBMs of 500 hidden units: of MNIST, Caltech silhouettes and OMNIGLOT.

    python -m examples.papers.best_rbm.experiment
    python -m examples.papers.best_rbm.experiment caltech --data FOLDER
    python -m examples.papers.best_rbm.experiment omniglot --data FOLDER

Persistent chains, some of them with ladders of tempered replicas, and a learning rate
that falls to 0 so that the chains come to rest where the model is. Scores of test
images, and a picture of samples and filters, go to files in `--records`.

`--data` is the folder of Caltech's .mat file or of OMNIGLOT's images_*.npz.
"""

import argparse
import pathlib
import time

import keras
import numpy as np
import tensorflow as tf

import keras_rbm as kr
from examples.papers.dc_programming.large import drawings
from examples.papers.records import write_record

#: What is good for each data set; every number can be changed on the command line.
RECIPES = {
    "mnist": {"epochs": 370, "learning_rate": 0.1},
    "caltech": {"epochs": 1000, "learning_rate": 0.03, "stddev": 0.2},
    "omniglot": {"epochs": 300, "learning_rate": 0.05},
}


def main():
    args = parse_arguments()
    intensities, images, test = load(args.set, args.data)

    steps = args.epochs * -(-len(intensities) // args.batch_size)
    schedule = keras.optimizers.schedules.PolynomialDecay(
        args.learning_rate, steps, end_learning_rate=0.0
    )
    optimizer = keras.optimizers.SGD(schedule)
    order = {"seed": 0, "iterations": optimizer.iterations}
    train = kr.datasets.shuffled_batches(intensities, args.batch_size, **order)
    train = kr.datasets.binarize(train, "sample", **order)

    regularizer = kr.regularizers.NormalPrior(args.stddev) if args.stddev else None
    rbm = kr.RBM(500, kernel_regularizer=regularizer, seed=0)
    rbm.adapt(intensities)
    rule = kr.rules.ParallelTempering(args.gibbs_steps, args.chains)
    rbm.compile(optimizer, rule=rule, steps_per_execution=10)
    start = time.perf_counter()
    rbm.fit(train, epochs=args.epochs, verbose=2)
    minutes = (time.perf_counter() - start) / 60.0

    record = {key: value for key, value in vars(args).items() if key != "data"}
    records = record.pop("records")
    records.mkdir(parents=True, exist_ok=True)
    draw(rbm, images, records / f"{args.set}.png")

    annealing = rbm.anneal(precision=0.05)
    z = annealing.ais
    likelihood = np.mean(rbm.log_likelihood(test, log_partition=z))
    some = next(iter(test))[:100]
    annealed = kr.inference.annealed_log_likelihood(
        rbm.potentials(),
        some,
        base=annealing.base,
        betas=annealing.betas,
        num_chains=10,
    )
    ladder, both = rbm.log_partition("tempering"), annealing.bidirectional
    record |= {
        "minutes": round(minutes, 1),
        "log_likelihood": float(likelihood),
        "lower": float(likelihood + z.value - z.upper),
        "upper": float(likelihood + z.value - z.lower),
        "both_ways": [
            float(likelihood + z.value - end)
            for end in (both.value, both.upper, both.lower)
        ],
        "by_ladder": float(likelihood + z.value - ladder.value),
        "of_the_same": float(np.mean(rbm.log_likelihood(some, log_partition=z))),
        "raise": float(np.mean(annealed)),
        "raise_error": float(np.std(annealed) / np.sqrt(len(annealed))),
    }
    write_record(records / f"{args.set}.json", record)
    print(f"""
{args.set}, binarized at random, test set, nats per image, after {minutes:.1f} minutes:
  {likelihood:8.2f}  [{record["lower"]:.2f}, {record["upper"]:.2f}]  AIS
  {record["both_ways"][0]:8.2f}  annealing both ways
  {record["by_ladder"]:8.2f}  the rule's ladders
  {record["raise"]:8.2f}  ± {record["raise_error"]:.2f}  RAISE, 100 images
            (AIS on the same: {record["of_the_same"]:.2f})""")


def load(name, data):
    """Returns intensities to learn from, ten of them as images, and test batches."""
    fixed = {"binarize": "sample", "redraw": False, "seed": 0}
    if name == "omniglot":
        train, test = (drawings(data, split) for split in ("train", "test"))
        test = kr.datasets.binarize(test.batch(1000), "sample", seed=0).cache()
    else:
        name, options = (
            ("caltech101_silhouettes", {"manual_dir": data})
            if name == "caltech"
            else (name, {})
        )
        train = kr.datasets.load(name, "train", **options)
        if name == "mnist":  # all 60,000 images, as in what is published
            train = train.concatenate(kr.datasets.load(name, "validation"))
        test = kr.datasets.load(name, "test", **fixed, **options).batch(1000)
    return train, np.stack([*train.take(10).as_numpy_iterator()]), test


def draw(rbm, images, path):
    """Saves a picture of data, samples in means, and the largest filters."""
    samples = rbm.sample(10, method="tempering", steps=2000, seed=0)
    filters = np.transpose(rbm.kernel)
    size = np.linalg.norm(filters, axis=1)
    filters = filters[np.argsort(-size)[::25][:10]]
    filters = 0.5 + 0.5 * filters / np.abs(filters).max(1, keepdims=True)
    rows = {"data": images, "samples": rbm.reconstruct(samples), "filters": filters}
    figure = kr.plots.comparison({k: tf.cast(v, tf.float32) for k, v in rows.items()})
    figure.savefig(path, dpi=140)


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("set", nargs="?", choices=RECIPES, default="mnist")
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--learning-rate", type=float)
    parser.add_argument("--stddev", type=float, default=0.0, help="of a prior; 0: none")
    parser.add_argument("--batch-size", type=int, default=100)
    parser.add_argument("--chains", type=int, default=100)
    parser.add_argument("--gibbs-steps", type=int, default=1)
    records = pathlib.Path("docs/results/best_rbm")
    parser.add_argument("--records", type=pathlib.Path, default=records)
    chosen = parser.parse_known_args()[0].set
    parser.set_defaults(**RECIPES[chosen])
    return parser.parse_args()


if __name__ == "__main__":
    main()
