"""An RBM as a scikit-learn transformer that fills in missing values."""

from sklearn.base import OneToOneFeatureMixin

from keras_rbm import units
from keras_rbm._checks import check_counts
from keras_rbm.models.missing import check_filling
from keras_rbm.sklearn.rbm_estimator import RBMEstimator

#: Binary hidden units for each Gaussian one, which models a linear dependence.
_BINARY_UNITS = 7


class RBMImputer(OneToOneFeatureMixin, RBMEstimator):
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

    Attributes:
        model_: `keras_rbm.RBM`, the fitted model, and the others of `RBMEstimator`.

    Raises:
        ValueError: from `fit`, if a parameter is out of range, or X has values that
            are not states of the visible units, or a column of NaN only.

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
    ):
        super().__init__(
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
            array (N, V), of the float type of X, with known values unchanged. It is the
            same in each call, also with `method="sample"`.

        Raises:
            ValueError: if known values are no states of the visible units.
        """
        return self.impute(X, self.method, steps=self.steps)

    def _hidden_unit(self, visible):
        if not isinstance(self.hidden, str) or self.hidden != "auto":
            return super()._hidden_unit(visible)
        few = self.n_components // (_BINARY_UNITS + 1)
        if few and isinstance(visible, units.Gaussian):
            parts = ("bernoulli", self.n_components - few), ("gaussian", few)
            return units.Joined(list(parts))
        return units.Bernoulli()
