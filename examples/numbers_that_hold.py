"""Six ways in which a likelihood can be wrong, and what the library says today.

    python examples/numbers_that_hold.py

Each case has a truth to compare with: log Z of RBMs with few hidden units can be
enumerated. Needs MNIST; takes about two minutes. With `--figures docs/guides/trust` it
draws the guide's pictures of the first case, and ends.
"""

import argparse
import pathlib
import time
import warnings

import keras
import numpy as np
import tensorflow as tf

import keras_rbm as kr


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--figures", type=pathlib.Path, help="folder for two pictures")
    args = parser.parse_args()
    start = time.perf_counter()
    warnings.simplefilter("ignore", UserWarning)  # each interval is printed
    data = kr.datasets.load("mnist", "train", binarize="threshold")
    data = data.take(10_000).batch(10_000).get_single_element()
    rbm = trained(data, "pcd", 0.05, 10)
    if args.figures:
        draw(rbm, data, args.figures)
        return
    log_partition_without_adapt(rbm)
    few_weights(rbm)
    annealed_likelihood(data)
    growth(data)
    one_strong_edge()
    not_a_number()
    print(f"\n{time.perf_counter() - start:.0f} s")


def trained(data, rule, rate, epochs, adapt=False):
    """Returns an RBM whose log Z can be enumerated."""
    rbm = kr.RBM(12, visible_bias_initializer="zeros", kernel_regularizer=None, seed=0)
    if adapt:
        rbm.adapt(data)
    if rule == "pcd":
        rule = kr.rules.PersistentContrastiveDivergence(1)
    rbm.compile(keras.optimizers.SGD(rate), rule=rule)
    rbm.fit(data, batch_size=50, epochs=epochs, verbose=0)
    return rbm


def log_partition_without_adapt(rbm):
    truth = rbm.log_partition("exact").value
    print(f"A. compile, fit, log_partition. Exact log Z: {truth:.2f}")
    for method in ("ais", "bidirectional", "reverse_ais", "tempering"):
        try:
            print_interval(method, rbm.log_partition(method), truth)
        except ValueError:
            print(f"   {method}: not offered")


def draw(rbm, data, folder):
    """Writes pictures of what annealing from units at 1/2, and from a search, finds."""
    import matplotlib.pyplot as plt

    truth = float(rbm.log_partition("exact").value)
    halves = kr.inference.annealed_importance_sampling(rbm.potentials(), betas=1000)
    searched = rbm.log_partition("ais")
    figure, axes = plt.subplots(2, 1, sharex=True, figsize=(6.5, 3.2))
    for axis, values, name in (
        (axes[0], halves.log_weights, "from units at 1/2"),
        (axes[1], searched.log_weights, "from the means of a search"),
    ):
        axis.hist(values, np.arange(40.0, 225.0, 2.5), color="C0")
        axis.axvline(truth, color="C1", label=f"log Z = {truth:.1f}")
        axis.set_title(f"100 chains {name}", fontsize="medium", loc="left")
        axis.set_ylabel("chains")
    axes[0].legend(fontsize="small", loc="upper left")
    axes[1].set_xlabel("log weight of a chain, nats")
    folder.mkdir(parents=True, exist_ok=True)
    save(figure, folder / "weights.svg")
    report = kr.score_report(rbm, data[:2000])
    print(report)
    save(
        kr.plots.score_report(report, title="12 hidden units, MNIST"),
        folder / "report.svg",
    )


def save(figure, path):
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def print_interval(name, z, truth):
    holds = "holds" if z.lower <= truth <= z.upper else "MISSES"
    print(f"   {name}: {z.value:.2f} [{z.lower:.2f}, {z.upper:.2f}] {holds} the truth")


def few_weights(rbm):
    print("\nB. Annealing from units at 1/2: few chains arrive, few weights count.")
    truth = rbm.log_partition("exact").value
    z = kr.inference.annealed_importance_sampling(rbm.potentials(), betas=1000)
    print_interval(f"effective sample size {z.ess:.1f}", z, truth)


def annealed_likelihood(data):
    print("\nC. RAISE against the exact mean log-likelihood of 500 examples.")
    for rule, rate, epochs in (("pcd", 0.05, 10), ("cd", 0.01, 30)):
        rbm = trained(data, rule, rate, epochs, adapt=True)
        exact = rbm.log_likelihood(data[:500])
        annealing = rbm.anneal()
        raised = kr.inference.annealed_log_likelihood(
            rbm.potentials(), data[:500], base=annealing.base, betas=annealing.betas
        )
        exact, raised = (
            float(tf.reduce_mean(tf.cast(x, "float64"))) for x in (exact, raised)
        )
        print(f"   {rule}, rate {rate}: exact {exact:.2f}, RAISE {raised:.2f}")


def growth(data):
    print("\nD. Gains of hidden units that were grown, against enumeration.")
    penalty = keras.optimizers.schedules.InverseTimeDecay(0.05, 20, 1.0)
    grown = kr.InfiniteRBM(60, seed=0)
    grown.adapt(data)
    grown.compile(rule=kr.rules.FrankWolfe(l2=penalty, num_samples=2000))
    energies = kr.RBM(1, num_visible=data.shape[1], seed=0)
    energies.adapt(data)
    energies.kernel.assign(tf.zeros_like(energies.kernel))
    scores = [mean_exact(energies, data)]
    errors = []

    def compare(epoch, logs):
        scores.append(mean_exact(grown, data))
        truth, error = scores[-1] - scores[-2], logs["gain_error"]
        if error > 0.0 and logs["hidden_units"] > 1:
            errors.append((logs["gain"] - truth) / error)
            print(
                f"   {logs['hidden_units']:.0f} units: {logs['gain']:.3f} ± "
                f"{error:.3f}, exact {truth:.3f}: {errors[-1]:+.1f} errors off"
            )

    callback = keras.callbacks.LambdaCallback(on_epoch_end=compare)
    grown.fit(data, batch_size=len(data), epochs=13, verbose=0, callbacks=[callback])
    rms = np.sqrt(np.mean(np.square(errors)))
    print(f"   rms of the errors: {rms:.1f}")


def mean_exact(model, data):
    """Returns the exact mean log-likelihood, nats."""
    log_z = float(model.log_partition("exact").value)
    return -float(tf.reduce_mean(tf.cast(model.free_energy(data), "float64"))) - log_z


def one_strong_edge():
    print("\nE. Belief propagation on one edge: W = 200, b = -100, c = -95.")
    edge = kr.inference.Potentials([[200.0]], [-100.0], [-95.0])
    belief = float(tf.squeeze(kr.inference.sum_product(edge).visible))
    truth = 1.0 / (1.0 + np.exp(-5.0))
    print(f"   belief that v = 1: {belief:.4f}, true {truth:.4f}")
    crbm = kr.CRBM(1, num_visible=1, num_features=1, seed=0)
    for variable, value in zip(
        (crbm.kernel, crbm.visible_bias, crbm.hidden_bias),
        (200.0, -100.0, -95.0),
        strict=True,
    ):
        variable.assign(tf.fill(variable.shape, value))
    score = float(crbm.log_likelihood([[0.0]], [[1.0]])[0])
    print(f"   log p(v = 1 | x) by Bethe: {score:.4f}, true {np.log(truth):.4f}")


def not_a_number():
    print("\nF. log_partition('exact') of a model with a weight that is not a number.")
    rbm = kr.RBM(2, num_visible=3, seed=0)
    rbm.kernel.assign(tf.fill((3, 2), np.nan))
    try:
        print(f"   {rbm.log_partition('exact')}")
    except ValueError as error:
        print(f"   ValueError: {error}")


if __name__ == "__main__":
    main()
