"""Callbacks of approximate inference: its sweeps, and how often it converges."""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf
from numpy.typing import ArrayLike

from keras_rbm._checks import is_int
from keras_rbm.inference import Beliefs
from keras_rbm.inference.messages.approximate_inference import IterativeInference
from keras_rbm.models.data.rows import ROWS_AT_ONCE, as_rows, map_rows


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


class BPConvergence(keras.callbacks.Callback):
    """Logs the share of examples for which inference converges.

    `bp_converged = mean_n 1[the beliefs given x_n converged]`, from 0 to 1, after
    every epoch, by the inference that the model learns by (the rule's own, else the
    model's) with its current `max_iterations` and `tolerance`. Figure 4 of [1] shows
    this share. If it drops far, use more sweeps (see `IterationSchedule`) or a lower
    learning rate. Early in training few examples converge, but the model still
    learns.

    Args:
        x: array (N, X) or `tf.data.Dataset`, inputs; a dataset of pairs (x, y) is used
            without y. Read once, when the callback is created.

    Raises:
        TypeError: if x is neither an array of numbers nor a dataset; when training
            begins, if the model has no input or no inference that returns `Beliefs`
            for many examples.
        ValueError: when training begins, if x cannot be the model's input.

    Example:

    >>> x = np.eye(6, dtype="float32")
    >>> crbm = keras_rbm.CRBM(4, inference="sum_product", seed=0)
    >>> crbm.compile("sgd", rule="maximum_likelihood")
    >>> share = keras_rbm.callbacks.BPConvergence(x)
    >>> history = crbm.fit(x, 1.0 - x, epochs=2, callbacks=[share], verbose=0)
    >>> history.history["bp_converged"]
    [1.0, 1.0]

    References:
        1. Ping, Ihler. Belief propagation in conditional RBMs for structured
           prediction. AISTATS 2017.
    """

    def __init__(self, x: ArrayLike | tf.data.Dataset) -> None:
        super().__init__()
        self.x = as_rows(x)

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        model = self.model
        if not getattr(model, "conditional", False):
            raise TypeError(
                "Expected a model with input, whose inference has one result for each "
                f"example, for BPConvergence. Received: {type(model).__name__} "
                f"'{model.name}'. Use it with keras_rbm.CRBM."
            )
        model.form.called.check(self.x)
        rows = self.x[:ROWS_AT_ONCE]
        beliefs = self._beliefs(rows)
        shape = tuple(beliefs.converged.shape) if isinstance(beliefs, Beliefs) else None
        if shape != (rows.shape[0],):
            raise TypeError(
                "Expected inference that returns keras_rbm.inference.Beliefs, with "
                f"converged of shape ({rows.shape[0]},) for as many examples. "
                f"Received: {type(beliefs).__name__}, converged of shape {shape}, "
                f"from {learning_inference(model)!r}."
            )

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if logs is None:
            return
        converged = map_rows(lambda rows: self._beliefs(rows).converged, self.x)
        logs["bp_converged"] = int(tf.math.count_nonzero(converged)) / len(converged)

    def _beliefs(self, rows):
        infer = learning_inference(self.model).given(rows)
        return infer(self.model.potentials(rows), pairwise=None)
