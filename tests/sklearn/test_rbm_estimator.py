"""RBMs as scikit-learn estimators: checks of all, scores, weights there and back."""

import importlib
import pickle
import sys
import warnings

import keras
import numpy as np
import pytest
import scipy.sparse
from brute_force import binary_states
from comparisons import assert_equal, assert_same_weights
from same import refused
from sklearn.base import clone
from sklearn.datasets import load_digits, load_wine
from sklearn.neural_network import BernoulliRBM
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import keras_rbm
from keras_rbm.sklearn import (
    CRBMClassifier,
    RBMEstimator,
    RBMImputer,
    from_bernoulli_rbm,
    to_bernoulli_rbm,
)

RNG = np.random.default_rng(0)
DATA = (RNG.random((90, 6)) < [0.2, 0.8, 0.5, 0.5, 0.1, 0.9]).astype("float32")
REAL = RNG.normal(5.0, [1.0, 2.0, 30.0], (90, 3))


def brief(**kwargs):
    defaults = {"n_components": 4, "batch_size": 100, "n_iter": 1, "random_state": 0}
    return RBMEstimator(**defaults | kwargs)


#: Of scikit-learn's checks of an `RBMEstimator` these are of the default run.
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
    marked = []
    for pair in pairs:  # or one that has marks already, of a check that is to fail
        estimator, check = getattr(pair, "values", pair)
        is_quick = check.func.__name__ in QUICK and type(estimator) is RBMEstimator
        marks = [*getattr(pair, "marks", []), *[pytest.mark.slow] * (not is_quick)]
        marked.append(pytest.param(estimator, check, marks=marks))
    return pytest.mark.parametrize(names, marked, **checks.kwargs)


BRIEF = {"n_components": 4, "n_iter": 1, "random_state": 0}
OTHERS = RBMImputer(batch_size=100, steps=10, **BRIEF), CRBMClassifier(**BRIEF)


def batches_are_random(estimator):
    """Returns the checks that no estimator passes that learns from random batches."""
    names = [
        f"check_sample_weight_equivalence_on_{x}_data" for x in ("dense", "sparse")
    ]
    reason = "rows of weight 0, or 2, are parts of other batches than absent ones"
    weighted = isinstance(estimator, CRBMClassifier)
    return dict.fromkeys(names, reason) if weighted else {}


@others_slow(
    parametrize_with_checks(
        [brief(), *OTHERS], expected_failed_checks=batches_are_random
    )
)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_features_and_scores_are_those_of_the_model():
    rbm = brief().fit(DATA)
    model, scores = rbm.model_, rbm.score_samples(DATA)
    assert isinstance(model.visible, keras_rbm.units.Bernoulli)
    got = rbm.transform(DATA), scores
    want = model.predict(DATA, verbose=0), model.log_likelihood(DATA, "exact")
    assert_equal(got, want, rtol=1e-5)
    assert rbm.score(DATA) == pytest.approx(scores.mean())
    states = binary_states(6)
    assert np.exp(rbm.score_samples(states)).sum() == pytest.approx(1.0)
    got = rbm.components_.T, rbm.intercept_hidden_, rbm.intercept_visible_
    assert_equal(got, (model.kernel, model.hidden_bias, model.visible_bias))
    assert len(rbm.history_["loss"]) == 1
    # log Z was that of the last fit by the estimator, not of the present weights.
    model.compile(keras.optimizers.SGD(0.5), rule="cd")
    model.fit(DATA, epochs=3, verbose=0)
    expected = np.mean(model.log_likelihood(DATA, "exact"))
    np.testing.assert_allclose(rbm.score(DATA), expected, rtol=1e-5)


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
    assert float(bound.value) <= float(z.value) < float(bound.value) + 0.5
    assert rbm.fit(DATA[:40]).set_params(log_partition="auto").score(DATA) != 0.0
    assert rbm.estimate_log_partition() is not z


def test_scores_of_a_model_worse_than_independent_columns():
    """Its mass is where no rows are, between two kinds."""
    rng = np.random.default_rng(0)
    kinds = np.repeat(rng.random((500, 1)) < 0.7, 64, 1)
    kinds[:, 32:] ^= True
    rows = np.float32(kinds ^ (rng.random(kinds.shape) < 0.05))
    options = {"n_iter": 30, "log_partition": "exact", "random_state": 0}
    bad = RBMEstimator(8, rule="pcd", learning_rate=0.2, **options)
    with pytest.warns(UserWarning, match="worse than independent units"):
        bad.fit(rows)
    with pytest.warns(UserWarning, match="nats less than by independent columns"):
        bad.score_samples(rows[:2])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RBMEstimator(8, **options).fit(rows).score_samples(rows[:2])


def test_parts_and_gaps_are_not_compared():
    """One row of a part is no sample of the data, nor are rows without gaps."""
    rows = (np.random.default_rng(0).random((200, 6)) < 0.3).astype(float)
    model = RBMEstimator(4, n_iter=2, random_state=0).fit(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(rows[:1]).score(rows)
        gaps = np.where(np.eye(6)[np.arange(200) % 6] > 0, np.nan, rows)
        RBMEstimator(4, n_iter=2, random_state=0).fit(gaps).score(gaps)


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


def test_a_gibbs_sweep():
    """One is enough for a model without weights."""
    rbm, bias = brief().fit(DATA), np.array([30.0, -30.0] * 3)
    rbm.model_.kernel.assign(np.zeros((6, 4)))
    rbm.model_.visible_bias.assign(bias)
    for rows in (DATA, scipy.sparse.csr_matrix(DATA)):
        np.testing.assert_array_equal(rbm.gibbs(rows), np.tile(bias > 0, (90, 1)))
    with pytest.raises(ValueError, match="states of Bernoulli"):
        rbm.gibbs(3.0 * DATA)


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
    assert_same_weights(rbm.model_, copied.model_)


def test_partial_fit_goes_on():
    options = {"n_iter": 3, "batch_size": 32, "optimizer": keras.optimizers.SGD(0.1)}
    rbm = brief(**options)
    for _ in range(3):
        rbm.partial_fit(DATA)
    assert int(rbm.model_.optimizer.iterations) == 9
    whole = brief(**options).fit(DATA)
    assert_same_weights(rbm.model_, whole.model_, rtol=1e-5, atol=1e-6)
    z = rbm.estimate_log_partition()
    assert rbm.partial_fit(DATA).estimate_log_partition() is not z


def test_names_of_features():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(DATA, columns=list("abcdef"))
    rbm = brief().set_output(transform="pandas")
    names = [f"rbmestimator{i}" for i in range(4)]
    assert list(rbm.fit_transform(frame).columns) == names
    assert list(rbm.get_feature_names_out()) == names and rbm.n_features_in_ == 6
    assert list(rbm.feature_names_in_) == list("abcdef")
    with pytest.raises(ValueError, match="feature names"):
        rbm.transform(frame[list("fedcba")])


def test_weights_there_and_back():
    theirs = BernoulliRBM(4, n_iter=20, random_state=0).fit(DATA)
    ours = from_bernoulli_rbm(theirs, seed=0)
    back = to_bernoulli_rbm(ours, random_state=0, batch_size=5)
    expected = theirs._free_energy(DATA)
    for energies in (ours.free_energy(DATA), back._free_energy(DATA)):
        np.testing.assert_allclose(energies, expected, rtol=1e-5)
    features, scores = theirs.transform(DATA), theirs.score_samples(DATA)
    np.testing.assert_allclose(ours.predict(DATA, verbose=0), features, rtol=1e-5)
    np.testing.assert_allclose(back.score_samples(DATA), scores, rtol=1e-5)
    assert back.gibbs(DATA).shape == (90, 6) and back.n_features_in_ == 6
    assert len(back.get_feature_names_out()) == 4
    before = back.components_.copy()
    back.partial_fit(DATA[:5])
    assert (back.components_ != before).any()
    ours.compile()
    ours.fit(DATA, verbose=0)  # goes on where scikit-learn stopped


def test_without_scikit_learn_says_what_to_install(monkeypatch):
    monkeypatch.delitem(sys.modules, "keras_rbm.sklearn")
    monkeypatch.setitem(sys.modules, "sklearn.utils.validation", None)
    with pytest.raises(ImportError, match=r"pip install keras-rbm\[sklearn\]"):
        importlib.import_module("keras_rbm.sklearn")


def test_scaled_data_of_float64():
    """MinMaxScaler may return 1 + 2e-16, and other values for new rows."""
    scaled = np.where(DATA, 1.0 + 2.3e-16, 0.0)
    rbm = brief().fit(scaled)
    assert np.isfinite(rbm.score(scaled))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rbm.transform(scaled)
    for method in (rbm.transform, rbm.score_samples, rbm.score):
        with refused(r"from 0 to 1.02.*MinMaxScaler\(clip=True\)"):
            method(1.02 * DATA)


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
    model = brief()._new_model(np.float32(data))
    assert type(model.visible).__name__ == kind


def test_defaults_are_those_of_compile():
    """It had rates of its own for few epochs, for small batches and for binary data."""
    rbm = keras_rbm.RBM(2, num_visible=8)
    rbm.compile()
    model = RBMEstimator(2)._new_model(np.eye(8, dtype="float32"))
    model.build((None, 8))
    assert type(model.rule) is type(rbm.rule)
    for name in ("beta_1", "learning_rate"):
        one, other = (m.optimizer.get_config()[name] for m in (model, rbm))
        assert one == other
    named = RBMEstimator(2, learning_rate=0.1, optimizer="sgd")
    model = named._new_model(np.eye(8, dtype="float32"))
    assert model.optimizer._learning_rate.initial_learning_rate == 0.1
