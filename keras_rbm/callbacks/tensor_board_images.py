"""Pictures of the model, for TensorBoard."""

import os
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_rbm._checks import check_counts
from keras_rbm._images import checked_image_shape, image_grid
from keras_rbm._optional_imports import import_optional
from keras_rbm.callbacks.checks import check_generative

#: Only the first filters are shown.
_MOST_UNITS = 100


class TensorBoardImages(keras.callbacks.Callback):
    """Writes images of the filters and of samples for TensorBoard.

    `filters` shows the columns of the kernel (red positive, blue negative, white
    zero), `samples` the expected visible states of Gibbs chains. Needs the package
    `tensorboard`: `pip install keras-rbm[tensorboard]`.

    Args:
        log_dir: str or path, as for `keras.callbacks.TensorBoard`; the images go to
            its subfolder `images`.
        every: int ≥ 1, epochs from one set of images to the next.
        num_samples: int ≥ 1, number of chains.
        steps: int ≥ 0, sweeps of each chain; chains start again for each image.
        image_shape: `(height, width)`, or `None` for square images.

    Raises:
        ImportError: if `tensorboard` is not installed.
        ValueError: if a count is out of range; when training begins, if the visible
            units do not form an image of the given shape.

    Example:
    ```python
    images = keras_rbm.callbacks.TensorBoardImages("logs", every=5)
    rbm.fit(train, epochs=20, callbacks=[images])
    # tensorboard --logdir logs
    ```
    """

    def __init__(
        self,
        log_dir: str | os.PathLike,
        every: int = 1,
        num_samples: int = 64,
        steps: int = 1000,
        image_shape: tuple[int, int] | None = None,
    ) -> None:
        super().__init__()
        import_optional("tensorboard", "writes the images", "tensorboard")
        check_counts(1, every=every, num_samples=num_samples)
        check_counts(0, steps=steps)
        self.log_dir = str(log_dir)
        self.every = every
        self.num_samples = num_samples
        self.steps = steps
        self.image_shape = image_shape
        self._writer: tf.summary.SummaryWriter | None = None

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        model = self.model
        check_generative(self, model)
        width, rows = model._visible_width, model.kernel.shape[0]
        if rows != width:
            raise ValueError(
                "Expected visible units that are one number each, as the pixels of an "
                f"image. Received: {model.visible!r}, with {rows} rows of the kernel "
                f"for {width} units. Leave TensorBoardImages out."
            )
        checked_image_shape(self.image_shape, width)
        self._writer = tf.summary.create_file_writer(f"{self.log_dir}/images")

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if (epoch + 1) % self.every:
            return
        filters, samples = self._filters(), self._samples()
        with self._writer.as_default():
            tf.summary.image("filters", filters[np.newaxis], step=epoch)
            tf.summary.image("samples", samples[np.newaxis], step=epoch)

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        self._writer.close()

    def _filters(self):
        count = min(_MOST_UNITS, np.ravel(self.model.hidden_units)[0])
        weights = np.asarray(self.model.kernel, np.float32).T[:count]
        grid = image_grid(weights, self.image_shape)
        return _red_and_blue(grid / max(np.nanmax(np.abs(grid)), 1e-12))

    def _samples(self):
        # A separate seed: sampling must not advance the model's generator.
        states = self.model.sample(self.num_samples, steps=self.steps, seed=0)
        states = self.model.reconstruct(states).numpy()
        low, high = 0.0, 1.0
        if states.min() < low or states.max() > high:
            low, high = states.min(), states.max()
        states = (states - low) / max(high - low, 1e-12)
        grid = image_grid(states, self.image_shape)
        return np.nan_to_num(grid, nan=0.5)[..., np.newaxis]


def _red_and_blue(values):
    """Returns RGB in [0, 1] for values from -1, blue, to 1, red; 0 white, NaN gray."""
    positive, negative = np.maximum(values, 0.0), np.maximum(-values, 0.0)
    colors = np.stack([1.0 - negative, 1.0 - positive - negative, 1.0 - positive], -1)
    return np.nan_to_num(colors, nan=0.7).astype(np.float32)
