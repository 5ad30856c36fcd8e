"""RBMs as scikit-learn estimators: its own checks, scores, weights there and back."""

import importlib
import pickle
import sys
import warnings

import keras
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import BernoulliRBM
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import keras_rbm
from keras_rbm.sklearn import RBMEstimator, from_bernoulli_rbm, to_bernoulli_rbm

RNG = np.random.default_rng(0)
DATA = (RNG.random((90, 6)) < [0.2, 0.8, 0.5, 0.5, 0.1, 0.9]).astype("float32")
REAL = RNG.normal(5.0, [1.0, 2.0, 30.0], (90, 3))


def brief(**kwargs):
    defaults = {"n_components": 4, "batch_size": 100, "n_iter": 1, "random_state": 0}
    return RBMEstimator(**defaults | kwargs)


def weights(estimator):
    return [np.asarray(variable) for variable in estimator.model_.weights]


#: Of scikit-learn's checks these are of the default run.
QUICK = {
    "check_dict_unchanged",
    "check_estimators_nan_inf",
    "check_estimators_pickle",
    "check_fit_idempotent",
    "check_methods_sample_order_invariance",
    "check_n_features_in_after_fitting",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_pipeline_consistency",
    "check_transformer_general",
}


def others_slow(checks):
    names, pairs = checks.args
    pairs = [
        pytest.param(
            estimator,
            check,
            marks=[] if check.func.__name__ in QUICK else pytest.mark.slow,
        )
        for estimator, check in pairs
    ]
    return pytest.mark.parametrize(names, pairs, **checks.kwargs)


@others_slow(parametrize_with_checks([brief()]))
def test_checks_of_scikit_learn(estimator, check):
    """None is excepted."""
    check(estimator)


@pytest.mark.slow
@pytest.mark.usefixtures("as_users_run")
@parametrize_with_checks(
    [
        RBMEstimator(),
        brief(visible="gaussian", rule="pcd", optimizer="sgd", learning_rate=0.01),
        brief(
            rule=keras_rbm.rules.SDCP(),
            optimizer="sgd",
        ),
    ]
)
def test_checks_with_other_parameters(estimator, check):
    check(estimator)


def test_features_and_scores_are_those_of_the_model():
    rbm = brief().fit(DATA)
    assert isinstance(rbm.model_.visible, keras_rbm.units.Bernoulli)
    np.testing.assert_allclose(
        rbm.transform(DATA), rbm.model_.predict(DATA, verbose=0), rtol=1e-5
    )
    scores = rbm.score_samples(DATA)
    np.testing.assert_allclose(scores, rbm.model_.log_likelihood(DATA, "exact"), 1e-5)
    assert rbm.score(DATA) == pytest.approx(scores.mean())
    states = np.array([[int(bit) for bit in f"{i:06b}"] for i in range(64)])
    assert np.exp(rbm.score_samples(states)).sum() == pytest.approx(1.0)
    np.testing.assert_array_equal(rbm.components_.T, rbm.model_.kernel)
    np.testing.assert_array_equal(rbm.intercept_hidden_, rbm.model_.hidden_bias)
    np.testing.assert_array_equal(rbm.intercept_visible_, rbm.model_.visible_bias)
    assert len(rbm.history_["loss"]) == 1


def test_many_rows_are_taken_some_at_a_time():
    rbm, rows = brief().fit(DATA), np.tile(DATA, (12, 1))
    np.testing.assert_allclose(rbm.transform(rows)[-90:], rbm.transform(DATA))
    assert rbm.score_samples(rows).shape == (1080,)


def test_real_data_have_gaussian_units():
    rbm = brief().fit(REAL)
    assert isinstance(rbm.model_.visible, keras_rbm.units.Gaussian)
    densities = rbm.score_samples(REAL)
    other = brief().fit(REAL * 1000.0).score_samples(REAL * 1000.0)  # in other units
    np.testing.assert_allclose(densities - other, 3 * np.log(1000.0), rtol=1e-4)
    gray = brief(visible="gaussian").fit(DATA)
    assert isinstance(gray.model_.visible, keras_rbm.units.Gaussian)


def test_log_partition_is_estimated_once():
    rbm = brief().fit(DATA)
    z = rbm.estimate_log_partition()
    assert float(z.stderr) == 0.0 and rbm.estimate_log_partition() is z
    bound = rbm.set_params(log_partition="mean_field").estimate_log_partition()
    assert float(bound.value) <= float(z.value) < float(bound.value) + 0.1
    assert rbm.fit(DATA[:40]).set_params(log_partition="auto").score(DATA) != 0.0
    assert rbm.estimate_log_partition() is not z


def test_means_have_no_likelihood():
    rbm = brief().fit(DATA * 0.5)
    with pytest.warns(UserWarning, match="not a log-likelihood"):
        rbm.score_samples(DATA * 0.5)


def test_samples():
    rbm = brief().fit(DATA)
    draw = rbm.sample(5, steps=3, random_state=1)
    assert draw.shape == (5, 6) and set(np.unique(draw)) <= {0.0, 1.0}
    np.testing.assert_array_equal(draw, rbm.sample(5, steps=3, random_state=1))
    assert (rbm.sample(50, steps=3) != rbm.sample(50, steps=3)).any()
    means = rbm.sample(2000, steps=20, random_state=0).mean(0)
    np.testing.assert_allclose(means, DATA.mean(0), atol=0.15)


def test_a_seed_is_a_run():
    first, same, other = (
        brief(random_state=seed).fit(DATA).transform(DATA) for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(first, same)
    assert np.abs(first - other).max() > 1e-4
    assert brief(random_state=None).fit(DATA).transform(DATA).shape == (90, 4)
    generator = np.random.RandomState(3)
    assert brief(random_state=generator).fit(DATA).model_.seed != 3


def test_objects_of_keras_are_copied_for_each_fit():
    """A rule belongs to one model, and an optimizer to its variables."""
    rule = keras_rbm.rules.PersistentContrastiveDivergence(2, num_chains=7)
    optimizer = keras.optimizers.SGD(0.3, momentum=0.5)
    rbm = brief(rule=rule, optimizer=optimizer, learning_rate=0.1)
    again = clone(pickle.loads(pickle.dumps(rbm)))
    models = [each.fit(DATA).model_ for each in (rbm, rbm, clone(rbm), again)]
    for model in models:
        assert model.rule is not rule and model.rule.num_chains == 7
        assert float(model.optimizer.learning_rate) == pytest.approx(0.1)
        assert model.optimizer.momentum == 0.5
        np.testing.assert_array_equal(model.kernel, models[0].kernel)
    assert rule.learner is None and not optimizer.built
    schedule = keras.optimizers.schedules.InverseTimeDecay(0.1, 10, 1.0)
    assert brief(learning_rate=schedule).fit(DATA).model_.optimizer.iterations == 1


def test_pickled_in_the_middle_of_training():
    rbm = brief(rule="pcd").partial_fit(DATA)
    copied = pickle.loads(pickle.dumps(rbm))
    assert copied.score(DATA) == rbm.score(DATA)
    for each in (rbm, copied):
        each.partial_fit(DATA[:40])
    for one, other in zip(weights(rbm), weights(copied), strict=True):
        np.testing.assert_array_equal(one, other)


def test_partial_fit_goes_on():
    rbm = brief(n_iter=3, batch_size=32, optimizer=keras.optimizers.SGD(0.1))
    for _ in range(3):
        rbm.partial_fit(DATA)
    assert int(rbm.model_.optimizer.iterations) == 9
    whole = brief(n_iter=3, batch_size=32, optimizer=keras.optimizers.SGD(0.1)).fit(
        DATA
    )
    for one, other in zip(weights(rbm), weights(whole), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    z = rbm.estimate_log_partition()
    assert rbm.partial_fit(DATA).estimate_log_partition() is not z


def test_pandas_in_and_out():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(DATA, columns=list("abcdef"))
    rbm = brief().set_output(transform="pandas")
    features = rbm.fit_transform(frame)
    assert list(features.columns) == [f"rbmestimator{i}" for i in range(4)]
    assert list(rbm.feature_names_in_) == list("abcdef")
    with pytest.raises(ValueError, match="feature names"):
        rbm.transform(frame[list("fedcba")])


def test_names_of_features():
    rbm = brief().fit(DATA)
    assert list(rbm.get_feature_names_out()) == [f"rbmestimator{i}" for i in range(4)]
    assert rbm.n_features_in_ == 6
    with pytest.raises(NotFittedError):
        brief().get_feature_names_out()


def test_searched_in_a_pipeline():
    steps = [("rbm", brief()), ("logistic", LogisticRegression())]
    grid = {"rbm__learning_rate": [0.01], "rbm__rule": ["cd", "pcd"]}
    search = GridSearchCV(Pipeline(steps), grid, cv=2).fit(DATA, DATA[:, 2])
    assert search.best_estimator_["rbm"].model_.kernel.shape == (6, 4)
    assert search.predict(DATA).shape == (90,)
    density = GridSearchCV(brief(), {"learning_rate": [1e-9, 0.05]}, cv=2).fit(DATA)
    assert density.best_score_ == density.cv_results_["mean_test_score"].max()


@pytest.mark.parametrize(
    ("kwargs", "data", "message"),
    [
        ({"n_components": 0}, DATA, "n_components=0"),
        ({"n_iter": 0}, DATA, "n_iter=0"),
        ({"batch_size": 0}, DATA, "batch_size=0"),
        ({"learning_rate": 0.0}, DATA, "learning_rate=0.0"),
        ({"visible": "poisson"}, DATA, "poisson"),
        ({"rule": "pdc"}, DATA, "pdc"),
        ({"optimizer": "cd"}, DATA, "learning rule"),
        ({"visible": "bernoulli"}, REAL, "states of Bernoulli units"),
        ({}, DATA[0], "2D array"),
    ],
)
def test_bad_parameters_are_refused_by_fit(kwargs, data, message):
    rbm = brief(**kwargs)
    with pytest.raises(ValueError, match=message):
        rbm.fit(data)
    assert not hasattr(rbm, "model_")


def test_scores_of_what_units_cannot_be_are_refused():
    rbm = brief().fit(DATA)
    with pytest.raises(ValueError, match="states of Bernoulli units"):
        rbm.score_samples(DATA * 2.0)
    with pytest.raises(ValueError, match="method"):
        rbm.set_params(log_partition="guess").score(DATA)
    with pytest.raises(NotFittedError):
        brief().estimate_log_partition()


def test_weights_there_and_back():
    theirs = BernoulliRBM(4, n_iter=20, random_state=0).fit(DATA)
    ours = from_bernoulli_rbm(theirs, seed=0)
    expected = theirs._free_energy(DATA)
    np.testing.assert_allclose(ours.free_energy(DATA), expected, rtol=1e-5)
    np.testing.assert_allclose(
        ours.predict(DATA, verbose=0), theirs.transform(DATA), rtol=1e-5
    )
    back = to_bernoulli_rbm(ours, random_state=0, batch_size=5)
    np.testing.assert_allclose(back._free_energy(DATA), expected, rtol=1e-5)
    np.testing.assert_allclose(
        back.score_samples(DATA), theirs.score_samples(DATA), 1e-5
    )
    assert back.gibbs(DATA).shape == (90, 6) and back.n_features_in_ == 6
    assert len(back.get_feature_names_out()) == 4
    before = back.components_.copy()
    back.partial_fit(DATA[:5])
    assert (back.components_ != before).any()
    ours.compile()
    ours.fit(DATA, verbose=0)  # goes on where scikit-learn stopped


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: from_bernoulli_rbm(brief()), TypeError, "RBMEstimator"),
        (lambda: from_bernoulli_rbm(BernoulliRBM()), ValueError, "no weights yet"),
        (lambda: to_bernoulli_rbm(brief()), TypeError, "model_"),
        (lambda: to_bernoulli_rbm(keras_rbm.RBM(3)), ValueError, "built model"),
        (
            lambda: to_bernoulli_rbm(
                keras_rbm.RBM(3, num_visible=2, visible="gaussian")
            ),
            ValueError,
            r"visible=Gaussian\(standardize=True\)",
        ),
    ],
)
def test_other_weights_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_why_the_wrapper_of_keras_is_none_for_an_rbm():
    """It wants a compiled loss, and hands labels to `fit` as targets."""
    wrapper = keras.wrappers.SKLearnTransformer
    rbm = keras_rbm.RBM(4, seed=0)
    rbm.compile()
    labels = DATA[:, 0]
    for model in (rbm, lambda X, y: rbm):
        with pytest.raises(RuntimeError, match="have a loss"):
            wrapper(model).fit(DATA, labels)
    rbm.loss = "learning rule"  # were there one
    with pytest.raises(ValueError, match="Expected data without targets"):
        wrapper(lambda X, y: rbm).fit(DATA, labels)
    with pytest.raises(TypeError, match="'y'"):
        wrapper(lambda X, y: rbm).fit(DATA)


def test_without_scikit_learn_says_what_to_install(monkeypatch):
    monkeypatch.delitem(sys.modules, "keras_rbm.sklearn")
    monkeypatch.setitem(sys.modules, "sklearn.utils.validation", None)
    with pytest.raises(ImportError, match=r"pip install keras-rbm\[sklearn\]"):
        importlib.import_module("keras_rbm.sklearn")


def test_scores_are_of_the_present_weights():
    """log Z was that of the last fit by the estimator."""
    rbm = brief().fit(DATA)
    rbm.score(DATA)
    rbm.model_.compile(keras.optimizers.SGD(0.5), rule="cd")
    rbm.model_.fit(DATA, epochs=3, verbose=0)
    expected = np.mean(rbm.model_.log_likelihood(DATA, "exact"))
    np.testing.assert_allclose(rbm.score(DATA), expected, rtol=1e-5)


def test_features_are_only_of_states():
    categories = RNG.integers(0, 3, (40, 4))
    rbm = brief(visible=keras_rbm.units.Categorical(3)).fit(categories)
    for wrong in (5, 0.5):
        with pytest.raises(ValueError, match="whole numbers from 0 to 2"):
            rbm.transform(np.full((1, 4), wrong))
    with pytest.warns(UserWarning, match="from 0 to 255"):
        brief().fit(DATA).transform(255 * DATA)


def test_scaled_data_of_float64():
    """MinMaxScaler may return 1 + 2e-16, and other values for new rows."""
    scaled = np.where(DATA, 1.0 + 2.3e-16, 0.0)
    rbm = brief().fit(scaled)
    assert np.isfinite(rbm.score(scaled))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rbm.transform(scaled)
    with pytest.warns(UserWarning, match="from -0.1 to 1.2"):
        assert np.isfinite(rbm.transform(1.3 * DATA - 0.1)).all()


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (MinMaxScaler().fit_transform(load_wine().data), "Gaussian"),
        (StandardScaler().fit_transform(load_wine().data), "Gaussian"),
        (load_digits().data / 16.0, "Bernoulli"),
        (np.eye(6), "Bernoulli"),
        (np.random.default_rng(0).random((50, 4)), "Bernoulli"),  # means of units
    ],
)
def test_units_that_suit_the_data(data, kind):
    """Wine scaled to [0, 1] was taken for probabilities: 0.40 right, not 0.93."""
    model = brief()._new_model(np.float32(data), 1)
    assert type(model.visible).__name__ == kind


def test_defaults_are_those_of_compile():
    """It had rates of its own for few epochs, for small batches and for binary data."""
    rbm = keras_rbm.RBM(2, num_visible=8)
    rbm.compile()
    model = RBMEstimator(2)._new_model(np.eye(8, dtype="float32"), 10)
    model.build((None, 8))
    assert type(model.rule) is type(rbm.rule)
    for name in ("beta_1", "learning_rate"):
        one, other = (m.optimizer.get_config()[name] for m in (model, rbm))
        assert one == other
    named = RBMEstimator(2, learning_rate=0.1, optimizer="sgd")
    model = named._new_model(np.eye(8, dtype="float32"), 30)
    assert model.optimizer._learning_rate.initial_learning_rate == 0.1
