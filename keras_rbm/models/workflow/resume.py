"""Private callbacks that let an interrupted `fit` go on as if never stopped."""

import warnings

import keras


class EpochKey(keras.callbacks.Callback):
    """A number for each epoch, a function of the model's saved state only.

    It is taken when the epoch begins: the pipeline that shuffles by it runs beside
    the training steps, and would read `optimizer.iterations` at any moment.

    Attributes:
        read: function that returns it. It knows nothing of the model: `tf.data` keeps
            the Python functions it calls, and all they refer to, for good.
    """

    def __init__(self):
        super().__init__()
        self._value = value = [0]
        self.read = lambda: value[0]

    def on_epoch_begin(self, epoch, logs=None):
        seed = int(self.model.seed_generator.state.numpy()[0])
        iterations = int(self.model.optimizer.iterations.numpy())
        self._value[0] = (seed << 31 ^ iterations) % 2**63


class ResumeCheck(keras.callbacks.Callback):
    """Mends a backup whose weights are one epoch ahead of its epoch count.

    `BackupAndRestore` writes the weights, then the epoch. Killed in between, it
    would train one epoch twice; the optimizer's iterations tell.
    """

    def __init__(self, initial_epoch):
        super().__init__()
        self.initial_epoch = initial_epoch

    def on_train_begin(self, logs=None):
        model = self.model
        restored = getattr(model, "_initial_epoch", None)
        steps = self.params.get("steps")
        iterations = int(model.optimizer.iterations.numpy()) - model._fit_start
        if not iterations or not steps:
            return
        epochs = iterations / (steps * model.rule.updates_per_step)
        recorded = (restored or self.initial_epoch) - self.initial_epoch
        if epochs == recorded + 1:
            warnings.warn(
                f"The backup's weights are of epoch {recorded + 1}, its record says "
                f"{recorded}: it was interrupted while writing. Training goes on after "
                f"epoch {recorded + 1}.",
                stacklevel=2,
            )
            model._initial_epoch = self.initial_epoch + recorded + 1


def extended(callbacks, *own):
    """Returns callbacks, in any form that Keras takes but one, with more at the end."""
    if isinstance(callbacks, keras.callbacks.CallbackList):
        raise TypeError(
            "Expected callbacks as a list. Received: a CallbackList. Pass its "
            "callbacks attribute."
        )
    if isinstance(callbacks, keras.callbacks.Callback):
        callbacks = [callbacks]
    return [*(callbacks or []), *own]
