"""Shares of units, or of whole examples, whose states are predicted."""

from typing import Any

import keras
import tensorflow as tf
from numpy.typing import ArrayLike

from keras_rbm.inference.arguments import as_floats


class _OfStates(keras.metrics.Mean):
    """Base class of means over examples of what is 1 where a state is predicted."""

    def update_state(
        self, y_true: ArrayLike, y_pred: ArrayLike, sample_weight: Any = None
    ) -> None:
        """Adds a batch.

        Args:
            y_true: array (B, V), states.
            y_pred: array (B, V), means or states; or the probabilities (B, q) of one
                unit of q categories.
            sample_weight: array (B,), or `None`.

        Raises:
            ValueError: if predictions and targets differ in shape.
        """
        y_true, y_pred = as_floats("y_true", y_true), as_floats("y_pred", y_pred)
        if y_true.shape[-1:] == [1] and y_pred.shape[-1] != 1:
            y_pred = tf.cast(tf.argmax(y_pred, -1)[..., tf.newaxis], y_true.dtype)
        if not y_true.shape.is_compatible_with(y_pred.shape):
            raise ValueError(
                "Expected y_true and y_pred of one shape. Received: shapes "
                f"{tuple(y_true.shape)} and {tuple(y_pred.shape)}."
            )
        # Means of binary units are rounded; spins differ by 2, categories by 1.
        right = tf.cast(tf.abs(y_true - y_pred) < 0.5, self.dtype)
        super().update_state(self._of_example(right), sample_weight)


@keras.saving.register_keras_serializable("keras_rbm")
class StateAccuracy(_OfStates):
    """Share of the visible units whose state is predicted.

    A mean counts as the state that it is within 1/2 of. `metrics=["accuracy"]` stands
    for it, unless units are real numbers.

    Args:
        name: str, the name in the logs.
        dtype: optional dtype of the computations.

    Example:

    >>> metric = keras_rbm.metrics.StateAccuracy()
    >>> metric.update_state([[0.0, 1.0, 1.0, 1.0]], [[0.2, 0.7, 0.4, 0.9]])
    >>> float(metric.result())
    0.75
    """

    def __init__(self, name: str = "accuracy", dtype: str | None = None) -> None:
        super().__init__(name=name, dtype=dtype)

    def _of_example(self, right):
        return tf.reduce_mean(right, -1)


@keras.saving.register_keras_serializable("keras_rbm")
class ExactMatch(_OfStates):
    """Share of the examples of which all visible units' states are predicted.

    Scikit-learn calls it the subset accuracy of several labels.

    Args:
        name: str, the name in the logs.
        dtype: optional dtype of the computations.

    Example:

    >>> metric = keras_rbm.metrics.ExactMatch()
    >>> metric.update_state([[0.0, 1.0], [1.0, 1.0]], [[0.2, 0.7], [0.4, 0.9]])
    >>> float(metric.result())
    0.5
    """

    def __init__(self, name: str = "exact_match", dtype: str | None = None) -> None:
        super().__init__(name=name, dtype=dtype)

    def _of_example(self, right):
        return tf.reduce_min(right, -1)


def without_names(metrics):
    """Returns metrics with `StateAccuracy` in the place of the name of accuracy.

    Keras would guess what it means, and compare the largest of several labels.
    """
    if not isinstance(metrics, (list, tuple)):
        return metrics
    return [
        StateAccuracy(each)
        if isinstance(each, str) and each in ("accuracy", "acc")
        else each
        for each in metrics
    ]
