"""Errors with words that a user can read."""

import contextlib
import functools
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

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


def check_arguments(cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raises a TypeError with a cure if a model cannot be made of the arguments.

    Subclasses elsewhere have constructors of their own.
    """
    if not cls.__module__.startswith("keras_rbm."):
        return
    signature = inspect.signature(cls)
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        given = [repr(each) for each in args]
        given += [f"{name}={value!r}" for name, value in kwargs.items()]
        first = next(iter(signature.parameters))
        raise TypeError(
            f"Expected {first} first, and all other arguments by their names; how "
            "many visible units there are follows from the data. Received: "
            f"{cls.__name__}({', '.join(given)}): {error}."
        ) from None


def by_name(compile_: Callable[..., None]) -> Callable[..., None]:
    """Returns a `compile` that says so if arguments are given without a name."""

    @functools.wraps(compile_)
    def checked(self, *args, **kwargs):
        if len(args) > 1:
            names = [each if isinstance(each, str) else type(each) for each in args]
            raise TypeError(
                "Expected the optimizer, and all other arguments by their names: "
                "compile('adam', rule='pcd'). Received without a name: "
                f"{', '.join(map(repr, names[1:]))}."
            )
        return compile_(self, *args, **kwargs)

    return checked


def lies_in(
    part: tf.Tensor, low: float | None = None, high: float | None = None
) -> tf.Tensor:
    """Returns a bool (): whether all values are finite and within the limits."""
    large = part.dtype.max
    low, high = -large if low is None else low, large if high is None else high
    return tf.reduce_all((part >= low) & (part <= high))  # false for NaN
