"""The callback that tells a falling rate and a prior how long `fit` is."""

from typing import Any

import keras
from keras import tree

from keras_rbm.models.training.resume import gradients_given
from keras_rbm.optimizers.falling_rate import FallingRate
from keras_rbm.regularizers.normal_prior import NormalPrior


def falling_rate(optimizer: keras.optimizers.Optimizer) -> FallingRate | None:
    """Returns the `FallingRate` of an optimizer, or `None` if it has another rate."""
    rate = _rate_or_schedule(optimizer)
    return rate if isinstance(rate, FallingRate) else None


def _rate_or_schedule(optimizer):
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)
    return optimizer._learning_rate  # Keras' property returns its present value


def check_rate_is_free(optimizer: keras.optimizers.Optimizer, callbacks: Any) -> None:
    """Raises a ValueError if a callback sets a rate that follows a schedule.

    Keras raises a TypeError, too, but not before the callback acts.

    Args:
        optimizer: Keras optimizer.
        callbacks: callbacks as `fit` takes them.
    """
    schedule = _rate_or_schedule(optimizer)
    setters = keras.callbacks.ReduceLROnPlateau, keras.callbacks.LearningRateScheduler
    given = [each for each in tree.flatten(callbacks) if isinstance(each, setters)]
    if given and isinstance(schedule, keras.optimizers.schedules.LearningRateSchedule):
        raise ValueError(
            f"Expected an optimizer whose learning rate {type(given[0]).__name__} can "
            f"set. Received: a rate that follows {type(schedule).__name__}, as that of "
            "the default optimizer does. Leave the callback out, or pass an optimizer "
            "with a number, such as compile(keras.optimizers.Adam(0.01))."
        )


class FitLength(keras.callbacks.Callback):
    """Tells a `FallingRate` and a `NormalPrior`, if there are any, how long `fit` is.

    The rate follows from the number of the first epoch, so a resumed run has the same
    rates. The rows of a pipeline are the batches of an epoch times those of the first.

    Args:
        epochs: int, the last epoch of `fit`.
        size: int, rows of the first batch.
        rows: int or `None`, those of an array whose weight is not 0.
    """

    def __init__(self, epochs: int, size: int, rows: int | None = None) -> None:
        super().__init__()
        self._epochs, self._size = epochs, size
        self._rows: float | None = rows  # `None` if not known yet
        self._falls = False

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._given = gradients_given(self.model.optimizer)
        steps = self.params.get("steps")
        if self._rows is None and steps:
            self._rows = steps * self._size
        self._count()
        rate = falling_rate(self.model.optimizer)
        if rate is None or self._falls:
            return
        if not steps:
            rate.hold(1.0 - epoch / self._epochs)
            return
        updates = steps * self.model.rule.inner_steps
        rate.fall(self._given - epoch * updates, self._epochs * updates)
        self._falls = True

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if self._rows is None:
            updates = gradients_given(self.model.optimizer) - self._given
            self._rows = self._size * updates / self.model.rule.inner_steps
            self._count()

    def end(self, model: keras.Model) -> None:
        """Ends the fall and the counting, also of a `fit` that an error has ended."""
        rate = falling_rate(model.optimizer)
        if rate is not None:
            rate.hold()
        for prior in _priors(model):
            prior.rest()

    def _count(self):
        """Tells priors the rows."""
        for prior in _priors(self.model):
            prior.count(self._rows)


def _priors(model):
    for variable in model.trainable_variables:
        prior = getattr(variable, "regularizer", None)
        if isinstance(prior, NormalPrior):
            yield prior
