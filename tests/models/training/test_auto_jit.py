"""What `jit_compile="auto"` compiles, and that numbers stay the same."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from model_test_case import two_cpus

import keras_rbm

pytestmark = pytest.mark.usefixtures("as_users_run")

V = np.random.default_rng(0).integers(0, 2, (30, 6)).astype("float32")


def rbm(**kwargs):
    model = keras_rbm.RBM(4, num_visible=6, seed=1)
    model.compile(keras.optimizers.SGD(0.1), rule="cd", **kwargs)
    return model


@pytest.mark.slow
def test_fit_evaluate_and_predict_are_compiled_and_give_the_same():
    numbers = []
    for jit_compile in ("auto", False):
        model = rbm(jit_compile=jit_compile, metrics=["mae"])
        assert model.jit_compile == (jit_compile == "auto")
        loss = model.fit(V, batch_size=10, epochs=2, verbose=0).history["loss"]
        scores = model.evaluate(V, verbose=0)
        numbers.append((loss, scores, model.predict(V, verbose=0)))
    for compiled, plain in zip(*numbers, strict=True):
        np.testing.assert_allclose(compiled, plain, rtol=1e-3, atol=1e-5)


def test_what_cannot_be_compiled_is_left_alone():
    assert not rbm(run_eagerly=True).jit_compile
    with two_cpus().scope():
        assert not rbm().jit_compile
    grown = keras_rbm.InfiniteRBM(4, num_visible=6)
    grown.compile()
    assert not grown.jit_compile


def test_belief_propagation_compiles_itself():
    crbm = keras_rbm.CRBM(4, num_visible=6, num_features=6, inference="sum_product")
    crbm.compile(rule="maximum_likelihood")
    assert not crbm.jit_compile
    crbm.inference = "mean_field"
    assert crbm.jit_compile


@pytest.mark.parametrize("fits", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_deep_models(fits):
    dbm = keras_rbm.DBM([4, 3], num_visible=6, seed=1)
    dbm.compile(rule="pcd")
    assert dbm.jit_compile
    assert not fits or tf.math.is_finite(dbm.fit(V, verbose=0).history["loss"][0])
