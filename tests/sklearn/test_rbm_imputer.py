"""Missing values in estimators: features, scores, gaps."""

import contextlib

import numpy as np
import pytest
from brute_force import binary_states
from comparisons import assert_equal
from sklearn.datasets import load_wine
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import StandardScaler

import keras_rbm
from keras_rbm.sklearn import RBMEstimator, RBMImputer

RNG = np.random.default_rng(0)
SIDE = RNG.random((120, 1)) < 0.5
DATA = np.float64((RNG.random((120, 6)) < 0.1) ^ SIDE ^ (np.arange(6) % 2 > 0))
GAPS = RNG.random(DATA.shape) < 0.2
HOLED = np.where(GAPS, np.nan, DATA)
BOTH = "Joined([(Bernoulli(), 14), (Gaussian(standardize=True), 2)])"
WINE = StandardScaler().fit_transform(load_wine().data)


def brief(**kwargs):
    defaults = {"n_components": 4, "batch_size": 100, "n_iter": 1, "random_state": 0}
    return RBMImputer(**{**defaults, "steps": 10, **kwargs})


def estimator(**kwargs):
    return RBMEstimator(**{"n_components": 4, "n_iter": 2, "random_state": 0, **kwargs})


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("method", ["mean", "mode", "sample"])
def test_only_gaps_are_filled(method, kind):
    holed = (HOLED + 1e-9).astype(kind)
    imputer = brief(visible="gaussian", method=method).fit(holed)
    full = imputer.transform(holed)
    assert full.dtype == kind and np.isfinite(full).all()
    np.testing.assert_array_equal(full[~GAPS], holed[~GAPS])
    np.testing.assert_array_equal(full, imputer.transform(holed))
    np.testing.assert_array_equal(imputer.transform(DATA), DATA)


def test_means_are_those_of_the_model():
    imputer = brief().fit(HOLED)
    assert isinstance(imputer.model_.visible, keras_rbm.units.Bernoulli)
    assert imputer.model_.missing == "latent"
    np.testing.assert_allclose(
        imputer.transform(HOLED), imputer.model_.marginals(HOLED), atol=1e-6
    )
    modes = imputer.set_params(method="mode").transform(HOLED)
    assert set(np.unique(modes)) == {0.0, 1.0}


def test_gaps_of_binary_columns_are_told_by_the_others():
    full = brief(n_iter=100, batch_size=32, method="mode").fit_transform(HOLED)
    wrong = np.mean(full[GAPS] != DATA[GAPS])
    assert wrong < 0.2  # 0.1 is chance, and a column's mode errs in half


def test_gaps_of_measurements_in_other_units():
    """Columns are standardized inside."""
    gaps = np.random.default_rng(0).random(WINE.shape) < 0.2
    scale = 10.0 ** np.arange(13)[::-1] / 1e6
    holed = np.where(gaps, np.nan, WINE * scale + 3.0 * scale)
    full = RBMImputer(n_iter=50, random_state=0).fit_transform(holed)
    error = np.sqrt(np.mean((full / scale - 3.0 - WINE)[gaps] ** 2))
    by_mean = SimpleImputer().fit_transform(holed) / scale - 3.0
    assert error < 0.85 * np.sqrt(np.mean((by_mean - WINE)[gaps] ** 2))


def test_gaps_that_fit_had_not():
    imputer = brief().fit(DATA)
    assert imputer.model_.missing is None
    full = imputer.transform(HOLED)
    np.testing.assert_array_equal(full[~GAPS], DATA[~GAPS])
    assert np.isfinite(full).all()
    everything = imputer.transform(np.full((1, 6), np.nan))
    assert np.isfinite(everything).all()


def test_several_tables():
    imputer = brief().fit(HOLED)
    tables = [imputer.impute(HOLED, "sample", random_state=seed) for seed in (1, 2, 1)]
    np.testing.assert_array_equal(tables[0], tables[2])
    assert (tables[0] != tables[1]).any()


def test_names_and_frames():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(HOLED, columns=list("abcdef"))
    imputer = brief().set_output(transform="pandas")
    full = imputer.fit_transform(frame)
    assert list(full.columns) == list("abcdef") and full.notna().all(axis=None)
    assert list(imputer.get_feature_names_out()) == list("abcdef")
    assert list(brief().fit(HOLED).get_feature_names_out()[:2]) == ["x0", "x1"]


@pytest.mark.filterwarnings("ignore:Skipping features")
@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("marks", [False, True])
def test_columns_without_values_are_those_of_scikit_learn(marks, keeps):
    """The shapes, names and indicators; scores leave such a column out."""
    empty = np.where(np.arange(6) == 2, np.nan, HOLED)
    options = {"add_indicator": marks, "keep_empty_features": keeps}
    said = contextlib.nullcontext() if keeps else pytest.warns(match="NaN in x2,")
    with said:
        imputer = brief(**options).fit(empty)
    other, rest = SimpleImputer(**options).fit(empty), np.delete(HOLED, 2, 1)
    pair, complete = (imputer, other), ~np.isnan(rest).any(1)
    np.testing.assert_array_equal(*(each.get_feature_names_out() for each in pair))
    np.testing.assert_array_equal(*(each.transform(empty)[complete] for each in pair))
    assert imputer.impute(HOLED, "sample").shape == (120, 5 + keeps)
    assert imputer.score(HOLED) == brief().fit(rest).score(rest)


def test_another_number_stands_for_a_gap():
    holed = np.where(GAPS, -1, DATA).astype(int)
    imputer = brief(missing_values=-1).fit(holed)
    assert imputer.model_.missing == "latent"
    expected = brief().fit(HOLED).transform(HOLED)
    np.testing.assert_array_equal(imputer.transform(holed), expected)


def test_type_of_units_is_that_of_known_values():
    real = np.where(GAPS, np.nan, 2.0 * DATA)
    for data, kind in ((HOLED, "Bernoulli"), (real, "Gaussian")):
        unit = estimator(n_iter=1).fit(data).model_.visible
        assert type(unit).__name__ == kind


@pytest.mark.parametrize(
    ("count", "data", "hidden", "found"),
    [
        (16, WINE, "auto", BOTH),
        (7, WINE, "auto", "Bernoulli()"),
        (16, DATA, "auto", "Bernoulli()"),
        (16, WINE, "spin", "Spin()"),
    ],
)
def test_hidden_units_by_default(count, data, hidden, found):
    imputer = brief(n_components=count, hidden=hidden, rule="cd")
    assert repr(imputer._new_model(np.float32(data)).hidden) == found


def test_features_and_scores_of_rows_with_gaps():
    rbm = estimator().fit(HOLED)
    complete = ~GAPS.any(1)
    assert 0 < complete.sum() < 120
    got = rbm.transform(HOLED), rbm.score_samples(HOLED)
    scores = rbm.model_.log_likelihood(HOLED, "exact")
    assert_equal(got, (rbm.model_.predict(HOLED, verbose=0), scores), rtol=1e-5)
    rows = DATA[complete]
    alone = rbm.transform(rows), rbm.score_samples(rows)
    assert_equal([values[complete] for values in got], alone)
    part = np.concatenate([binary_states(3), np.full((8, 3), np.nan)], 1)
    scores = rbm.score_samples(part)
    assert np.exp(scores).sum() == pytest.approx(1.0, abs=1e-5)
    np.testing.assert_array_equal(rbm.score_samples(part.astype("float32")), scores)


def test_a_model_without_gaps_fills_them():
    rbm = estimator().fit(DATA)
    assert np.isfinite(rbm.transform(rbm.impute(HOLED))).all()


def test_partial_fit_of_gaps():
    rbm = estimator()
    for part in (HOLED[:60], HOLED[60:], DATA):
        rbm.partial_fit(part)
    assert np.isfinite(rbm.score(HOLED))
