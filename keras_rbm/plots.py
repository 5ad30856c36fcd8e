"""Pictures of a model and of its training, as matplotlib figures.

Each function returns a `matplotlib.figure.Figure` that belongs to nobody else: save
it by `figure.savefig("filters.png")`, or leave it as the last line of a notebook
cell. matplotlib is imported when the first picture is drawn
(`pip install keras-rbm[examples]`).
"""

import math

import numpy as np

from keras_rbm.checks import check_counts, is_int
from keras_rbm.images import image_grid
from keras_rbm.models.inputs import as_rows

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


def history(history, every=None, title=None):
    """Draws the course of training, one panel a metric.

    A metric and its `val_…` share a panel; `…_lower` and `…_upper` become a band
    around theirs. Counts get whole ticks, and `…converged`, a share, an axis from 0
    to 1.

    Args:
        history: what `fit` returned, or its dict `history`.
        every: int or `None`, epochs between the values of a metric that is not
            measured in each epoch (`keras_rbm.callbacks.LogLikelihood`). `None`
            draws such a metric over the number of the measurement.
        title: str or `None`.

    Returns:
        `matplotlib.figure.Figure`.

    Raises:
        ImportError: if matplotlib is not installed.
        ValueError: if there is no metric, or `every` does not fit.

    Example:

    >>> figure = keras_rbm.plots.history({"loss": [9.0, 7.0], "val_loss": [9.5, 8.0]})
    >>> len(figure.axes)
    1
    """
    metrics = getattr(history, "history", history)
    if not isinstance(metrics, dict) or not any(map(len, metrics.values())):
        raise ValueError(
            "Expected what fit() returned, with at least one epoch. Received: "
            f"history={metrics!r}."
        )
    if every is not None:
        check_counts(every=every)
    count = max(map(len, metrics.values()))
    first = (getattr(history, "epoch", None) or [0])[0] + 1
    epochs = list(range(first, first + count))
    panels = [name for name in metrics if not _is_part(name, metrics)]
    columns = min(len(panels), 3)
    rows = math.ceil(len(panels) / columns)
    figure = _figure(4.0 * columns, 2.8 * rows)
    if title is not None:
        figure.suptitle(title, fontweight="bold")
    for index, name in enumerate(panels):
        axes = figure.add_subplot(rows, columns, index + 1)
        for line in (name, f"val_{name}"):
            if line in metrics:
                label = "validation" if line != name else "training"
                _draw_line(axes, metrics, line, label, epochs, every)
        if f"val_{name}" in metrics:
            axes.legend(frameon=False)
        axes.set_title(name.replace("_", " "))
        axes.spines[["top", "right"]].set_visible(False)
        axes.locator_params(axis="x", integer=True, min_n_ticks=1)
        if all(map(is_int, metrics[name])):
            axes.locator_params(axis="y", integer=True, min_n_ticks=1)
        if name.endswith("converged"):
            axes.set_ylim(-0.02, 1.05)  # room for markers at both ends
    return figure


def score_report(report, title=None):
    """Draws a `ScoreReport`: intervals of the likelihood, and free energies.

    Args:
        report: what `keras_rbm.score_report` returned.
        title: str or `None`.

    Returns:
        `matplotlib.figure.Figure`. Open intervals end in an arrow.

    Raises:
        ImportError: if matplotlib is not installed.
    """
    panels = 1 + bool(report.free_energies)
    figure = _figure(5.0 * panels, 3.2)
    axes = figure.add_subplot(1, panels, 1)
    finite = [x for score in report.scores.values() for x in score if math.isfinite(x)]
    reach = 0.1 * (max(finite) - min(finite)) + 0.01
    for row, (value, low, high) in enumerate(reversed(report.scores.values())):
        ends = [
            end if math.isfinite(end) else value + sign * reach
            for end, sign in ((low, -1), (high, 1))
        ]
        axes.plot(ends, [row, row], color="C0")
        axes.plot(value, row, "o", color="C0")
        for end, shown, marker in zip((low, high), ends, "<>", strict=True):
            axes.plot(shown, row, marker if not math.isfinite(end) else "|", color="C0")
    axes.set_yticks(range(len(report.scores)), list(reversed(report.scores)))
    axes.set_ylim(-0.6, len(report.scores) - 0.4)
    axes.locator_params(axis="x", nbins=4)
    axes.ticklabel_format(axis="x", useOffset=False)
    axes.set_xlabel("mean log-likelihood, nats")
    if report.free_energies:
        axes = figure.add_subplot(1, panels, 2)
        bins = np.histogram_bin_edges(
            np.concatenate([*report.free_energies.values()]), 30
        )
        for name, energies in report.free_energies.items():
            axes.hist(energies, bins, density=True, histtype="step", label=name)
        axes.set_xlabel("free energy, nats")
        axes.legend(fontsize="small")
    figure.suptitle("Scores" if title is None else title)
    return figure


def _figure(width, height):
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "Expected the package matplotlib, which draws the pictures. Received: "
            f"{error}. Install it by: pip install keras-rbm[examples]"
        ) from error
    return Figure((width, height), layout="constrained", dpi=150)


def _image_figure(grid, title, margin=0.0):
    """Returns a figure and its only axes, sized for a grid of images."""
    height, width = grid.shape
    scale = _GRID_INCHES / max(height, width)
    title_height = 0.35 if title else 0.0
    figure = _figure(width * scale + margin, height * scale + title_height)
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


def _is_part(name, metrics):
    """Returns whether a metric is drawn in the panel of another one."""
    endings = ("_lower", "_upper")
    if any(name.endswith(e) and name.removesuffix(e) in metrics for e in endings):
        return True
    return name.startswith("val_") and name.removeprefix("val_") in metrics


def _draw_line(axes, metrics, name, label, epochs, every):
    values = np.asarray(metrics[name], float)
    x, x_label = _positions(name, len(values), epochs, every)
    marker = "o" if len(values) < 20 else None
    (line,) = axes.plot(x, values, marker=marker, markersize=3, label=label)
    lower, upper = metrics.get(f"{name}_lower"), metrics.get(f"{name}_upper")
    if lower is not None and upper is not None:
        # An infinite end would hide the band: draw what is known.
        finite = np.isfinite(lower) & np.isfinite(upper)
        axes.fill_between(
            x, lower, upper, where=finite, color=line.get_color(), alpha=0.25, lw=0
        )
    axes.set_xlabel(x_label)


def _positions(name, count, epochs, every):
    """Returns where a metric's values lie, and the name of that axis."""
    if count == len(epochs):
        return epochs, "epoch"
    if every is None:
        return list(range(1, count + 1)), "measurement"
    chosen = [epoch for epoch in epochs if epoch % every == 0]
    if len(chosen) != count:
        raise ValueError(
            f"Expected every to give the epochs of {count} values of {name!r} in "
            f"{len(epochs)} epochs. Received: every={every}. Pass what the callback "
            "got, or None."
        )
    return chosen, "epoch"


def _states(states, name):
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
