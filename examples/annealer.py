"""An RBM whose negative phase a simulated annealer draws, beside one by chains.

    pip install dimod dwave-samplers
    python examples/annealer.py

The annealer is that of D-Wave's packages; a quantum annealer's sampler has the same
interface. `OutsideSampler` estimates the temperature that its states have.
"""

import argparse

import dimod
import numpy as np
from dwave.samplers import SimulatedAnnealingSampler

import keras_rbm as kr


def sample(kernel, visible_bias, hidden_bias, number):
    """Returns visible states that the annealer ends in."""
    visible, hidden = kernel.shape
    first, second = np.indices(kernel.shape).reshape(2, -1)
    model = dimod.BinaryQuadraticModel.from_numpy_vectors(
        -np.concatenate([visible_bias, hidden_bias]),
        (first, second + visible, -kernel.ravel()),
        0.0,
        dimod.BINARY,
    )
    found = SimulatedAnnealingSampler().sample(
        model,
        num_reads=number,
        num_sweeps=SWEEPS,
        beta_range=(0.1, 1.0),
        beta_schedule_type="linear",
        seed=int(RNG.integers(2**31)),
    )
    order = np.argsort(np.array(list(found.variables)))
    return found.record.sample[:, order[:visible]]


RNG, SWEEPS = np.random.default_rng(0), 100


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hidden", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=20)
    args = parser.parse_args()
    train, test = (
        kr.datasets.load("digits", split, binarize="sample", as_numpy=True)
        for split in ("train", "test")
    )
    for rule in (
        kr.rules.PersistentContrastiveDivergence(),
        kr.rules.OutsideSampler(sample, num_chains=100),
    ):
        rbm = kr.RBM(args.hidden, seed=0)
        rbm.compile(rule=rule)
        history = rbm.fit(train, epochs=args.epochs, verbose=0).history
        z = rbm.log_partition("bidirectional")
        beta = f", beta {history['beta'][-1]:.2f}" if "beta" in history else ""
        score = np.mean(rbm.log_likelihood(test, z))
        print(f"{type(rule).__name__:32} {score:.2f} nats a test digit{beta}")


if __name__ == "__main__":
    main()
