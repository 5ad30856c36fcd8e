"""Scores in float32, also where products of training are rounded more."""

import contextlib
from collections.abc import Iterator

import tensorflow as tf


@contextlib.contextmanager
def full_precision() -> Iterator[None]:
    """Switches TensorFloat-32 off while it lasts; also a decorator.

    GPUs round the factors of float32 products to 10 bits by default. Chains hardly
    differ, but a score of a rounded kernel is that of another model.
    """
    config = tf.config.experimental
    was = config.tensor_float_32_execution_enabled()
    config.enable_tensor_float_32_execution(False)
    try:
        yield
    finally:
        config.enable_tensor_float_32_execution(was)
