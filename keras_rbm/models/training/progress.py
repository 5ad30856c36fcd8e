"""How far `fit` is: the rate, the prior and a resumed run follow it."""

import json
import math
import os
import warnings
from collections.abc import Iterable
from typing import NamedTuple

import keras
from keras import tree

from keras_rbm.optimizers.falling_rate import FallingRate
from keras_rbm.regularizers import NormalPrior, Prior

#: Deviation of the prior of the weights of a CRBM's hidden units, at most, and times
#: the root of the number of outputs. At a third of the former those of a classifier of
#: digits hardly take part; at three times the latter more of 64 restored pixels are
#: wrong.
_STDDEV, _STDDEV_OF_ALL = 3.0, 8.0


class FitState(NamedTuple):
    """What a model remembers of its last `fit`, also in files.

    Attributes:
        count: int, the optimizer's `updates_of` when it began.
        steps: int, batches of an epoch, 0 if unknown.
        rows: float, number of training rows of a weight above 0, 0 if unknown.
        stddev: float, deviation of the prior, 0 if none was chosen.
        hidden_stddev: float, that of the hidden units' weights, likewise.
        feature_stddev: float, that of theirs on features, if it is another.
    """

    count: int = 0
    steps: int = 0
    rows: float = 0.0
    stddev: float = 0.0
    hidden_stddev: float = 0.0
    feature_stddev: float = 0.0


def updates_of(optimizer):
    """Returns how many gradients an optimizer has been given, an int.

    `optimizer.iterations` counts only the updates, where it accumulates gradients.
    """
    return int(getattr(optimizer, "inner_optimizer", optimizer)._iterations.numpy())


def schedule_of(optimizer):
    """Returns the learning rate of an optimizer, or the schedule that it follows."""
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)
    return optimizer._learning_rate  # Keras' property returns its present value


def priors_of(model):
    """Yields the priors of a model's weights."""
    for variable in model.trainable_variables:
        if isinstance(variable.regularizer, Prior):
            yield variable.regularizer


def is_open(model):
    """Returns whether the first `fit` is to choose the deviation of a model's prior."""
    return model._chooses_prior and not model.fit_state.stddev


def set_prior(model, fit_state):
    """Has a model remember a `fit`, and its prior the deviation that was chosen."""
    model.fit_state = fit_state
    if model._chooses_prior:
        stddev = fit_state.stddev or NormalPrior().stddev
        model.kernel_regularizer.stddev = stddev
        if model.built:
            stddev = fit_state.hidden_stddev or hidden_stddev(model.num_visible)
            model.kernel.regularizer.stddev = stddev
            model.hidden_kernel.regularizer.stddev = fit_state.feature_stddev or stddev


def hidden_stddev(outputs):
    """Returns the deviation of the prior of the weights of a CRBM's hidden units.

    A hidden unit adds to each of so many outputs, an int, so that what it adds to all
    of them grows by the root of their number. A label of several classes is one.
    """
    return min(_STDDEV, _STDDEV_OF_ALL / math.sqrt(outputs))


class EpochKey(keras.callbacks.Callback):
    """A number for each epoch that depends only on the model's saved state.

    It is read when the epoch begins: the pipeline that shuffles by it runs beside
    the training steps, and would read `optimizer.iterations` at any time.

    Attributes:
        read: function that returns it. It holds no reference to the model: `tf.data`
            keeps the Python functions it calls, and all they refer to, forever.
    """

    def __init__(self):
        super().__init__()
        self._value = value = [0]
        self.read = lambda: value[0]

    def on_epoch_begin(self, epoch, logs=None):
        seed = int(self.model.seed_generator.state.numpy()[0])
        self._value[0] = (seed << 31 ^ updates_of(self.model.optimizer)) % 2**63


class Progress(keras.callbacks.Callback):
    """Tells a falling rate and a prior how far `fit` is.

    Both follow from the model's saved state and the number of the epoch, so a resumed
    run has the same. The rows of a pipeline are the batches of an epoch times those of
    the first.

    It repairs a backup whose weights and record are not from the same epoch:
    `BackupAndRestore` writes the weights, then the record of the epoch; at the end it
    removes one, then the other. If it was killed in between, epochs would be trained
    twice, or not at all. The optimizer's steps, saved with the weights, tell, unless
    the batches have another size now.

    Args:
        epochs, initial_epoch: ints, as for `fit`.
        size: int, rows of the first batch.
        rows: int or `None`, those of an array whose weight is not 0.
    """

    def __init__(self, epochs, initial_epoch, size, rows):
        super().__init__()
        self._epochs, self._initial_epoch = epochs, initial_epoch
        self._size, self._rows = size, rows

    def begin(self, model):
        """Begins a `fit`, before a backup is restored."""
        model._initial_epoch = None  # of Keras, from an earlier backup
        self._change(model, count=updates_of(model.optimizer), steps=0)

    def on_train_begin(self, logs=None):
        model, steps = self.model, self.params.get("steps") or 0
        before = model.fit_state
        rows = self._rows
        if rows is None:
            rows = steps * self._size or before.rows
        self._change(model, steps=steps, rows=float(rows))
        self._known = self._rows is not None or bool(steps)
        if not steps or before.steps not in (0, steps):
            return
        count = updates_of(model.optimizer) - before.count
        epochs = count / (steps * model.rule.inner_steps)
        restored = model._initial_epoch
        recorded = (restored or self._initial_epoch) - self._initial_epoch
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
            model._initial_epoch = self._initial_epoch + epochs

    def on_epoch_begin(self, epoch, logs=None):
        model = self.model
        count, steps = updates_of(model.optimizer), model.fit_state.steps
        self._before = count
        rate = schedule_of(model.optimizer)
        if isinstance(rate, FallingRate):
            updates = steps * model.rule.inner_steps
            if updates:
                left = (self._epochs - epoch) * updates
                rate.fall(count + left, self._epochs * updates)
            else:
                rate.hold(1.0 - epoch / self._epochs)
        for prior in priors_of(model):
            prior.count(model.fit_state.rows)

    def on_epoch_end(self, epoch, logs=None):
        if not self._known:
            updates = updates_of(self.model.optimizer) - self._before
            rows = self._size * updates / self.model.rule.inner_steps
            self._change(self.model, rows=rows)
            self._known = True

    def end(self, model):
        """Ends a `fit`, also one that an error has ended."""
        rate = schedule_of(model.optimizer)
        if isinstance(rate, FallingRate):
            rate.hold()
        for prior in priors_of(model):
            prior.count(0.0)

    def _change(self, model, **fields):
        model.fit_state = model.fit_state._replace(**fields)


def check_rate_is_free(optimizer, callbacks):
    """Raises a ValueError if a callback sets a rate that follows a schedule.

    Keras raises a TypeError, too, but not before the callback acts.

    Args:
        optimizer: Keras optimizer.
        callbacks: callbacks as `fit` takes them.
    """
    schedule = schedule_of(optimizer)
    setters = keras.callbacks.ReduceLROnPlateau, keras.callbacks.LearningRateScheduler
    given = [c for c in tree.flatten(callbacks) if isinstance(c, setters)]
    if given and isinstance(schedule, keras.optimizers.schedules.LearningRateSchedule):
        raise ValueError(
            f"Expected an optimizer whose learning rate {type(given[0]).__name__} can "
            f"set. Received: a rate that follows {type(schedule).__name__}, as that of "
            "the default optimizer does. Leave the callback out, or pass an optimizer "
            "with a number, such as compile(keras.optimizers.Adam(0.01))."
        )


def extended(callbacks, *own):
    """Returns callbacks, in any form but a CallbackList, with more at the end."""
    if callbacks is None or isinstance(callbacks, keras.callbacks.Callback):
        callbacks = [] if callbacks is None else [callbacks]
    if not isinstance(callbacks, Iterable):  # nor is a CallbackList
        raise TypeError(
            "Expected callbacks as a list. Received: callbacks of type "
            f"{type(callbacks).__name__}."
        )
    callbacks = list(callbacks)
    for callback in callbacks:
        _drop_torn_record(callback)
    return [*callbacks, *own]


def _drop_torn_record(callback):
    """Removes a backup's record that was not written completely; see `Progress`."""
    # Private, but the only way to the file; Keras would fail with a JSON error.
    path = getattr(callback, "_training_metadata_path", None)
    if path is None or not os.path.exists(path):
        return
    try:
        with open(path) as file:
            json.load(file)["epoch"]
    except (ValueError, TypeError, KeyError):
        os.remove(path)
