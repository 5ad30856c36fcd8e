"""Errors with words that a user can read."""

import contextlib
import re
from collections.abc import Iterator

import tensorflow as tf

#: Marks of the beginning and the end of a message.
MARK, END = "This step cannot be taken:", "(end)"


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Turns a TensorFlow error whose message has the marks into a ValueError."""
    try:
        yield
    except tf.errors.OpError as error:
        text = re.search(f"{re.escape(MARK)}(.*?){re.escape(END)}", str(error), re.S)
        if text is None:
            raise
        reason = re.sub(r"[\s\[\]'\"]+", " ", text[1]).strip()
        raise ValueError(reason) from error


def lies_in(
    part: tf.Tensor, low: float | None = None, high: float | None = None
) -> tf.Tensor:
    """Returns a bool (): whether all values are finite and within the limits."""
    large = part.dtype.max
    low, high = -large if low is None else low, large if high is None else high
    return tf.reduce_all((part >= low) & (part <= high))  # false for NaN
