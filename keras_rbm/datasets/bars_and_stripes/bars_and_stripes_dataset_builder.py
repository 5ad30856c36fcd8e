"""Bars and Stripes."""

import numpy as np
import tensorflow_datasets as tfds

from keras_rbm.datasets.image_builder import ImageBuilder

_MAX_SIZE = 12


class Builder(ImageBuilder):
    """TFDS builder of Bars and Stripes; its configs are `size_1` to `size_12`."""

    BUILDER_CONFIGS = [
        tfds.core.BuilderConfig(
            name=f"size_{size}", description=f"Images of {size}x{size} pixels."
        )
        for size in range(1, _MAX_SIZE + 1)
    ]
    DEFAULT_BUILDER_CONFIG_NAME = "size_3"

    @classmethod
    def make_config(cls, size=3):
        """Returns the config of images with `size` x `size` pixels."""
        # Every pattern is written out, so the number of rows doubles with each pixel.
        if size not in range(1, _MAX_SIZE + 1):
            raise ValueError(
                f"Expected a size from 1 to {_MAX_SIZE}. Received: size={size!r}. "
                "Pass the number of bars as an int."
            )
        return cls.BUILDER_CONFIGS[int(size) - 1]

    @property
    def _size(self):
        return int(self.builder_config.name.removeprefix("size_"))

    @property
    def image(self):
        return tfds.features.Image(shape=(self._size, self._size, 1))

    def _generate_examples(self):
        size = self._size
        bits = np.arange(2**size)[:, np.newaxis] >> np.arange(size) & 1
        stripes = np.broadcast_to(bits[:, :, np.newaxis], (2**size, size, size))
        images = np.concatenate([stripes, stripes.transpose(0, 2, 1)])
        for index, image in enumerate(images.astype(np.uint8)[..., np.newaxis]):
            yield index, {"image": image}
