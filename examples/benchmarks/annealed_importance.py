"""Times a temperature of annealed importance sampling against its matrix products.

A temperature needs one product each way. Both are timed in turns in one process;
medians are printed, and in brackets the least.

Run: python examples/benchmarks/annealed_importance.py
"""

import argparse
import statistics
import time

import tensorflow as tf

from keras_rbm import inference


def seconds(function):
    """Returns the seconds that a call takes."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--visible", type=int, default=784)
    parser.add_argument("--hidden", type=int, default=500)
    parser.add_argument("--chains", type=int, default=100)
    parser.add_argument("--temperatures", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=9)
    arguments = parser.parse_args()
    chains, count = arguments.chains, arguments.temperatures

    kernel = tf.random.normal((arguments.visible, arguments.hidden), stddev=0.02)
    potentials = inference.Potentials(
        kernel, tf.zeros(arguments.visible), tf.zeros(arguments.hidden)
    )

    @tf.function
    def products(visible):
        for _ in tf.range(count):
            hidden = tf.matmul(visible, kernel)
            visible = tf.matmul(hidden, kernel, transpose_b=True)
        return visible

    def ours():
        inference.annealed_importance_sampling(
            potentials, betas=count, num_chains=chains
        )

    visible = tf.ones((chains, arguments.visible))
    ours(), products(visible)
    pairs = [
        (seconds(ours), seconds(lambda: products(visible)))
        for _ in range(arguments.repeats)
    ]
    milliseconds = [(1e3 * a / count, 1e3 * b / count) for a, b in pairs]
    cells = [*zip(*milliseconds, strict=True), [a / b for a, b in pairs]]
    print("| chains | ms a temperature | matrix products alone, ms | ratio |")
    print("| --- | --- | --- | --- |")
    row = [f"{statistics.median(cell):.2f} ({min(cell):.2f})" for cell in cells]
    print(f"| {chains} | {' | '.join(row)} |")


if __name__ == "__main__":
    main()
