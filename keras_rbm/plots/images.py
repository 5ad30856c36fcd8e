"""Plots of weights and states."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import keras
import numpy as np
from numpy.typing import ArrayLike

from keras_rbm._checks import check_counts
from keras_rbm._images import image_grid
from keras_rbm.models.data.rows import as_rows
from keras_rbm.plots.figures import check_built, image_figure, show_gray, show_grid

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def filters(
    rbm: keras.Model,
    image_shape: tuple[int, int] | None = None,
    max_units: int = 100,
    *,
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

    Returns:
        `matplotlib.figure.Figure`.

    Raises:
        ImportError: if matplotlib is not installed.
        ValueError: if the model is not built, `max_units` < 1, or the visible units do
            not form an image of the shape.

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
    if getattr(rbm, "visible", None) is not None and rbm.visible.encodes:
        raise ValueError(
            "Expected units that are pixels in plots.filters(). Received: "
            f"visible={rbm.visible!r:.200}: categories have no picture."
        )
    check_counts(max_units=max_units)
    units = np.ravel(rbm.hidden_units)[0]  # in use; for deep models the first layer's
    kernel = np.asarray(rbm.kernel, np.float32)[:, :units].T[:max_units]
    grid = image_grid(kernel, image_shape)
    # A few extreme weights would make all others pale.
    limit = float(np.quantile(np.abs(kernel), 0.999)) or 1.0
    count = f"{units}" if len(kernel) == units else f"{len(kernel)} of {units}"
    title = f"Filters of {count} hidden units" if title is None else title
    figure, axes = image_figure(grid, title, margin=0.8)
    image = show_grid(axes, grid, "RdBu_r", -limit, limit)
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


def chains(
    rbm: keras.Model,
    num_chains: int = 10,
    sweeps: Sequence[int] = (0, 1, 10, 100, 1000),
    image_shape: tuple[int, int] | None = None,
    initial_visible: ArrayLike | None = None,
    seed: int = 0,
) -> "Figure":
    """Draws Gibbs chains: a row for each number of sweeps, a column for each chain.

    The states after k sweeps are what `rbm.sample(num_chains, steps=k, seed=seed)`
    returns; with one seed, all rows show the same chains. They are drawn as their
    reconstructions, which are smoother; those after 0 sweeps, and categories, which
    have no mean, are drawn unchanged. A column that keeps its image is a chain stuck in
    a mode; columns that become alike, from noise, have found the same mode.

    Args:
        rbm: built model of p(v).
        num_chains: int ≥ 1.
        sweeps: ints ≥ 0, one for each row.
        image_shape: `(height, width)`, or `None` for square images.
        initial_visible: array (num_chains, V) to start from, such as data; by default
            drawn from the base rate. For a `DBN`, states of its top RBM.
        seed: int, the seed of the chains.

    Returns:
        `matplotlib.figure.Figure`.

    Raises:
        ImportError: if matplotlib is not installed.
        TypeError: if the model has no chains of its own, like a `CRBM`.
        ValueError: if the model is not built, a number is out of range, or the visible
            units do not form an image of the shape.

    Example:

    >>> rbm = keras_rbm.RBM(20, num_visible=64, seed=0)
    >>> figure = keras_rbm.plots.chains(rbm, num_chains=5, sweeps=(0, 1, 10))
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['0 sweeps', '1 sweep', '10 sweeps']
    """
    if not hasattr(rbm, "reconstruct"):
        raise TypeError(
            f"Expected a model of p(v) in plots.chains(). Received: "
            f"{type(rbm).__name__}. For a CRBM call plots.samples(crbm.sample(x))."
        )
    check_built(rbm, "chains")
    rows = {}
    for steps in sweeps:
        options = {"steps": steps, "initial_visible": initial_visible, "seed": seed}
        states = rbm.sample(num_chains, **options).numpy()
        means = rbm.reconstruct(states).numpy()
        name = "1 sweep" if steps == 1 else f"{steps} sweeps"
        rows[name] = means if steps and means.shape == states.shape else states
    return comparison(rows, image_shape, title="Gibbs chains")


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
        ValueError: if the arrays differ in shape, or do not form images of the shape.

    Example:

    >>> clean = np.eye(64)[:5]
    >>> figure = keras_rbm.plots.comparison({"clean": clean, "inverted": 1 - clean})
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['clean', 'inverted']
    """
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


def _states(states, name):
    """Returns an array (N, V); an image grid of others would be blank, or no grid."""
    states = as_rows(states).numpy()
    if np.isinf(states).any() or (states.size and np.isnan(states).all()):
        raise ValueError(
            f"Expected {name} to be finite. Received: infinite values, or only NaN."
        )
    return states
