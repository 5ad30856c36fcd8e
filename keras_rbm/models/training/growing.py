"""What a growing model remembers of its samples, and prepares in each `fit`."""

import warnings

import keras
import numpy as np
import tensorflow as tf

from keras_rbm.inference.growing.growth import GrowingSamples

#: Standard error of log Z, in nats, from which it is estimated again by annealing.
_LARGEST_ERROR = 0.2


class SampleVariables:
    """The variables of a rule that hold the `GrowingSamples` of its model.

    Args:
        variables: list that `variables_for` has made.
    """

    def __init__(self, variables):
        self.variables = variables

    @staticmethod
    def variables_for(samples):
        """Returns new variables with these values."""
        values = samples._asdict() | {"left_at": tf.zeros(4)}
        return [
            keras.Variable(value, dtype=value.dtype.name, trainable=False, name=name)
            for name, value in values.items()
        ]

    def read(self):
        """Returns the `GrowingSamples`."""
        return GrowingSamples(*map(tf.convert_to_tensor, self.variables[:-1]))

    def assign(self, samples, model):
        """Takes over the `GrowingSamples` of a model."""
        values = *samples, _fingerprint(model)
        for variable, value in zip(self.variables, values, strict=True):
            variable.assign(value)

    def replace(self, **values):
        """Changes some of the values."""
        for variable in self.variables:
            if variable.name in values:
                variable.assign(values[variable.name])

    def belong_to(self, model):
        """Returns whether they are samples of the model as it is now, a bool."""
        *_, started, left_at = self.variables
        same = np.allclose(left_at.numpy(), _fingerprint(model), rtol=1e-5)
        return bool(started.numpy()) and same


def _fingerprint(model):
    """Returns numbers (4,) that reveal a change of the model."""
    squares = [
        tf.reduce_sum(tf.square(variable))
        for variable in (model.kernel, model.visible_bias, model.hidden_bias)
    ]
    return tf.stack([*squares, tf.cast(model._in_use, tf.float32)])


class Growing(keras.callbacks.Callback):
    """Prepares the samples when `fit` begins, and ends it if there is no more room.

    Warns if no unit was added.

    Args:
        samples: `SampleVariables` of the model.
    """

    def __init__(self, samples):
        super().__init__()
        self._samples = samples

    def on_train_begin(self, logs=None):
        model, samples = self.model, self._samples
        self._before = model.hidden_units, int(model.optimizer.iterations)
        known = samples.read().log_partition
        if not samples.belong_to(model):
            samples.replace(started=False)
            known = np.nan
        if not np.isfinite(known) and model.hidden_units:
            self._anneal()

    def on_epoch_end(self, epoch, logs=None):
        model = self.model
        if self._samples.read().log_partition_error > _LARGEST_ERROR:
            self._anneal()
            samples = self._samples.read()
            for name in ("log_partition", "log_partition_error"):
                logs[name] = float(getattr(samples, name))
        if model.is_full:
            model.stop_training = True

    def on_train_end(self, logs=None):
        model, (before, steps) = self.model, self._before
        units = model.hidden_units
        if units == before and int(model.optimizer.iterations) > steps:
            penalty = float(model.rule.penalty(units))
            warnings.warn(
                "Expected units that gain more than their penalty costs. Received: "
                f"none in this fit, with l2={penalty:g}; the model has {units} units. "
                "If it should have more, use a smaller l2=, or a larger num_samples= "
                "if the logs count rejected units.",
                stacklevel=2,
            )

    def _anneal(self):
        """Estimates log Z again, unless the running estimate is as good."""
        samples = self._samples
        z = self.model.log_partition("bidirectional")
        if np.isnan(samples.read().log_partition) or z.stderr < 1.0:
            samples.replace(log_partition=z.value, log_partition_error=z.stderr)
