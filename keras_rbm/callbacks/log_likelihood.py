"""The log-likelihood during training."""

import warnings
from typing import Any

import keras
import tensorflow as tf
from numpy.typing import ArrayLike

from keras_rbm._checks import check_counts
from keras_rbm.callbacks.checks import check_generative
from keras_rbm.inference.log_partition import METHODS, check_method
from keras_rbm.models.data.row_checks import values_of, warn_of_means
from keras_rbm.models.data.rows import held_rows, map_rows
from keras_rbm.random import as_seed


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
        if method not in METHODS:
            raise ValueError(f"Expected method one of {METHODS}. Received: {method!r}.")
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
        energies = map_rows(self.model._energies, self.data)
        score = -float(tf.reduce_mean(tf.cast(energies, tf.float64)))
        log_partition = self._log_partition()
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
