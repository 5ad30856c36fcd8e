"""Elementary functions that some export formats lack."""

import contextlib
import contextvars

import tensorflow as tf

_BASIC = contextvars.ContextVar("basic", default=False)


@contextlib.contextmanager
def basic_operations():
    """Context in which functions are traced as exp, log and similar operations only.

    Absolute errors are at the precision of the dtype, as in TensorFlow's own functions;
    relative errors of values near 0 are larger.
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
