"""Importing this package registers `bars_and_stripes` with TFDS."""

from .bars_and_stripes_dataset_builder import Builder as Builder
