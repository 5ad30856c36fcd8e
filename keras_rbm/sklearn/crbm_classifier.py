"""A CRBM as a scikit-learn classifier, of classes or of several labels."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from keras_rbm import units
from keras_rbm._checks import check_counts
from keras_rbm.models import CRBM
from keras_rbm.models.data.rows import map_rows
from keras_rbm.sklearn.fitting import optimizer_with_rate, seed_from


class CRBMClassifier(ClassifierMixin, BaseEstimator):
    """A `keras_rbm.CRBM` as a scikit-learn classifier, of classes or several labels.

    Features are standardized by their mean and deviation in `fit`; constant ones are
    only shifted. What y is decides what the model's visible units are:

    * an array (N, L) of 0 and 1 is L labels, each of which an example has or has not
      (multi-label): L binary units, whose dependence the hidden units model beyond
      what the features say of each;
    * an array (N,) of numbers or words is classes: one categorical unit. Given x, its
      states are enumerated, so that training is exact maximum likelihood
      (a discriminative RBM, reference 1).

    Args:
        n_components: int ≥ 1, hidden units, H.
        optimizer: str, Keras optimizer, copied in each fit, or `None` for Adam.
        learning_rate: float > 0, from which it falls to 0 in `n_iter` epochs, or Keras
            schedule; `None` for that of `CRBM.compile`.
        batch_size: int ≥ 1.
        n_iter: int ≥ 1, epochs of `fit`.
        verbose: int, as in `keras.Model.fit`.
        random_state: int, `numpy.random.RandomState` or `None`. Seeds initial weights,
            the order of rows and training.

    Attributes:
        model_: `keras_rbm.CRBM`, the fitted model of standardized features.
        scaler_: `sklearn.preprocessing.StandardScaler`, which standardizes them.
        classes_: array (q,), the sorted classes, or the numbers of the L labels.
        history_: dict of lists, the Keras logs of the fit, by epoch.
        n_features_in_: int, X.
        feature_names_in_: array (X,) of str, if X has column names.

    Raises:
        ValueError: from `fit`, if a parameter is out of range, or y has a single class
            or is neither labels nor classes.

    Example:

    >>> from keras_rbm.sklearn import CRBMClassifier
    >>> X = np.random.default_rng(0).normal(size=(80, 5))
    >>> words = np.where(X[:, 0] > 0, "high", "low")
    >>> classifier = CRBMClassifier(4, n_iter=5, random_state=0).fit(X, words)
    >>> classifier.predict_proba(X).shape, classifier.classes_.tolist()
    ((80, 2), ['high', 'low'])
    >>> labels = np.int64(X[:, :3] > 0)
    >>> CRBMClassifier(4, n_iter=1, random_state=0).fit(X, labels).predict(X).shape
    (80, 3)

    References:
        1. Larochelle, Bengio. Classification using discriminative restricted Boltzmann
           machines. ICML 2008.
        2. Mnih, Larochelle, Hinton. Conditional restricted Boltzmann machines for
           structured output prediction. UAI 2011.
    """

    def __init__(
        self,
        n_components=32,
        *,
        optimizer=None,
        learning_rate=None,
        batch_size=32,
        n_iter=100,
        verbose=0,
        random_state=None,
    ):
        self.n_components = n_components
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.n_iter = n_iter
        self.verbose = verbose
        self.random_state = random_state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def __sklearn_is_fitted__(self):
        return hasattr(self, "model_")

    def fit(self, X, y):
        """Trains a new model for `n_iter` epochs.

        Args:
            X: array or frame (N, X).
            y: array (N, L) of 0 and 1, or (N,), classes.

        Returns:
            The classifier.
        """
        counts = "n_components", "batch_size", "n_iter"
        check_counts(**{name: getattr(self, name) for name in counts})
        features, labels = validate_data(
            self, X, y, dtype=[np.float64, np.float32], multi_output=True
        )
        classes, targets, unit = _encoded(labels)
        scaler = StandardScaler().fit(features)
        model = CRBM(self.n_components, visible=unit, seed=seed_from(self.random_state))
        model.compile(optimizer_with_rate(self.optimizer, self.learning_rate))
        history = model.fit(
            np.float32(scaler.transform(features)),
            targets,
            batch_size=self.batch_size,
            epochs=self.n_iter,
            verbose=self.verbose,
        )
        self.classes_, self.scaler_, self.model_ = classes, scaler, model
        self.history_ = history.history
        return self

    def predict_proba(self, X):
        """Computes the probabilities of classes, or of each label.

        Args:
            X: array or frame (N, X).

        Returns:
            array (N, q), float64, p(y = class | x), in the order of `classes_`; for
            labels (N, L), p(y_i = 1 | x).
        """
        check_is_fitted(self)
        features = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        rows = np.float32(self.scaler_.transform(features))
        shares = map_rows(self.model_, rows).numpy().astype(np.float64)
        return shares / shares.sum(1, keepdims=True) if self._has_classes else shares

    def predict(self, X):
        """Predicts the likeliest class, or all labels likelier than not.

        The latter have the fewest expected errors by label. `model_.predict_map` finds
        the likeliest set of labels, with an inference that looks for it.

        Args:
            X: array or frame (N, X).

        Returns:
            array (N,) of classes, or (N, L) of 0 and 1.
        """
        shares = self.predict_proba(X)
        if self._has_classes:
            return self.classes_[shares.argmax(1)]
        return (shares > 0.5).astype(np.int64)

    @property
    def _has_classes(self):
        return isinstance(self.model_.visible, units.Categorical)


def _encoded(y):
    """Returns the classes, the states (N, V), and the unit type of targets."""
    check_classification_targets(y)
    kind = type_of_target(y, input_name="y")
    if kind == "multilabel-indicator":
        states = np.float32(y.toarray() if hasattr(y, "toarray") else y)
        return np.arange(states.shape[1]), states, units.Bernoulli()
    if kind not in ("binary", "multiclass"):
        raise ValueError(
            "Expected y as classes, one for each example, or as labels, 0 or 1 in each "
            f"column. Received: {kind}."
        )
    classes, numbers = np.unique(column_or_1d(y, warn=True), return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"Expected y of at least two classes. Received: one class, {classes[0]!r}."
        )
    return classes, numbers[:, np.newaxis], units.Categorical(len(classes))
