"""An RBM as a scikit-learn transformer and density estimator."""

import warnings
from typing import Any

import numpy as np
import tensorflow as tf
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    DensityMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted

from keras_rbm import units
from keras_rbm._checks import check_counts
from keras_rbm.datasets.in_memory import SparseRows, is_sparse
from keras_rbm.inference.potentials import Potentials
from keras_rbm.models import RBM
from keras_rbm.models.data import row_checks
from keras_rbm.models.data.rows import map_rows
from keras_rbm.models.layer_variables import fingerprint
from keras_rbm.models.training.defaults import new_rule
from keras_rbm.models.training.diagnosis import gains_over_independent
from keras_rbm.sklearn.fitting import numbers_of, optimizer_with_rate, seed_from

#: Share of zeros and ones in a column below which they look like its ends.
_FEW_ENDS = 0.1
#: Nats a column, and standard errors, by which independent columns must be better.
_LEAST_LOSS, _ERRORS = 0.05, 4.0


class RBMEstimator(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, DensityMixin, BaseEstimator
):
    """A `keras_rbm.RBM` as a scikit-learn transformer and density estimator.

    `transform(X)` returns `E[h | v]`, like `BernoulliRBM`. `score_samples(X)` returns
    the log-likelihood `log p(v) = -F(v) - log Z`, in nats, which `BernoulliRBM` lacks.
    Shared parameters have the same names. Both methods compute in float64.

    Data may be any numbers. By default visible units are binary if all values of the
    first fit are in [0, 1] (bits, pixels, one-hot columns). Otherwise they are
    Gaussian, standardized with a learned precision: raw or scaled measurements, also
    by `MinMaxScaler`, which leaves a 0 and a 1 in each column and others between. A
    value between 0 and 1 of a binary unit counts as the probability that it is on. Set
    the type explicitly if it must not depend on the data, as between the folds of a
    search.

    NaN in X of the first fit stands for values that are there, but not known. The model
    learns the likelihood of those that are, `score_samples` returns it, and features
    are given them (`RBM(missing="latent")`). `impute` fills gaps in any rows, also with
    a model of data without any. `RBMImputer` is a transformer that does so.

    X may be a SciPy sparse matrix, such as `CountVectorizer(binary=True)` makes of
    texts. Entries that are not stored are 0, and rows become dense a batch at a time.

    Args:
        n_components: int ≥ 1, hidden units, H.
        visible: `"auto"`, `"bernoulli"`, `"gaussian"`, or a `keras_rbm.units` object.
        hidden: str or `keras_rbm.units` object, type of the hidden units.
        rule: str or `keras_rbm.rules` object, copied in each fit, or `None`.
        optimizer: str, Keras optimizer, copied in each fit, or `None`. Rule, optimizer
            and its rate are by default those of `RBM.compile`.
        learning_rate: float > 0, from which the optimizer's rate falls to 0 in
            `n_iter` epochs, or Keras schedule; all else is then as the optimizer has it
            in Keras. Ten epochs give better features at a rate of 0.1 than by default,
            and worse likelihoods.
        batch_size: int ≥ 1.
        n_iter: int ≥ 1, epochs of `fit`.
        log_partition: str, how `score_samples` computes log Z: a method of
            `RBM.log_partition`, or `"auto"` for its default.
        verbose: int, as in `keras.Model.fit`.
        random_state: int, `numpy.random.RandomState` or `None`. Seeds initial weights,
            the order of rows, training and `sample`.

    Attributes:
        model_: `keras_rbm.RBM`, the fitted model.
        history_: dict of lists, the Keras logs of the last fit, by epoch.
        components_: array (H, V), the kernel.
        intercept_hidden_: array (H,), hidden biases.
        intercept_visible_: array (V,), visible biases.
        n_features_in_: int, V.
        feature_names_in_: array (V,) of str, if X has column names.

    Raises:
        ValueError: from `fit`, if a parameter is out of range, or X has values that
            are not states of the visible units, or a column of NaN only.

    Example:

    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from keras_rbm.sklearn import RBMEstimator
    >>> X = np.random.default_rng(0).integers(0, 2, (100, 6))
    >>> rbm = RBMEstimator(4, n_iter=1, random_state=0)
    >>> rbm.fit_transform(X).shape
    (100, 4)
    >>> rbm.score_samples(X).shape
    (100,)
    >>> classifier = make_pipeline(rbm, LogisticRegression()).fit(X, X[:, 0])

    References:
        1. Tieleman. Training restricted Boltzmann machines using approximations
           to the likelihood gradient. ICML 2008.
        2. Salakhutdinov, Murray. On the quantitative analysis of deep belief
           networks. ICML 2008.
    """

    def __init__(
        self,
        n_components=256,
        *,
        visible="auto",
        hidden="bernoulli",
        rule=None,
        optimizer=None,
        learning_rate=None,
        batch_size=32,
        n_iter=10,
        log_partition="auto",
        verbose=0,
        random_state=None,
    ):
        self.n_components = n_components
        self.visible = visible
        self.hidden = hidden
        self.rule = rule
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.n_iter = n_iter
        self.log_partition = log_partition
        self.verbose = verbose
        self.random_state = random_state

    _accept_sparse: str | bool = "csr"

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = bool(self._accept_sparse)
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def __sklearn_is_fitted__(self):
        return hasattr(self, "model_")

    def fit(self, X, y=None):
        """Trains a new model for `n_iter` epochs.

        Args:
            X: array, frame or sparse matrix (N, V), NaN where not known.
            y: ignored.

        Returns:
            The estimator.
        """
        check_counts(n_iter=self.n_iter)
        X = self._rows(X, np.float32, self._accept_sparse)
        self._learn(self._new_model(X), X, self.n_iter)
        self._gains = gains_over_independent(self.model_, X)
        return self

    def partial_fit(self, X, y=None):
        """Trains the model for one epoch on X; creates it if there is none yet.

        The optimizer and the learning rule's chains continue from call to call. The
        first call decides where the visible units start, what `visible="auto"` is, and
        whether there may be NaN.

        Args:
            X: array, frame or sparse matrix (N, V), part of the data, NaN where not
                known.
            y: ignored.

        Returns:
            The estimator.
        """
        first, self._gains = not hasattr(self, "model_"), None
        X = self._rows(X, np.float32, self._accept_sparse, reset=first)
        if not first:
            self._check_gaps(X)
        return self._learn(self._new_model(X) if first else self.model_, X, 1)

    def transform(self, X):
        """Computes features, `E[h | v]`, by mean field where v has NaN.

        Args:
            X: array, frame or sparse matrix (N, V), NaN where not known, if X of `fit`
                had any.

        Returns:
            array (N, H), of the float type of X: for binary hidden units, the
            probabilities that they are on.

        Raises:
            ValueError: if X has values that are not states of the visible units, or NaN
                that X of `fit` had not.
        """
        check_is_fitted(self)
        X = self._validated(X)
        self.model_.form.checked_calls(X)
        potentials = precise_potentials(self.model_)

        def features(rows):
            return potentials.hidden.mean(potentials.hidden_natural(rows))

        return _by_gaps(
            X,
            lambda rows: map_rows(features, rows, dtype=tf.float64).numpy(),
            lambda rows: self.model_.predict(rows, verbose=0),
        ).astype(X.dtype)

    def score_samples(self, X):
        """Computes log-likelihoods, `log p(v) = -F(v) - log Z`, of what is known of v.

        The error of log Z is common to all rows; `estimate_log_partition` returns it.
        log Z is estimated once for the weights of `model_`, with a warning if its
        interval is infinite.

        Args:
            X: array, frame or sparse matrix (N, V), states of the visible units, NaN
                where not known, if X of `fit` had any.

        Returns:
            array (N,), float64, nats. For Gaussian units these are log-densities.

        Raises:
            ValueError: if X has values that are not states of the visible units, or NaN
                that X of `fit` had not.
        """
        check_is_fitted(self)
        X = self._validated(X)
        unit = self.model_.visible
        as_in_fit = X if isinstance(X, SparseRows) else X.astype(np.float32)
        row_checks.check_rows(as_in_fit, "X", unit=unit, has_gaps=True)
        row_checks.warn_of_means(row_checks.values_of(as_in_fit, unit), unit, "X")
        log_partition = self.estimate_log_partition()
        energy = precise_potentials(self.model_).free_energy

        def of_states(rows):
            energies = map_rows(energy, rows, dtype=tf.float64).numpy()
            return -energies - float(log_partition.value)

        return _by_gaps(
            X,
            of_states,
            lambda rows: self.model_.log_likelihood(rows, log_partition).numpy(),
        )

    def score(self, X, y=None):
        """Returns the mean of `score_samples(X)`, a float, nats per row."""
        return float(np.mean(self.score_samples(X)))

    def estimate_log_partition(self):
        """Returns log Z of the fitted model as a `keras_rbm.inference.LogPartition`.

        It is computed once for the weights of `model_`, by the method `log_partition`.
        Warns if rows of the last fit are then less likely than by columns that do not
        depend on one another.
        """
        check_is_fitted(self)
        method = None if self.log_partition == "auto" else self.log_partition
        key = method, fingerprint(self.model_)
        if self._log_partition[0] != key:
            self._log_partition = key, self.model_.log_partition(method)
            if self._gains is not None:
                self._compare(self._log_partition[1])
        return self._log_partition[1]

    def _compare(self, log_partition):
        """Warns if the model is worse than independent columns."""
        gains, columns = self._gains - float(log_partition.value), self.n_features_in_
        least = _LEAST_LOSS * columns + _ERRORS * gains.std() / np.sqrt(len(gains))
        if gains.mean() + least + log_partition.upper - log_partition.value < 0.0:
            warnings.warn(
                f"Rows of the last fit have {-gains.mean():.4g} nats less than by "
                "independent columns: the model has mass where no rows are. Train "
                "longer, or by the default rule, rule=None.",
                stacklevel=3,
            )

    def sample(self, n_samples=1, *, steps=1000, random_state=None):
        """Draws visible states by Gibbs chains from the data's mean.

        Args:
            n_samples: int ≥ 1, number of independent chains.
            steps: int ≥ 0, sweeps of each chain.
            random_state: int, `numpy.random.RandomState`, or `None` for the model's own
                generator.

        Returns:
            array (n_samples, V), float32.
        """
        check_is_fitted(self)
        seed = None if random_state is None else seed_from(random_state)
        return self.model_.sample(n_samples, steps=steps, seed=seed).numpy()

    def gibbs(self, V):
        """Moves rows by one sweep of Gibbs sampling, as `BernoulliRBM.gibbs` does.

        Args:
            V: array, frame or sparse matrix (N, V), states of the visible units. Of a
                row with NaN the rest is kept, if V of `fit` had any.

        Returns:
            array (N, V), float32, drawn by the model's own generator.
        """
        check_is_fitted(self)
        rows = self._validated(V)
        states = self.model_.sample(rows.shape[0], steps=1, initial_visible=rows)
        return states.numpy()

    def impute(self, X, method="mean", *, steps=200, random_state=0):
        """Fills in what is not known, given the rest of its row.

        Args:
            X: array or frame (N, V), NaN where not known.
            method: `"mean"` (of binary units a probability), `"mode"` (each unit's
                likeliest state) or `"sample"` (a draw; several give several tables).
            steps: int ≥ 1, sweeps of each row's chain, see `RBM.marginals`.
            random_state: int, `numpy.random.RandomState` or `None`, seed of the chains.

        Returns:
            array (N, V), of the float type of X, with known values unchanged.

        Raises:
            ValueError: if the method is unknown, or known values are no states.
        """
        check_is_fitted(self)
        X, seed = self._validated(X, takes_gaps=True), seed_from(random_state)
        rows = X.astype(np.float32)
        states = self.model_.impute(rows, method, steps=steps, seed=seed).numpy()
        return np.where(np.isnan(X), states, X)

    @property
    def components_(self):
        return np.array(self.model_.kernel).T

    @property
    def intercept_hidden_(self):
        return np.array(self.model_.hidden_bias)

    @property
    def intercept_visible_(self):
        return np.array(self.model_.visible_bias)

    @property
    def _n_features_out(self):
        return self.model_.hidden.num_rows(self.model_.hidden_units)

    def _validated(self, X, takes_gaps=False):
        accept_sparse = False if takes_gaps else self._accept_sparse
        X = self._rows(X, [np.float64, np.float32], accept_sparse, reset=False)
        if not takes_gaps:
            self._check_gaps(X)
        return X

    def _rows(self, X, dtype, accept_sparse, reset=True):
        """Returns X as an array (N, V), or as `SparseRows`."""
        options = {"accept_sparse": accept_sparse, "dtype": dtype, "reset": reset}
        X = numbers_of(self, X, ensure_all_finite="allow-nan", **options)
        if not is_sparse(X):
            return X
        rows = SparseRows.of(X)
        if not row_checks.all_known(rows):
            raise ValueError(
                "Expected sparse X without NaN. Received: NaN. Pass X.toarray() to "
                "learn from rows with unknown values."
            )
        return rows

    def _check_gaps(self, X):
        if self.model_.gaps.has_gaps and isinstance(X, SparseRows):
            raise ValueError(
                "Expected X as an array, like that of the first fit, which had NaN. "
                "Received: sparse X. Pass X.toarray()."
            )
        if not self.model_.gaps.has_gaps and not row_checks.all_known(X):
            raise ValueError(
                "Expected X without NaN, like that of the first fit. Received: NaN. "
                "Fill them with impute(X), or fit to rows with NaN."
            )

    def _new_model(self, X):
        """Returns a compiled model, to be trained on data X."""
        unit = self.visible
        if isinstance(unit, str) and unit == "auto":
            unit = "bernoulli" if _are_probabilities(X) else "gaussian"
        check_counts(n_components=self.n_components, batch_size=self.batch_size)
        seed = seed_from(self.random_state)
        visible = units.get(unit)
        kinds: dict[str, Any] = {
            "visible": visible,
            "hidden": self._hidden_unit(visible),
            "missing": None if row_checks.all_known(X) else "latent",
        }
        model = RBM(self.n_components, **kinds, seed=seed)
        model.compile(
            optimizer_with_rate(self.optimizer, self.learning_rate),
            rule=None if self.rule is None else new_rule(self.rule),
        )
        return model

    def _hidden_unit(self, visible):
        return units.get(self.hidden)

    def _learn(self, model, X, epochs):
        self._log_partition = None, None
        history = model.fit(
            X, batch_size=self.batch_size, epochs=epochs, verbose=self.verbose
        )
        self.model_ = model
        self.history_ = history.history
        return self


def _by_gaps(X, of_states, of_others):
    """Returns one function of the rows without NaN, and another of the others.

    Args:
        X: array (N, V), or `SparseRows` without NaN.
        of_states: function of the former, as they are.
        of_others: function of the latter, in float32.
    """
    if row_checks.all_known(X):
        return of_states(X)
    gaps = np.isnan(X).any(1)
    others = of_others(X[gaps].astype(np.float32))
    results = np.empty((len(X), *others.shape[1:]))
    results[gaps] = others
    if not gaps.all():
        results[~gaps] = of_states(X[~gaps])
    return results


def _are_probabilities(X):
    """Returns whether columns hold bits, or probabilities that they are on.

    They do not if most of them look like measurements that were scaled to [0, 1]: with
    a 0 and a 1, but few of them.
    """
    values = X.stored if isinstance(X, SparseRows) else np.asarray(X)
    known = ~np.isnan(values)
    low = np.min(values, 0, initial=0.0, where=known)
    high = np.max(values, 0, initial=1.0, where=known)
    if np.min(low) < 0.0 or np.max(high) > 1.0:
        return False
    if isinstance(X, SparseRows):
        return True
    is_0, is_1 = (np.sum(values == end, 0) for end in (0.0, 1.0))
    scaled = (is_0 > 0) & (is_1 > 0) & (is_0 + is_1 < _FEW_ENDS * np.sum(known, 0))
    return np.mean(scaled) <= 0.5


def precise_potentials(model):
    """Returns a model as `Potentials` of float64, as scikit-learn expects scores."""
    parts = tuple(model.potentials(dtype=model.variable_dtype))
    return Potentials(*tf.nest.map_structure(lambda x: tf.cast(x, tf.float64), parts))
