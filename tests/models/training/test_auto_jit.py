"""What `jit_compile="auto"` compiles, and that numbers stay the same."""

import keras
import numpy as np
import pytest
from model_test_case import two_cpus
from small_models import binary, compiled, quick

from keras_rbm import CRBM, DBM, RBM, InfiniteRBM

pytestmark = pytest.mark.usefixtures("as_users_run")

V = binary(30)


def rbm(**kwargs):
    model = RBM(4, num_visible=6, seed=1)
    return compiled(model, keras.optimizers.SGD(0.1), rule="cd", **kwargs)


@pytest.mark.slow
def test_fit_evaluate_and_predict_are_compiled_and_give_the_same():
    numbers = []
    for jit_compile in ("auto", False):
        model = rbm(jit_compile=jit_compile, metrics=["mae"])
        assert model.jit_compile == (jit_compile == "auto")
        loss = model.fit(V, batch_size=10, epochs=2, verbose=0).history["loss"]
        scores = model.evaluate(V, verbose=0)
        numbers.append((loss, scores, model.predict(V, verbose=0)))
    for jitted, plain in zip(*numbers, strict=True):
        np.testing.assert_allclose(jitted, plain, rtol=1e-3, atol=1e-5)


def test_what_cannot_be_compiled_is_left_alone():
    """Belief propagation compiles itself."""
    assert not rbm(run_eagerly=True).jit_compile
    with two_cpus().scope():
        assert not rbm().jit_compile
    assert not compiled(InfiniteRBM(4, num_visible=6)).jit_compile
    crbm = CRBM(4, num_visible=6, num_features=6, inference="sum_product")
    assert not compiled(crbm, rule="maximum_likelihood").jit_compile
    crbm.inference = "mean_field"
    assert crbm.jit_compile


@pytest.mark.parametrize("fits", quick([False, True], False))
def test_deep_models(fits):
    dbm = compiled(DBM([4, 3], num_visible=6, seed=1), rule="pcd")
    assert dbm.jit_compile
    assert not fits or np.isfinite(dbm.fit(V, verbose=0).history["loss"][0])
