"""Going on after a backup that was interrupted while writing."""

import warnings

import keras


class ResumeCheck(keras.callbacks.Callback):
    """Mends a backup whose weights are one epoch ahead of its epoch count.

    `BackupAndRestore` writes the weights, then the epoch. Killed in between, it
    would train one epoch twice; the optimizer's iterations tell.
    """

    def __init__(self, iterations, initial_epoch):
        super().__init__()
        self.iterations = iterations
        self.initial_epoch = initial_epoch

    def on_train_begin(self, logs=None):
        model = self.model
        restored = getattr(model, "_initial_epoch", None)
        steps = self.params.get("steps")
        iterations = int(model.optimizer.iterations.numpy()) - self.iterations
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
