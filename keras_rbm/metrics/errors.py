"""Metrics of predictions: wrong pixels, wrong states."""

from typing import Any

import keras
import tensorflow as tf
from numpy.typing import ArrayLike

from keras_rbm._checks import check_numbers
from keras_rbm.inference.arguments import as_floats


@keras.saving.register_keras_serializable("keras_rbm")
class PixelError(keras.metrics.Mean):
    """Share of the pixels that are restored wrongly, in percent [1].

    `100 · mean[(y_pred > threshold) != (y_true > threshold)]`, over all pixels of all
    examples.

    Of corrupted images, the share of the changed pixels alone [1] has the pixels that
    the noise has changed as `sample_weight`: an image that is left as it came has 100.

    Args:
        threshold: float, above which a pixel counts as on.
        name: str, the name in the logs.
        dtype: optional dtype of the computations, by default
            `keras.config.floatx()`.

    Raises:
        TypeError, ValueError: if the threshold is not a finite number; from
            `update_state`, if predictions and targets differ in shape.

    Example:

    >>> metric = keras_rbm.metrics.PixelError()
    >>> metric.update_state([[0.0, 1.0, 1.0, 1.0]], [[0.2, 0.7, 0.4, 0.9]])
    >>> float(metric.result())
    25.0

    >>> changed = keras_rbm.metrics.PixelError()
    >>> noisy, clean = np.float32([[1, 0, 1, 0]]), np.float32([[0, 1, 1, 0]])
    >>> changed.update_state(clean, [[0.2, 0.4, 0.9, 0.7]], noisy != clean)
    >>> float(changed.result())
    50.0

    References:
        1. Ping, Ihler. Belief propagation in conditional RBMs for structured
           prediction. AISTATS 2017.
    """

    def __init__(
        self,
        threshold: float = 0.5,
        name: str = "pixel_error",
        dtype: str | None = None,
    ) -> None:
        super().__init__(name=name, dtype=dtype)
        check_numbers(threshold=threshold)
        self.threshold = float(threshold)
        # Keras' only way to say that lower is better; its tuners read it.
        self._direction = "down"

    def update_state(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> None:
        """Adds a batch.

        Args:
            y_true: (B, V), the clean states.
            y_pred: (B, V), the restored states or their probabilities.
            sample_weight: optional, (B,) for the examples or (B, V) for the pixels.
        """
        wrong = self.differs_from_target("y_pred", y_pred, y_true)
        sample_weight = self.checked_weights(sample_weight, wrong)
        super().update_state(100 * wrong, sample_weight)

    def differs_from_target(
        self, name: str, states: ArrayLike, y_true: ArrayLike
    ) -> tf.Tensor:
        """Returns 1 where `states` and `y_true` are on opposite sides of the threshold.

        NaN counts as wrong.

        Args:
            name: str, the name of the states in an error message.
            states: (B, V).
            y_true: (B, V).

        Returns:
            (B, V) of 0 and 1.

        Raises:
            ValueError: if the shapes differ.
        """
        states = as_floats(name, states, dtype=self.dtype)
        y_true = as_floats("y_true", y_true, dtype=self.dtype)
        if not states.shape.is_compatible_with(y_true.shape):
            raise ValueError(
                f"Expected {name} with the shape of y_true. Received: "
                f"{name}.shape={states.shape}, y_true.shape={y_true.shape}. Use this "
                "metric only where both are images of the same pixels."
            )
        on, wanted = states > self.threshold, y_true > self.threshold
        # Not `!=`: if only one batch size is known, its result has no known rank.
        differs = tf.math.logical_xor(on, wanted)
        return tf.cast(differs | tf.math.is_nan(states), self.dtype)

    def checked_weights(
        self, sample_weight: ArrayLike | None, states: tf.Tensor
    ) -> tf.Tensor | None:
        """Returns weights that fit states (B, V) as a tensor, or `None`.

        Raises:
            TypeError, ValueError: if they are not numbers, or do not fit.
        """
        if sample_weight is None:
            return None
        weights = as_floats("sample_weight", sample_weight, dtype=self.dtype)
        fitting = (states.shape[:1], [*states.shape[:1], 1], states.shape, [])
        if not any(weights.shape.is_compatible_with(shape) for shape in fitting):
            raise ValueError(
                "Expected sample_weight of shape (B,) for the examples or (B, V) for "
                f"the pixels. Received: sample_weight.shape={tuple(weights.shape)} for "
                f"states of shape {tuple(states.shape)}."
            )
        return weights

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "threshold": self.threshold}


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
        StateAccuracy(metric)
        if isinstance(metric, str) and metric in ("accuracy", "acc")
        else metric
        for metric in metrics
    ]
