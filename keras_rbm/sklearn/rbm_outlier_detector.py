"""An RBM as a scikit-learn outlier detector, which says which cell is to blame."""

import numbers
from typing import Any

import numpy as np
from scipy.special import log_softmax, logsumexp
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.preprocessing import PowerTransformer, StandardScaler
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from keras_rbm import units
from keras_rbm._checks import check_counts
from keras_rbm.inference.exact import digits_of
from keras_rbm.models.data.row_checks import check_columns
from keras_rbm.sklearn.fitting import numbers_of, seed_from
from keras_rbm.sklearn.rbm_estimator import RBMEstimator, precise_potentials

#: Hidden units whose states are enumerated, and numbers that are held at once.
_MOST_UNITS, _AT_ONCE = 16, 2**22
#: Deviations of the noise in `fit`, of a column's own, without which copies of a column
#: have infinite densities; and those from the mean at which numbers may overflow.
_NOISE, _FAR = 0.1, 1e60
#: Ranges between a column's quartiles, beyond which numbers of `fit` count as less far.
_REACH = 10.0
_KINDS: dict[str, Any] = {"dtype": np.float64, "ensure_all_finite": "allow-nan"}


class RBMOutlierDetector(OutlierMixin, BaseEstimator):
    """Finds unlikely rows by an RBM, and says which of their cells make them so.

    `log p(x) = log p(z) + sum_i log |dz_i / dx_i|`: each column is standardized, then
    made more normal by the Yeo-Johnson transform [1], with a power in [0, 2], for which
    every x has a z. z are Gaussian units. H binary hidden units make p(z) a mixture of
    2^H normal densities, whose covariance, the same for all, has factors, the Gaussian
    hidden units: scores are exact, also of rows with values that are not known.

    `fit` needs no labels, and its rows may have outliers among them: it moves numbers
    that are more than 10 quartile ranges outside of their column's quartiles to there.
    After it no number is refused: beyond those of `fit`, the farther it is, the lower
    is the score of its row. NaN is a value that is not known, in `fit` and after it.

    Columns are counts and measurements, in any units. Of words, one column each, it
    finds few unlikely combinations.

    Args:
        n_components: int from 1 to 16, binary hidden units, H.
        n_factors: int ≥ 1, Gaussian hidden units, for linear dependence.
        contamination: float in (0, 0.5], the share of the rows of `fit` that are
            outliers, or `"auto"`: those below Tukey's lower fence of their scores,
            `Q1 - 1.5 (Q3 - Q1)`, with quartiles Q.
        batch_size: int ≥ 1.
        n_iter: int ≥ 1, epochs of `fit`.
        verbose: int, as in `keras.Model.fit`.
        random_state: int, `numpy.random.RandomState` or `None`. Seeds initial weights,
            the order of rows, training, and noise of a tenth of each column's
            deviation, with which rows are learned.

    Attributes:
        model_: `keras_rbm.RBM`, the fitted model of transformed columns.
        scaler_: `sklearn.preprocessing.StandardScaler`.
        transformer_: `sklearn.preprocessing.PowerTransformer`, of scaled columns.
        typical_: array (V,), the median of `-log p(x_i | rest of the row)` of the rows
            of `fit`, nats.
        offset_: float, the score of a row that is just no outlier, nats.
        n_features_in_: int, V.
        feature_names_in_: array (V,) of str, if X has column names.

    Raises:
        ValueError: from `fit`, if a parameter is out of range, or X has infinite
            values, or a column of NaN only.

    Example:

    >>> from keras_rbm.sklearn import RBMOutlierDetector
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(150, 4)) * [1.0, 10.0, 0.1, 1.0]
    >>> detector = RBMOutlierDetector(4, n_iter=1, random_state=0).fit(X)
    >>> rows = np.array([[0.5, 3.0, 0.7, 0.2], [0.5, 3.0, 0.0, np.nan]])
    >>> detector.predict(rows).tolist()
    [-1, 1]
    >>> int(detector.explain(rows)[0].argmax())
    2

    References:
        1. Yeo, Johnson. A new family of power transformations to improve normality or
           symmetry. Biometrika 87, 2000.
    """

    def __init__(
        self,
        n_components=8,
        *,
        n_factors=4,
        contamination="auto",
        batch_size=32,
        n_iter=50,
        verbose=0,
        random_state=None,
    ):
        self.n_components = n_components
        self.n_factors = n_factors
        self.contamination = contamination
        self.batch_size = batch_size
        self.n_iter = n_iter
        self.verbose = verbose
        self.random_state = random_state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X, y=None):
        """Trains a new model for `n_iter` epochs.

        Args:
            X: array or frame (N, V), NaN where not known.
            y: ignored.

        Returns:
            The detector.
        """
        self._check_parameters()
        X = numbers_of(self, X, ensure_min_samples=2, **_KINDS)
        check_columns(X, "X")
        near = _without_far_values(X)
        self.scaler_ = StandardScaler().fit(near)
        scaled = self.scaler_.transform(near)
        self.transformer_ = PowerTransformer(standardize=False).fit(scaled)
        self.transformer_.lambdas_ = np.clip(self.transformer_.lambdas_, 0.0, 2.0)
        states, seed = self.transformer_.transform(scaled), seed_from(self.random_state)
        deviation = np.nanstd(states, 0)
        noise = np.random.RandomState(seed).normal(0.0, _NOISE, states.shape)
        states += noise * np.where(deviation > 0.0, deviation, 1.0)
        parts = [("bernoulli", self.n_components), ("gaussian", self.n_factors)]
        rbm = RBMEstimator(
            self.n_components + self.n_factors,
            visible="gaussian",
            hidden=units.Joined(parts),
            batch_size=self.batch_size,
            n_iter=self.n_iter,
            verbose=self.verbose,
            random_state=seed,
        )
        self.model_ = rbm.fit(states).model_
        self.typical_ = np.nanmedian(self._surprises(X), 0)
        scores = self._comparable(X)
        if self.contamination == "auto":
            low, high = np.percentile(scores, (25.0, 75.0))
            self.offset_ = low - 1.5 * (high - low)
        else:
            self.offset_ = np.percentile(scores, 100.0 * self.contamination)
        return self

    def score_samples(self, X):
        """Computes log-likelihoods, of what is known of each row.

        Args:
            X: array or frame (N, V), NaN where not known.

        Returns:
            array (N,), nats: log-densities of X in its own units.
        """
        return self._log_densities(self._rows(X))

    def decision_function(self, X):
        """Computes `score_samples(X) - offset_`, below 0 for outliers.

        A value that is not known counts as one that is as likely as `typical_` says:
        rows with gaps compare with those without.

        Args:
            X: array or frame (N, V), NaN where not known.

        Returns:
            array (N,), nats.
        """
        return self._comparable(self._rows(X)) - self.offset_

    def predict(self, X):
        """Returns an int array (N,): -1 for outliers, 1 for others."""
        return np.where(self.decision_function(X) < 0.0, -1, 1)

    def explain(self, X):
        """Computes by how much each cell makes its row unlikely.

        `-log p(x_i | rest of the row) - typical_i`: 0 for a cell that is as likely as
        the median one of its column. Where two columns disagree, both have much.

        Args:
            X: array or frame (N, V), NaN where not known.

        Returns:
            array (N, V), nats; 0 where not known.
        """
        excess = self._surprises(self._rows(X)) - self.typical_
        return np.nan_to_num(excess, nan=0.0)

    def _check_parameters(self):
        check_counts(n_components=self.n_components, n_factors=self.n_factors)
        if self.n_components > _MOST_UNITS:
            raise ValueError(
                f"Expected n_components up to {_MOST_UNITS}: all states of the hidden "
                f"units are enumerated. Received: n_components={self.n_components!r}."
            )
        share = self.contamination
        if isinstance(share, str) and share == "auto":
            return
        if not isinstance(share, numbers.Real) or not 0.0 < share <= 0.5:
            raise ValueError(
                "Expected contamination as 'auto' or a number in (0, 0.5]. Received: "
                f"contamination={share!r}."
            )

    def _rows(self, X):
        check_is_fitted(self, "offset_")
        return numbers_of(self, X, reset=False, **_KINDS)

    def _comparable(self, X):
        """Returns scores (N,), to which unknown values add what is typical."""
        return self._log_densities(X) - np.isnan(X) @ self.typical_

    def _log_densities(self, X):
        scores = np.zeros(len(X))
        for rows, _, z, slopes, (log_shares, means, precision) in self._blocks(X):
            linear = means @ precision
            shares = log_shares - 0.5 * np.sum(linear * means, 1) + z @ linear.T
            square = np.sum(z @ precision * z, 1) + z.shape[1] * np.log(2.0 * np.pi)
            scale = 0.5 * (np.linalg.slogdet(precision)[1] - square)
            scores[rows] = logsumexp(shares, 1) + scale + np.sum(slopes, 1)
        return scores

    def _surprises(self, X):
        """Returns `-log p(x_i | rest of the row)`, (N, V), NaN where not known."""
        surprises = np.full(X.shape, np.nan)
        for rows, known, z, slopes, (log_shares, means, precision) in self._blocks(X):
            for i, column in enumerate(known):
                own, weights = precision[i, i], precision[i]
                rest = precision - np.outer(weights, weights) / own
                rest[i] = rest[:, i] = 0.0  # else rounding of a far value is left
                linear = means @ rest
                shares = log_shares - 0.5 * np.sum(linear * means, 1) + z @ linear.T
                errors = (z @ weights)[:, np.newaxis] - means @ weights
                squares = np.square(errors) / own - np.log(own / (2.0 * np.pi))
                given = logsumexp(log_softmax(shares, 1) - 0.5 * squares, 1)
                surprises[rows, column] = -given - slopes[:, i]
        return surprises

    def _blocks(self, X):
        """Yields blocks of rows that know the same columns.

        Yields:
            `(rows, known, z, slopes, mixture)`: numbers of rows (n,) and of the known
            columns (K,), which alone the others are of: transformed cells (n, K), the
            logs of their slopes in the units of X, and `_mixture`.
        """
        log_shares, means, covariance = _mixture(self.model_)
        _, pattern = np.unique(np.isnan(X), axis=0, return_inverse=True)
        order, ends = (
            np.argsort(pattern, kind="stable"),
            np.cumsum(np.bincount(pattern)),
        )
        scaled = self.scaler_.transform(X).clip(-_FAR, _FAR)
        powers = self.transformer_.lambdas_ - 1.0
        slopes = powers * np.sign(scaled) * np.log1p(np.abs(scaled))
        slopes -= np.log(self.scaler_.scale_)
        z = self.transformer_.transform(scaled)
        for alike in np.split(order, ends[:-1]):
            known = np.flatnonzero(~np.isnan(X[alike[0]]))
            precision = np.linalg.inv(covariance[np.ix_(known, known)])
            mixture = log_shares, means[:, known], precision
            for batch in gen_batches(len(alike), max(1, _AT_ONCE // len(means))):
                rows = alike[batch]
                cells = np.ix_(rows, known)
                yield rows, known, z[cells], slopes[cells], mixture


def _without_far_values(X):
    """Returns X with values far outside of a column's quartiles moved towards them."""
    low, high = np.nanpercentile(X, (25.0, 75.0), 0)
    reach = np.where(high > low, _REACH * (high - low), np.inf)
    return np.clip(X, low - reach, high + reach)


def _mixture(model):
    """Returns log-shares (S,), means (S, V) and the covariance (V, V) of p(z).

    There is a normal distribution for each state of the binary hidden units. Given it,
    Gaussian ones lessen the precision of z by `W_g diag(1 / precision_g) W_g'`.
    """
    potentials = precise_potentials(model)
    visible, kernel = potentials.visible, potentials.kernel.numpy()
    binary, factors = (part for part in potentials.hidden.parts)
    states = np.arange(2**binary.num_units)
    states = np.float64(digits_of(states, np.full(binary.num_units, 2)))
    coupling, loadings = np.split(kernel, [binary.num_units], 1)
    shares = loadings / factors.precision.numpy()
    covariance = np.linalg.inv(np.diag(visible.precision) - shares @ loadings.T)
    bias = visible.bias.numpy() + shares @ factors.bias.numpy()
    natural = bias + states @ coupling.T
    means = natural @ covariance
    log_weights = states @ binary.bias.numpy() + 0.5 * np.sum(natural * means, 1)
    shift, scale = visible.shift.numpy(), visible.scale.numpy()
    covariance *= np.outer(scale, scale)
    return log_softmax(log_weights), shift + scale * means, covariance
