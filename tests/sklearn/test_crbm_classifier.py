"""A CRBM as a classifier: classes and labels."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris

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
    again = brief().fit(X, sparse.csr_matrix(LABELS))
    np.testing.assert_array_equal(again.predict_proba(X), shares)


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
