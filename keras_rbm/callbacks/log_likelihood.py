"""The log-likelihood during training."""

import warnings
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike

from keras_rbm import inference
from keras_rbm._checks import check_counts
from keras_rbm.callbacks.checks import check_generative
from keras_rbm.inference.log_partition import check_method
from keras_rbm.models.data.row_checks import values_of, warn_of_means
from keras_rbm.models.data.rows import held_rows, map_rows
from keras_rbm.random import as_seed

#: Temperatures of annealing, at first and where these are too few.
_BETAS = 200, 1000
#: Estimates from one search for the model's mass to the next.
_SEARCH_EVERY = 10
#: Nats by which the likelihood may move from what a search has found, before another.
_MOVED = 1.0


class LogLikelihood(keras.callbacks.Callback):
    """Logs an estimate of the mean log-likelihood.

    `log_likelihood = mean_n -F(v_n) - log Z`, in nats per example, with log Z by
    annealing. `log_likelihood_lower` and `log_likelihood_upper` are the ends of the
    interval that follows from that of log Z. An infinite end means that the error is
    unknown: use more `betas`, or at least ten chains. For a deep model the value is
    that of `log_likelihood_bound`, which is lower by the error of mean field.

    The first estimate of a `fit`, the last and each tenth search for the model's mass;
    the others begin where the last search ended, with its states moved along, and
    search only if their interval is infinite, or the value more than a nat away from
    what the last search has found. So while a model changes little, an estimate by
    annealing takes a tenth of the time of `log_partition`; mass that arises elsewhere
    meanwhile may be missed until the next search. Other methods take as long as there,
    and `"bethe"` and `"mean_field"` have no interval.

    The keys are written only in epochs `every`, `2 * every`, …. `History` keeps the
    values that exist. `keras.callbacks.CSVLogger` fixes its columns in the first epoch
    and needs `every=1`, as does
    `EarlyStopping(monitor="log_likelihood", mode="max", ...)`.

    Args:
        data: array (N, V) or `tf.data.Dataset`, usually validation examples. Read
            once, when the callback is created.
        every: int ≥ 1, epochs from one estimate to the next.
        num_chains: int ≥ 2, number of annealed chains.
        betas: int or a sequence, see `keras_rbm.inference.temperatures`; by default 200
            for annealing, and 1000 where the interval is infinite with these. The error
            falls as one over its root.
        seed: int, the same for every estimate, so differences between estimates come
            from the model rather than the sampler.
        name: str, first part of the keys, e.g. `"val_log_likelihood"`.
        method: str, see `log_partition`; by default annealing in both directions,
            whose interval is open less often than that of `"ais"`.

    Raises:
        TypeError: if the data are neither an array of numbers nor a dataset.
        ValueError: if a count or `betas` is out of range or `name` is empty; when
            training begins, if the data cannot be states of the model's visible
            units, or the method does not suit these.

    Example:

    >>> data = np.random.default_rng(0).integers(0, 2, (60, 9)).astype("float32")
    >>> rbm = keras_rbm.RBM(4, seed=0)
    >>> rbm.compile(keras.optimizers.SGD(0.1))
    >>> score = keras_rbm.callbacks.LogLikelihood(data[30:], every=2, betas=100)
    >>> history = rbm.fit(data[:30], epochs=4, callbacks=[score], verbose=0)
    >>> len(history.history["log_likelihood"])
    2
    """

    def __init__(
        self,
        data: ArrayLike | tf.data.Dataset,
        every: int = 1,
        num_chains: int = 100,
        betas: ArrayLike | None = None,
        seed: int = 0,
        name: str = "log_likelihood",
        method: str = "bidirectional",
    ) -> None:
        super().__init__()
        check_counts(1, every=every)
        check_counts(2, num_chains=num_chains)
        if betas is not None:
            inference.temperatures(betas)
        if method not in inference.METHODS:
            raise ValueError(
                f"Expected method one of {inference.METHODS}. Received: {method!r}."
            )
        if not isinstance(name, str) or not name:
            raise ValueError(
                f"Expected a str, the first part of the logs' keys. Received: "
                f"name={name!r}."
            )
        as_seed(seed)
        self.data = held_rows(data)
        self.every = every
        self.num_chains = num_chains
        self.betas = betas
        self.seed = seed
        self.name = name
        self.method = method
        self._start: inference.StartingPoint | None = None
        self._estimates = 0
        self._told = False
        self._searched = np.nan

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        self.data = check_generative(self, self.model, self.data, "data")
        unit = self.model.visible
        warn_of_means(values_of(self.data, unit), unit, "data")
        check_method(self.model.potentials(), self.method)
        self._start, self._estimates, self._told = None, 0, False

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if (epoch + 1) % self.every or logs is None:
            return
        energies = map_rows(self.model._energies, self.data)
        score = -float(tf.reduce_mean(tf.cast(energies, tf.float64)))
        is_last = epoch + 1 == self.params.get("epochs")
        log_partition = self._log_partition(score, is_last)
        logs[self.name] = score - float(log_partition.value)
        logs[f"{self.name}_lower"] = score - float(log_partition.upper)
        logs[f"{self.name}_upper"] = score - float(log_partition.lower)

    def _log_partition(self, score, is_last):
        """Returns log Z of the model, of whose data the mean of -F is `score`."""
        options = {"num_chains": self.num_chains, "seed": self.seed}
        if not hasattr(inference.Annealing, self.method):
            return self.model.log_partition(self.method, betas=self.betas, **options)
        searches = is_last or self._estimates % _SEARCH_EVERY == 0
        self._estimates += 1
        betas = _BETAS if self.betas is None else (self.betas,)
        tries: list[tuple[Any, Any]] = [(None, count) for count in betas]
        if not searches:
            tries.insert(0, (self._start, betas[0]))
        for start, count in tries:
            annealing = self.model.anneal(start=start, betas=count, **options)
            result = getattr(annealing, self.method)
            found = score - float(result.value)
            if start is None:
                self._searched = found
            elif not abs(found - self._searched) <= _MOVED:
                continue
            if np.all(result.is_finite):
                break
        else:
            if not self._told:
                warnings.warn(f"log Z by {self.method!r}: {result.note}", stacklevel=2)
            self._told = True
        self._start = annealing.start
        return result
