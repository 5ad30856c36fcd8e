"""Importing this package registers `caltech101_silhouettes` with TFDS."""

from .caltech101_silhouettes_dataset_builder import Builder as Builder
