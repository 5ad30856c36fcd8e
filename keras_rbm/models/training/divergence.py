"""A warning if training diverges while all numbers are still finite."""

import warnings
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_rbm.inference.potentials import log_conditional
from keras_rbm.models.data.rows import as_rows, moments, some_rows

#: Nats per visible unit by which a loss may exceed that of independent units.
_MARGIN = 5.0
_ROWS = 1000


class Divergence(keras.callbacks.Callback):
    """Warns once if an epoch's loss is far above that of independent units.

    Args:
        visible: states (N, V); some of these are compared.
    """

    def __init__(self, visible: Any) -> None:
        super().__init__()
        self._visible = as_rows(some_rows(visible, _ROWS))
        self._limit = None

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if self._limit is None:
            self._limit = _independent_loss(self.model.visible, self._visible)
            self._limit += _MARGIN * self._visible.shape[1]
        loss = (logs or {}).get("loss", 0.0)
        if loss > self._limit:
            self._limit = np.inf
            rate = float(tf.convert_to_tensor(self.model.optimizer.learning_rate))
            warnings.warn(
                f"Training has diverged: the loss is {loss:.4g} nats in epoch "
                f"{epoch + 1}, more than {_MARGIN:g} per visible unit above that of "
                f"independent units. The learning rate is {rate:g}: use a smaller "
                "one, and start from new weights.",
                stacklevel=2,
            )


def _independent_loss(unit, rows):
    """Returns minus the mean log-likelihood of isolated units fitted to rows."""
    start = {
        name: initializer(unit.shape_of(name, rows.shape[1]))
        for name, (initializer, _) in unit.variables().items()
    }
    fitted = start | unit.fitted(*moments([unit.encode(rows)]))
    values = {k: tf.cast(value, tf.float32) for k, value in fitted.items()}
    parameters = unit.parameters(**values)
    natural = parameters.natural(0.0)
    return -float(tf.reduce_mean(log_conditional(parameters, rows, natural)))
