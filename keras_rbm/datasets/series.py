"""Pairs of what came before and what came next, from a series."""

from typing import Any

import numpy as np

from keras_rbm._checks import check_counts


def windows(values: Any, past: int, future: int = 1) -> tuple[Any, Any]:
    """Returns pairs of a series for `CRBM.fit(x, y)`: the last values, and the next.

    Row n of x holds the values of times n … n + past - 1, the oldest first, row n of y
    those of the `future` times after them. Pairs overlap: split the series, not the
    pairs, into what is learned and what is held out, or drop the `past + future - 1`
    pairs at the seam.

    Args:
        values: array (T,) or (T, C) of a series with C columns, or such a data frame,
            or a pandas Series with a name. NaN, a gap, stays one.
        past, future: int ≥ 1.

    Returns:
        x: array (N, past C), N = T - past - future + 1, or a frame, whose columns are
            called `"rain -2"`, `"rain -1"`, … and whose index is that of the last time.
        y: array (N, future C), or a frame with columns `"rain +0"`, `"rain +1"`, … and
            the index of x: the time at which it is predicted.

    Raises:
        TypeError, ValueError: if the series has another shape or is too short, or an
            argument is not an int ≥ 1.

    Example:

    >>> x, y = keras_rbm.datasets.windows([1.0, 2.0, 3.0, 4.0, 5.0], past=3)
    >>> x.tolist(), y.tolist()
    ([[1.0, 2.0, 3.0], [2.0, 3.0, 4.0]], [[4.0], [5.0]])
    """
    check_counts(past=past, future=future)
    has_times = hasattr(values, "index") and not isinstance(values, list | tuple)
    if has_times and getattr(values, "name", None) is not None:
        values = values.to_frame()
    if np.ma.isMA(values):
        values = np.ma.filled(values.astype(float), np.nan)
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        try:
            array = array.astype(float)  # of columns of several types
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"Expected a series of numbers. Received: values of type {array.dtype}."
            ) from error
    if array.ndim not in (1, 2):
        raise ValueError(
            "Expected a series of shape (times,) or (times, columns). Received: "
            f"values of shape {array.shape}."
        )
    length = past + future
    if len(array) < length:
        raise ValueError(
            f"Expected at least {length} times, past={past} and future={future}. "
            f"Received: {len(array)}."
        )
    columns = array.reshape(len(array), -1)
    rows = np.lib.stride_tricks.sliding_window_view(columns, length, axis=0)
    rows = np.swapaxes(rows, 1, 2)
    x, y = (
        part.reshape(len(rows), -1).copy() for part in (rows[:, :past], rows[:, past:])
    )
    if not (has_times and hasattr(values, "columns")):
        return x, y
    index = values.index[past - 1 : len(array) - future]
    names = [f"{name} {time:+d}" for time in range(-past, future) for name in values]
    frame = type(values)
    split = past * columns.shape[1]
    return tuple(
        frame(part, index=index, columns=own)
        for part, own in ((x, names[:split]), (y, names[split:]))
    )
