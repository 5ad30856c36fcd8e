"""`run_model_test` for the RBM with every rule and unit type."""

import numpy as np
import pytest
from model_test_case import run_model_test

import keras_rbm
from keras_rbm import rules, units

RNG = np.random.default_rng(0)
BINARY = RNG.integers(0, 2, (34, 6)).astype("float32")
REAL = RNG.normal(1.0, 0.5, (34, 5)).astype("float32")


@pytest.mark.parametrize(
    "make_rule",
    [
        rules.ContrastiveDivergence,
        lambda: rules.ContrastiveDivergence(3, sparsity_target=0.1, sparsity_cost=0.1),
        lambda: rules.PersistentContrastiveDivergence(2, num_chains=7),
    ],
    ids=["cd", "sparse-cd", "pcd"],
)
def test_binary(make_rule):
    run_model_test(lambda: keras_rbm.RBM(4, num_visible=6, seed=1), make_rule, BINARY)


def test_binary_without_seed_or_size():
    model = keras_rbm.RBM(4)
    model.compile()
    model.fit(BINARY, epochs=1, verbose=0)
    assert model.kernel.shape == (6, 4)


@pytest.mark.parametrize("hidden", ["bernoulli", "gaussian"])
def test_gaussian(hidden):
    def make_model():
        rbm = keras_rbm.RBM(
            4, visible=units.Gaussian(standardize=True), hidden=hidden, seed=1
        )
        rbm.adapt(REAL)
        return rbm

    run_model_test(make_model, rules.PersistentContrastiveDivergence, REAL)
