"""Where the first `fit` of a CRBM starts its features' weights."""

import keras
import numpy as np
import pytest
from same import assert_same
from sklearn.linear_model import LogisticRegression
from small_models import batches, compiled, fitted, reloaded

from keras_rbm import CRBM
from keras_rbm.models.data.rows import some_rows
from keras_rbm.models.training import first_fit
from keras_rbm.models.training.progress import set_prior
from keras_rbm.models.training.regressions import (
    chosen_stddev,
    logistic_regressions,
    most_rows,
    parts_of,
)
from keras_rbm.regularizers import NormalPrior
from keras_rbm.units import Bernoulli, Categorical

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


def started(*data, crbm=None, weights=None, **kwargs):
    """Returns a CRBM after a first fit that trains nothing."""
    crbm = compiled(crbm or CRBM(2, seed=0, **kwargs), keras.optimizers.SGD(0.0))
    options = {"batch_size": None if len(data) == 1 else 300, "sample_weight": weights}
    return fitted(crbm, *(data or (X, Y)), **options)


def assert_starts_at(crbm, kernel, bias):
    np.testing.assert_allclose(crbm.visible_kernel, kernel, rtol=0.02, atol=0.02)
    np.testing.assert_allclose(crbm.visible_bias, bias, rtol=0.02, atol=0.05)


def with_prior(*data, **kwargs):
    return started(*data, kernel_regularizer=NormalPrior(), **kwargs)


@pytest.mark.parametrize("weighted", [False, True])
def test_regressions_are_those_of_scikit_learn(weighted):
    weights = RNG.random(200) if weighted else np.ones(200)
    weights *= 200 / weights.sum()
    found = logistic_regressions(X, Y, weights, 1.0 / (0.3 * 200))
    assert_same(found[:2], expected(X, Y, weights), rtol=0.02, atol=0.02)


def test_constant_columns_and_equal_features():
    x, y = np.repeat(X[:, :1], 3, 1), np.stack([np.ones(200), np.zeros(200)], 1)
    kernel, bias, _ = logistic_regressions(x, y, np.ones(200), 0.01)
    assert np.isfinite(kernel).all()
    np.testing.assert_allclose(bias, [np.log(399), -np.log(399)], rtol=0.2)


def test_the_first_fit_starts_there():
    crbm = with_prior()
    kernel, bias = expected(X, Y)
    assert_starts_at(crbm, kernel, bias)
    crbm.visible_kernel.assign(kernel + 1.0)
    fitted(crbm, X, Y, batch_size=200)
    np.testing.assert_allclose(crbm.visible_kernel, kernel + 1.0, rtol=1e-5)


def test_the_prior_counts_the_rows_that_are_taken(monkeypatch):
    """It counted all, so regressions on a part of a large set overfitted."""
    monkeypatch.setattr(first_fit, "_ROWS", 50)
    chosen = some_rows(np.arange(200), 50)
    kernel, _ = expected(X[chosen], Y[chosen])
    crbm = with_prior()
    np.testing.assert_allclose(crbm.visible_kernel, kernel, rtol=0.02, atol=0.02)


@pytest.mark.parametrize(
    "kwargs", [{"visible_bias_initializer": "zeros"}, {"visible": Categorical(2)}]
)
def test_a_chosen_start_stays(kwargs):
    assert np.abs(started(**kwargs).visible_kernel).max() < 0.1


def test_a_model_from_its_config_starts_there_too():
    crbm = started(crbm=CRBM.from_config(CRBM(2, seed=0).get_config()))
    np.testing.assert_array_equal(crbm.visible_kernel, started().visible_kernel)


@pytest.mark.parametrize("as_pipeline", [False, True])
def test_rows_of_weight_0_do_not_count(as_pipeline):
    weights = np.repeat([1.0, 0.0], 100).astype("float32")
    data = X, np.where(weights[:, np.newaxis] > 0, Y, 1.0)
    if as_pipeline:
        crbm = with_prior(batches(*data, weights, size=200))
    else:
        crbm = with_prior(*data, weights=weights)
        assert crbm.fit_state.rows == 100
    assert_starts_at(crbm, *expected(X[:100], Y[:100]))


@pytest.mark.filterwarnings("ignore:Features have", "ignore:Training has diverged")
@pytest.mark.parametrize("scale", [1e-8, 1e8, 1e12])
def test_features_of_any_size_leave_the_model_finite(scale):
    crbm = started(np.concatenate([X * scale] * 3, 1), Y)
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


def choice(x, y):
    parts = parts_of(Bernoulli(), y.shape[1])
    return chosen_stddev(x, y, np.ones(len(x)), 0.55, parts)


def test_held_out_rows_choose_the_prior():
    chosen = [choice(*related(strength)) for strength in (0.0, 0.5, 3.0)]
    assert chosen[0] == 0.075
    assert chosen[0] < chosen[1] < chosen[2]
    assert chosen[2] > 0.55


@pytest.mark.parametrize(
    ("rows", "targets"), [(40, 2), (300, 0), (300, "equal"), (300, "large features")]
)
def test_no_choice(rows, targets):
    """Too little to choose by, or no difference: the smallest was chosen."""
    x, y = related(3.0, rows)
    if targets == "equal":
        y = np.ones_like(y)
    elif targets == "large features":
        x = 1e4 * x
    else:
        y = y[:, :targets]
    assert choice(x, y) == 0.55


def test_the_first_fit_chooses_the_prior_of_a_new_model(tmp_path):
    x, y = related(3.0)
    crbm = started(x, y)
    prior, of_hidden = crbm.visible_kernel.regularizer, crbm.kernel.regularizer
    first = prior.stddev
    assert first > 0.55 and of_hidden.stddev == 3.0
    assert crbm.hidden_kernel.regularizer.stddev == 0.05  # x says all it can
    # It is part of the penalty, of files, and stays.
    penalty = NormalPrior(first)
    for each in (penalty, prior):
        each.count(300)
    assert prior(crbm.visible_kernel) == penalty(crbm.visible_kernel)
    loaded = fitted(reloaded(crbm, tmp_path), x, 1.0 - y, batch_size=300)
    assert loaded.visible_kernel.regularizer.stddev == first
    assert loaded.kernel.regularizer.stddev == 3.0
    again = started(x, y.astype(bool)).visible_kernel.regularizer
    assert again.stddev > 0.55
    own = with_prior(x, y)  # as the user has chosen
    assert own.kernel.regularizer is own.visible_kernel.regularizer
    assert own.kernel.regularizer.stddev == 0.55


@pytest.mark.parametrize("visible", ["bernoulli", Categorical(2)])
def test_hidden_units_learn_what_regressions_cannot(visible):
    """The sign of a product of two features; at a third of the deviation they fail."""
    x = np.random.default_rng(0).normal(size=(1400, 6)).astype("float32")
    y = (x[:, :1] * x[:, 1:2] > 0.0).astype("float32")
    crbm = compiled(CRBM(10, visible=visible, seed=0))
    fitted(crbm, x[:400], y[:400], epochs=60)
    right = (crbm.predict(x[400:], verbose=0)[:, -1:] > 0.5) == y[400:]
    assert right.mean() > 0.85


@pytest.mark.parametrize(
    ("unit", "outputs", "stddev"),
    [("bernoulli", 7, 3.0), ("bernoulli", 64, 1.0), (Categorical(99), 1, 3.0)],
)
def test_the_prior_of_hidden_units_goes_by_the_number_of_outputs(unit, outputs, stddev):
    """With 3, a tenth more of 64 restored pixels of 1,200 images are wrong."""
    crbm = compiled(CRBM(2, visible=unit, num_visible=outputs, seed=0))
    crbm.build((None, 3))
    priors = [crbm.kernel.regularizer, crbm.hidden_kernel.regularizer]
    assert [prior.stddev for prior in priors] == [stddev, stddev]
    set_prior(crbm, crbm.fit_state._replace(stddev=0.4))
    assert [prior.stddev for prior in priors] == [stddev, stddev]
