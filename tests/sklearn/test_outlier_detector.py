"""An RBM that finds outliers: scores that are densities, shares, cells, odd data."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import IsolationForest
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from keras_rbm.sklearn import RBMOutlierDetector

# Columns follow one another, in units and skews of their own.
SIZES, RNG = np.array([1e-3, 1.0, 50.0, 1e6]), np.random.default_rng(0)


def rows(count):
    normal = RNG.normal(size=(count, 1)) + RNG.normal(0.0, 0.3, (count, 4))
    return SIZES * np.where(np.arange(4) < 2, normal, np.exp(normal))


TRAIN, NEW = rows(400), rows(200)
#: Rows whose columns come from different rows: each column alone is as it should be.
BROKEN = np.stack([RNG.permutation(column) for column in NEW.T], 1)
HOLED = np.where(RNG.random(NEW.shape) < 0.3, np.nan, NEW)


#: Four steps, which run eagerly.
BRIEF = {"n_iter": 1, "batch_size": 100}


def detector(**parameters):
    return RBMOutlierDetector(**{"n_components": 4, "random_state": 0} | parameters)


@pytest.fixture(scope="module")
def fitted():
    return detector().fit(TRAIN)


@pytest.fixture(scope="module")
def brief():
    return detector(**BRIEF).fit(TRAIN)


@pytest.fixture
def strong():
    """Returns a function that fits in four steps, and makes weights larger."""

    def fit(data, **parameters):
        found = detector(**BRIEF, **parameters).fit(data)
        kernel, generator = found.model_.kernel, np.random.default_rng(1)
        kernel.assign(generator.normal(0.0, 0.7, kernel.shape) * [1, 1, 1, 1, 0.5])
        return found

    return lambda data: fit(data, n_factors=1)


#: Of scikit-learn's checks these are of the default run.
QUICK = {
    "check_dict_unchanged",
    "check_estimators_nan_inf",
    "check_fit_idempotent",
    "check_no_attributes_set_in_init",
    "check_outlier_contamination",
    "check_outliers_fit_predict",
    "check_outliers_train",
    "check_parameters_default_constructible",
}


def others_slow(checks):
    names, pairs = checks.args
    marked = []
    for estimator, check in pairs:
        marks = [] if check.func.__name__ in QUICK else [pytest.mark.slow]
        marked.append(pytest.param(estimator, check, marks=marks))
    return pytest.mark.parametrize(names, marked, **checks.kwargs)


@others_slow(parametrize_with_checks([detector(n_iter=1, batch_size=1000)]))
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_broken_dependence_is_found(fitted):
    """Each value is usual: only together they are not."""
    rows = np.concatenate([NEW, BROKEN])
    is_broken = np.repeat([0, 1], 200)
    ours = roc_auc_score(is_broken, -fitted.decision_function(rows))
    forest = IsolationForest(random_state=0).fit(TRAIN)
    theirs = roc_auc_score(is_broken, -forest.score_samples(rows))
    assert ours > 0.85 and ours > theirs + 0.03


def test_scores_are_densities_of_one_column(strong):
    found = strong(TRAIN[:, 2:3])
    x = np.concatenate([-np.logspace(7.0, 1.0, 4000), np.linspace(-10.0, 1e3, 20_000)])
    x = np.concatenate([x, np.logspace(3.0, 9.0, 4000)[1:]])
    density = np.exp(found.score_samples(x[:, np.newaxis]))
    assert np.trapezoid(density, x) == pytest.approx(1.0, abs=1e-3)


def test_scores_are_densities_of_two_columns(strong):
    """In units that differ, one of them skewed: both have a Jacobian."""
    pair = strong(TRAIN[:, 1:3])
    one = np.linspace(-12.0, 12.0, 150)
    two = np.concatenate([np.linspace(-150.0, 500.0, 700), np.logspace(2.7, 6, 300)])
    grid = np.stack(np.meshgrid(one, two, indexing="ij"), -1).reshape(-1, 2)
    density = np.exp(pair.score_samples(grid)).reshape(150, 1000)
    of_one = np.trapezoid(density, two)
    assert np.trapezoid(of_one, one) == pytest.approx(1.0, abs=5e-3)
    # What is known of a row: the sum over the other column.
    gaps = np.stack([one, np.full(150, np.nan)], 1)
    alone = np.exp(pair.score_samples(gaps))
    np.testing.assert_allclose(of_one, alone, atol=5e-3 * alone.max())


def test_scores_are_those_of_the_model(strong):
    """Up to log Z: minus the free energies, and slopes of the transform."""
    found = strong(TRAIN)
    scaled = found.scaler_.transform(NEW)
    powers = found.transformer_.lambdas_ - 1.0
    slopes = (powers * np.sign(scaled) * np.log1p(np.abs(scaled))).sum(1)
    energies = found.model_.free_energy(found.transformer_.transform(scaled))
    log_z = slopes - energies - found.score_samples(NEW)
    assert np.ptp(log_z) < 1e-3


def test_units_shift_the_scores(brief):
    unit, shift = np.array([1000.0, 0.01, 3.0, 1e-6]), np.array([5e4, 1.0, 0.0, -1.0])
    one, other = (detector(**BRIEF).fit(data) for data in (TRAIN, TRAIN * unit + shift))
    scores = other.score_samples(NEW * unit + shift) + np.log(unit).sum()
    np.testing.assert_allclose(scores, brief.score_samples(NEW), atol=1e-3)


@pytest.mark.parametrize("column", range(4))
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_farther_values_score_lower(fitted, column, sign):
    far = np.repeat(np.median(TRAIN, 0)[np.newaxis], 12, 0)
    span = np.ptp(TRAIN[:, column])
    far[:, column] += sign * span * np.logspace(0.0, 40.0, 12)
    scores = fitted.score_samples(far)
    assert np.isfinite(scores).all() and (np.diff(scores) < 0.0).all()
    assert (fitted.predict(far[1:]) == -1).all()
    blamed = fitted.explain(far)
    assert (blamed.argmax(1)[1:] == column).all() and np.isfinite(blamed).all()


def test_the_planted_cell_is_named(fitted):
    """Three columns agree, and one does not."""
    normal = np.repeat(RNG.choice([-1.5, 1.5], (200, 1)), 4, 1)
    cell = RNG.integers(0, 4, 200)
    normal[np.arange(200), cell] *= -1.0
    planted = SIZES * np.where(np.arange(4) < 2, normal, np.exp(normal))
    assert np.mean(fitted.predict(planted) == -1) > 0.95
    assert np.mean(fitted.explain(planted).argmax(1) == cell) > 0.95
    # Usual cells have about 0.
    np.testing.assert_allclose(np.median(fitted.explain(TRAIN), 0), 0.0, atol=1e-9)


def test_explain_is_the_likelihood_given_the_rest(fitted):
    surprise = fitted.explain(NEW) + fitted.typical_
    for column in range(4):
        rest = NEW.copy()
        rest[:, column] = np.nan
        given = fitted.score_samples(NEW) - fitted.score_samples(rest)
        np.testing.assert_allclose(surprise[:, column], -given, atol=1e-8)


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
def test_contamination_is_the_share_of_outliers(share):
    found = detector(contamination=share, **BRIEF).fit_predict(TRAIN)
    assert np.mean(found == -1) == pytest.approx(share, abs=1 / 400)


def test_a_fence_by_default(fitted):
    assert 0.0 < np.mean(fitted.predict(NEW) == -1) < 0.1
    scores = fitted.score_samples(NEW)
    decisions = fitted.decision_function(NEW)
    np.testing.assert_allclose(scores - fitted.offset_, decisions)
    np.testing.assert_array_equal(fitted.predict(NEW) == -1, decisions < 0.0)


def test_gaps(fitted):
    """Rows with gaps compare with others, and gaps are nobody's fault."""
    decisions = fitted.decision_function(HOLED)
    assert np.mean(decisions < 0.0) < 0.1
    np.testing.assert_array_equal(fitted.explain(HOLED)[np.isnan(HOLED)], 0.0)
    nothing = np.full((1, 4), np.nan)
    assert fitted.score_samples(nothing) == pytest.approx(0.0, abs=1e-9)
    assert fitted.predict(nothing) == 1


def test_gaps_in_fit(brief):
    """A fifth of the values leave scores about as they are."""
    gaps = np.where(np.random.default_rng(1).random(TRAIN.shape) < 0.2, np.nan, TRAIN)
    found = detector(**BRIEF).fit(gaps)
    np.testing.assert_allclose(found.score_samples(NEW), brief.score_samples(NEW), 0.1)
    assert found.offset_ == pytest.approx(brief.offset_, abs=2.0)


def with_odd_columns(rows):
    """Returns rows with copies of columns, bits, and a constant."""
    bits, constant = np.float64(rows[:, :1] > 0.0), np.full((len(rows), 1), 7.0)
    return np.concatenate([rows, rows[:, :2], bits, constant], 1)


def test_odd_columns_and_gross_errors_in_fit():
    """Precisions of copies and constants grew until the loss was NaN.

    One value of 1e9 deviations made all others one point, and none an outlier.
    """
    gross = with_odd_columns(TRAIN)
    gross[:3, 1] = [1e9, -1e7, 1e300]
    found = detector(n_iter=30).fit(gross)
    assert np.exp(found.model_.visible_log_precision.numpy()).max() < 200.0
    assert (found.predict(gross[:3]) == -1).all()
    assert (found.explain(gross)[:3].argmax(1) == 1).all()
    rows = with_odd_columns(np.concatenate([NEW, BROKEN]))
    scores = -found.decision_function(rows)
    assert roc_auc_score(np.repeat([0, 1], 200), scores) > 0.75
    changed = rows[:1].copy()
    changed[0, 7] = 8.0
    assert found.predict(changed) == -1 and found.explain(changed)[0].argmax() == 7


def test_a_seed_is_a_run(brief):
    copied, again = pickle.loads(pickle.dumps(brief)), clone(brief).fit(TRAIN)
    scores = brief.score_samples(NEW)
    for same in (again, copied):
        np.testing.assert_array_equal(same.score_samples(NEW), scores)
    other = detector(random_state=1, **BRIEF).fit(TRAIN)
    assert np.abs(other.score_samples(NEW) - scores).max() > 1e-3


def test_blocks_of_rows_are_scored_alike(fitted, monkeypatch):
    scores, blamed = fitted.score_samples(NEW), fitted.explain(NEW)
    monkeypatch.setattr("keras_rbm.sklearn.rbm_outlier_detector._AT_ONCE", 200)
    np.testing.assert_allclose(fitted.score_samples(NEW), scores)
    np.testing.assert_allclose(fitted.explain(NEW), blamed, atol=1e-12)


def test_names_of_columns():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(TRAIN, columns=list("abcd"))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        found = detector(**BRIEF).fit(frame)
        found.predict(frame)
    assert list(found.feature_names_in_) == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        found.predict(frame[list("dcba")])


@pytest.mark.parametrize(
    ("parameters", "data", "word"),
    [
        ({"n_components": 0}, TRAIN, "n_components=0"),
        ({"n_components": 17}, TRAIN, "n_components=17"),
        ({"n_iter": 0}, TRAIN, "n_iter=0"),
        ({"batch_size": 0}, TRAIN, "batch_size=0"),
        ({"contamination": 0.0}, TRAIN, "contamination=0.0"),
        ({"contamination": 0.6}, TRAIN, "contamination=0.6"),
        ({"contamination": np.nan}, TRAIN, "contamination=nan"),
        ({"contamination": "all"}, TRAIN, "contamination='all'"),
        ({}, np.where(np.arange(4) == 2, np.nan, TRAIN), r"columns \[2\]"),
        ({}, np.where(np.eye(400, 4) > 0, np.inf, TRAIN), "infinity"),
        ({}, TRAIN[:1], "minimum of 2"),
    ],
)
def test_refusals(parameters, data, word):
    refused = detector(**parameters)
    with pytest.raises(ValueError, match=word):
        refused.fit(data)
    with pytest.raises(NotFittedError):
        refused.predict(TRAIN)
