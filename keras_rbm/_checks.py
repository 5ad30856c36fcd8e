"""Checks of arguments, and of installed packages, that every part shares."""

import importlib
import math
import numbers
import operator
import os
import pathlib
from typing import Any

import numpy as np


def check_counts(least=1, **counts):
    """Raises a ValueError unless each named count is a 32-bit int ≥ `least`.

    NumPy integers count as ints; bools and floats do not.
    """
    for name, count in counts.items():
        if not is_int(count) or count < least:
            raise ValueError(
                f"Expected an int {name} ≥ {least}. Received: {name}={count!r}."
            )
        if count >= 2**31:
            raise ValueError(f"Expected {name} < 2**31. Received: {name}={count!r}.")


def check_numbers(**values):
    """Raises a TypeError or ValueError unless each named value is a finite number.

    NumPy numbers count as numbers; bools, strings and arrays do not.
    """
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            raise TypeError(f"Expected a number. Received: {name}={value!r}.")
        if not math.isfinite(value):
            raise ValueError(f"Expected a finite number. Received: {name}={value!r}.")


def check_flags(**flags):
    """Raises a TypeError unless each named value is a bool, or 0 or 1."""
    for name, flag in flags.items():
        if not isinstance(flag, bool) and not (is_int(flag) and flag in (0, 1)):
            if type(flag).__name__ not in ("bool", "bool_"):  # NumPy's bool
                raise TypeError(f"Expected a bool. Received: {name}={flag!r:.200}.")


def is_int(value: Any) -> bool:
    """Returns whether `value` is a Python or NumPy integer, not a bool."""
    if isinstance(value, bool):
        return False
    try:
        operator.index(value)
    except (TypeError, AttributeError):  # a tensor of text has no __index__
        return False
    return True


def as_array(values: Any) -> np.ndarray | None:
    """Returns values as a NumPy array, or `None` if they cannot be converted.

    Lists of unequal lengths and symbolic tensors cannot.
    """
    try:
        return np.asarray(values)
    except (TypeError, ValueError, NotImplementedError):
        return None


def seed_number(seed):
    """Returns a model's seed as a Python int, or `None`.

    Raises:
        ValueError: if it is neither an int of at most 64 bits nor `None`.
    """
    if seed is None:
        return None
    number = operator.index(seed) if is_int(seed) else 2**63
    if not -(2**63) <= number < 2**63:
        raise ValueError(
            f"Expected seed as a 64-bit int, or None. Received: seed={seed!r}."
        )
    return number


def as_path(filepath):
    """Returns a file's path as a `pathlib.Path`.

    Raises:
        TypeError, ValueError: if `filepath` is not a path, or is empty.
    """
    if not isinstance(filepath, (str, os.PathLike)):
        raise TypeError(
            "Expected filepath as a str or pathlib.Path. Received: filepath of type "
            f"{type(filepath).__name__}."
        )
    path = pathlib.Path(os.fspath(filepath))
    if not path.name:
        raise ValueError(
            "Expected filepath to name a file or directory. Received: filepath="
            f"{str(filepath)!r}."
        )
    return path


def import_optional(module, purpose, extra="examples"):
    """Returns an imported module, or raises an ImportError that says how to install it.

    Args:
        module: str, such as `"matplotlib.figure"`.
        purpose: str, what it does, such as `"draws the pictures"`.
        extra: str, the extra of this package that installs it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"Expected the package {module.partition('.')[0]!r}, which {purpose}. "
            f"Received: {error}. Install it with: pip install keras-rbm[{extra}]"
        ) from error
