"""Times a training step inside `fit` against its matrix products alone.

A contrastive divergence step cannot be faster than the matrix products in it:
CD-k needs 2k + 1 between the layers and 2 for the moments. The first table puts the
step, as `fit` runs it, beside those products alone in a `tf.function`; the second
beside scikit-learn's BernoulliRBM (PCD-1, float32). Whatever is compared is timed in
turns in one process; medians and ratios are printed.

Run: python examples/benchmarks/gibbs_training.py
"""

import argparse
import statistics
import time

import keras
import numpy as np
import tensorflow as tf
from sklearn.neural_network import BernoulliRBM

import keras_rbm


def matrix_products(gibbs_steps):
    """Returns a tf.function of the 2k + 3 matrix products of a CD-k step."""

    @tf.function
    def products(v, kernel):
        first, h = v, tf.matmul(v, kernel)
        positive = tf.matmul(first, h, transpose_a=True)
        for _ in range(gibbs_steps):
            v = tf.matmul(h, kernel, transpose_b=True)
            h = tf.matmul(v, kernel)
        return positive, tf.matmul(v, h, transpose_a=True)

    return products


def seconds(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def compare(ours, theirs, repeats):
    """Times two functions in turns; returns both medians and that of the ratios."""
    ours(), theirs()
    pairs = [(seconds(ours), seconds(theirs)) for _ in range(repeats)]
    a, b = (statistics.median(times) for times in zip(*pairs, strict=True))
    return a, b, statistics.median(x / y for x, y in pairs)


def fit_step(data, rule, batch_size, hidden_units):
    """Returns a function of one epoch of `fit`, and its number of steps."""
    rbm = keras_rbm.RBM(hidden_units, num_visible=data.shape[1], seed=0)
    rbm.compile(keras.optimizers.SGD(0.01), rule=rule)
    return lambda: rbm.fit(data, batch_size=batch_size, epochs=1, verbose=0)


def main():
    """Prints both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--visible", type=int, default=784)
    parser.add_argument("--hidden", type=int, default=500)
    parser.add_argument("--steps", type=int, default=200, help="steps an epoch")
    parser.add_argument("--repeats", type=int, default=7)
    arguments = parser.parse_args()
    visible, hidden = arguments.visible, arguments.hidden
    rng = np.random.default_rng(0)

    print(f"V={visible}, H={hidden}, {arguments.repeats} repeats, medians\n")
    print("| step | batch | in fit, ms | matrix products alone, ms | ratio |")
    print("| --- | --- | --- | --- | --- |")
    for gibbs_steps, batch_size in ((1, 100), (10, 100), (24, 200)):
        steps = max(arguments.steps // gibbs_steps, 20)
        data = (rng.random((batch_size * steps, visible)) < 0.2).astype("float32")
        rule = keras_rbm.rules.ContrastiveDivergence(gibbs_steps)
        epoch = fit_step(data, rule, batch_size, hidden)
        products = matrix_products(gibbs_steps)
        v = tf.constant(data[:batch_size])
        kernel = tf.random.normal((visible, hidden), stddev=0.02)

        def bound(products=products, v=v, kernel=kernel, steps=steps):
            for _ in range(steps):
                products(v, kernel)

        ours, alone, ratio = compare(epoch, bound, arguments.repeats)
        print(
            f"| CD-{gibbs_steps} | {batch_size} | {1e3 * ours / steps:.2f} "
            f"| {1e3 * alone / steps:.2f} | {ratio:.2f} |"
        )

    print("\n| one epoch, batch 100 | ours, ms a step | scikit-learn PCD-1 | ratio |")
    print("| --- | --- | --- | --- |")
    steps = arguments.steps
    data = (rng.random((100 * steps, visible)) < 0.2).astype("float32")
    theirs = BernoulliRBM(hidden, batch_size=100, n_iter=1, learning_rate=0.01)
    for rule in ("cd", "pcd"):
        ours, other, ratio = compare(
            fit_step(data, rule, 100, hidden),
            lambda: theirs.fit(data),
            arguments.repeats,
        )
        print(
            f"| {rule.upper()}-1 | {1e3 * ours / steps:.2f} "
            f"| {1e3 * other / steps:.2f} | {ratio:.2f} |"
        )


if __name__ == "__main__":
    main()
