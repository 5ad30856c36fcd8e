"""Checks of arguments that every part of the library shares."""

import math
import numbers
import operator


def check_counts(least=1, **counts):
    """Raises a ValueError unless each named count is an int ≥ `least`, of 32 bits.

    NumPy integers are ints; bools and floats are not.
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

    Numbers of NumPy are numbers; bools, strings and arrays are not.
    """
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            raise TypeError(f"Expected a number. Received: {name}={value!r}.")
        if not math.isfinite(value):
            raise ValueError(f"Expected a finite number. Received: {name}={value!r}.")


def is_int(value):
    """Returns whether `value` is an integer of Python or NumPy, not a bool."""
    if isinstance(value, bool):
        return False
    try:
        operator.index(value)
    except TypeError:
        return False
    return True
