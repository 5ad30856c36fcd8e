"""Importing this package registers `digits` with TFDS."""

from .digits_dataset_builder import Builder as Builder
