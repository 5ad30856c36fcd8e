"""Elementary functions that not every format has to which a model is exported."""

import contextlib
import contextvars

import tensorflow as tf

_BASIC = contextvars.ContextVar("basic", default=False)


@contextlib.contextmanager
def basic_operations():
    """Has what is traced here computed by exp, log and the like alone.

    Absolute errors are those of the dtype, as are TensorFlow's own; relative ones of
    values near 0 are larger.
    """
    token = _BASIC.set(True)
    try:
        yield
    finally:
        _BASIC.reset(token)


def softplus(x):
    """Returns log(1 + exp(x))."""
    if _BASIC.get():
        return tf.nn.relu(x) + tf.math.log(1.0 + tf.exp(-tf.abs(x)))
    return tf.math.softplus(x)
