"""Checks of arguments that every part of the library shares."""

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


def is_int(value):
    """Returns whether `value` is an integer of Python or NumPy, not a bool."""
    if isinstance(value, bool):
        return False
    try:
        operator.index(value)
    except TypeError:
        return False
    return True
