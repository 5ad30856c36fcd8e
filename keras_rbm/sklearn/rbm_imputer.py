"""An RBM as a scikit-learn transformer that fills in missing values."""

import warnings

import numpy as np
from sklearn.impute._base import _BaseImputer
from sklearn.utils._mask import _get_mask
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from keras_rbm import units
from keras_rbm._checks import check_counts
from keras_rbm.models.missing import check_filling
from keras_rbm.sklearn.rbm_estimator import RBMEstimator

#: Binary hidden units for each Gaussian one, which models a linear dependence.
_BINARY_UNITS = 7


class RBMImputer(_BaseImputer, RBMEstimator):
    """Fills in missing values by an RBM, as scikit-learn's imputers do.

    `fit` trains an RBM on the known values: it maximizes their likelihood, which is
    right if whether a value is missing does not depend on the value (missing at
    random). `transform` replaces NaN by the mean given what is known of its row,
    `E[v_i | v_known]`. It scales nothing: Gaussian units are standardized inside. New
    rows may have gaps in any columns, also if those of `fit` had none.

    It is an `RBMEstimator` whose `transform` returns data instead of features.
    `score(X)`, the log-likelihood of what is known, chooses parameters in a search
    without knowing the missing values, and `impute(X, "sample", random_state=i)` draws
    several tables.

    Args:
        n_components: int ≥ 1, hidden units, H.
        visible: as for `RBMEstimator`.
        hidden: str or `keras_rbm.units` object. `"auto"` is binary, but for Gaussian
            visible units every eighth is Gaussian, which suits linear dependence.
        rule: as for `RBMEstimator`. Contrastive divergence begins at the data, as a
            chain that fills gaps does: errors are smaller than with `"pcd"`.
        optimizer, learning_rate, batch_size, log_partition, verbose, random_state: as
            for `RBMEstimator`.
        n_iter: int ≥ 1, epochs of `fit`. Fewer suffice for many rows.
        method: `"mean"` (of binary columns a probability), `"mode"` (each column's
            likeliest value, such as 0 or 1), or `"sample"` (a draw), see
            `RBMEstimator.impute`.
        steps: int ≥ 1, sweeps of the chain by which a mean is estimated.
        missing_values: number that stands for a missing value, beside NaN.
        add_indicator: bool, whether `transform` adds columns that are 1 where a value
            is missing, for those that had such in `fit`.
        keep_empty_features: bool. Columns without any value in `fit`, which the model
            does not have, are filled with 0 if `True`; else left out, with a warning.

    Attributes:
        model_: `keras_rbm.RBM`, the fitted model, and the others of `RBMEstimator`.

    Raises:
        ValueError: from `fit`, if a parameter is out of range, or X has values that
            are not states of the visible units, or nothing but NaN.

    Example:

    >>> from keras_rbm.sklearn import RBMImputer
    >>> X = np.random.default_rng(0).normal(size=(60, 1)) + np.zeros((60, 4))
    >>> X[::3, 2] = np.nan
    >>> full = RBMImputer(n_iter=5, random_state=0).fit_transform(X)
    >>> full.shape, int(np.isnan(full).sum())
    ((60, 4), 0)

    References:
        1. Little, Rubin. Statistical analysis with missing data. 1987.
    """

    _accept_sparse = False

    def __init__(
        self,
        n_components=32,
        *,
        visible="auto",
        hidden="auto",
        rule="cd",
        optimizer=None,
        learning_rate=None,
        batch_size=32,
        n_iter=200,
        method="mean",
        steps=200,
        log_partition="auto",
        verbose=0,
        random_state=None,
        missing_values=np.nan,
        add_indicator=False,
        keep_empty_features=False,
    ):
        RBMEstimator.__init__(
            self,
            n_components,
            visible=visible,
            hidden=hidden,
            rule=rule,
            optimizer=optimizer,
            learning_rate=learning_rate,
            batch_size=batch_size,
            n_iter=n_iter,
            log_partition=log_partition,
            verbose=verbose,
            random_state=random_state,
        )
        self.method = method
        self.steps = steps
        self.missing_values = missing_values
        self.add_indicator = add_indicator
        self.keep_empty_features = keep_empty_features

    def fit(self, X, y=None):
        """Trains a new model for `n_iter` epochs.

        Args:
            X: array or frame (N, V), NaN where not known.
            y: ignored.

        Returns:
            The imputer.
        """
        check_counts(steps=self.steps)
        check_filling(self.method)
        super().fit(X)
        return self

    def transform(self, X):
        """Fills gaps.

        Args:
            X: array or frame (N, V), NaN where not known.

        Returns:
            array (N, V), of the float type of X, with known values unchanged, and the
            columns of `add_indicator`. It is the same in each call, also with
            `method="sample"`.

        Raises:
            ValueError: if known values are no states of the visible units.
        """
        full = self.impute(X, self.method, steps=self.steps)
        gaps = np.isnan(self._with_gaps(X, full.dtype, False, reset=False))
        return self._concatenate_indicator(full, self._transform_indicator(gaps))

    def impute(self, X, method="mean", *, steps=200, random_state=0):
        """Fills gaps as `transform` does, by any method, see `RBMEstimator.impute`."""
        known = super().impute(X, method, steps=steps, random_state=random_state)
        if not self.keep_empty_features:
            return known
        full = np.zeros((len(known), self.n_features_in_), known.dtype)
        full[:, self._has_values] = known
        return full

    def get_feature_names_out(self, input_features=None):
        """Returns the names of the columns of `transform`, as scikit-learn's imputers.

        Args:
            input_features: array of str, or `None` for those of `fit`.

        Returns:
            array of str.
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        kept = names[self._has_values | self.keep_empty_features]
        return self._concatenate_indicator_feature_names_out(kept, names)

    def _with_gaps(self, *args, **kwargs):
        """Returns all columns of X, NaN where a value is missing."""
        X = super()._rows(*args, **kwargs)
        return np.where(_get_mask(X, self.missing_values), np.nan, X)

    def _rows(self, X, dtype, accept_sparse, reset=True):
        """Returns X without the columns that have no value in the first fit."""
        X = self._with_gaps(X, dtype, accept_sparse, reset)
        if reset:
            gaps = np.isnan(X)
            self._fit_indicator(gaps)
            self._has_values = ~gaps.all(0) | gaps.all()  # which the model refuses
            if not (self._has_values.all() or self.keep_empty_features):
                empty = _check_feature_names_in(self)[~self._has_values]
                warnings.warn(
                    "Expected X with a known value in each column. Received: only NaN "
                    f"in {', '.join(empty)}, which are left out. To fill them with 0, "
                    "pass keep_empty_features=True.",
                    stacklevel=4,
                )
        return X[:, self._has_values]

    def _hidden_unit(self, visible):
        if not isinstance(self.hidden, str) or self.hidden != "auto":
            return super()._hidden_unit(visible)
        few = self.n_components // (_BINARY_UNITS + 1)
        if few and isinstance(visible, units.Gaussian):
            parts = ("bernoulli", self.n_components - few), ("gaussian", few)
            return units.Joined(list(parts))
        return units.Bernoulli()
