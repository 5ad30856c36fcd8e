"""A CRBM as a classifier: classes and labels."""

import pickle

import numpy as np
import pandas as pd
import pytest
from brute_force import binary_states
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import MaxAbsScaler

import keras_rbm
from keras_rbm.sklearn import CRBMClassifier

X, WORDS = load_iris(return_X_y=True)
WORDS = np.array(["setosa", "versicolor", "virginica"])[WORDS]
LABELS = 1 * np.stack([X[:, 0] > 5.8, X[:, 1] > 3.0, X[:, 2] + X[:, 3] > 5.5], 1)


def brief(**kwargs):
    defaults = {"n_components": 4, "n_iter": 15, "random_state": 0}
    return CRBMClassifier(**defaults | kwargs)


def test_classes_of_words():
    classifier = brief().fit(X, WORDS)
    assert classifier.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert isinstance(classifier.model_.visible, keras_rbm.units.Categorical)
    shares = classifier.predict_proba(X)
    np.testing.assert_allclose(shares.sum(1), 1.0)
    found = classifier.predict(X)
    np.testing.assert_array_equal(found, classifier.classes_[shares.argmax(1)])
    assert classifier.score(X, WORDS) == np.mean(found == WORDS) > 0.9
    assert len(classifier.history_["loss"]) == 15


def test_probabilities_are_those_of_the_model():
    """p(y | x) is that of the free energies of all classes."""
    classifier = brief().fit(X, WORDS)
    rows = np.float32((X - X.mean(0)) / X.std(0))
    energy = classifier.model_.free_energy
    energies = np.stack([energy(rows, np.full((150, 1), k)) for k in range(3)], 1)
    log_p = -energies - np.logaddexp.reduce(-energies, 1, keepdims=True)
    np.testing.assert_allclose(classifier.predict_proba(X), np.exp(log_p), atol=1e-5)


def test_labels():
    classifier = brief().fit(X, LABELS)
    assert classifier.classes_.tolist() == [0, 1, 2]
    shares, found = classifier.predict_proba(X), classifier.predict(X)
    assert shares.shape == found.shape == LABELS.shape
    np.testing.assert_array_equal(found, shares > 0.5)
    subset = np.mean((found == LABELS).all(1))
    assert classifier.score(X, LABELS) == pytest.approx(subset)
    assert subset > 0.85
    sparse = pytest.importorskip("scipy.sparse")
    few = X[::4], LABELS[::4]
    again = brief(n_iter=2).fit(few[0], sparse.csr_matrix(few[1])).predict_proba(X)
    expected = brief(n_iter=2).fit(*few).predict_proba(X)
    np.testing.assert_array_equal(again, expected)


def test_scales_of_features_make_no_difference():
    scaled = np.concatenate([1000.0 * X + 5.0, np.full((len(X), 1), 3.0)], 1)
    one, other = brief().fit(X, WORDS), brief().fit(scaled, WORDS)
    assert np.mean(one.predict(X) == other.predict(scaled)) > 0.98
    assert np.isfinite(other.predict_proba(scaled + 1.0)).all()


def test_pickled_and_cloned():
    classifier = brief(n_iter=2).fit(X, WORDS)
    copied = pickle.loads(pickle.dumps(classifier))
    np.testing.assert_array_equal(copied.predict(X), classifier.predict(X))
    assert not hasattr(clone(classifier), "model_")


def sets_of_two(rows=400):
    """Returns features, and one label of 0, 1 and one of 2, 3 that they hint at."""
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 2, (2, rows))
    labels = np.stack([first, 1 - first, second, 1 - second], 1)
    return labels + rng.normal(0.0, 1.5, labels.shape), labels


def test_decisions():
    """Each is the best for its loss; no set is empty, as none was."""
    features, labels = sets_of_two()
    classifier = brief(n_components=None, n_iter=30).fit(features, labels)
    assert classifier.model_.hidden_units == 8 and not classifier.has_empty_
    right, wrong = {}, {}
    for decision in ("marginal", "mode", "f1"):
        found = classifier.set_params(decision=decision).predict(features)
        right[decision] = np.mean((found == labels).all(1))
        wrong[decision] = np.mean(found != labels)
        assert decision == "marginal" or found.any(1).all()
    assert right["mode"] >= max(right.values())
    assert wrong["marginal"] <= min(wrong.values()) + 0.01
    search = GridSearchCV(
        brief(n_iter=2), {"decision": ["mode", "f1"]}, scoring="f1_samples", cv=2
    )
    assert search.fit(features[:80], labels[:80]).best_score_ > 0.3


def test_log_likelihood_is_of_whole_sets():
    features, labels = sets_of_two()
    classifier = brief(n_components=None, n_iter=30).fit(features, labels)
    total = sum(
        np.exp(classifier.log_likelihood(features[:5], np.tile(state, (5, 1))))
        for state in binary_states(4)
    )
    np.testing.assert_allclose(total, 1.0, rtol=1e-4)
    nats = classifier.log_likelihood(features, labels).mean()
    p = classifier.predict_proba(features)
    assert nats > np.log(np.where(labels, p, 1.0 - p)).sum(1).mean() + 0.3
    words = brief().fit(X, WORDS)
    shares = words.predict_proba(X)
    got = words.log_likelihood(X, WORDS)
    own = shares[np.arange(len(X)), np.searchsorted(words.classes_, WORDS)]
    np.testing.assert_allclose(got, np.log(own), atol=1e-4)
    with pytest.raises(ValueError, match="of the classes"):
        words.log_likelihood(X, np.full(len(X), "rose"))


def test_sparse_features_are_those_of_an_array():
    scipy_sparse = pytest.importorskip("scipy.sparse")
    features, labels = sets_of_two()
    features = np.maximum(features, 0.0)
    sparse = scipy_sparse.csr_matrix(features)
    classifier = brief().fit(sparse, labels, np.arange(len(labels)) % 3)
    assert isinstance(classifier.scaler_, MaxAbsScaler)
    for decision in ("marginal", "mode"):
        classifier.set_params(decision=decision)
        arrays = classifier.predict(features)
        np.testing.assert_array_equal(classifier.predict(sparse), arrays)
    nats = classifier.log_likelihood(sparse, scipy_sparse.csr_matrix(labels))
    np.testing.assert_allclose(nats, classifier.log_likelihood(features, labels))


def test_labels_that_are_not_known():
    """What is known of a row is learned; its log p is that of the known labels."""
    features, labels = sets_of_two()
    holed = labels.astype(float)
    holed[np.random.default_rng(1).random(labels.shape) < 0.3] = np.nan
    holed[0] = np.nan
    classifier = brief(n_components=None, n_iter=40).fit(features, holed)
    p = classifier.predict_proba(features)
    assert -np.log(np.where(labels, p, 1.0 - p)).mean() < 0.6
    assert classifier.has_empty_  # as far as is known
    nats = classifier.log_likelihood(features[:6], holed[:6])
    for row, target, found in zip(features[:6], holed[:6], nats, strict=True):
        states = [s for s in binary_states(4) if np.all((s == target)[target >= 0])]
        rows = np.tile(row, (len(states), 1))
        total = np.logaddexp.reduce(classifier.log_likelihood(rows, states))
        np.testing.assert_allclose(found, total, atol=1e-4)
    frame = pd.DataFrame(holed).astype("Int64")
    few = (brief(n_iter=2).fit(features[:40], y[:40]) for y in (holed, frame))
    np.testing.assert_array_equal(*(each.predict_proba(features) for each in few))


def test_weights_of_rows():
    """Rows of weight 0 are as if they were not there."""
    features, labels = sets_of_two()
    other = 1e4 * features[::-1], np.zeros_like(labels)
    both = [
        np.concatenate(pair) for pair in zip((features, labels), other, strict=True)
    ]
    weights = np.repeat([1.0, 0.0], len(labels))
    weighted = brief(n_iter=5).fit(*both, sample_weight=weights)
    plain = brief(n_iter=5).fit(features, labels, np.ones(len(labels)))
    assert weighted.has_empty_ is plain.has_empty_ is False
    got, expected = (each.predict_proba(features) for each in (weighted, plain))
    np.testing.assert_array_equal(got, expected)
    heavy = brief(n_iter=30).fit(features, labels, np.where(labels[:, 0], 3.0, 1.0))
    assert heavy.predict_proba(features)[:, 0].mean() > expected[:, 0].mean() + 0.1


def test_what_is_refused_after_fit():
    features, labels = sets_of_two()
    classifier = brief(n_iter=1).fit(features, labels)
    with pytest.raises(ValueError, match="marginal, mode, f1.*'hamming'"):
        classifier.set_params(decision="hamming").predict(features)
    with pytest.raises(ValueError, match="between 0 and 2"):
        brief().fit(features, 2 * labels)
