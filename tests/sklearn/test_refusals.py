"""What estimators refuse, in `fit` and after it."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.neural_network import BernoulliRBM

import keras_rbm
from keras_rbm.sklearn import (
    CRBMClassifier,
    RBMEstimator,
    RBMImputer,
    RBMOutlierDetector,
    from_bernoulli_rbm,
    to_bernoulli_rbm,
)

RNG = np.random.default_rng(0)
DATA = RNG.integers(0, 2, (90, 6)).astype("float32")
REAL = RNG.normal(5.0, [1.0, 2.0, 30.0], (90, 3))
GAPS = RNG.random(DATA.shape) < 0.2
HOLED = np.where(GAPS, np.nan, DATA)
X, LABEL = load_iris(return_X_y=True)
WORDS = np.array(["setosa", "versicolor", "virginica"])[LABEL]
KINDS = np.stack([LABEL, 2 * LABEL], 1)

#: Estimator, its parameters, data, what is said.
REFUSED = [
    (RBMEstimator, {"n_components": 0}, [DATA], "n_components=0"),
    (RBMEstimator, {"n_iter": 0}, [DATA], "n_iter=0"),
    (RBMEstimator, {"batch_size": 0}, [DATA], "batch_size=0"),
    (RBMEstimator, {"learning_rate": 0.0}, [DATA], "learning_rate=0.0"),
    (RBMEstimator, {"visible": "poisson"}, [DATA], "poisson"),
    (RBMEstimator, {"rule": "pdc"}, [DATA], "pdc"),
    (RBMEstimator, {"optimizer": "cd"}, [DATA], "learning rule"),
    (RBMEstimator, {"visible": "bernoulli"}, [REAL], "states of Bernoulli units"),
    (RBMEstimator, {}, [DATA[0]], "2D array"),
    (CRBMClassifier, {"n_components": 0}, [X, WORDS], "n_components=0"),
    (CRBMClassifier, {"n_iter": 0}, [X, WORDS], "n_iter=0"),
    (CRBMClassifier, {"batch_size": 0}, [X, WORDS], "batch_size=0"),
    (CRBMClassifier, {"learning_rate": -1.0}, [X, WORDS], "learning_rate=-1.0"),
    (CRBMClassifier, {}, [X, np.full(150, "a")], "one class, .*a"),
    (CRBMClassifier, {}, [X, X[:, 0]], "continuous"),
    (CRBMClassifier, {}, [X, KINDS], "multiclass-multioutput"),
    (RBMImputer, {"method": "median"}, [HOLED], "method='median'"),
    (RBMImputer, {"steps": 0}, [HOLED], "steps=0"),
    (RBMImputer, {}, [np.full((5, 2), np.nan)], r"columns \[0, 1\]"),
    (RBMImputer, {}, [np.where(GAPS, np.inf, DATA)], "infinity"),
    (RBMImputer, {"visible": "bernoulli"}, [3 * HOLED], "states of Bernoulli units"),
]


@pytest.mark.parametrize(("kind", "parameters", "data", "word"), REFUSED)
def test_refused_by_fit(kind, parameters, data, word):
    estimator = kind(**{"n_components": 4, "random_state": 0} | parameters)
    with pytest.raises(ValueError, match=word):
        estimator.fit(*data)
    assert not hasattr(estimator, "model_")
    call = getattr(estimator, "transform", getattr(estimator, "predict", None))
    with pytest.raises(NotFittedError):
        call(data[0] if data[0].ndim == 2 else DATA)


@pytest.mark.parametrize(
    ("method", "arguments", "word"),
    [
        ("transform", [HOLED], r"without NaN.*impute\(X\)"),
        ("score_samples", [HOLED], r"without NaN.*impute\(X\)"),
        ("partial_fit", [HOLED], r"without NaN.*impute\(X\)"),
        ("impute", [HOLED, "median"], "method='median'"),
        ("score_samples", [2.0 * DATA], "states of Bernoulli units"),
    ],
)
def test_refused_by_a_fitted_model(method, arguments, word):
    rbm = RBMEstimator(4, n_iter=1, random_state=0).fit(DATA)
    with pytest.raises(ValueError, match=word):
        getattr(rbm, method)(*arguments)
    with pytest.raises(ValueError, match="method"):
        rbm.set_params(log_partition="guess").score(DATA)


def test_features_are_only_of_states():
    categories = RNG.integers(0, 3, (40, 4))
    unit = keras_rbm.units.Categorical(3)
    rbm = RBMEstimator(4, n_iter=1, visible=unit, random_state=0).fit(categories)
    for wrong in (5, 0.5):
        with pytest.raises(ValueError, match="whole numbers from 0 to 2"):
            rbm.transform(np.full((1, 4), wrong))


GAUSSIAN = r"visible=Gaussian\(standardize=True\)"


@pytest.mark.parametrize(
    ("call", "make", "word"),
    [
        (from_bernoulli_rbm, RBMEstimator, "RBMEstimator"),
        (from_bernoulli_rbm, BernoulliRBM, "no weights yet"),
        (to_bernoulli_rbm, RBMEstimator, "model_"),
        (to_bernoulli_rbm, lambda: keras_rbm.RBM(3), "built model"),
        (
            to_bernoulli_rbm,
            lambda: keras_rbm.RBM(3, num_visible=2, visible="gaussian"),
            GAUSSIAN,
        ),
    ],
)
def test_other_weights_are_refused(call, make, word):
    with pytest.raises((TypeError, ValueError), match=word):
        call(make())


@pytest.mark.parametrize("method", ["get_feature_names_out", "estimate_log_partition"])
def test_not_fitted(method):
    with pytest.raises(NotFittedError):
        getattr(RBMEstimator(4), method)()


@pytest.mark.parametrize("kind", [RBMEstimator, RBMImputer, RBMOutlierDetector])
def test_words_are_for_another_estimator(kind):
    """scikit-learn's own error does not say which."""
    with pytest.raises(ValueError, match="TableModel takes frames with words"):
        kind().fit([["red", 1.0], ["blue", 2.0]])
