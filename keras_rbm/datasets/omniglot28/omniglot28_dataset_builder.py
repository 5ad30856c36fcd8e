"""OMNIGLOT, 28x28, as Burda et al. (2016) prepared it."""

import os

import numpy as np
import tensorflow_datasets as tfds

from keras_rbm._checks import import_optional
from keras_rbm.datasets.image_builder import ImageBuilder

_URL = "https://github.com/yburda/iwae/raw/master/datasets/OMNIGLOT/chardata.mat"
_FILENAME = "chardata.mat"


class Builder(ImageBuilder):
    """TFDS builder of the 28x28 OMNIGLOT of Burda et al. (2016).

    The source is downloaded by hand: there is no recorded checksum to verify it.
    """

    RELEASE_NOTES = {"1.0.0": "Initial release, tested with made-up files only."}
    MANUAL_DOWNLOAD_INSTRUCTIONS = (
        f"Download {_URL}, save it as {_FILENAME} in a folder, and pass "
        "that folder as manual_dir= or set KERAS_RBM_MANUAL_DIR to it."
    )

    image = tfds.features.Tensor(shape=(28, 28, 1), dtype=np.float32)
    num_classes = 50
    homepage = "https://github.com/yburda/iwae"

    def _split_generators(self, dl_manager):
        path = dl_manager.manual_dir / _FILENAME
        if not path.exists():
            raise FileNotFoundError(
                f"Expected the source file of 'omniglot28'. Received: no file {path}. "
                f"{self.MANUAL_DOWNLOAD_INSTRUCTIONS}"
            )
        arrays = import_optional("scipy.io", "reads Matlab files").loadmat(
            os.fspath(path)
        )
        return {
            "train": self._generate_examples(arrays["data"], arrays["target"]),
            "test": self._generate_examples(arrays["testdata"], arrays["testtarget"]),
        }

    def _generate_examples(self, columns, one_hot):
        # An example is a column, and lists its pixels column by column.
        images = columns.T.reshape(-1, 28, 28, 1).transpose(0, 2, 1, 3)
        images = images.astype(np.float32)
        if images.min() < 0 or images.max() > 1:
            raise ValueError(
                f"Expected intensities in [0, 1]. Received: {_FILENAME} with values "
                f"from {images.min()} to {images.max()}. Download the file again."
            )
        yield from self._labeled(images, one_hot.argmax(axis=0))
