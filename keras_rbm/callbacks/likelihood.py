"""Callbacks that score data: the free energy gap, and log-likelihood with log Z."""

import warnings
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from keras_rbm._checks import check_counts
from keras_rbm.inference.log_partition import check_method
from keras_rbm.models.data.row_checks import values_of, warn_of_means
from keras_rbm.models.data.rows import held_rows
from keras_rbm.models.generative_model import GenerativeModel, energies_of
from keras_rbm.models.scores import log_mass
from keras_rbm.random import as_seed


def check_generative(callback, model, rows=None, name="x"):
    """Returns rows, if any; raises an error unless they are states of a model of p(v).

    Of sparse rows what is not stored is what the model takes it for.
    """
    if not isinstance(model, GenerativeModel) or model.log_partition is None:
        raise TypeError(
            f"Expected a model of p(v) for {type(callback).__name__}, an RBM, "
            f"InfiniteRBM or DBM. Received: {type(model).__name__} '{model.name}'. "
            "Watch its loss and metrics."
        )
    return None if rows is None else model.form.states(rows, name)


class FreeEnergyGap(keras.callbacks.Callback):
    """Logs `free_energy_gap` [1].

    `gap = mean F(validation) - mean F(train) = mean log p(train) - mean
    log p(validation)`, in nats: log Z cancels, so the gap is exact and cheap. It
    stays near 0 while the model generalizes and grows as the model overfits. If one
    of the sets is easier than the other, look only at how the gap changes. For a deep
    model F is its upper bound `variational_free_energy`, and the gap an estimate.

    The gap measures overfitting, not how good the model is: an untrained model has
    gap 0. To stop at the best model, monitor `LogLikelihood`. If the rule logs
    `log_partition`, as `FrankWolfe` does, the callback also logs
    `validation_log_likelihood = mean -F(validation) - log Z`, which is as reliable as
    that estimate of log Z. `EarlyStopping("validation_log_likelihood", mode="max",
    ...)` may follow in the list of callbacks.

    Args:
        train: array (N, V) or `tf.data.Dataset`, training examples, about as many
            as in `validation`. Read once, when the callback is created. Binarize
            grayscale images for binary units, as for training.
        validation: array (M, V) or `tf.data.Dataset`, examples of the same kind
            that are not trained on.
        every: int ≥ 1, epochs from one gap to the next.

    Raises:
        TypeError: if the data are neither an array of numbers nor a dataset; when
            training begins, if the model has no energy of v only.
        ValueError: if `every` is not an int ≥ 1; when training begins, if the data
            cannot be states of the model's visible units.

    Example:

    >>> data = np.random.default_rng(0).integers(0, 2, (60, 9)).astype("float32")
    >>> rbm = keras_rbm.RBM(4, seed=0)
    >>> rbm.compile(keras.optimizers.SGD(0.1))
    >>> gap = keras_rbm.callbacks.FreeEnergyGap(data[:30], data[30:])
    >>> history = rbm.fit(data[:30], epochs=3, callbacks=[gap], verbose=0)
    >>> len(history.history["free_energy_gap"])
    3

    References:
        1. Hinton. A practical guide to training restricted Boltzmann machines,
           section 6. 2010.
    """

    def __init__(
        self,
        train: ArrayLike | tf.data.Dataset,
        validation: ArrayLike | tf.data.Dataset,
        every: int = 1,
    ) -> None:
        super().__init__()
        check_counts(1, every=every)
        self.train = held_rows(train)
        self.validation = held_rows(validation)
        self.every = every

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        for name in ("train", "validation"):
            rows = check_generative(self, self.model, getattr(self, name), name)
            setattr(self, name, rows)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if (epoch + 1) % self.every or logs is None:
            return
        validation = self._mean_free_energy(self.validation)
        gap = validation - self._mean_free_energy(self.train)
        logs["free_energy_gap"] = gap
        if "log_partition" in logs:
            score = -validation - float(logs["log_partition"])
            logs["validation_log_likelihood"] = score

    def _mean_free_energy(self, rows):
        energies = energies_of(self.model, rows)
        return float(tf.reduce_mean(tf.cast(energies, tf.float64)))


class LogLikelihood(keras.callbacks.Callback):
    """Logs an estimate of the mean log-likelihood.

    `log_likelihood = mean_n -F(v_n) - log Z`, in nats per example, with log Z by
    annealing. `log_likelihood_lower` and `log_likelihood_upper` are the ends of the
    interval that follows from that of log Z. An infinite end means that the error is
    unknown: use at least ten chains. For a deep model the value is
    that of `log_likelihood_bound`, which is lower by the error of mean field.

    An estimate takes as long as `log_partition`: for a large model about as long as an
    epoch, or longer. Each searches for the model's mass, because in one epoch it may
    move to where no data are. `"bethe"` and `"mean_field"` have no interval.

    The keys are written only in epochs `every`, `2 * every`, …. `History` keeps the
    values that exist. `keras.callbacks.CSVLogger` fixes its columns in the first epoch
    and needs `every=1`, as does
    `EarlyStopping(monitor="log_likelihood", mode="max", ...)`.

    Args:
        data: array (N, V) or `tf.data.Dataset`, usually validation examples. Read
            once, when the callback is created.
        every: int ≥ 1, epochs from one estimate to the next.
        num_chains: int ≥ 2, number of annealed chains.
        precision: float > 0, nats, see `log_partition`.
        seed: int, the same for every estimate, so differences between estimates come
            from the model rather than the sampler.
        name: str, first part of the keys, e.g. `"val_log_likelihood"`.
        method: str, see `log_partition`; by default annealing in both directions,
            whose interval is open less often than that of `"ais"`.

    Raises:
        TypeError: if the data are neither an array of numbers nor a dataset.
        ValueError: if a count is out of range or `name` is empty; when
            training begins, if the data cannot be states of the model's visible
            units, or the method does not suit these.

    Example:

    >>> data = np.random.default_rng(0).integers(0, 2, (60, 9)).astype("float32")
    >>> rbm = keras_rbm.RBM(4, seed=0)
    >>> rbm.compile(keras.optimizers.SGD(0.1))
    >>> score = keras_rbm.callbacks.LogLikelihood(data[30:], every=2)
    >>> history = rbm.fit(data[:30], epochs=4, callbacks=[score], verbose=0)
    >>> len(history.history["log_likelihood"])
    2
    """

    def __init__(
        self,
        data: ArrayLike | tf.data.Dataset,
        every: int = 1,
        num_chains: int = 100,
        precision: float | None = None,
        seed: int = 0,
        name: str = "log_likelihood",
        method: str = "bidirectional",
    ) -> None:
        super().__init__()
        check_counts(1, every=every)
        check_counts(2, num_chains=num_chains)
        if not isinstance(name, str) or not name:
            raise ValueError(
                f"Expected a str, the first part of the logs' keys. Received: "
                f"name={name!r}."
            )
        as_seed(seed)
        self.data = held_rows(data)
        self.every = every
        self.num_chains = num_chains
        self.precision = precision
        self.seed = seed
        self.name = name
        self.method = method
        self._told = False

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        self.data = check_generative(self, self.model, self.data, "data")
        unit = self.model.visible
        warn_of_means(values_of(self.data, unit), unit, "data")
        check_method(self.model.potentials(), self.method)
        self._told = False

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if (epoch + 1) % self.every or logs is None:
            return
        energies = energies_of(self.model, self.data)
        score = -float(tf.reduce_mean(tf.cast(energies, tf.float64)))
        log_partition = self._log_partition()
        if logsumexp(-np.float64(energies)) > float(log_partition.lower):
            least = log_mass(self.model, self.data, energies)
            log_partition = log_partition.at_least(least)
        logs[self.name] = score - float(log_partition.value)
        logs[f"{self.name}_lower"] = score - float(log_partition.upper)
        logs[f"{self.name}_upper"] = score - float(log_partition.lower)

    def _log_partition(self):
        options = {"num_chains": self.num_chains, "precision": self.precision}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            result = self.model.log_partition(self.method, seed=self.seed, **options)
        if caught and not self._told:
            warnings.warn(str(caught[0].message), stacklevel=2)
            self._told = True
        return result
