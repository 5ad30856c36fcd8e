"""Times annealing until its error of log Z is small.

An RBM is trained on 10,000 digits of MNIST. Then log Z is estimated in two ways, with
ever more work, until the root mean square of the error over some seeds is small:

* from the data's mean, temperatures equally spaced (`annealed_importance_sampling`);
* by `log_partition("bidirectional")`, asked for half of the error each time. It
  searches for a base model first; the search is counted.

The error is that against the mean of long runs both ways, not what a run says of
itself: one that misses a mode does not know it.

Run: python examples/benchmarks/time_to_error.py --hidden 300 500
"""

import argparse
import statistics
import time
import warnings

import keras
import numpy as np

import keras_rbm as kr


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hidden", type=int, nargs="+", default=[300])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--chains", type=int, default=100)
    parser.add_argument("--error", type=float, default=0.1, help="in nats")
    parser.add_argument("--seeds", type=int, default=12)
    args = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    data = kr.datasets.load("mnist", "train", binarize="threshold")
    data = data.take(10_000).batch(10_000).get_single_element()
    print("| hidden | by | temperatures, nats | mean | rms error | seconds | ratio |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for hidden in args.hidden:
        rbm = kr.RBM(hidden, kernel_regularizer=None, seed=0)
        rbm.adapt(data)
        rule = kr.rules.PersistentContrastiveDivergence(1)
        rbm.compile(keras.optimizers.SGD(0.05), rule=rule)
        rbm.fit(data, batch_size=50, epochs=args.epochs, verbose=0)
        report(rbm, args)


def report(rbm, args):
    """Prints two lines of the table."""
    potentials = rbm.potentials()
    base = potentials.visible.natural_for_mean(rbm.base_rate.value)

    def from_the_mean(betas, seed):
        return kr.inference.annealed_importance_sampling(
            potentials, base=base, betas=betas, num_chains=args.chains, seed=seed
        )

    def both_ways(betas, seed):
        options = {"precision": 100.0 / betas, "num_chains": args.chains, "seed": seed}
        return rbm.log_partition("bidirectional", **options)

    seeds = range(100, 104)
    truth = statistics.mean(float(both_ways(0.001, seed).value) for seed in seeds)
    first = None
    for name, estimate, efforts in (
        ("data's mean", from_the_mean, [125 * 2**k for k in range(9)]),
        ("both ways", both_ways, (0.2, 0.1, 0.05, 0.02, 0.01)),
    ):
        mean, error, effort, seconds = until_small(estimate, efforts, truth, args)
        first = first or seconds
        enough = "" if error <= args.error else "more than "
        print(
            f"| {rbm.hidden_units} | {name} | {enough}{effort} | {mean:.2f} "
            f"| {error:.3f} | {seconds:.1f} | {first / seconds:.1f} |",
            flush=True,
        )


def until_small(estimate, efforts, truth, args):
    """Returns mean and error of estimates that are good, their effort and seconds."""
    estimate(efforts[0], 0)  # compiles
    for effort in efforts:
        values, seconds = [], []
        for seed in range(args.seeds):
            start = time.perf_counter()
            values.append(float(estimate(effort, seed).value))
            seconds.append(time.perf_counter() - start)
        error = float(np.sqrt(np.mean((np.array(values) - truth) ** 2)))
        if error <= args.error:
            break
    return np.mean(values), error, effort, statistics.median(seconds)


if __name__ == "__main__":
    main()
