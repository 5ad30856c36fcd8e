"""A CRBM as a scikit-learn classifier, of classes or of several labels."""

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from keras_rbm import units
from keras_rbm._checks import check_counts
from keras_rbm.inference import label_sets
from keras_rbm.models import CRBM
from keras_rbm.models.data.rows import as_array, held_rows, map_rows
from keras_rbm.sklearn.fitting import optimizer_with_rate, seed_from

#: Hidden units of several labels, few enough for exact inference, and of classes.
_FEW, _MANY = 8, 32
_DECISIONS = "marginal", "mode", "f1"
#: Numbers of the draws that sets are chosen from, at a time.
_DRAWS_AT_ONCE = 2**24


class CRBMClassifier(ClassifierMixin, BaseEstimator):
    """A `keras_rbm.CRBM` as a scikit-learn classifier, of classes or several labels.

    Features are standardized by their mean and deviation in `fit`; constant ones are
    only shifted, and sparse ones only divided by their largest absolute value. What y
    is decides what the model's visible units are:

    * an array (N, L) of 0 and 1 is L labels, each of which an example has or has not
      (multi-label): L binary units, whose dependence the hidden units model beyond
      what the features say of each. NaN is a label that is not known;
    * an array (N,) of numbers or words is classes: one categorical unit. Given x, its
      states are enumerated, so that training is exact maximum likelihood
      (a discriminative RBM, reference 1).

    Args:
        n_components: int ≥ 1, hidden units, H; `None` for 32, and for several labels 8,
            whose states are enumerated: learning and probabilities are then exact.
            With more than 8 of more than 8 labels they are by belief propagation, which
            fails where labels are strongly coupled.
        decision: str, for which loss `predict` decides, of several labels:
            `"marginal"`, labels likelier than not, the fewest expected errors by label
            (Hamming loss); `"mode"`, the most probable set (exact match); `"f1"`, the
            set of the greatest expected F1 of an example. The last two have a label if
            each row of `fit` has one that is known. They are exact for at most 10
            labels; else they are found by 1,000 draws of sets, for more than 10 hidden
            units by 200 Gibbs chains, which may miss a far mode.
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
        scaler_: `sklearn.preprocessing.StandardScaler`, or `MaxAbsScaler` if X is
            sparse.
        classes_: array (q,), the sorted classes, or the numbers of the L labels.
        has_empty_: bool, whether a row of `fit` may have no label; of classes false.
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
        n_components=None,
        *,
        decision="marginal",
        optimizer=None,
        learning_rate=None,
        batch_size=32,
        n_iter=100,
        verbose=0,
        random_state=None,
    ):
        self.n_components = n_components
        self.decision = decision
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.n_iter = n_iter
        self.verbose = verbose
        self.random_state = random_state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self):
        return hasattr(self, "model_")

    def fit(self, X, y, sample_weight=None):
        """Trains a new model for `n_iter` epochs.

        Args:
            X: array, frame or sparse matrix (N, X).
            y: array (N, L) of 0 and 1, and NaN where not known, or (N,), classes.
            sample_weight: array (N,), weights ≥ 0 of the rows, or `None`.

        Returns:
            The classifier.
        """
        self._check_decision()
        check_counts(batch_size=self.batch_size, n_iter=self.n_iter)
        if self.n_components is not None:
            check_counts(n_components=self.n_components)
        features, targets, unit, classes = self._checked(X, y)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(
                sample_weight, features, dtype=np.float32, ensure_non_negative=True
            )
            taken = np.flatnonzero(sample_weight)
            features, targets = features[taken], targets[taken]
            sample_weight = sample_weight[taken]
        scaler = MaxAbsScaler() if scipy.sparse.issparse(features) else StandardScaler()
        scaler.fit(features)
        default = _MANY if isinstance(unit, units.Categorical) else _FEW
        model = CRBM(
            self.n_components or default,
            visible=unit,
            missing="latent" if np.isnan(targets).any() else None,
            seed=seed_from(self.random_state),
        )
        model.compile(optimizer_with_rate(self.optimizer, self.learning_rate))
        history = model.fit(
            _scaled(scaler, features),
            targets,
            sample_weight=sample_weight,
            batch_size=self.batch_size,
            epochs=self.n_iter,
            verbose=self.verbose,
        )
        self.classes_, self.scaler_, self.model_ = classes, scaler, model
        self.has_empty_ = default == _FEW and not np.all(np.any(targets == 1.0, 1))
        self.history_ = history.history
        return self

    def predict_proba(self, X):
        """Computes the probabilities of classes, or of each label.

        Args:
            X: array, frame or sparse matrix (N, X).

        Returns:
            array (N, q), float64, p(y = class | x), in the order of `classes_`; for
            labels (N, L), p(y_i = 1 | x).
        """
        rows = self._rows(X)
        shares = map_rows(self.model_, rows).numpy().astype(np.float64)
        return shares / shares.sum(1, keepdims=True) if self._has_classes else shares

    def predict(self, X):
        """Predicts the likeliest class, or the labels that `decision` asks for.

        Args:
            X: array, frame or sparse matrix (N, X).

        Returns:
            array (N,) of classes, or (N, L) of 0 and 1.
        """
        if self._has_classes:
            return self.classes_[self.predict_proba(X).argmax(1)]
        self._check_decision()
        if self.decision == "marginal":
            return (self.predict_proba(X) > 0.5).astype(np.int64)
        rows = self._rows(X)
        size = max(1, _DRAWS_AT_ONCE // (1000 * self.model_.num_visible))
        found = map_rows(self._best_set, rows, rows_at_once=size)
        return found.numpy().astype(np.int64)

    def log_likelihood(self, X, y):
        """Computes log p(y | x), of all labels of a row together, in nats.

        Args:
            X: array, frame or sparse matrix (N, X).
            y: array (N, L) of 0 and 1, or NaN where not known (of exact models that
                were fitted to such), or (N,), classes of `classes_`.

        Returns:
            array (N,), float64. `np.exp` of it is the probability of the set of labels.
            It is exact where `n_components` says so, else see `CRBM.log_likelihood`.
        """
        rows = self._rows(X)
        if self._has_classes:
            numbers = np.searchsorted(self.classes_, y).clip(max=len(self.classes_) - 1)
            if np.any(self.classes_[numbers] != y):
                raise ValueError(
                    f"Expected y of the classes {self.classes_.tolist()}. Received: "
                    "others."
                )
            y = numbers[:, np.newaxis]
        return np.asarray(self.model_.log_likelihood(rows, _dense(y)))

    def _check_decision(self):
        if self.decision not in _DECISIONS:
            raise ValueError(
                f"Expected decision as one of {', '.join(_DECISIONS)}. Received: "
                f"decision={self.decision!r}."
            )

    def _best_set(self, rows):
        potentials = self.model_.potentials(rows, "float32")
        return label_sets.best_sets(potentials, self.decision, self.has_empty_)

    def _rows(self, X):
        check_is_fitted(self)
        X = validate_data(
            self, X, dtype=[np.float64, np.float32], accept_sparse="csr", reset=False
        )
        return held_rows(_scaled(self.scaler_, X))

    def _checked(self, X, y):
        """Returns features, targets (N, V), their unit type and `classes_`."""
        kinds = {"dtype": [np.float64, np.float32], "accept_sparse": "csr"}
        given = y if scipy.sparse.issparse(y) else np.asarray(y)
        if given.ndim == 2 and given.shape[1] > 1:
            features, states = validate_data(self, X, **kinds), _dense(y)
            check_consistent_length(features, states)
            if not np.isin(states[~np.isnan(states)], (0.0, 1.0)).all():
                raise ValueError(
                    "Expected y of several labels as 0 or 1 in each column, or NaN. "
                    f"Received: {type_of_target(np.nan_to_num(states))} of values "
                    f"between {np.nanmin(states):g} and {np.nanmax(states):g}."
                )
            return features, states, units.Bernoulli(), np.arange(states.shape[1])
        features, y = validate_data(self, X, y, **kinds)
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y")
        if kind not in ("binary", "multiclass"):
            raise ValueError(
                "Expected y as classes, one for each example, or as labels, 0 or 1 in "
                f"each column. Received: {kind}."
            )
        classes, numbers = np.unique(column_or_1d(y, warn=True), return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                "Expected y of at least two classes. Received: one class, "
                f"{classes[0]!r}."
            )
        unit = units.Categorical(len(classes))
        return features, numbers[:, np.newaxis], unit, classes

    @property
    def _has_classes(self):
        check_is_fitted(self)
        return isinstance(self.model_.visible, units.Categorical)


def _dense(y):
    return np.float32(y.toarray() if scipy.sparse.issparse(y) else as_array(y, "y"))


def _scaled(scaler, features):
    if isinstance(scaler, StandardScaler) and scipy.sparse.issparse(features):
        features = features.toarray()
    return scaler.transform(features).astype(np.float32)
