"""Caltech 101 Silhouettes, 28x28."""

import os

import numpy as np
import tensorflow_datasets as tfds

from keras_rbm._checks import import_optional
from keras_rbm.datasets.image_builder import ImageBuilder

_URL = "https://people.cs.umass.edu/~marlin/data/caltech101_silhouettes_28_split1.mat"


class Builder(ImageBuilder):
    """TFDS builder of Caltech 101 Silhouettes, 28x28, split 1."""

    image = tfds.features.Image(shape=(28, 28, 1))
    num_classes = 101
    homepage = "https://people.cs.umass.edu/~marlin/data.shtml"

    def _split_generators(self, dl_manager):
        loadmat = import_optional("scipy.io", "reads Matlab files").loadmat
        arrays = loadmat(os.fspath(dl_manager.download(_URL)))
        return {
            split: self._generate_examples(
                arrays[f"{key}_data"], arrays[f"{key}_labels"]
            )
            for split, key in [
                ("train", "train"),
                ("validation", "val"),
                ("test", "test"),
            ]
        }

    def _generate_examples(self, vectors, labels):
        # Matlab wrote each image column by column.
        images = vectors.reshape(-1, 28, 28, 1).transpose(0, 2, 1, 3).astype(np.uint8)
        yield from self._labeled(images, np.int32(labels.ravel()) - 1)
