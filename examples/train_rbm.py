"""Train a restricted Boltzmann machine, score it, and look at it.

    python examples/train_rbm.py
    python examples/train_rbm.py --dataset mnist --hidden 500

Prints the log-likelihood of the test set in two independent ways and writes
`filters.png`, `samples.png`, `history.png` and `model.keras`.
"""

import argparse
import pathlib

import keras
import numpy as np
from progress import Progress

import keras_rbm as kr
from keras_rbm import plots

# What is good for each data set; every figure can be changed on the command line.
# The learning rate is the first one and falls linearly to 0.
RECIPES = {
    "digits": dict(hidden=128, epochs=150, batch_size=50, learning_rate=0.2),
    "mnist": dict(hidden=500, epochs=100, learning_rate=0.05, gibbs_steps=1),
    "binarized_mnist": dict(hidden=500, epochs=100, learning_rate=0.05, gibbs_steps=1),
    "omniglot28": dict(hidden=500, epochs=200, learning_rate=0.05, gibbs_steps=1),
    "caltech101_silhouettes": dict(hidden=500, epochs=300, learning_rate=0.02),
}


def main():
    args = parse_arguments()
    out = pathlib.Path(args.out or f"out/{args.dataset}")
    out.mkdir(parents=True, exist_ok=True)

    # Data: vectors in [0, 1]. A pixel's intensity is the probability that it is 1,
    # drawn again for each epoch of training and once for all other uses.
    fixed = dict(binarize="sample", redraw=False, seed=args.seed)
    held_out = "test" if args.dataset == "omniglot28" else "validation"
    intensities = kr.datasets.load(args.dataset, "train")
    validation = kr.datasets.load(args.dataset, held_out, **fixed).batch(1000)
    test = kr.datasets.load(args.dataset, "test", **fixed).batch(1000)
    train_part = kr.datasets.load(args.dataset, "train", **fixed).batch(1000)
    train_part = train_part.take(len(validation))

    steps = args.epochs * -(-len(intensities) // args.batch_size)
    schedule = keras.optimizers.schedules.PolynomialDecay(
        args.learning_rate, steps, end_learning_rate=0.0
    )
    optimizer = keras.optimizers.SGD(schedule)
    train = kr.datasets.shuffled_batches(
        intensities,
        args.batch_size,
        seed=args.seed,
        iterations=optimizer.iterations,
    )
    train = kr.datasets.binarize(
        train, "sample", seed=args.seed, iterations=optimizer.iterations
    )

    # Model.
    if args.rule == "pcd":
        rule = kr.rules.PersistentContrastiveDivergence(
            args.gibbs_steps, centered=False
        )
    else:
        rule = kr.rules.ContrastiveDivergence(args.gibbs_steps, centered=False)
    rbm = kr.RBM(args.hidden, kernel_regularizer=None, seed=args.seed)
    rbm.adapt(intensities)
    rbm.compile(optimizer, rule=rule)
    history = rbm.fit(
        train,
        validation_data=validation,
        epochs=args.epochs,
        callbacks=[kr.callbacks.FreeEnergyGap(train_part, validation), Progress()],
        verbose=0,
    )

    # Scores.
    annealing = rbm.anneal(precision=args.precision)
    z = annealing.ais
    score = np.mean(rbm.log_likelihood(test, log_partition=z))
    lower, upper = score + z.value - z.upper, score + z.value - z.lower
    some = next(iter(test))[:100]
    same = np.mean(rbm.log_likelihood(some, log_partition=z))
    annealed = np.mean(
        kr.inference.annealed_log_likelihood(
            rbm.potentials(),
            some,
            base=annealing.base,
            betas=annealing.betas,
            num_chains=3,
        )
    )
    print(f"""
Test log-likelihood, nats per example, pixels drawn with their intensity:
  {score:9.2f}  [{lower:.2f}, {upper:.2f}]  AIS, {args.dataset} test set
             of the model; the interval is that of log Z, of 95 % at least
  {annealed:9.2f}  RAISE, 100 examples (AIS on the same: {same:.2f})
             of the annealed sampler, another model: above or below""")

    # Pictures: what the model makes of test examples after 1000 sweeps.
    states = rbm.sample(len(some), steps=1000, initial_visible=some, seed=args.seed)
    samples = rbm.reconstruct(states)
    plots.filters(rbm).savefig(out / "filters.png")
    plots.samples(samples, title="Samples").savefig(out / "samples.png")
    plots.history(history).savefig(out / "history.png")
    rbm.save(out / "model.keras")
    print(f"\nWrote filters.png, samples.png, history.png, model.keras to {out}")


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dataset", choices=sorted(RECIPES), default="digits")
    parser.add_argument("--hidden", type=int, help="number of hidden units")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--batch-size", type=int, default=100)
    parser.add_argument("--learning-rate", type=float, help="falls to 0 linearly")
    parser.add_argument("--rule", choices=("cd", "pcd"), default="pcd")
    parser.add_argument("--gibbs-steps", type=int, default=5)
    parser.add_argument("--precision", type=float, default=0.1, help="of log Z, nats")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", help="folder, by default out/<dataset>")
    dataset = parser.parse_known_args()[0].dataset
    parser.set_defaults(**RECIPES[dataset])
    return parser.parse_args()


if __name__ == "__main__":
    main()
