"""Visible states as images: shapes, and many images tiled into one array."""

import math

import numpy as np

from keras_rbm._checks import check_counts, is_int


def image_grid(states, image_shape=None, num_columns=None):
    """Returns visible states as one array, row by row, NaN between the images.

    Args:
        states: array (N, V).
        image_shape: `(height, width)`, or `None` for square images.
        num_columns: int or `None` for a grid that is about square.

    Returns:
        float32 array (rows · (height + 1) + 1, columns · (width + 1) + 1).

    Raises:
        ValueError: if the states are not (N, V) or do not form images of the shape.

    Example:

    >>> keras_rbm._images.image_grid(np.zeros((6, 64)), num_columns=3).shape
    (19, 28)
    """
    states = np.asarray(states, np.float32)
    if states.ndim != 2 or not states.size:
        raise ValueError(
            "Expected states of shape (examples, units), at least one. Received: "
            f"states.shape={states.shape}. Flatten each example to a vector."
        )
    height, width = checked_image_shape(image_shape, states.shape[1])
    square = math.ceil(math.sqrt(len(states)))
    columns = square if num_columns is None else num_columns
    check_counts(num_columns=columns)
    rows = math.ceil(len(states) / columns)
    grid = np.full(
        (rows * (height + 1) + 1, columns * (width + 1) + 1), np.nan, np.float32
    )
    for index, state in enumerate(states):
        top = index // columns * (height + 1) + 1
        left = index % columns * (width + 1) + 1
        grid[top : top + height, left : left + width] = state.reshape(height, width)
    return grid


def checked_image_shape(image_shape, num_visible):
    """Returns the height and width of an image of V pixels.

    Args:
        image_shape: `(height, width)`, or `None` for square images.
        num_visible: int, V.

    Raises:
        ValueError: if the shape does not have V pixels, or V is not a square.
    """
    if image_shape is None:
        side = math.isqrt(num_visible)
        if side * side != num_visible:
            raise ValueError(
                "Expected an image_shape for visible units that do not form a square. "
                f"Received: image_shape=None for {num_visible} units. Pass "
                "image_shape=(height, width)."
            )
        return side, side
    shape = tuple(image_shape) if isinstance(image_shape, (tuple, list)) else None
    ints = shape is not None and len(shape) == 2 and all(map(is_int, shape))
    if not ints or min(shape) < 1 or math.prod(shape) != num_visible:
        raise ValueError(
            f"Expected an image_shape (height, width) of {num_visible} pixels. "
            f"Received: image_shape={image_shape!r}."
        )
    return shape
