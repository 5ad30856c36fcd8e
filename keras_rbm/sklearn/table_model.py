"""An RBM of a data frame with columns of several kinds."""

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted

from keras_rbm._checks import check_counts
from keras_rbm.inference.pseudo_likelihood import conditional_log_probabilities
from keras_rbm.models import RBM
from keras_rbm.models.data.rows import map_rows, some_rows
from keras_rbm.models.layer_variables import fingerprint
from keras_rbm.models.missing import check_filling
from keras_rbm.models.training.defaults import new_rule
from keras_rbm.rules import ParallelTempering
from keras_rbm.sklearn.fitting import optimizer_with_rate, seed_from
from keras_rbm.tables.table import Table, filled

#: Added to the bias of states that a condition excludes.
_NEVER = -1e4
#: Least and most hidden units by default.
_UNITS = 8, 64
#: Most rows of `fit` that say how much cells surprise.
_JUDGED = 2000
#: Rows for each state of which hidden units are summed at once.
_AT_ONCE = 500


class TableModel(DensityMixin, BaseEstimator):
    """One density over the columns of a data frame: samples, gaps, scores, causes.

    Numbers, words, dates and gaps become states of `keras_rbm.tables.Table`, of which a
    `keras_rbm.RBM` learns the joint distribution. So any columns can be given, and any
    others asked for.

    Args:
        n_components: int ≥ 1, hidden units, H, or `None` for √N of N rows, 8 to 64.
        kinds: dict or `None`, as for `keras_rbm.tables.Table`.
        rule, optimizer, learning_rate, verbose, random_state: as for `RBMEstimator`.
        batch_size: int ≥ 1.
        n_iter: int ≥ 1, epochs.
        log_partition: str, as for `RBMEstimator`.

    Attributes:
        table_: `keras_rbm.tables.Table`, what the columns are.
        model_: `keras_rbm.RBM`, the fitted model.
        history_: dict of lists, the Keras logs of `fit`, by epoch.
        feature_names_in_, n_features_in_: the columns, and their number.

    Raises:
        TypeError, ValueError: from `fit`, as from `keras_rbm.tables.Table.fit`.

    Example:

    >>> import pandas
    >>> from keras_rbm.sklearn import TableModel
    >>> ages = np.random.default_rng(0).integers(18, 90, 200)
    >>> frame = pandas.DataFrame({"age": ages, "retired": ages > 65})
    >>> model = TableModel(4, n_iter=5, random_state=0).fit(frame)
    >>> new = model.sample(3, given={"age": (70, 80)}, random_state=0)
    >>> new["age"].between(70, 80).all()
    np.True_
    >>> model.score_samples(frame).shape
    (200,)

    References:
        1. Salakhutdinov, Mnih, Hinton. Restricted Boltzmann machines for collaborative
           filtering. ICML 2007.
    """

    def __init__(
        self,
        n_components=None,
        *,
        kinds=None,
        rule=None,
        optimizer=None,
        learning_rate=None,
        batch_size=64,
        n_iter=60,
        log_partition="auto",
        verbose=0,
        random_state=None,
    ):
        self.n_components = n_components
        self.kinds = kinds
        self.rule = rule
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.n_iter = n_iter
        self.log_partition = log_partition
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X, y=None):
        """Trains a new model.

        Args:
            X: `pandas.DataFrame` (N, columns).
            y: ignored.

        Returns:
            The estimator.
        """
        check_counts(batch_size=self.batch_size, n_iter=self.n_iter)
        table = Table(self.kinds).fit(X)
        count = self.n_components
        if count is None:
            count = int(np.clip(round(np.sqrt(len(X))), *_UNITS))
        check_counts(n_components=count)
        rows = table.transform(X)
        seed = seed_from(self.random_state)
        model = RBM(count, visible=table.visible, missing="latent", seed=seed)
        model.compile(
            optimizer_with_rate(self.optimizer, self.learning_rate),
            rule=ParallelTempering() if self.rule is None else new_rule(self.rule),
        )
        history = model.fit(
            rows, batch_size=self.batch_size, epochs=self.n_iter, verbose=self.verbose
        )
        self.table_, self.model_, self.history_ = table, model, history.history
        self.n_features_in_ = len(X.columns)
        self.feature_names_in_ = np.empty(self.n_features_in_, dtype=object)
        self.feature_names_in_[:] = list(X.columns)
        self._log_partition = None, None
        some = some_rows(np.arange(len(X)), _JUDGED)
        self._typical = self._surprise(X.iloc[some], rows[some]).mean(0)
        return self

    def sample(self, n_samples=1, *, given=None, steps=200, random_state=None):
        """Draws rows by Gibbs chains.

        Args:
            n_samples: int ≥ 1, number of rows, each the end of a chain of its own.
            given: dict or `None`, conditions: from column names to a value, a list of
                levels, (low, high), both included, of numbers and dates, or `None` for
                a gap, see `Table.log_weights`. Other columns are drawn given these.
            steps: int ≥ 1, sweeps of each chain.
            random_state: int, `numpy.random.RandomState` or `None`, by default the
                estimator's.

        Returns:
            `pandas.DataFrame` of the columns and types of `fit`. Cells are those of
            rows of `fit`, or given numbers; rows need not be.

        Raises:
            TypeError, ValueError: if a condition is none, or no row of `fit` meets it.
        """
        check_is_fitted(self)
        check_counts(n_samples=n_samples, steps=steps)
        state = self.random_state if random_state is None else random_state
        seed, model = seed_from(state), self.model_
        if given is not None:
            model = self._restricted(self.table_.log_weights(given))
        rows = model.sample(n_samples, steps=steps, seed=seed).numpy()
        return self.table_.inverse_transform(rows, seed=seed, given=given)

    def impute(self, X, method="mean", *, steps=200, random_state=0):
        """Fills in what is missing, given the rest of its row.

        It is what would be there if nothing were missing: also columns of which most
        values are missing are filled.

        Args:
            X: `pandas.DataFrame` with the columns of `fit`.
            method: `"mean"` (of words the likeliest), `"mode"` (of numbers the middle
                row of the likeliest bin), or `"sample"` (a draw; several give several
                tables).
            steps: int ≥ 1, sweeps of each row's chain, see `RBM.marginals`.
            random_state: int, `numpy.random.RandomState` or `None`, seed of the chains.

        Returns:
            `pandas.DataFrame`, whose known values are unchanged. Means are whole in
            columns of whole types, as `Int64` is.
        """
        check_is_fitted(self)
        check_filling(method)
        rows, seed = self.table_.transform(X, gaps=False), seed_from(random_state)
        model = self._restricted(self.table_.log_weights())
        if method == "sample":
            drawn = model.impute(rows, "sample", steps=steps, seed=seed).numpy()
            return filled(X, self.table_.inverse_transform(drawn, seed=seed))
        means = model.marginals(rows, steps=steps, seed=seed).numpy()
        return filled(X, self.table_.expected(means, method))

    def score_samples(self, X):
        """Computes log p(row) = -F(states) - log Z + sum_i log p(cell_i | state_i).

        Args:
            X: `pandas.DataFrame` with the columns of `fit`. Values beyond its range are
                scored, new words are refused. What is missing in a column that had gaps
                counts as a gap, in others as unknown: rows of which much is unknown are
                estimated, by `RBM.log_likelihood`, if there are more than 14 hidden
                units.

        Returns:
            array (N,), nats: of densities in the units of numbers with fractions and of
            dates, per day; of probabilities for whole numbers, to which others are
            rounded there, and for words.
        """
        check_is_fitted(self)
        rows, density = self.table_.transform(X), self.table_.log_density(X)
        states = self.model_.log_likelihood(rows, self._estimate())
        return np.asarray(states, np.float64) + density.sum(1)

    def score(self, X, y=None):
        """Returns the mean of `score_samples`, nats."""
        return float(np.mean(self.score_samples(X)))

    def explain(self, X):
        """Returns which cells make rows unlikely: log p(cell | all others), compared.

        Args:
            X: `pandas.DataFrame` with the columns of `fit`.

        Returns:
            `pandas.DataFrame` (N, columns), nats: by how much a cell surprises, given
            the rest of its row, more than cells of its column do in the rows of `fit`.
            Large is unlikely. A gap counts as a level, if the column had gaps in `fit`;
            elsewhere it is unknown: 0, and others are given at its likeliest.
        """
        import pandas

        check_is_fitted(self)
        surprise = self._surprise(X, self.table_.transform(X)) - self._typical
        surprise = {
            name: np.where(X[name].isna().to_numpy() & (not column.has_gaps), 0.0, own)
            for (name, column), own in zip(
                self.table_.columns_.items(), surprise.T, strict=True
            )
        }
        frame = pandas.DataFrame(surprise, index=X.index)
        return frame[list(X.columns)].set_axis(X.columns, axis=1)

    def _surprise(self, X, rows):
        """Returns -log p(cell | all others of its row), (N, columns), nats."""
        if np.isnan(rows).any():
            rows = self.model_.impute(rows, "mode").numpy()
        potentials = self.model_.potentials()
        found = map_rows(
            lambda part: conditional_log_probabilities(potentials, part),
            rows,
            rows_at_once=_AT_ONCE,
        )
        surprise, names = -self.table_.log_density(X), [*self.table_.columns_]
        units = [names.index(column.name) for column in self.table_.varying]
        surprise[:, units] -= found.numpy()
        return surprise

    def _estimate(self):
        """Returns log Z of the model's present weights."""
        method = None if self.log_partition == "auto" else self.log_partition
        key = method, fingerprint(self.model_)
        if self._log_partition[0] != key:
            self._log_partition = key, self.model_.log_partition(method)
        return self._log_partition[1]

    def _restricted(self, log_weights):
        """Returns the model given that its states are among some, weighted."""
        model = RBM.from_config(self.model_.get_config())
        model.build((None, len(self.table_.varying)))
        model.set_weights(self.model_.get_weights())
        bias = model.visible_bias + np.maximum(log_weights, _NEVER)
        model.visible_bias.assign(bias)
        return model
