"""Importing this package registers `shifting_bar` with TFDS."""

from .shifting_bar_dataset_builder import Builder as Builder
