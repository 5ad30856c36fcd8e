"""Shifting Bar."""

import numpy as np
import tensorflow_datasets as tfds

from keras_rbm.datasets.image_builder import ImageBuilder

_MAX_SIZE = 10_000  # as many images


class Builder(ImageBuilder):
    """TFDS builder of Shifting Bar; its configs are `size_<N>_length_<B>`."""

    BUILDER_CONFIGS = [
        tfds.core.BuilderConfig(
            name="size_9_length_1", description="One pixel of nine is on."
        )
    ]

    @classmethod
    def make_config(cls, size=9, length=1):
        """Returns the config of a bar of `length` among `size` pixels."""
        are_ints = isinstance(size, int) and isinstance(length, int)
        if not are_ints or not 1 <= length <= size <= _MAX_SIZE:
            raise ValueError(
                f"Expected integers with 1 <= length <= size <= {_MAX_SIZE}. "
                f"Received: size={size!r}, length={length!r}. "
                "Pass a bar that fits among the pixels."
            )
        name = f"size_{size}_length_{length}"
        return cls.builder_configs.get(name) or tfds.core.BuilderConfig(name=name)

    @property
    def _size_and_length(self):
        _, size, _, length = self.builder_config.name.split("_")
        return int(size), int(length)

    @property
    def image(self):
        return tfds.features.Image(shape=(1, self._size_and_length[0], 1))

    def _generate_examples(self):
        size, length = self._size_and_length
        bar = (np.arange(size) < length).astype(np.uint8)
        for shift in range(size):
            yield shift, {"image": np.roll(bar, shift)[np.newaxis, :, np.newaxis]}
