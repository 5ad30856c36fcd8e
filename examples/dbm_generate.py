"""Train a deep Boltzmann machine, bound its likelihood, and draw from it.

    python examples/dbm_generate.py
    python examples/dbm_generate.py --dataset mnist

Joint training of two hidden layers from small random weights, by the centered gradient.
Prints the variational bound of the test set's log-likelihood with its error, and writes
`samples.png` (what chains make of test images in 1000 sweeps), `scores.json` and
`model.keras`.
"""

import argparse
import json
import pathlib
import time

import keras
import numpy as np
from progress import Progress

import keras_rbm as kr
from keras_rbm import plots

RECIPES = {
    "digits": dict(layers=[128, 64], epochs=200, learning_rate=0.2, gibbs_steps=5),
    "mnist": dict(
        layers=[500, 1000], epochs=90, learning_rate=0.05, batch_size=100, mean_field=5
    ),
}


def main():
    args = parse_arguments()
    out = pathlib.Path(args.out or f"out/dbm_{args.dataset}")
    out.mkdir(parents=True, exist_ok=True)
    intensities = kr.datasets.load(args.dataset, "train")
    test = kr.datasets.load(
        args.dataset, "test", binarize="sample", redraw=False, seed=args.seed
    ).batch(1000)

    steps = args.epochs * -(-len(intensities) // args.batch_size)
    schedule = keras.optimizers.schedules.PolynomialDecay(
        args.learning_rate, steps, end_learning_rate=0.0
    )
    optimizer = keras.optimizers.SGD(schedule)
    order = {"seed": args.seed, "iterations": optimizer.iterations}
    train = kr.datasets.shuffled_batches(intensities, args.batch_size, **order)
    train = kr.datasets.binarize(train, "sample", **order)

    mean_field = kr.inference.MeanField(max_iterations=args.mean_field)
    dbm = kr.DBM(
        args.layers, inference=mean_field, kernel_regularizer=None, seed=args.seed
    )
    dbm.adapt(intensities)
    rule = kr.rules.PersistentContrastiveDivergence(
        args.gibbs_steps, num_chains=args.chains, centered=True
    )
    dbm.compile(optimizer, rule=rule)
    start = time.perf_counter()
    dbm.fit(train, epochs=args.epochs, callbacks=[Progress()], verbose=0)
    minutes = (time.perf_counter() - start) / 60.0

    dbm.inference = "mean_field"  # more sweeps than training has
    print("\nlog Z by annealed importance sampling, 100 chains:")
    z = dbm.log_partition("ais", precision=args.precision)
    bound = float(np.mean(dbm.log_likelihood_bound(test, log_partition=z)))
    lower, upper = (bound + float(z.value - end) for end in (z.upper, z.lower))
    print(f"""
Bound of the test log-likelihood, nats per example, after {minutes:.1f} minutes:
  {bound:9.2f}  [{lower:.2f}, {upper:.2f}]  mean field and AIS, {args.dataset} test set
             too low by what mean field misses; the interval is that of log Z""")
    record = vars(args) | {"minutes": round(minutes, 1), "bound": bound}
    record |= {"lower": lower, "upper": upper}
    (out / "scores.json").write_text(json.dumps(record, indent=1) + "\n")

    some = next(iter(test))[:100]
    states = dbm.sample(100, steps=1000, initial_visible=some, seed=args.seed)
    samples = dbm.reconstruct(states)
    plots.samples(samples, title="Test images after 1000 sweeps").savefig(
        out / "samples.png"
    )
    dbm.inference = mean_field  # as trained, to go on
    dbm.save(out / "model.keras")
    print(f"\nWrote samples.png, scores.json, model.keras to {out}")


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dataset", choices=sorted(RECIPES), default="digits")
    parser.add_argument("--layers", type=int, nargs="+", help="hidden units")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--batch-size", type=int, default=50)
    parser.add_argument("--learning-rate", type=float, help="falls to 0 linearly")
    parser.add_argument("--chains", type=int, default=100)
    parser.add_argument("--gibbs-steps", type=int, default=1)
    parser.add_argument("--mean-field", type=int, default=10, help="sweeps in training")
    parser.add_argument("--precision", type=float, default=0.1, help="of log Z, nats")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", help="folder, by default out/dbm_<dataset>")
    dataset = parser.parse_known_args()[0].dataset
    parser.set_defaults(**RECIPES[dataset])
    return parser.parse_args()


if __name__ == "__main__":
    main()
