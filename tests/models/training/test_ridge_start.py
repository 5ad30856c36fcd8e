"""Where the first `fit` of a CRBM of real numbers starts its features' weights."""

import keras
import numpy as np
import pytest
from sklearn.linear_model import Ridge, RidgeCV
from small_models import compiled, fitted

from keras_rbm import CRBM
from keras_rbm.models.training.regressions import ridge_regressions
from keras_rbm.units import Categorical, Gaussian, Joined

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 6)) * [1.0, 3.0, 0.2, 1.0, 1.0, 1.0] + [0, 2, 0, 0, 0, 0]
NOISE = RNG.normal(size=(300, 3)) * [0.5, 1.0, 2.0]
Y = X[:, :3] @ RNG.normal(size=(3, 3)) + NOISE + [0.0, 5.0, -3.0]


def started(x, y, **kwargs):
    """Returns a CRBM after a first fit that trains nothing."""
    crbm = compiled(CRBM(2, seed=0, **kwargs), keras.optimizers.SGD(0.0))
    return fitted(crbm, x.astype("float32"), y.astype("float32"), batch_size=300)


def slopes_of(found):
    precision = np.exp(found.log_precision)
    return found.kernel / precision, found.bias / precision


@pytest.mark.parametrize(("penalty", "rows"), [(1e-3, 300), (0.3, 300), (0.3, 5)])
def test_regressions_are_those_of_scikit_learn(penalty, rows):
    """With more features than rows, too: those took a minute."""
    weights, x, y = RNG.random(rows), X[:rows], Y[:rows]
    weights *= rows / weights.sum()
    found = ridge_regressions(x, y, weights, penalty)
    slopes, bias = slopes_of(found)
    for column in range(3):
        precision = np.exp(found.log_precision[column])
        ridge = Ridge(alpha=rows * penalty * precision).fit(x, y[:, column], weights)
        np.testing.assert_allclose(slopes[:, column], ridge.coef_, rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(bias[column], ridge.intercept_, rtol=1e-3)


def test_precision_is_that_of_the_noise_for_any_number_of_features():
    """Residuals of rows that were learned are too small: a density would be sure."""
    many = np.concatenate([X, RNG.normal(size=(300, 200))], 1)
    for x in (X, many):
        found = ridge_regressions(x, Y, np.ones(300), 1e-6)
        ratio = np.exp(found.log_precision) * [0.25, 1.0, 4.0]
        np.testing.assert_allclose(ratio, 1.0, atol=0.35)


def test_gaps_leave_each_column_its_own_rows():
    y = np.where(RNG.random(Y.shape) < 0.3, np.nan, Y)
    found = ridge_regressions(X, y, np.ones(300), 1e-3)
    for column in range(3):
        rows = ~np.isnan(y[:, column])
        part = slice(column, column + 1)
        own = ridge_regressions(X[rows], y[rows, part], np.ones(rows.sum()), 1e-3)
        np.testing.assert_array_equal(found.kernel[:, part], own.kernel)


def test_a_target_that_is_a_feature_has_a_finite_precision():
    y = np.stack([X[:, 1], np.zeros(300)], 1)
    found = ridge_regressions(X, y, np.ones(300), 1e-6)
    assert all(np.isfinite(part).all() for part in found)
    assert np.exp(found.log_precision[0]) <= 1.01e4 / np.var(X[:, 1])


@pytest.mark.parametrize("noise", [0, 60])
def test_the_first_fit_starts_at_a_ridge_that_held_out_rows_choose(noise):
    x = np.concatenate([X, RNG.normal(size=(300, noise))], 1)
    y = Y + 2.0 * RNG.normal(size=Y.shape)
    crbm = started(x[:150], y[:150], visible="gaussian")
    ridge = RidgeCV(alphas=np.logspace(-3, 4, 15)).fit(x[:150], y[:150])
    ours, theirs = (
        np.mean(np.square(model.predict(x[150:].astype("float32")) - y[150:]))
        for model in (crbm, ridge)
    )
    assert ours < 1.05 * theirs


@pytest.mark.parametrize("noise", [0.5, 0.02])
def test_targets_that_follow_from_the_features(noise):
    """Their weights are large: a prior of deviation 2 left 250 times ridge's error.

    Nor do the first weights of many hidden units move the predictions.
    """
    y = X[:, :3] @ np.eye(3) + noise * NOISE
    crbm = CRBM(300, visible="gaussian", seed=0)
    fitted(compiled(crbm, keras.optimizers.SGD(0.0), rule="cd"), X[:150], y[:150])
    ridge = RidgeCV(alphas=np.logspace(-5, 4, 19)).fit(X[:150], y[:150])
    ours, theirs = (
        np.mean(np.square(model.predict(X[150:].astype("float32")) - y[150:]))
        for model in (crbm, ridge)
    )
    assert ours < 1.02 * theirs


def test_each_part_of_a_joined_layer_has_its_own():
    classes = np.argmax(X[:, 3:], 1)[:, np.newaxis]
    both = [(Categorical(3), 1), ("bernoulli", 1), (Gaussian(standardize=False), 3)]
    data = np.concatenate([classes, X[:, 3:4] > 0.0, Y], 1)
    crbm = started(X, data, visible=Joined(both))
    kernel = crbm.visible_kernel.numpy()
    assert np.abs(kernel[:, :3]).max() < 0.1  # of classes
    assert kernel[3, 3] > 1.0
    stddev = crbm.visible_kernel.regularizer.stddev
    found = ridge_regressions(X, Y, np.ones(300), 1.0 / (stddev**2 * 300))
    np.testing.assert_allclose(kernel[:, 4:], found.kernel, atol=1e-4)
    np.testing.assert_allclose(
        crbm.visible_log_precision_2, found.log_precision, atol=1e-4
    )
