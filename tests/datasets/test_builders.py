"""TFDS's own checks of our builders."""

import pathlib

import tensorflow_datasets as tfds

from keras_rbm.datasets import (
    bars_and_stripes,
    caltech101_silhouettes,
    digits,
    omniglot28,
    shifting_bar,
)

DUMMY_DATA = pathlib.Path(__file__).parent / "dummy_data"


class Caltech101SilhouettesTest(tfds.testing.DatasetBuilderTestCase):
    DATASET_CLASS = caltech101_silhouettes.Builder
    SPLITS = {"train": 3, "validation": 2, "test": 2}
    EXAMPLE_DIR = DUMMY_DATA / "caltech101_silhouettes"
    DL_DOWNLOAD_RESULT = "caltech101_silhouettes_28_split1.mat"


class Omniglot28Test(tfds.testing.DatasetBuilderTestCase):
    DATASET_CLASS = omniglot28.Builder
    SPLITS = {"train": 3, "test": 2}
    EXAMPLE_DIR = DUMMY_DATA / "omniglot28"


class DigitsTest(tfds.testing.DatasetBuilderTestCase):
    DATASET_CLASS = digits.Builder
    SPLITS = {"train": 1_197, "validation": 300, "test": 300}
    EXAMPLE_DIR = DUMMY_DATA


class BarsAndStripesTest(tfds.testing.DatasetBuilderTestCase):
    DATASET_CLASS = bars_and_stripes.Builder
    SPLITS = {"train": 16}
    EXAMPLE_DIR = DUMMY_DATA
    BUILDER_CONFIG_NAMES_TO_TEST = ["size_3"]


class ShiftingBarTest(tfds.testing.DatasetBuilderTestCase):
    DATASET_CLASS = shifting_bar.Builder
    SPLITS = {"train": 9}
    EXAMPLE_DIR = DUMMY_DATA
