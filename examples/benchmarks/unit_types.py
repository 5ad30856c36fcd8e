"""Times a Gibbs sweep of each unit type against one of binary units, same kernel.

    python examples/benchmarks/unit_types.py

Visible layers of 1113 rows of the kernel: 1113 units, or 53 of 21 categories; and
hidden types below a binary visible layer. The types take turns, 20 sweeps of 100 chains
a turn, compiled by XLA; what is shown is the median of the ratios.
"""

import argparse
import functools
import statistics
import time

import tensorflow as tf

import keras_rbm as kr
from keras_rbm.inference.gibbs import visible_chain

_SWEEPS, _CHAINS = 20, 100
VISIBLE = {
    "bernoulli": ("bernoulli", 1113),
    "spin": ("spin", 1113),
    "binomial(16)": (kr.units.Binomial(16), 1113),
    "categorical(21)": (kr.units.Categorical(21), 53),
    "gaussian": ("gaussian", 1113),
}
HIDDEN = ("spin", "gaussian", "rectified", "double_rectified")


def chain_of(visible, columns, hidden):
    """Returns a function of nothing that runs the sweeps of a model."""
    rbm = kr.RBM(100, visible=visible, hidden=hidden, num_visible=columns, seed=0)
    potentials = rbm.potentials()
    start = tf.zeros((_CHAINS, columns))

    @functools.partial(tf.function, jit_compile=True)
    def run(seed):
        return visible_chain(potentials, start, seed, num_sweeps=_SWEEPS).visible

    seed = tf.constant([0, 1])
    return lambda: run(seed).numpy()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=30)
    rounds = parser.parse_args().rounds
    chains = {name: chain_of(*layer, "bernoulli") for name, layer in VISIBLE.items()}
    for hidden in HIDDEN:
        chains[f"bernoulli, {hidden} hidden"] = chain_of("bernoulli", 1113, hidden)
    seconds = {name: [] for name in chains}
    for _ in range(rounds + 1):
        for name, run in chains.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    print("| visible units | ms a sweep | of a binary one |\n| --- | --- | --- |")
    for name, own in seconds.items():
        pairs = zip(own[1:], seconds["bernoulli"][1:], strict=True)
        ratio = statistics.median(a / b for a, b in pairs)
        milliseconds = 1e3 * statistics.median(own[1:]) / _SWEEPS
        print(f"| {name} | {milliseconds:.2f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
