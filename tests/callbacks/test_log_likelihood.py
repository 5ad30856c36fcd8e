"""The log-likelihood during training, against enumeration."""

import keras
import numpy as np
import pytest

import keras_rbm
from keras_rbm.callbacks import LogLikelihood

DATA = np.random.default_rng(0).integers(0, 2, (40, 9)).astype("float32")


def compiled():
    rbm = keras_rbm.RBM(5, num_visible=9, kernel_regularizer=None, seed=0)
    rbm.compile(keras.optimizers.SGD(0.1), rule="pcd")
    return rbm


def logs(rbm, epochs=3, **options):
    callback = LogLikelihood(DATA, **options)
    return rbm.fit(DATA, epochs=epochs, callbacks=[callback], verbose=0).history


def test_is_what_the_model_itself_says_and_holds_the_exact_likelihood():
    rbm = compiled()
    history = logs(rbm, num_chains=200, seed=3)
    lower, value, upper = (
        history[f"log_likelihood{end}"][-1] for end in ("_lower", "", "_upper")
    )
    z = rbm.log_partition("bidirectional", num_chains=200, seed=3)
    expected = np.mean(rbm.log_likelihood(DATA, z))
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    exact = np.mean(rbm.log_likelihood(DATA, rbm.log_partition("exact")))
    # The interval is three standard errors each way; 1e-4 for float32.
    assert lower - 1e-4 <= exact <= upper + 1e-4
    assert lower < value < upper < lower + 0.2


def test_every_leaves_the_other_epochs_without_keys():
    history = logs(compiled(), 7, every=3, precision=9.0, name="val_log_likelihood")
    assert len(history["loss"]) == 7
    for end in ("", "_lower", "_upper"):
        assert len(history[f"val_log_likelihood{end}"]) == 2


def test_a_growing_model_is_not_judged_by_its_first_unit():
    """It has none yet, and could not be enumerated."""
    model = keras_rbm.InfiniteRBM(4, num_visible=30, seed=0)
    model.compile()
    callback = LogLikelihood(np.zeros((8, 30), "float32"), method="exact")
    callback.set_model(model)
    callback.on_train_begin()


def test_gray_values_have_no_likelihood():
    data = np.eye(6, dtype="float32")
    rbm = keras_rbm.RBM(3, seed=0)
    rbm.compile("sgd", run_eagerly=True)
    score = LogLikelihood(data * 0.5, method="exact")
    with pytest.warns(UserWarning, match="the result is not a log-likelihood"):
        rbm.fit(data, callbacks=[score], verbose=0)
