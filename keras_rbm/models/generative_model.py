"""The base class of models of p(v): their base rate, and partition function."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from keras_rbm import inference
from keras_rbm._replicas import all_sum
from keras_rbm.inference.annealing.options import Options
from keras_rbm.inference.arguments import as_floats, check_eager
from keras_rbm.inference.log_partition import log_partitions
from keras_rbm.inference.missing import is_known
from keras_rbm.models.boltzmann_machine import BoltzmannMachine
from keras_rbm.models.data.row_checks import check_weights
from keras_rbm.models.data.rows import (
    Data,
    as_values,
    encoded_chunks,
    is_array,
    map_rows,
    moments,
    weighted_chunks,
)
from keras_rbm.models.layer_variables import (
    check_fingerprint,
    fingerprint,
    visible_parameters,
)
from keras_rbm.models.missing import imputed
from keras_rbm.models.scores import log_mass
from keras_rbm.rules import ParallelTempering

#: Weight of data that no more examples outweigh.
_ADAPTED = 1e30


class GenerativeModel(BoltzmannMachine):
    """A Boltzmann machine without input: a model of p(v).

    A subclass creates the visible units' variables (`visible_bias`, …), calls
    `_add_record`, and implements

    * `_energies(visible)`: F(v), or its upper bound, of float32 states;
    * `_reconstruct(visible)`: expected visible states after one way up and down.

    Attributes:
        base_rate: variable (rows,), not trained: the mean of the data that `adapt` or
            `fit` saw. Annealing and sampling start from it.
    """

    _prior_chains: Callable[..., Any] | None = None  # of an `RBMPrior` around it

    def _add_record(self, start):
        """Creates the record of the data's mean, in the strategy's scope.

        Args:
            start: array (rows,), the units' mean before any data.
        """
        self._start_rate = np.asarray(start, np.float32)
        self.base_rate = self.add_weight(
            name="base_rate",
            shape=self._start_rate.shape,
            initializer=lambda shape, dtype=None: self._start_rate,
            trainable=False,
            aggregation="only_first_replica",
        )
        # The weight of the examples whose mean it is, with `missing` that of each row:
        # `_ADAPTED` if `adapt` has set the mean, which `fit` then does not change.
        self.examples_seen = self.add_weight(
            name="examples_seen",
            shape=(len(start),) if self.gaps.has_gaps else (),
            initializer="zeros",
            trainable=False,
            aggregation="only_first_replica",
        )

    def _record(self, visible, known, weights):
        rows, counted = self.visible.encode(visible), weights
        if known is not None:
            known = self.visible.by_row(tf.cast(known, weights.dtype))
            rows, counted = rows * known, known * weights[:, tf.newaxis]
        total = tf.linalg.matvec(rows, weights, transpose_a=True)
        total, batch = all_sum((total, tf.reduce_sum(counted, 0)))
        batch = tf.where(tf.reduce_all(tf.math.is_finite(total)), batch, 0.0)
        seen = self.examples_seen + batch
        rate = tf.convert_to_tensor(self.base_rate)
        moved = rate + tf.math.divide_no_nan(total - batch * rate, seen)
        self.base_rate.assign(tf.where(batch > 0.0, moved, rate))
        self.examples_seen.assign(seen)

    def _knows_data(self):
        rate = np.asarray(self.base_rate)
        return bool(np.any(self.examples_seen) or np.any(rate != self._start_rate))

    def _copy_record(self, model):
        """Copies another model's record of the data."""
        self.base_rate.assign(model.base_rate)
        shape, seen = tuple(self.examples_seen.shape), np.asarray(model.examples_seen)
        self.examples_seen.assign(np.broadcast_to(seen, shape) if shape else seen.max())

    def _mean_states(self):
        """Returns the mean of the visible layer's encoded states, (rows,)."""
        return tf.cast(self.base_rate, self.variable_dtype)

    def _base_natural(self, potentials):
        """Returns visible natural parameters (V,) of the base-rate model."""
        return potentials.visible.natural_for_mean(self._mean_states())

    def adapt(self, data: Data, sample_weight: ArrayLike | None = None) -> None:
        """Fits the isolated visible units to data, before training.

        Sets the visible bias (for Gaussian units also the precision, or shift and
        scale) so that the model without coupling has the data's mean, the *base
        rate*. Annealed importance sampling starts from it. A later `fit` does not
        change the base rate.

        Args:
            data: array or sparse matrix (N, V), `tf.data.Dataset`,
                `keras.utils.PyDataset` or generator, which is used up.
            sample_weight: optional array (N,) of weights ≥ 0, for arrays. Batches
                `(x, (), sample_weight)` have their own.
        """
        if sample_weight is not None:
            if not is_array(data):
                raise ValueError(
                    "Expected sample_weight only with arrays. Received: sample_weight "
                    f"with {type(data).__name__}. Make its batches (x, (), weight)."
                )
            *_, sample_weight = self.form.arrays(data, None, sample_weight)
        part, width, known = self.form.visible, None, np.array(False)

        def rows():
            nonlocal width, known
            for chunk, weights in weighted_chunks(data, sample_weight, part.fill):
                part.check(chunk, "data")
                check_weights(weights)
                width = chunk.shape[1]
                counts = True if weights is None else np.reshape(weights, (-1, 1)) > 0
                known = known | (np.asarray(is_known(chunk)) & counts).any(0)
                yield from encoded_chunks(self.visible, chunk, weights)
            if width is None:  # an empty dataset or generator
                part.check(tf.zeros((0, part.width or 1)), "data")

        mean, variance = moments(rows(), self.gaps.pooled(self.visible))
        self.gaps.check_columns(np.where(known, 0.0, np.nan)[np.newaxis], "data")
        if not self.built:
            self.build((None, width))
        self._start_at(mean, variance)

    def _start_at(self, mean, variance):
        """Fits the isolated visible units to moments of the encoded data."""
        self.base_rate.assign(mean)
        self.examples_seen.assign(np.full(self.examples_seen.shape, _ADAPTED))
        for name, value in self.visible.fitted(mean, variance).items():
            getattr(self, f"visible_{name}").assign(value)
        if self.learner is not None:
            self.learner.recenter()

    def _prediction(self, features, visible):
        """Returns what compiled metrics compare with v: its reconstruction.

        For categorical units, which have no mean, it is the likeliest categories.
        """
        means = self._reconstruct(visible, features)
        return visible_parameters(self).compared(means)

    def reconstruct(self, x: ArrayLike) -> tf.Tensor:
        """Returns the expected visible state after one way up and down.

        Args:
            x: array or sparse matrix (B, V).

        Returns:
            tensor (B, V), `E[v | h = E[h | v]]`, by the model's inference if it has
            several hidden layers; for categorical units the probabilities, q columns
            per unit.
        """
        self._assert_built("reconstruct")
        return map_rows(self._reconstruct, self.form.states(x))

    def _states_with_gaps(self, x):
        """Returns checked visible states, a float32 array (N, V), with NaN."""
        part = self.form.visible._replace(has_gaps=True)
        values = as_values(x, self.form.visible.fill)
        part.check(values)
        return np.array(values, np.float32)

    def marginals(self, x: ArrayLike, steps: int = 200, seed: int = 0) -> tf.Tensor:
        """Computes the mean of each visible unit given what is known of its row.

        Rows whose unknown units have at most 1024 states together, such as a label,
        are summed: `p(v_i | v_known)` is exact. For others it is estimated by chains
        that keep what is known: by one for real-valued units, by four for others, and
        a warning says so if these differ. With `missing="absent"` unknown units are not
        part of a row's model, and each is asked for by itself: if it were there, given
        the known ones, exactly for units of finitely many states.

        Args:
            x: array or sparse matrix (N, V), states, NaN where not known.
            steps: int ≥ 1, sweeps of a chain; the first fifth does not count.
            seed: int.

        Returns:
            tensor (N, rows), `E[v | v_known]`; for categorical units the probabilities,
            q columns per unit.

        Example:

        >>> rbm = keras_rbm.RBM(4, num_visible=3, seed=0)
        >>> rbm.marginals([[1, 0, np.nan]]).shape
        TensorShape([1, 3])
        """
        self._assert_built("marginals")
        means = self.gaps.means(self, self._states_with_gaps(x), steps, seed)
        return means[:, : int(visible_parameters(self).num_rows)]

    def impute(
        self,
        x: ArrayLike,
        method: str = "mean",
        *,
        steps: int = 200,
        seed: int = 0,
    ) -> tf.Tensor:
        """Fills in what is not known of each row.

        Args:
            x: array or sparse matrix (N, V), states, NaN where not known.
            method: `"mean"`, for categories the likeliest one; `"mode"`, each unit's
                likeliest state; or `"sample"`, a draw from `p(v_unknown | v_known)`.
            steps: int ≥ 1, sweeps of a chain, see `marginals`.
            seed: int.

        Returns:
            tensor (N, V), in which known states are unchanged.

        Raises:
            ValueError: if the method is unknown, or known values are no states.

        Example:

        >>> rbm = keras_rbm.RBM(4, num_visible=3, seed=0)
        >>> rbm.impute([[1, 0, np.nan]], "mode").shape
        TensorShape([1, 3])
        """
        self._assert_built("impute")
        values, units = self._states_with_gaps(x), visible_parameters(self)
        columns, rows = int(units.num_units), int(units.num_rows)
        return imputed(
            units,
            values[:, :columns],
            method,
            lambda: self.gaps.means(self, values, steps, seed)[:, :rows],
            lambda: self.gaps.draws(self, values, steps, seed)[:, :columns],
        )

    def _chains(self, potentials):
        """Returns visible states that chains have reached in training, or `None`."""
        if self._prior_chains is not None:
            return self._prior_chains(potentials)
        built = self.rule is not None and self.rule.built
        return self.rule.visible_chains(potentials) if built else None

    def _ladder(self, base):
        """Returns the `Ladder` that training has made, or `None`."""
        tempered = isinstance(self.rule, ParallelTempering) and self.rule.built
        return self.rule.ladder(base) if tempered and not self._prior_chains else None

    def anneal(
        self,
        *,
        num_chains: int = 100,
        precision: float | None = None,
        seed: int | tf.Tensor = 0,
    ) -> inference.Annealing:
        """Searches for the model's mass, and anneals chains to it and back.

        The properties `ais`, `reverse_ais` and `bidirectional` of the result are what
        `log_partition` estimates by these methods; its `base` and `betas` suit
        `keras_rbm.inference.annealed_log_likelihood`.

        Args:
            num_chains, precision, seed: as for `log_partition`.

        Returns:
            `keras_rbm.inference.Annealing`.
        """
        potentials, options = self._to_estimate("anneal", num_chains, precision, seed)
        return inference.anneal(potentials, **options._asdict())

    def log_partition(
        self,
        method: str | None = None,
        *,
        num_chains: int = 100,
        precision: float | None = None,
        seed: int | tf.Tensor = 0,
        observed: ArrayLike | None = None,
    ) -> inference.LogPartition:
        """Computes or estimates `log Z`, with its error.

        Small models are enumerated, where that takes about a second. A larger one that
        was just trained by parallel tempering, the default rule, has a ladder of chains
        from independent units to itself: some hundred sweeps of them give log Z. Other
        models, and those for which that interval is open or wide, are annealed. The
        search for their mass begins at the mean of the data that `adapt` or `fit` saw,
        at the states of the learning rule's chains, and in other places.

        | method | what it does | its interval is finite if |
        | --- | --- | --- |
        | `None` | `"exact"`, goes on from training's ladder, or `"ais"` | as for that |
        | `"exact"` | enumerates up to 25 units | always: a point |
        | `"ais"` | AIS from searched means | weights behave, no mode was missed |
        | `"bidirectional"` | anneals both ways | the two directions overlap |
        | `"reverse_ais"` | anneals model samples back | weights behave well |
        | `"tempering"` | bridges tempered replicas | they exchange, travel and mix |
        | `"bethe"` | `sum_product`, binary units | never: error not known |
        | `"mean_field"` | a lower bound | never |

        Args:
            method: str or `None`, see above.
            num_chains: int ≥ 2; with fewer than 10 the interval is infinite.
            precision: float > 0, nats. More work is done until the interval is within ±
                this: chains are annealed at 100, 1000 or 10,000 temperatures. By
                default at 100, or at 1000 if it is then not within ± 0.1. Where most
                of the error comes from the states annealed back, more chains help.
            seed: int or integer tensor of shape (2,).
            observed: array (N, V), NaN where a state is not known, or `None`. For each
                row, log Z of the model in which the known states are fixed,
                `log sum exp(-E)` over the others, so that log p of the known states is
                the difference to log Z. It is exact where the unknown ones have at most
                1024 states. With `missing="absent"` it is log Z of the units that are
                not NaN, the row's own model.

        Returns:
            `keras_rbm.inference.LogPartition`, nats; of rows with fields (N,). Where
            chains cannot tell an end of the interval, a warning says what to do.

        Raises:
            ValueError: if the method is unknown, a variable is not finite, the model is
                too large to enumerate, or an argument out of range.
        """
        options = {"num_chains": num_chains, "precision": precision, "seed": seed}
        if observed is not None:
            observed = self._states_with_gaps(observed)
            result = self.gaps.log_partition(self, observed, method, **options)
            return result._replace(fingerprint=fingerprint(self))
        return self._log_partitions([method], **options)[method]

    def _log_partitions(self, methods, num_chains=100, precision=None, seed=0):
        """Returns a dict of method to estimate; they share a search and chains."""
        check_eager(self.name)
        named = "log_partition", num_chains, precision, seed
        potentials, options = self._to_estimate(*named)
        ladder = self._ladder(self._base_natural(potentials))
        estimates = log_partitions(potentials, methods, options, ladder)
        own = fingerprint(self)
        return {m: z._replace(fingerprint=own) for m, z in estimates.items()}

    def _to_estimate(self, caller, num_chains, precision, seed):
        """Returns potentials and `Options`, with what the model knows."""
        self._assert_built(caller)
        potentials = self.potentials(dtype=self.variable_dtype)
        base = self._base_natural(potentials) if self._knows_data() else None
        chains = self._chains(potentials)
        return potentials, Options(num_chains, precision, seed, base, chains)

    def _log_likelihood(self, values, log_partition):
        """Returns -F(v) - log Z, (B,), float64; with a bound of F, a bound of it."""
        if log_partition is None or isinstance(log_partition, str):
            log_partition = self.log_partition(log_partition)
        value = self._log_partition_value(log_partition)
        is_estimate = isinstance(log_partition, inference.LogPartition)
        energies = tf.cast(energies_of(self, values), tf.float64)
        if tf.executing_eagerly() and logsumexp(-energies.numpy()) > float(value):
            least = log_mass(self, values, energies)
            if float(value) < least:
                used = f", and {least:.3f} is used" if is_estimate else ""
                warnings.warn(
                    f"Expected log Z of at least {least:.3f}: these rows alone have "
                    f"that mass. Received: log_partition={float(value):.3f}, with "
                    f"which probabilities add up to more than 1. It is too low{used}: "
                    "compute it anew by log_partition('bidirectional').",
                    stacklevel=3,
                )
                if is_estimate:
                    value = tf.constant(least, tf.float64)
        return -energies - value

    def _log_partition_value(self, log_partition):
        """Returns `log Z`, float64, from the argument of likelihoods.

        Args:
            log_partition: `LogPartition`, a number, the name of a method to compute
                it with, or `None` for its default.

        Raises:
            ValueError: if `log_partition` is anything else.
        """
        if log_partition is None or isinstance(log_partition, str):
            log_partition = self.log_partition(log_partition)
        check_fingerprint(self, log_partition)
        value = getattr(log_partition, "value", log_partition)
        value = as_floats("log_partition", value, dtype=tf.float64)
        finite = not tf.executing_eagerly() or np.all(np.isfinite(value))
        if value.shape.rank != 0 or not finite:
            raise ValueError(
                "Expected log_partition as a LogPartition or one finite number, nats. "
                f"Received: {log_partition!r}. Pass what log_partition() returned."
            )
        return tf.cast(value, tf.float64)


def energies_of(model, values):
    """Returns F(v), or its upper bound, (B,), nats, of checked states of a model."""
    return map_rows(model._energies, values)
