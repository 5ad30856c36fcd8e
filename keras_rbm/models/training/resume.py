"""Private callbacks that let an interrupted `fit` continue as if never stopped."""

import json
import os
import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

import keras


class FitStart(NamedTuple):
    """Where the last `fit` began.

    Attributes:
        count: the optimizer's `gradients_given`.
        steps: number of batches of an epoch, 0 if unknown.
    """

    count: int = 0
    steps: int = 0


def gradients_given(optimizer: keras.optimizers.Optimizer) -> int:
    """Returns how many gradients an optimizer has been given, an int.

    `optimizer.iterations` counts only the updates, where it accumulates gradients.
    """
    return int(getattr(optimizer, "inner_optimizer", optimizer)._iterations.numpy())


class EpochKey(keras.callbacks.Callback):
    """A number for each epoch that depends only on the model's saved state.

    It is read when the epoch begins: the pipeline that shuffles by it runs beside
    the training steps, and would read `optimizer.iterations` at any time.

    Attributes:
        read: function that returns it. It holds no reference to the model: `tf.data`
            keeps the Python functions it calls, and all they refer to, forever.
    """

    def __init__(self) -> None:
        super().__init__()
        self._value = value = [0]
        self.read = lambda: value[0]

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        seed = int(self.model.seed_generator.state.numpy()[0])
        count = gradients_given(self.model.optimizer)
        self._value[0] = (seed << 31 ^ count) % 2**63


class ResumeCheck(keras.callbacks.Callback):
    """Repairs a backup whose weights and record are not from the same epoch.

    `BackupAndRestore` writes the weights, then the record of the epoch; at the end it
    removes one, then the other. If it was killed in between, epochs would be trained
    twice, or not at all. The optimizer's steps, saved with the weights, tell, unless
    the batches have another size now.
    """

    def __init__(self, initial_epoch: int) -> None:
        super().__init__()
        self.initial_epoch = initial_epoch

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        model = self.model
        restored = getattr(model, "_initial_epoch", None)
        steps = self.params.get("steps")
        start = model._fit_start
        model._fit_start = start._replace(steps=steps or 0)
        if not steps or start.steps not in (0, steps):
            return
        count = gradients_given(model.optimizer) - start.count
        epochs = count / (steps * model.rule.inner_steps)
        recorded = (restored or self.initial_epoch) - self.initial_epoch
        ahead = epochs == recorded + 1
        alone = restored is None and epochs == int(epochs) > 0
        lost = not count and recorded > 0 and model.trainable
        if ahead or alone or lost:
            epochs = int(epochs)
            warnings.warn(
                f"The backup's weights are of epoch {epochs}, its record says "
                f"{recorded}: it was interrupted while writing. Training continues "
                f"after epoch {epochs}.",
                stacklevel=2,
            )
            model._initial_epoch = self.initial_epoch + epochs


def extended(callbacks: Any, *own: keras.callbacks.Callback) -> list[Any]:
    """Returns callbacks, in any form but a CallbackList, with more at the end."""
    if isinstance(callbacks, keras.callbacks.CallbackList):
        raise TypeError(
            "Expected callbacks as a list. Received: a CallbackList. Pass its "
            "callbacks attribute."
        )
    if isinstance(callbacks, keras.callbacks.Callback):
        callbacks = [callbacks]
    callbacks = [] if callbacks is None else callbacks
    if not isinstance(callbacks, Iterable):
        raise TypeError(
            "Expected callbacks as a list. Received: callbacks of type "
            f"{type(callbacks).__name__}."
        )
    callbacks = list(callbacks)
    for callback in callbacks:
        _drop_torn_record(callback)
    return [*callbacks, *own]


def _drop_torn_record(callback):
    """Removes a backup's record that was not written completely; see `ResumeCheck`."""
    # Private, but the only way to the file; Keras would fail with a JSON error.
    path = getattr(callback, "_training_metadata_path", None)
    if path is None or not os.path.exists(path):
        return
    try:
        with open(path) as file:
            json.load(file)["epoch"]
    except (ValueError, TypeError, KeyError):
        os.remove(path)
