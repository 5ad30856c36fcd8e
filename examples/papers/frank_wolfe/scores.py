"""How good a model is, for `experiment.py`."""

import numpy as np

from examples.papers.frank_wolfe.features import features, test_error

#: Units at which features are classified, beside every hundred.
CLASSIFIED = 460


def score(rbm, splits, temperatures, size, method="ais"):
    """Returns likelihoods with their interval, the free-energy gap, and test error."""
    precision = 0.05 if temperatures > 1000 else None
    z = rbm.log_partition(method, precision=precision)
    means = {
        split: float(np.mean(rbm.log_likelihood(images, log_partition=z)))
        for split, (images, _) in splits.items()
    }
    result = {
        "validation": means["validation"],
        "test": means["test"],
        "lower": means["test"] + float(z.value - z.upper),
        "upper": means["test"] + float(z.value - z.lower),
        "gap": means["train"] - means["validation"],
    }
    if size % 100 == 0 or size == CLASSIFIED:
        result["error"] = test_error(features(rbm, splits))
    return result


def follow_chains(rbm, images, num_chains=100, ends=(10, 1000)):
    """Returns where Gibbs chains go that start from images of the test set.

    Of each number of sweeps: by how many nats the model prefers where the chains are to
    where they began, -F(chains) + F(images), and how many pixels are on.
    """
    start = images[np.arange(num_chains) * len(images) // num_chains]
    visible = start
    found, done = [], 0
    for sweeps in ends:
        visible = rbm.sample(
            num_chains, steps=sweeps - done, initial_visible=visible, seed=sweeps
        )
        done = sweeps
        risen = np.mean(rbm.free_energy(start)) - np.mean(rbm.free_energy(visible))
        pixels = np.mean(np.sum(visible, axis=1))
        found.append({"sweeps": sweeps, "nats": float(risen), "pixels": float(pixels)})
    return found
