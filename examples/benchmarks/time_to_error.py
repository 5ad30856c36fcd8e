"""Times annealing until the standard error of log Z is small.

An RBM is trained on MNIST, at a rate that falls to 0. Then log Z is estimated in two
ways, each time with twice as many temperatures, until the standard error is small and
the interval has two ends:

* from the data's mean, temperatures equally spaced (`annealed_importance_sampling`);
* by `log_partition("bidirectional")`, which searches for a base model first; the
  search is counted.

Run: python examples/benchmarks/time_to_error.py --hidden 300 500
"""

import argparse
import time
import warnings

import keras

import keras_rbm as kr


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hidden", type=int, nargs="+", default=[300])
    parser.add_argument("--rule", default="pcd")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--chains", type=int, default=100)
    parser.add_argument("--error", type=float, default=0.1, help="in nats")
    parser.add_argument("--most", type=int, default=32_000, help="temperatures")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    data = kr.datasets.load("mnist", "train", binarize="threshold")
    data = data.batch(60_000).get_single_element()
    print("| hidden units | by | temperatures | log Z | error | seconds | ratio |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for hidden in args.hidden:
        rbm = kr.RBM(hidden, seed=args.seed)
        rbm.adapt(data)
        steps = args.epochs * len(data) // 100
        rate = keras.optimizers.schedules.PolynomialDecay(0.05, steps, 0.0)
        rbm.compile(keras.optimizers.SGD(rate), rule=args.rule)
        rbm.fit(data, batch_size=100, epochs=args.epochs, verbose=0)
        report(rbm, args)


def report(rbm, args):
    """Prints two lines of the table."""
    potentials = rbm.potentials()
    base = rbm.base(potentials)

    def from_the_mean(betas):
        return kr.inference.annealed_importance_sampling(
            potentials, base=base, betas=betas, num_chains=args.chains
        )

    def searched(betas):
        return rbm.log_partition("bidirectional", betas=betas, num_chains=args.chains)

    first = None
    for name, estimate in (("data's mean", from_the_mean), ("both ways", searched)):
        z, betas, seconds = until_small(estimate, args)
        first = first or seconds
        enough = "" if z.stderr <= args.error else "more than "
        print(
            f"| {rbm.hidden_units} | {name} | {enough}{betas} | {z.value:.2f} "
            f"| {z.stderr:.3f} | {seconds:.1f} | {first / seconds:.1f} |",
            flush=True,
        )


def until_small(estimate, args):
    """Returns the first estimate that is good enough, its temperatures and seconds."""
    betas = 125
    estimate(betas)  # compiles
    while True:
        start = time.perf_counter()
        z = estimate(betas)
        seconds = time.perf_counter() - start
        if z.stderr <= args.error or betas >= args.most:
            return z, betas, seconds
        betas *= 2


if __name__ == "__main__":
    main()
