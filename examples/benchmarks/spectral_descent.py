"""Times the two methods of stochastic spectral descent against each other.

The gradients are those of CD-1 on random binary batches whose pixels are on as often
as in pictures of digits: of a small batch B, so of rank 2B, and of one large enough
for nearly full rank. Newton-Schulz is compiled by XLA, the SVD cannot be. Both are
timed in turns in one process; medians are printed, in brackets the least. The cosine
is that of the two steps.

Run: python examples/benchmarks/spectral_descent.py
"""

import argparse
import statistics
import time

import keras
import numpy as np
import tensorflow as tf

import keras_rbm
from keras_rbm import rules
from keras_rbm.optimizers import StochasticSpectralDescent


def seconds(function):
    """Returns the seconds that a call takes."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def cd_gradient(num_visible, num_hidden, batch_size):
    """Returns CD-1's gradient of the kernel, (num_visible, num_hidden)."""
    rng = np.random.default_rng(0)
    mean = rng.beta(0.3, 1.2, num_visible)  # most pixels nearly always off
    batch = tf.constant(rng.random((batch_size, num_visible)) < mean, tf.float32)
    initializer = keras.initializers.RandomNormal(stddev=0.2, seed=0)
    rbm = keras_rbm.RBM(
        num_hidden, num_visible=num_visible, kernel_initializer=initializer, seed=0
    )
    rbm.adapt(batch)
    rbm.compile(rule=rules.ContrastiveDivergence())
    step = rules.Step.of(rbm.potentials(), batch, seed=1)
    phases = rbm.rule.phases(step)
    return phases.negative.kernel - phases.positive.kernel


def compiled_step(gradient, method):
    """Returns a function that makes one update, and the variable that it moves."""
    kernel = keras.Variable(tf.zeros_like(gradient))
    optimizer = StochasticSpectralDescent(method=method)
    optimizer.build([kernel])
    apply = tf.function(
        lambda g: optimizer.apply([g], [kernel]), jit_compile=method != "svd"
    )
    return lambda: apply(gradient), kernel


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--visible", type=int, default=784)
    parser.add_argument("--hidden", type=int, default=500)
    parser.add_argument("--batch_sizes", type=int, nargs="+", default=[20, 2000])
    parser.add_argument("--repeats", type=int, default=21)
    arguments = parser.parse_args()

    print("| batch | rank | SVD, ms | Newton-Schulz, ms | ratio | cosine |")
    print("| --- | --- | --- | --- | --- | --- |")
    for batch_size in arguments.batch_sizes:
        gradient = cd_gradient(arguments.visible, arguments.hidden, batch_size)
        svd, by_svd = compiled_step(gradient, "svd")
        iteration, by_iteration = compiled_step(gradient, "newton_schulz")
        svd(), iteration()
        cosine = -keras.losses.cosine_similarity(
            tf.reshape(by_svd, -1), tf.reshape(by_iteration, -1)
        )
        milliseconds = [
            (1e3 * seconds(svd), 1e3 * seconds(iteration))
            for _ in range(arguments.repeats)
        ]
        cells = [*zip(*milliseconds, strict=True), [b / a for a, b in milliseconds]]
        row = [f"{statistics.median(cell):.2f} ({min(cell):.2f})" for cell in cells]
        rank = np.linalg.matrix_rank(gradient)
        print(f"| {batch_size} | {rank} | {' | '.join(row)} | {cosine:.5f} |")


if __name__ == "__main__":
    main()
