"""Plots of weights and states."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike

from keras_rbm._checks import as_array, check_counts
from keras_rbm._images import checked_image_shape, image_grid
from keras_rbm.models.data.rows import as_rows
from keras_rbm.plots.figures import check_built, image_figure, show_gray, show_grid

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Room above an image for a number, as a share of its height.
_HEADROOM = 0.25


def filters(
    rbm: keras.Model,
    image_shape: tuple[int, int] | None = None,
    max_units: int = 100,
    *,
    order: str | None = None,
    gains: Sequence[float] | None = None,
    title: str | None = None,
) -> "Figure":
    """Draws what the hidden units respond to, the columns of the kernel.

    Positive weights are red, negative ones blue, zero is white; all units share one
    scale.

    Args:
        rbm: built model with a `kernel` (V, H); for an `InfiniteRBM` the units in use
            are drawn, in order of insertion; for a `DBM` those of the first layer.
        image_shape: `(height, width)`, or `None` for square images.
        max_units: int ≥ 1; only the first `max_units` units are drawn.
        title: str or `None`.
        order: `"norm"` for the filters of largest norm first, or `None` for the order
            in the model.
        gains: list of numbers, nats, the gain of each unit, written above its filter:
            `history.history["gain"]` of an `InfiniteRBM` that grew by at most one unit
            per epoch. Zeros, from steps that added no unit, are ignored.

    Returns:
        `matplotlib.figure.Figure`.

    Raises:
        ImportError: if matplotlib is not installed.
        ValueError: if the model is not built, `max_units` < 1, the order is unknown,
            there is not one gain for each unit, or the visible units do not form an
            image of the shape.

    Example:

    >>> rbm = keras_rbm.RBM(20, num_visible=64, seed=0)
    >>> keras_rbm.plots.filters(rbm).axes[0].get_title()
    'Filters of 20 hidden units'
    """
    if not hasattr(rbm, "kernel") and not hasattr(rbm, "hidden_units"):
        raise TypeError(
            "Expected a model with one kernel from the data in plots.filters(). "
            f"Received: {type(rbm).__name__}. For a DBN pass an RBM: dbn.rbms[0]."
        )
    check_built(rbm, "filters")
    _check_pixels(rbm, "filters")
    check_counts(max_units=max_units)
    if not (order is None or isinstance(order, str) and order == "norm"):
        raise ValueError(f"Expected order 'norm' or None. Received: order={order!r}.")
    units = np.ravel(rbm.hidden_units)[0]  # in use; for deep models the first layer's
    if gains is not None:
        gains = _checked_gains(gains, units)
    kernel = np.asarray(rbm.kernel, np.float32)[:, :units].T
    chosen = np.arange(len(kernel))
    if order is not None:
        chosen = np.argsort(-np.linalg.norm(kernel, axis=1), kind="stable")
    chosen = chosen[:max_units]
    shown = kernel[chosen]
    height, width = checked_image_shape(image_shape, shown.shape[1])
    headroom = 0 if gains is None else max(2, round(_HEADROOM * height))
    above = np.full((len(shown), headroom * width), np.nan)
    grid = image_grid(np.hstack([above, shown]), (headroom + height, width))
    # A few extreme weights would make all others pale.
    limit = float(np.quantile(np.abs(shown), 0.999)) or 1.0
    count = f"{units}" if len(shown) == units else f"{len(shown)} of {units}"
    if title is None:
        title = f"Filters of {count} hidden units" + (", by norm" if order else "")
    figure, axes = image_figure(grid, title, margin=0.8)
    image = show_grid(axes, grid, "RdBu_r", -limit, limit)
    if gains is not None:
        _write_above(axes, gains[chosen], grid.shape, (height, width), headroom)
    figure.colorbar(image, ax=axes, label="weight", shrink=0.6, aspect=30)
    return figure


def samples(
    states: ArrayLike,
    image_shape: tuple[int, int] | None = None,
    num_columns: int | None = None,
    *,
    title: str | None = None,
) -> "Figure":
    """Draws visible states, such as `rbm.sample` or `rbm.reconstruct` returns.

    Args:
        states: array (N, V), drawn in grayscale from its smallest value (black) to its
            largest (white), at least 0 to 1.
        image_shape: `(height, width)`, or `None` for square images.
        num_columns: int or `None` for a grid that is about square.
        title: str or `None`.

    Returns:
        `matplotlib.figure.Figure`.

    Raises:
        ImportError: if matplotlib is not installed.
        ValueError: if the states are not (N, V) or do not form images of the shape.

    Example:

    >>> rbm = keras_rbm.RBM(20, num_visible=64, seed=0)
    >>> states = rbm.sample(16, steps=10, seed=0)
    >>> figure = keras_rbm.plots.samples(states, title="Samples")
    """
    states = _states(states, "states")
    grid = image_grid(states, image_shape, num_columns)
    figure, axes = image_figure(grid, title)
    show_gray(axes, grid)
    return figure


def reconstructions(
    rbm: keras.Model,
    x: ArrayLike | tf.data.Dataset,
    image_shape: tuple[int, int] | None = None,
    max_examples: int = 12,
    *,
    title: str | None = None,
) -> "Figure":
    """Draws examples, and below them their reconstructions.

    Args:
        rbm: built model with `reconstruct`.
        x: array (N, V) or `tf.data.Dataset`.
        image_shape: `(height, width)`, or `None` for square images.
        max_examples: int ≥ 1; only the first `max_examples` examples are drawn.
        title: str or `None`.

    Returns:
        `matplotlib.figure.Figure`.

    Raises:
        ImportError: if matplotlib is not installed.
        ValueError: if the examples cannot be states of the model or do not form images
            of the shape, or `max_examples` < 1.

    Example:

    >>> rbm = keras_rbm.RBM(20, num_visible=64, seed=0)
    >>> figure = keras_rbm.plots.reconstructions(rbm, np.eye(64)[:5])
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['data', 'reconstruction']
    """
    if not hasattr(rbm, "reconstruct"):
        raise TypeError(
            "Expected a model of p(v) in plots.reconstructions(). Received: "
            f"{type(rbm).__name__}. For a CRBM draw plots.comparison of x, v and "
            "predict(x)."
        )
    check_built(rbm, "reconstructions")
    _check_pixels(rbm, "reconstructions")
    check_counts(max_examples=max_examples)
    rows = _states(x, "x")[:max_examples]
    rows = {"data": rows, "reconstruction": rbm.reconstruct(rows).numpy()}
    title = "Reconstructions" if title is None else title
    return comparison(rows, image_shape, title=title)


def comparison(
    rows: Mapping[str, ArrayLike],
    image_shape: tuple[int, int] | None = None,
    *,
    title: str | None = None,
) -> "Figure":
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
        TypeError: if `rows` is not a dict.
        ValueError: if the arrays differ in shape, or do not form images of the shape.

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
    figure, axes = image_figure(grid, title, margin=0.9)
    show_gray(axes, grid)
    height = grid.shape[0] / len(states)
    axes.set_axis_on()
    axes.set_xticks([])
    axes.set_yticks([(row + 0.5) * height for row in range(len(states))], list(rows))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return figure


def _checked_gains(gains, units):
    """Returns gains without the zeros, an array (units,)."""
    values = as_array(gains)
    numeric = values is not None and values.dtype.kind in "fiu" and values.ndim == 1
    if not numeric or not np.isfinite(values).all():
        received = f"{gains!r:.100}"
    else:
        values = values[values != 0.0]
        received = f"{len(values)} gains other than 0"
        if len(values) == units:
            return values
    raise ValueError(
        f"Expected gains as a list of finite numbers, one other than 0 for each of "
        f"{units} hidden units. Received: {received}. Grow by one step per epoch, and "
        "leave out the gains of units that the model no longer has."
    )


def _write_above(axes, gains, shape, image_shape, headroom):
    """Writes numbers into the room above each image of a grid."""
    height, width = image_shape[0] + headroom + 1, image_shape[1] + 1
    columns = shape[1] // width
    inches = axes.get_figure().get_size_inches()[0] * width / shape[1]
    size = min(9.0, 0.18 * 72 * inches)
    for index, gain in enumerate(gains):
        row, column = divmod(index, columns)
        place = column * width + width / 2, row * height + 0.5 + headroom / 2
        axes.text(*place, f"{gain:.3f}", fontsize=size, ha="center", va="center")


def _check_pixels(model, method):
    """Raises a ValueError if a visible unit has several rows of weights."""
    if getattr(model, "visible", None) is not None and model.visible.encodes:
        raise ValueError(
            f"Expected units that are pixels in plots.{method}(). Received: "
            f"visible={model.visible!r:.200}: categories have no picture."
        )


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
    if np.isinf(states).any() or np.isnan(states).all():
        raise ValueError(
            f"Expected {name} to be finite. Received: infinite values, or only NaN."
        )
    return states
