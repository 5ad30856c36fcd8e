"""Importing this package registers `omniglot28` with TFDS."""

from .omniglot28_dataset_builder import Builder as Builder
