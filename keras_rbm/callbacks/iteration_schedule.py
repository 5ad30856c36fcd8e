"""The number of inference sweeps in each epoch."""

from collections.abc import Callable
from typing import Any

import keras

from keras_rbm._checks import is_int
from keras_rbm.inference.messages.approximate_inference import IterativeInference


class IterationSchedule(keras.callbacks.Callback):
    """Sets the number of inference sweeps at the beginning of each epoch.

    Sets `max_iterations = schedule(epoch)` of the inference that the model learns or
    predicts by: the rule's own, else the model's. Belief propagation takes longer to
    converge as weights grow, so Ping and Ihler use `7 + epoch` sweeps [1, sec. 6].

    The number of sweeps is a variable, so the train step is not traced again. After
    the last epoch it keeps its value and is saved with the model: predictions should
    use as many sweeps as training did. It is logged as `max_iterations`.

    Args:
        schedule: function of the epoch, an int counted from 0, that returns an
            int ≥ 1. A resumed fit continues with the epoch it resumes at.

    Raises:
        TypeError: when training begins, if the model has no iterative inference.
        ValueError: when an epoch begins, if the schedule does not return an int ≥ 1.

    Example:

    >>> x = np.eye(6, dtype="float32")
    >>> crbm = keras_rbm.CRBM(4, inference="sum_product", seed=0)
    >>> crbm.compile("sgd", rule="maximum_likelihood")
    >>> sweeps = keras_rbm.callbacks.IterationSchedule(lambda epoch: 7 + epoch)
    >>> history = crbm.fit(x, 1.0 - x, epochs=3, callbacks=[sweeps], verbose=0)
    >>> history.history["max_iterations"]
    [7, 8, 9]

    References:
        1. Ping, Ihler. Belief propagation in conditional RBMs for structured
           prediction. AISTATS 2017.
    """

    def __init__(self, schedule: Callable[[int], int]) -> None:
        super().__init__()
        self.schedule = schedule
        self._inference: IterativeInference | None = None

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        model = self.model
        self._inference = learning_inference(model)
        if not hasattr(self._inference, "max_iterations"):
            raise TypeError(
                "Expected a model that learns by inference that iterates for "
                f"IterationSchedule. Received: {type(model).__name__} '{model.name}' "
                f"with inference {self._inference!r}. Give it for example "
                "inference='belief_propagation' or 'mean_field', or leave the "
                "callback out."
            )

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        sweeps = self.schedule(epoch)
        if not is_int(sweeps) or sweeps < 1:
            raise ValueError(
                "Expected a schedule that returns an int ≥ 1, the number of sweeps. "
                f"Received: schedule({epoch}) = {sweeps!r}."
            )
        self._inference.max_iterations = int(sweeps)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if logs is not None:
            logs["max_iterations"] = self._inference.max_iterations


def learning_inference(model):
    """Returns the inference that a compiled model learns by, or `None`."""
    rule = getattr(model, "rule", None)
    return getattr(rule, "inference", None) or getattr(model, "inference", None)
