"""Pictures of weights and states."""

import keras
import numpy as np

from keras_rbm.checks import check_counts
from keras_rbm.images import image_grid
from keras_rbm.models.workflow.rows import as_rows
from keras_rbm.plots.figures import check_title, new_figure

_GRID_INCHES = 6.0
_SEPARATOR = "0.6"


def filters(rbm, image_shape=None, max_units=100, title=None):
    """Draws what the hidden units respond to, the columns of the kernel.

    Red is a positive weight, blue a negative one, white zero; one scale for all.

    Args:
        rbm: built model with a `kernel` (V, H); of an `InfiniteRBM` the units in use,
            in order of insertion; of a `DBM` the first layer's.
        image_shape: `(height, width)`, or `None` for square images.
        max_units: int ≥ 1, at most so many units, the first ones.
        title: str or `None`.

    Returns:
        `matplotlib.figure.Figure`.

    Raises:
        ImportError: if matplotlib is not installed.
        ValueError: if the model is not built, `max_units` < 1, or the visible units
            make no image of the shape.

    Example:

    >>> rbm = keras_rbm.RBM(20, num_visible=64, seed=0)
    >>> keras_rbm.plots.filters(rbm).axes[0].get_title()
    'Filters of 20 hidden units'
    """
    _check_built(rbm, "filters")
    check_counts(max_units=max_units)
    units = np.ravel(rbm.hidden_units)[0]  # in use; of a deep model the first layer's
    kernel = np.asarray(rbm.kernel, np.float32)[:, :units]
    shown = kernel.T[:max_units]
    grid = image_grid(shown, image_shape)
    # A few extreme weights would make all others pale.
    limit = float(np.quantile(np.abs(shown), 0.999)) or 1.0
    count = f"{units}" if len(shown) == units else f"{len(shown)} of {units}"
    title = f"Filters of {count} hidden units" if title is None else title
    figure, axes = _image_figure(grid, title, margin=0.8)
    image = _show(axes, grid, "RdBu_r", -limit, limit)
    figure.colorbar(image, ax=axes, label="weight", shrink=0.6, aspect=30)
    return figure


def samples(states, image_shape=None, num_columns=None, title=None):
    """Draws visible states, such as `rbm.sample` or `rbm.reconstruct` returns.

    Args:
        states: array (N, V), grey-scale from its smallest value (black) to its
            largest (white), at least 0 to 1.
        image_shape: `(height, width)`, or `None` for square images.
        num_columns: int or `None` for a grid that is about square.
        title: str or `None`.

    Returns:
        `matplotlib.figure.Figure`.

    Raises:
        ImportError: if matplotlib is not installed.
        ValueError: if the states are not (N, V) or make no image of the shape.

    Example:

    >>> rbm = keras_rbm.RBM(20, num_visible=64, seed=0)
    >>> states = rbm.sample(16, steps=10, seed=0)
    >>> figure = keras_rbm.plots.samples(states, title="Samples")
    """
    states = _states(states, "states")
    grid = image_grid(states, image_shape, num_columns)
    figure, axes = _image_figure(grid, title)
    _show_grey(axes, grid)
    return figure


def reconstructions(rbm, x, image_shape=None, max_examples=12, title=None):
    """Draws examples, and below them their reconstructions.

    Args:
        rbm: built model with `reconstruct`.
        x: array (N, V) or `tf.data.Dataset`.
        image_shape: `(height, width)`, or `None` for square images.
        max_examples: int ≥ 1, at most so many, the first ones.
        title: str or `None`.

    Returns:
        `matplotlib.figure.Figure`.

    Raises:
        ImportError: if matplotlib is not installed.
        ValueError: if the examples cannot be states of the model, make no image of
            the shape, or `max_examples` < 1.

    Example:

    >>> rbm = keras_rbm.RBM(20, num_visible=64, seed=0)
    >>> figure = keras_rbm.plots.reconstructions(rbm, np.eye(64)[:5])
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['data', 'reconstruction']
    """
    _check_built(rbm, "reconstructions")
    check_counts(max_examples=max_examples)
    rows = _states(x, "x")[:max_examples]
    rows = {"data": rows, "reconstruction": rbm.reconstruct(rows).numpy()}
    title = "Reconstructions" if title is None else title
    return comparison(rows, image_shape, title)


def comparison(rows, image_shape=None, title=None):
    """Draws versions of the same examples below each other.

    Args:
        rows: dict of name to array (N, V), for example clean, corrupted and restored
            images; a row of pictures each.
        image_shape: `(height, width)`, or `None` for square images.
        title: str or `None`.

    Returns:
        `matplotlib.figure.Figure`.

    Raises:
        ImportError: if matplotlib is not installed.
        ValueError: if the arrays differ in shape, or make no image of the shape.

    Example:

    >>> clean = np.eye(64)[:5]
    >>> figure = keras_rbm.plots.comparison({"clean": clean, "inverted": 1 - clean})
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['clean', 'inverted']
    """
    if not isinstance(rows, dict) or not rows:
        raise TypeError(
            "Expected rows as a dict of name to array (examples, units). Received: "
            f"{type(rows).__name__}. Pass {{'name': array}}."
        )
    states = [_states(row, name) for name, row in rows.items()]
    shapes = [row.shape for row in states]
    if len(set(shapes)) != 1:
        raise ValueError(
            "Expected arrays of one shape, a row of pictures each. Received: shapes "
            f"{dict(zip(rows, shapes, strict=True))}."
        )
    grid = image_grid(np.concatenate(states), image_shape, num_columns=len(states[0]))
    figure, axes = _image_figure(grid, title, margin=0.9)
    _show_grey(axes, grid)
    height = grid.shape[0] / len(states)
    axes.set_axis_on()
    axes.set_xticks([])
    axes.set_yticks([(row + 0.5) * height for row in range(len(states))], list(rows))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return figure


def _image_figure(grid, title, margin=0.0):
    """Returns a figure and its only axes, sized for a grid of images."""
    check_title(title)
    height, width = grid.shape
    scale = _GRID_INCHES / max(height, width)
    title_height = 0.35 if title else 0.0
    figure = new_figure(width * scale + margin, height * scale + title_height)
    axes = figure.add_subplot()
    axes.set_axis_off()
    if title:
        axes.set_title(title, fontsize=10)
    return figure, axes


def _show(axes, grid, colours, low, high):
    import matplotlib

    colours = matplotlib.colormaps[colours].with_extremes(bad=_SEPARATOR)
    return axes.imshow(grid, cmap=colours, vmin=low, vmax=high, interpolation="nearest")


def _show_grey(axes, grid):
    low, high = min(np.nanmin(grid), 0.0), max(np.nanmax(grid), 1.0)
    return _show(axes, grid, "gray", low, high)


def _states(states, name):
    if isinstance(states, keras.Model):
        raise TypeError(
            f"Expected {name} as an array (examples, units). Received: a model, "
            f"'{states.name}'. Draw them first: {name}=model.sample(100)."
        )
    states = as_rows(states).numpy()
    if states.ndim != 2 or not states.size:
        raise ValueError(
            f"Expected {name} of shape (examples, units), at least one. Received: "
            f"{name}.shape={states.shape}. Flatten each example to a vector."
        )
    return states


def _check_built(rbm, function):
    if not getattr(rbm, "built", False):
        raise ValueError(
            f"Expected a built model in plots.{function}(). Received: rbm={rbm!r}. "
            "Call build(), adapt() or fit() first."
        )
