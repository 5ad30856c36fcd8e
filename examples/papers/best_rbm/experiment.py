"""The best RBM of 500 hidden units on binarized MNIST in 20 minutes on 2 cores.

    python -m examples.papers.best_rbm.experiment

Published, for CD-25 in far more time: -86.3 nats by AIS (Salakhutdinov, Murray 2008).
Persistent chains, some of them with ladders of tempered replicas, and a learning rate
that falls to 0 so that the chains come to rest where the model is. The scores go to a
file in `--records`.
"""

import argparse
import pathlib
import time

import keras
import numpy as np

import keras_rbm as kr
from examples.papers.records import write_record

#: Most temperatures go to where the annealed model changes most.
BETAS = [(0.5, 500), (0.9, 4000), (1.0, 5500)]


def main():
    args = parse_arguments()
    fixed = dict(binarize="sample", redraw=False, seed=0)
    intensities = kr.datasets.load("mnist", "train")
    test = kr.datasets.load("mnist", "test", **fixed).batch(1000)

    steps = args.epochs * -(-len(intensities) // args.batch_size)
    schedule = keras.optimizers.schedules.PolynomialDecay(
        args.learning_rate, steps, end_learning_rate=0.0
    )
    optimizer = keras.optimizers.SGD(schedule)
    order = {"seed": 0, "iterations": optimizer.iterations}
    train = kr.datasets.shuffled_batches(intensities, args.batch_size, **order)
    train = kr.datasets.binarize(train, "sample", **order)

    rbm = kr.RBM(500, kernel_regularizer=None, seed=0)
    rbm.adapt(intensities)
    chains = {"num_chains": args.chains, "centered": not args.plain}
    rule = (
        kr.rules.ParallelTempering(args.gibbs_steps, num_ladders=args.ladders, **chains)
        if args.ladders
        else kr.rules.PersistentContrastiveDivergence(args.gibbs_steps, **chains)
    )
    rbm.compile(optimizer, rule=rule, steps_per_execution=10)
    start = time.perf_counter()
    score = kr.callbacks.LogLikelihood(
        test, every=max(1, args.epochs // 10), method="ais"
    )
    rbm.fit(train, epochs=args.epochs, callbacks=[score], verbose=2)
    minutes = (time.perf_counter() - start) / 60.0

    annealing = rbm.anneal(num_chains=100, betas=BETAS, progress=True)
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
    record = vars(args) | {
        "minutes": round(minutes, 1),
        "log_likelihood": float(likelihood),
        "lower": float(likelihood + z.value - z.upper),
        "upper": float(likelihood + z.value - z.lower),
        "of_the_same": float(np.mean(rbm.log_likelihood(some, log_partition=z))),
        "raise": float(np.mean(annealed)),
        "raise_error": float(np.std(annealed) / np.sqrt(len(annealed))),
    }
    records = record.pop("records")
    records.mkdir(parents=True, exist_ok=True)
    name = ".".join(str(value) for key, value in vars(args).items() if key != "records")
    write_record(records / f"{name}.json", record)
    print(f"""
MNIST, binarized at random, test set, nats per example, after {minutes:.1f} minutes:
  {likelihood:8.2f}  [{record["lower"]:.2f}, {record["upper"]:.2f}]  AIS
  {record["raise"]:8.2f}  ± {record["raise_error"]:.2f}  RAISE, 100 examples
            (AIS on the same: {record["of_the_same"]:.2f})""")


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--epochs", type=int, default=300)
    parser.add_argument("--learning-rate", type=float, default=0.1)
    parser.add_argument("--batch-size", type=int, default=100)
    parser.add_argument("--chains", type=int, default=100)
    parser.add_argument("--gibbs-steps", type=int, default=1)
    parser.add_argument("--ladders", type=int, default=10, help="0 for PCD")
    parser.add_argument("--plain", action="store_true", help="not centered")
    records = pathlib.Path("docs/results/best_rbm")
    parser.add_argument("--records", type=pathlib.Path, default=records)
    return parser.parse_args()


if __name__ == "__main__":
    main()
