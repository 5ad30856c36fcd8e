"""The 8x8 digits that come with scikit-learn."""

import numpy as np
import tensorflow_datasets as tfds

from keras_rbm._checks import import_optional
from keras_rbm.datasets.image_builder import ImageBuilder

_SPLIT_SEED = 0
_BOUNDS = {"train": (0, 1_197), "validation": (1_197, 1_497), "test": (1_497, 1_797)}


class Builder(ImageBuilder):
    """TFDS builder of scikit-learn's 8x8 digits."""

    image = tfds.features.Image(shape=(8, 8, 1))
    num_classes = 10
    homepage = "https://archive.ics.uci.edu/dataset/80"

    def _split_generators(self, dl_manager):
        del dl_manager  # The images come with scikit-learn.
        source = import_optional("sklearn.datasets", "has the digits").load_digits()
        # RandomState, because NumPy has frozen its stream.
        order = np.random.RandomState(_SPLIT_SEED).permutation(len(source.target))
        return {
            split: self._generate_examples(source, order[first:last])
            for split, (first, last) in _BOUNDS.items()
        }

    def _generate_examples(self, source, indices):
        for index in indices.tolist():
            image = source.images[index, :, :, np.newaxis].astype(np.uint8)
            yield index, {"image": image, "label": int(source.target[index])}
