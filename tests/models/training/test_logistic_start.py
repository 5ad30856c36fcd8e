"""Where the first `fit` of a CRBM starts its features' weights."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from sklearn.linear_model import LogisticRegression

import keras_rbm
from keras_rbm.models.data.rows import some_rows
from keras_rbm.models.training import first_fit
from keras_rbm.models.training.logistic_start import (
    chosen_stddev,
    logistic_regressions,
    most_rows,
)
from keras_rbm.regularizers import NormalPrior

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4)).astype("float32") * [1.0, 3.0, 0.2, 1.0] + [0, 2, 0, 0]
Y = (RNG.random((200, 2)) < 0.5 + 0.4 * np.tanh(X[:, :2] - [0, 2])).astype("float32")


def expected(x, y, weights=None):
    found = [
        LogisticRegression(C=0.3, tol=1e-8, max_iter=1000).fit(x, column, weights)
        for column in y.T
    ]
    kernel = np.stack([each.coef_[0] for each in found], 1)
    return kernel, np.concatenate([each.intercept_ for each in found])


@pytest.mark.parametrize("weighted", [False, True])
def test_regressions_are_those_of_scikit_learn(weighted):
    weights = RNG.random(200) if weighted else np.ones(200)
    weights *= 200 / weights.sum()
    found = logistic_regressions(X, Y, weights, 1.0 / (0.3 * 200))
    for own, theirs in zip(found, expected(X, Y, weights), strict=True):
        np.testing.assert_allclose(own, theirs, rtol=0.02, atol=0.02)


def test_constant_columns_and_equal_features():
    x, y = np.repeat(X[:, :1], 3, 1), np.stack([np.ones(200), np.zeros(200)], 1)
    kernel, bias = logistic_regressions(x, y, np.ones(200), 0.01)
    assert np.isfinite(kernel).all()
    np.testing.assert_allclose(bias, [np.log(399), -np.log(399)], rtol=0.2)


def started(kernel_regularizer="auto", **kwargs):
    kwargs["kernel_regularizer"] = kernel_regularizer
    crbm = keras_rbm.CRBM(2, seed=0, **kwargs)
    crbm.compile(keras.optimizers.SGD(0.0), run_eagerly=True)
    crbm.fit(X, Y, batch_size=200, verbose=0)
    return crbm


def test_the_first_fit_starts_there():
    crbm = started(NormalPrior())
    kernel, bias = expected(X, Y)
    np.testing.assert_allclose(crbm.visible_kernel, kernel, rtol=0.02, atol=0.02)
    np.testing.assert_allclose(crbm.visible_bias, bias, rtol=0.02, atol=0.05)
    crbm.visible_kernel.assign(kernel + 1.0)
    crbm.fit(X, Y, batch_size=200, verbose=0)
    np.testing.assert_allclose(crbm.visible_kernel, kernel + 1.0, rtol=1e-5)


def test_the_prior_counts_the_rows_that_are_taken(monkeypatch):
    """It counted all, so regressions on a part of a large set overfitted."""
    monkeypatch.setattr(first_fit, "_ROWS", 50)
    chosen = some_rows(np.arange(200), 50)
    kernel, _ = expected(X[chosen], Y[chosen])
    crbm = started(NormalPrior())
    np.testing.assert_allclose(crbm.visible_kernel, kernel, rtol=0.02, atol=0.02)


@pytest.mark.parametrize(
    "kwargs",
    [
        {"visible_bias_initializer": "zeros"},
        {"visible": "gaussian"},
    ],
)
def test_a_chosen_start_stays(kwargs):
    assert np.abs(started(**kwargs).visible_kernel).max() < 0.1


def test_a_model_from_its_config_starts_there_too():
    crbm = keras_rbm.CRBM.from_config(keras_rbm.CRBM(2, seed=0).get_config())
    crbm.compile(keras.optimizers.SGD(0.0), run_eagerly=True)
    crbm.fit(X, Y, batch_size=200, verbose=0)
    np.testing.assert_array_equal(crbm.visible_kernel, started().visible_kernel)


@pytest.mark.parametrize("as_pipeline", [False, True])
def test_rows_of_weight_0_do_not_count(as_pipeline):
    weights = np.repeat([1.0, 0.0], 100).astype("float32")
    crbm = keras_rbm.CRBM(2, seed=0, kernel_regularizer=NormalPrior())
    crbm.compile(keras.optimizers.SGD(0.0), run_eagerly=True)
    data = X, np.where(weights[:, np.newaxis] > 0, Y, 1.0), weights
    if as_pipeline:
        data = tf.data.Dataset.from_tensors(data)
        crbm.fit(data, verbose=0)
    else:
        crbm.fit(*data[:2], sample_weight=weights, batch_size=200, verbose=0)
        assert crbm.fit_state.rows == 100
    kernel, bias = expected(X[:100], Y[:100])
    np.testing.assert_allclose(crbm.visible_kernel, kernel, rtol=0.02, atol=0.02)
    np.testing.assert_allclose(crbm.visible_bias, bias, rtol=0.02, atol=0.05)


@pytest.mark.filterwarnings("ignore:Features have", "ignore:Training has diverged")
def test_features_of_any_size_leave_the_model_finite():
    for scale in (1e-8, 1e8, 1e12):
        crbm = keras_rbm.CRBM(2, seed=0)
        crbm.compile(keras.optimizers.SGD(0.0), run_eagerly=True)
        x = np.concatenate([X * scale] * 3, 1)
        crbm.fit(x, Y, batch_size=200, verbose=0)
        assert np.isfinite(crbm.visible_kernel).all()


def test_too_many_features_do_not_start_there():
    assert most_rows(64, 64) > 10_000
    assert most_rows(784, 784) > 1000
    assert most_rows(2048, 784) == most_rows(5000, 1) == 0


def related(strength, rows=300, features=8):
    """Returns features, and targets whose log-odds they are, times `strength`."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(rows, features))
    odds = strength * x[:, :4]
    return x, (rng.random(odds.shape) < 1.0 / (1.0 + np.exp(-odds))).astype(float)


def test_held_out_rows_choose_the_prior():
    chosen = []
    for strength in (0.0, 0.5, 3.0):
        x, y = related(strength)
        chosen.append(chosen_stddev(x, y, np.ones(len(x)), 0.55))
    assert chosen[0] == 0.15
    assert chosen[0] < chosen[1] < chosen[2]
    assert chosen[2] > 0.55


def test_a_choice_that_makes_no_difference_is_none():
    """Of large features all deviations fit alike, and the smallest was chosen."""
    x, y = related(3.0)
    assert chosen_stddev(1e4 * x, y, np.ones(len(x)), 0.55) == 0.55


@pytest.mark.parametrize("rows, targets", [(40, 2), (300, 0), (300, 1)])
def test_too_little_to_choose_by(rows, targets):
    x, y = related(3.0, rows)
    y = np.ones_like(y) if targets == 1 else y[:, :targets]
    assert chosen_stddev(x, y, np.ones(rows), 0.55) == 0.55


def test_the_first_fit_chooses_the_prior_of_a_new_model(tmp_path):
    x, y = related(3.0)
    crbm = keras_rbm.CRBM(2, seed=0)
    crbm.compile(keras.optimizers.SGD(0.0), run_eagerly=True)
    crbm.fit(x, y, batch_size=300, verbose=0)
    first = crbm.kernel.regularizer.stddev
    assert first > 0.55
    # It is part of the penalty, of files, and stays.
    penalty = NormalPrior(first)
    penalty.count(300)
    crbm.kernel.regularizer.count(300)
    assert crbm.kernel.regularizer(crbm.kernel) == penalty(crbm.kernel)
    crbm.save(tmp_path / "crbm.keras")
    loaded = keras.saving.load_model(tmp_path / "crbm.keras")
    loaded.fit(x, 1.0 - y, batch_size=300, verbose=0)
    assert loaded.kernel.regularizer.stddev == first


def test_a_prior_that_the_user_has_chosen_stays():
    x, y = related(3.0)
    crbm = keras_rbm.CRBM(2, seed=0, kernel_regularizer=NormalPrior())
    crbm.compile(keras.optimizers.SGD(0.0), run_eagerly=True)
    crbm.fit(x, y, batch_size=300, verbose=0)
    assert crbm.kernel.regularizer.stddev == 0.55


@pytest.mark.parametrize(
    "whole",
    [True, pytest.param(False, marks=pytest.mark.slow)],
    ids=["keras", "weights"],
)
def test_a_resumed_model_has_the_prior_that_was_chosen(whole, tmp_path):
    """Weights alone left 0.55, so a resumed run differed."""
    x, y = related(3.0)

    def made():
        crbm = keras_rbm.CRBM(2, num_visible=4, num_features=8, seed=0)
        crbm.compile()
        return crbm

    crbm = made()
    crbm.fit(x, y, epochs=2, verbose=0)
    path = tmp_path / ("crbm.keras" if whole else "crbm.weights.h5")
    cut = made()
    save = keras.callbacks.ModelCheckpoint(path, save_weights_only=not whole)
    stop = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: setattr(cut, "stop_training", True)
    )
    cut.fit(x, y, epochs=2, callbacks=[save, stop], verbose=0)
    if whole:
        again = keras.saving.load_model(path)
    else:
        again = made()
        again.load_weights(path)
    again.fit(x, y, epochs=2, initial_epoch=1, verbose=0)
    for own, other in zip(again.weights, crbm.weights, strict=True):
        np.testing.assert_array_equal(own, other)
    same = "kernel_regularizer"
    assert again.get_config()[same] == crbm.get_config()[same]


def test_bool_targets():
    x, y = related(3.0)
    for targets in (y, y.astype(bool)):
        crbm = keras_rbm.CRBM(2, seed=0)
        crbm.compile(keras.optimizers.SGD(0.0), run_eagerly=True)
        crbm.fit(x, targets, batch_size=300, verbose=0)
        assert crbm.kernel.regularizer.stddev > 0.55
