"""Times a training step inside `fit` against its matrix products alone.

A contrastive divergence step cannot be faster than the matrix products in it:
CD-k needs 2k + 1 between the layers and 2 for the moments, S-DCP a moment for each
inner step. The first table puts the step, as `fit` runs it, beside those products
alone in a `tf.function`; the second beside scikit-learn's BernoulliRBM (PCD-1,
float32). The third puts S-DCP and centered rules beside the plain rule of as many
sweeps. Whatever is compared is timed in turns
in one process; the tables have medians and, in brackets, the least.

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

#: Keras' own loop costs most of a millisecond a step: a tenth of that, so.
STEPS_PER_EXECUTION = 10


def matrix_products(gibbs_steps, inner_steps=1):
    """Returns a tf.function of the 2kd + 2 + d matrix products of a step."""

    @tf.function
    def products(v, kernel):
        first, h = v, tf.matmul(v, kernel)
        positive = tf.matmul(first, h, transpose_a=True)
        negative = []
        for _ in range(inner_steps):
            for _ in range(gibbs_steps):
                v = tf.matmul(h, kernel, transpose_b=True)
                h = tf.matmul(v, kernel)
            negative.append(tf.matmul(v, h, transpose_a=True))
        return positive, negative

    return products


class Epochs(keras.callbacks.Callback):
    """Times each epoch of `fit`, and the other's turn after it, if there is one."""

    def __init__(self, other=None):
        super().__init__()
        self.other = other
        self.pairs = []

    def on_epoch_begin(self, epoch, logs=None):
        self.start = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        ours = time.perf_counter() - self.start
        self.pairs.append((ours, self.other and self.other()))


def timed(function):
    """Returns a function that returns the seconds that another takes."""

    def seconds():
        start = time.perf_counter()
        function()
        return time.perf_counter() - start

    return seconds


def compare(rule, data, batch_size, hidden_units, other, repeats):
    """Times epochs of `fit` and `other`, which returns its seconds, in turns.

    Returns:
        Table cells: median and least milliseconds a step of both, and the median
        and least of the ratios.
    """
    rbm = compiled(rule, hidden_units)
    turns = Epochs(other)
    rbm.fit(
        data,
        batch_size=batch_size,
        epochs=repeats + 1,
        callbacks=[turns],
        verbose=0,
    )
    steps = len(data) // batch_size
    pairs = [(1e3 * a / steps, 1e3 * b / steps) for a, b in turns.pairs[1:]]
    ours, others = zip(*pairs, strict=True)
    return " | ".join(cell(values) for values in (ours, others, ratios(pairs)))


def epoch_of(rule, data, batch_size, hidden_units):
    """Returns a function that trains a model for an epoch and returns its seconds."""
    model = compiled(rule, hidden_units)

    def seconds():
        epochs = Epochs()
        model.fit(data, batch_size=batch_size, verbose=0, callbacks=[epochs])
        return epochs.pairs[0][0]

    seconds()
    return seconds


def compiled(rule, hidden_units):
    """Returns a model to be timed."""
    rbm = keras_rbm.RBM(hidden_units, seed=0)
    rbm.compile(
        keras.optimizers.SGD(0.01), rule=rule, steps_per_execution=STEPS_PER_EXECUTION
    )
    return rbm


def cell(values):
    return f"{statistics.median(values):.2f} ({min(values):.2f})"


def ratios(pairs):
    return [ours / other for ours, other in pairs]


def main():
    """Prints the three tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--visible", type=int, default=784)
    parser.add_argument("--hidden", type=int, default=500)
    parser.add_argument("--steps", type=int, default=300, help="CD-1 steps an epoch")
    parser.add_argument("--repeats", type=int, default=7)
    arguments = parser.parse_args()
    visible, hidden = arguments.visible, arguments.hidden
    repeats = arguments.repeats
    rng = np.random.default_rng(0)

    def binary_data(rows):
        return (rng.random((rows, visible)) < 0.2).astype("float32")

    print(f"V={visible}, H={hidden}, {repeats} epochs each: median (least)\n")
    print("| step | batch | in fit, ms | matrix products alone, ms | ratio |")
    print("| --- | --- | --- | --- | --- |")
    kernel = tf.random.normal((visible, hidden), stddev=0.02)
    cd, sdcp = keras_rbm.rules.ContrastiveDivergence, keras_rbm.rules.SDCP
    for name, rule, sweeps, batch_size, share in (
        ("CD-1", cd(1), (1, 1), 100, 1),
        ("CD-10", cd(10), (10, 1), 100, 2),
        ("CD-24", cd(24), (24, 1), 200, 5),
        ("S-DCP(6, 4)", sdcp(6, 4), (4, 6), 200, 5),
        ("CS-DCP(6, 4)", sdcp(6, 4, centered=True), (4, 6), 200, 5),
    ):
        steps = arguments.steps // share
        data = binary_data(batch_size * steps)
        products, batch = matrix_products(*sweeps), tf.constant(data[:batch_size])

        def alone(products=products, batch=batch, steps=steps):
            for _ in range(steps):
                products(batch, kernel)

        cells = compare(rule, data, batch_size, hidden, timed(alone), repeats)
        print(f"| {name} | {batch_size} | {cells} |")

    print("\n| step, batch 100 | in fit, ms | scikit-learn PCD-1, ms | ratio |")
    print("| --- | --- | --- | --- |")
    data = binary_data(100 * arguments.steps)
    sklearn_rbm = BernoulliRBM(hidden, batch_size=100, n_iter=1, learning_rate=0.01)
    theirs = timed(lambda: sklearn_rbm.fit(data))
    pcd = keras_rbm.rules.PersistentContrastiveDivergence
    for name, rule in (("CD-1", cd(1)), ("PCD-1", pcd(1))):
        print(f"| {name} | {compare(rule, data, 100, hidden, theirs, repeats)} |")

    print("\n| step, batch 200 | in fit, ms | the other, ms | ratio |")
    print("| --- | --- | --- | --- |")
    data = binary_data(200 * (arguments.steps // 5))
    for name, rule, other in (
        ("S-DCP(6, 4) : CD-24", sdcp(6, 4), cd(24)),
        ("CS-DCP(6, 4) : S-DCP(6, 4)", sdcp(6, 4, centered=True), sdcp(6, 4)),
        ("centered CD-24 : CD-24", cd(24, centered=True), cd(24)),
    ):
        epoch = epoch_of(other, data, 200, hidden)
        print(f"| {name} | {compare(rule, data, 200, hidden, epoch, repeats)} |")


if __name__ == "__main__":
    main()
