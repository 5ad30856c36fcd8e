"""Overfitting, measured without the partition function."""

from typing import Any

import keras
import tensorflow as tf
from numpy.typing import ArrayLike

from keras_rbm._checks import check_counts
from keras_rbm.callbacks.checks import check_generative
from keras_rbm.models.data.rows import held_rows, map_rows


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
        energies = map_rows(self.model._energies, rows)
        return float(tf.reduce_mean(tf.cast(energies, tf.float64)))
