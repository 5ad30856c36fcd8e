"""Scores in float32, also where products of training are rounded more."""

import contextlib
import threading

import tensorflow as tf

_lock = threading.Lock()
_inside, _was = 0, True


@contextlib.contextmanager
def full_precision():
    """Switches TensorFloat-32 off while it lasts; also a decorator.

    GPUs round the factors of float32 products to 10 bits by default. Chains hardly
    differ, but a score of a rounded kernel is that of another model. The switch is of
    the process: training in another thread is not rounded either while it lasts. It is
    read when a product is computed, so it has no effect on a graph that runs later.
    """
    global _inside, _was
    config = tf.config.experimental
    with _lock:
        if not _inside:
            _was = config.tensor_float_32_execution_enabled()
            config.enable_tensor_float_32_execution(False)
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                config.enable_tensor_float_32_execution(_was)
