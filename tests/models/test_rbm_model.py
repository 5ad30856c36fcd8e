"""`run_model_test` for the RBM with every rule and unit type."""

import gc
import weakref

import keras
import numpy as np
import pytest
import tensorflow as tf
from brute_force import binary_states
from model_test_case import run_model_test, run_rule_test

import keras_rbm
from keras_rbm import inference, rules, units

RNG = np.random.default_rng(0)
BINARY = RNG.integers(0, 2, (34, 6)).astype("float32")
REAL = RNG.normal(1.0, 0.5, (34, 5)).astype("float32")


RULES = {
    "cd": rules.ContrastiveDivergence,
    "sparse-cd": lambda: rules.ContrastiveDivergence(
        3, sparsity_target=0.1, sparsity_cost=0.1
    ),
    "pcd": lambda: rules.PersistentContrastiveDivergence(2, num_chains=7),
    "centered-cd": lambda: rules.ContrastiveDivergence(centered=True),
    "centered-sdcp": lambda: rules.SDCP(2, 1, centered=True),
    "fpcd": lambda: rules.FastPersistentContrastiveDivergence(num_chains=7),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", RULES)
def test_binary(name):
    run_rule_test(lambda: keras_rbm.RBM(4, num_visible=6, seed=1), RULES[name], BINARY)


class ExactGradient(rules.LearningRule):
    """The exact negative phase of six binary units: draws nothing."""

    def negative_phase(self, step):
        states = tf.constant(binary_states(6), tf.float32)
        p = tf.nn.softmax(-step.potentials.free_energy(states))
        total = tf.distribute.get_strategy().num_replicas_in_sync
        return inference.conditional_moments(step.potentials, states, p / total)


@pytest.mark.slow
@pytest.mark.parametrize("centered", [False, True], ids=["plain", "centered"])
def test_exact_gradient(centered):
    with keras.saving.custom_object_scope({"ExactGradient": ExactGradient}):
        run_model_test(
            lambda: keras_rbm.RBM(4, num_visible=6, kernel_regularizer=None, seed=1),
            lambda: ExactGradient(centered=centered),
            BINARY,
            stochastic=False,
            weights_everywhere=True,
        )


def test_binary_without_seed_or_size():
    model = keras_rbm.RBM(4)
    model.compile()
    model.fit(BINARY, epochs=1, verbose=0)
    assert model.kernel.shape == (6, 4)


@pytest.mark.parametrize("deep", [False, True], ids=["RBM", "DBN"])
def test_nothing_keeps_a_fitted_model(deep):
    """`tf.data` keeps the Python functions it calls, and all they refer to."""
    model = keras_rbm.RBM(4, seed=1)
    model.compile()
    if deep:
        model = keras_rbm.DBN([model, keras_rbm.RBM(3, seed=1)])
        model.compile()
    model.fit(BINARY, verbose=0)
    alive = weakref.ref(model.rbms[1] if deep else model)
    del model
    gc.collect()
    assert alive() is None


@pytest.mark.slow
@pytest.mark.parametrize("hidden", ["bernoulli", "gaussian"])
def test_gaussian(hidden):
    def make_model():
        rbm = keras_rbm.RBM(
            4, visible=units.Gaussian(standardize=True), hidden=hidden, seed=1
        )
        rbm.adapt(REAL)
        return rbm

    run_rule_test(make_model, rules.PersistentContrastiveDivergence, REAL)


def test_metrics_are_of_the_model_before_the_update():
    data = np.random.default_rng(0).integers(0, 2, (20, 6)).astype("float32")
    start = keras.initializers.RandomNormal(stddev=1.0, seed=0)
    rbm = keras_rbm.RBM(4, num_visible=6, seed=0, kernel_initializer=start)
    rbm.adapt(data)
    before = np.mean(np.square(rbm.reconstruct(data) - data))
    rbm.compile(keras.optimizers.SGD(1.0), rule="cd", metrics=["mse"])
    found = rbm.fit(data, batch_size=20, verbose=0).history["mse"][0]
    assert found == pytest.approx(before, rel=1e-5)
    after = np.mean(np.square(rbm.reconstruct(data) - data))
    assert abs(after - before) > 1e-3
