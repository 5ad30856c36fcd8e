"""Warnings of a training that has failed while all numbers are still finite."""

import warnings
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_rbm.models.data.rows import as_rows, moments, some_rows
from keras_rbm.models.training.rate_fall import falling_rate
from keras_rbm.units.bernoulli import are_binary

#: Nats per visible unit by which a loss may exceed that of independent units at once.
_MARGIN = 5.0
#: Nats per unit, and standard errors, by which it may exceed it at the end.
_LAST_MARGIN, _ERRORS = 0.01, 4.0
#: Largest share of constant hidden units; probabilities of on of those that are not.
_LARGEST_SHARE, _OFF, _ON = 0.1, 0.01, 0.99
#: Rows that are compared, at most and at least.
_ROWS, _FEWEST = 1000, 100


class Diagnosis(keras.callbacks.Callback):
    """Warns if `fit` has left a model no better than independent units.

    * If an epoch's loss is far above that of independent units: it diverges.
    * If the last epoch's loss is above it by more than its error; this needs an array
      of at least a hundred rows, of which a sample can be drawn.
    * If more than a tenth of the binary hidden units of an RBM are always off or always
      on in those rows, so that they only shift biases.

    Each warning is given once for a model that has been compiled.
    """

    def __init__(self) -> None:
        super().__init__()
        self._told: set[str] = set()
        self._rows: Any = None
        self._independent: Any = None

    def begin(self, visible: Any, is_all: bool) -> "Diagnosis":
        """Takes the states (N, V) that `fit` begins with; returns itself.

        Args:
            visible: array (N, V).
            is_all: bool, whether these are all the data, not the first batches.
        """
        self._count = len(visible) if is_all else 0
        self._rows = as_rows(some_rows(visible, _ROWS))
        self._independent = None
        return self

    def _tell(self, what: str, message: str) -> None:
        if what not in self._told:
            self._told.add(what)
            warnings.warn(message, stacklevel=3)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if self._independent is None:
            self._independent = _independent_losses(self.model.visible, self._rows)
        width = self._rows.shape[1]
        mean = width * np.mean(self._independent)
        self._loss = loss = (logs or {}).get("loss", 0.0)
        if loss > mean + _MARGIN * width:
            falling = falling_rate(self.model.optimizer)
            if falling is None:
                rate = float(tf.convert_to_tensor(self.model.optimizer.learning_rate))
            else:
                rate = falling.initial_learning_rate
            self._told.add("worse")
            self._tell(
                "diverged",
                f"Training has diverged: the loss is {loss:.4g} nats in epoch "
                f"{epoch + 1}, more than {_MARGIN:g} per visible unit above that of "
                f"independent units. The learning rate is {rate:g}: use a "
                "smaller one, and start from new weights.",
            )

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        enough = self._independent is not None and self._count >= _FEWEST
        if enough and not self.model.conditional:
            self._compare()
            self._look_at_units()
        self._rows = self._independent = None

    def _compare(self):
        """Warns of a model worse than independent units."""
        # The loss looks at one unit of each example, V times as heavy.
        width = self._rows.shape[1]
        mean = width * np.mean(self._independent)
        error = width * np.std(self._independent) / np.sqrt(self._count)
        if self._loss > mean + max(_LAST_MARGIN * width, _ERRORS * error):
            self._tell(
                "worse",
                "The model is worse than independent units: a loss of "
                f"{self._loss:.4g} nats, theirs is {mean:.4g}. Use a smaller learning "
                "rate, or none: compile() chooses one. Start from new weights.",
            )

    def _look_at_units(self):
        """Warns of hidden units that do not answer to the data."""
        hidden = self.model.hidden
        features = getattr(self.model, "_features_of_mean", None)
        if features is None or not are_binary(hidden):
            return
        features = np.asarray(features(self.model.visible.encode(self._rows)))
        constant = (features.max(0) < _OFF) | (features.min(0) > _ON)
        number = int(constant.sum())
        if number > _LARGEST_SHARE * len(constant):
            self._tell(
                "constant",
                f"{number} of {len(constant)} hidden units are always off or always on "
                "in the data, and only shift the visible biases. Use the centered "
                "gradient (a rule's default), a smaller learning rate or fewer hidden "
                "units, and start from new weights.",
            )


def _independent_losses(unit, rows):
    """Returns minus log p of each state of isolated units fitted to rows, (B, V)."""
    start = {
        name: initializer(unit.shape_of(name, rows.shape[1]))
        for name, (initializer, _) in unit.variables().items()
    }
    fitted = start | unit.fitted(*moments([unit.encode(rows)]))
    values = {k: tf.cast(value, tf.float32) for k, value in fitted.items()}
    parameters = unit.parameters(**values)
    natural = parameters.natural(0.0)
    own = tf.transpose(natural * parameters.first_of(rows))
    own = tf.math.unsorted_segment_sum(own, parameters.unit_of_row, rows.shape[1])
    each = parameters.base_measure(rows) - parameters.log_partition(natural)
    return -(tf.transpose(own) + each).numpy()
