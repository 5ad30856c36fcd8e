"""The log-likelihood during training, against enumeration."""

import keras
import numpy as np
import pytest
from watched_training import assert_training_unchanged

import keras_rbm
from keras_rbm.callbacks import LogLikelihood


@pytest.fixture
def data():
    return np.random.default_rng(0).integers(0, 2, (40, 9)).astype("float32")


def compiled():
    rbm = keras_rbm.RBM(5, num_visible=9, kernel_regularizer=None, seed=0)
    rbm.compile(keras.optimizers.SGD(0.1), rule="pcd")
    return rbm


def test_interval_holds_the_exact_likelihood(data):
    rbm = compiled()
    callback = LogLikelihood(data, num_chains=200)
    history = rbm.fit(data, epochs=3, callbacks=[callback], verbose=0).history
    exact = np.mean(rbm.log_likelihood(data, rbm.log_partition("exact")))
    lower, value, upper = (
        history[f"log_likelihood{end}"][-1] for end in ("_lower", "", "_upper")
    )
    # The interval is three standard errors each way; 1e-4 for float32.
    assert lower - 1e-4 <= exact <= upper + 1e-4
    assert lower < value < upper
    assert upper - lower < 0.2


def test_is_what_the_model_itself_says(data):
    rbm = compiled()
    callback = LogLikelihood(data, num_chains=30, seed=3)
    history = rbm.fit(data, epochs=2, callbacks=[callback], verbose=0).history
    z = rbm.log_partition("bidirectional", num_chains=30, seed=3)
    expected = np.mean(rbm.log_likelihood(data, z))
    np.testing.assert_allclose(history["log_likelihood"][-1], expected, rtol=1e-6)


def test_every_leaves_the_other_epochs_without_keys(data):
    callback = LogLikelihood(data, every=3, name="val_log_likelihood")
    history = compiled().fit(data, epochs=7, callbacks=[callback], verbose=0).history
    assert len(history["loss"]) == 7
    for end in ("", "_lower", "_upper"):
        assert len(history[f"val_log_likelihood{end}"]) == 2


def test_training_goes_on_as_without_it(data):
    assert_training_unchanged(compiled, data, LogLikelihood(data))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"every": 0}, "Received: every=0"),
        ({"num_chains": 1}, "Received: num_chains=1"),
        ({"name": ""}, "Received: name=''"),
    ],
)
def test_bad_arguments(data, arguments, message):
    with pytest.raises(ValueError, match=message):
        LogLikelihood(data, **arguments)


def test_bad_data_stop_before_the_first_step(data):
    rbm = compiled()
    before = rbm.kernel.numpy()
    with pytest.raises(ValueError, match=r"Expected data of shape \(examples, 9\)"):
        rbm.fit(data, callbacks=[LogLikelihood(data[:, :4])], verbose=0)
    np.testing.assert_array_equal(rbm.kernel, before)


@pytest.mark.parametrize(
    ("visible", "method"), [("bernoulli", "exact"), ("binomial", "bethe")]
)
def test_a_method_that_does_not_suit_is_refused_at_the_start(visible, method):
    large = np.zeros((8, 30), "float32")
    visible = keras_rbm.units.Binomial(2) if visible == "binomial" else visible
    rbm = keras_rbm.RBM(30, visible=visible, seed=0)
    rbm.compile(keras.optimizers.SGD(0.1))
    callback = LogLikelihood(large, every=2, method=method)
    with pytest.raises(ValueError, match="binary units"):
        rbm.fit(large, epochs=2, callbacks=[callback], verbose=0)
    assert int(rbm.optimizer.iterations) == 0
    with pytest.raises(ValueError, match="seed"):
        LogLikelihood(large, seed="x")


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
    score = keras_rbm.callbacks.LogLikelihood(data * 0.5, method="exact")
    with pytest.warns(UserWarning, match="the result is not a log-likelihood"):
        rbm.fit(data, callbacks=[score], verbose=0)
