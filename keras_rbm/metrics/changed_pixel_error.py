"""The share of wrong pixels among those that the noise had changed."""

import keras
import tensorflow as tf
from numpy.typing import ArrayLike

from keras_rbm.metrics.pixel_error import PixelError


@keras.saving.register_keras_serializable("keras_rbm")
class ChangedPixelError(PixelError):
    """Share of the changed pixels that are restored wrongly, in percent [1].

    `100 · sum[changed · wrong] / sum[changed]`, with `changed = (x > threshold) !=
    (y_true > threshold)` and `wrong = (y_pred > threshold) != (y_true > threshold)`,
    where sums are over all pixels of all examples since the last reset; 0 if no pixel
    was changed. Returning the input x unchanged gives 100, a perfect restoration 0.

    A metric is not given inputs, so a conditional model passes each batch's x to
    `observe` just before `update_state`.

    Args:
        threshold: float, above which a pixel counts as on.
        name: str, the name in the logs.
        dtype: optional dtype of the computations, by default
            `keras.config.floatx()`.

    Raises:
        ValueError: if the threshold is not a finite number; from `update_state`, if
            `observe` was not called before it or inputs, predictions and targets
            differ in shape.

    Example:

    >>> metric = keras_rbm.metrics.ChangedPixelError()
    >>> noisy, clean = [[1.0, 0.0, 1.0, 0.0]], [[0.0, 1.0, 1.0, 0.0]]
    >>> restored = [[0.2, 0.4, 0.9, 0.7]]
    >>> metric.observe(noisy)
    >>> metric.update_state(clean, restored)
    >>> float(metric.result())
    50.0

    References:
        1. Ping, Ihler. Belief propagation in conditional RBMs for structured
           prediction. AISTATS 2017.
    """

    def __init__(
        self,
        threshold: float = 0.5,
        name: str = "changed_pixel_error",
        dtype: str | None = None,
    ) -> None:
        super().__init__(threshold, name=name, dtype=dtype)
        self._x = None

    def observe(self, x: ArrayLike) -> None:
        """Gives the metric the inputs of the batch that the next update adds.

        Args:
            x: (B, V), the noisy states.
        """
        self._x = x

    def update_state(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> None:
        """Adds the batch whose inputs have been observed.

        Args:
            y_true: (B, V), the clean states.
            y_pred: (B, V), the restored states or their probabilities.
            sample_weight: optional, (B,) for the examples or (B, V) for the pixels.
        """
        # Cleared first, so that no error leaves a traced tensor behind.
        x, self._x = self._x, None
        if x is None:
            raise ValueError(
                "Expected the inputs before the targets. Received: x=None. Outside of "
                "a conditional model call metric.observe(noisy), then "
                "metric.update_state(clean, restored)."
            )
        weight = self.differs_from_target("x", x, y_true)
        if sample_weight is not None:
            sample_weight = self.checked_weights(sample_weight, weight)
            if sample_weight.shape.rank == 1:
                pixels = [1] * (weight.shape.rank - 1)
                sample_weight = tf.reshape(sample_weight, [-1, *pixels])
            weight *= sample_weight
        # A mean weighted by pixels: both sums accumulate over the batches.
        super().update_state(y_true, y_pred, weight)
