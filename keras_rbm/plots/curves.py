"""Training curves."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import keras
import numpy as np

from keras_rbm._checks import is_int
from keras_rbm.plots.figures import new_figure, without_frame

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def history(
    history: keras.callbacks.History | dict[str, Sequence[float]],
    *,
    title: str | None = None,
) -> "Figure":
    """Draws training curves, with one panel per metric.

    A metric and its `val_…` share a panel. `…_lower` and `…_upper` become a band around
    their metric; a hollow triangle points to an end that is infinite. Counts get
    integer ticks, and `…converged`, a share, an axis from 0 to 1. A metric that is not
    measured in each epoch is drawn over the number of the measurement.

    Args:
        history: what `fit` returned, or its dict `history`.
        title: str or `None`.

    Returns:
        `matplotlib.figure.Figure`.

    Raises:
        ImportError: if matplotlib is not installed.
        ValueError: if there is no metric.

    Example:

    >>> figure = keras_rbm.plots.history({"loss": [9.0, 7.0], "val_loss": [9.5, 8.0]})
    >>> len(figure.axes)
    1
    """
    metrics = getattr(history, "history", history)
    if not isinstance(metrics, dict) or not any(map(len, metrics.values())):
        raise ValueError(
            "Expected what fit() returned, with at least one epoch (of pretrain one "
            f"of the list, histories[0]). Received: history={metrics!r:.200}."
        )
    count = max(map(len, metrics.values()))
    first = (getattr(history, "epoch", None) or [0])[0] + 1
    epochs = list(range(first, first + count))
    panels = [name for name in metrics if not _is_part(name, metrics)]
    columns = min(len(panels), 3)
    rows = math.ceil(len(panels) / columns)
    figure = new_figure(4.0 * columns, 2.8 * rows)
    if title is not None:
        figure.suptitle(title, fontweight="bold")
    for index, name in enumerate(panels):
        axes = figure.add_subplot(rows, columns, index + 1)
        for line in (name, f"val_{name}"):
            if line in metrics:
                label = "validation" if line != name else "training"
                _draw_line(axes, metrics, line, label, epochs)
        if f"val_{name}" in metrics:
            axes.legend(frameon=False)
        axes.set_title(name.replace("_", " "))
        without_frame(axes)
        axes.locator_params(axis="x", integer=True, min_n_ticks=1)
        if all(map(is_int, metrics[name])):
            axes.locator_params(axis="y", integer=True, min_n_ticks=1)
        if name.endswith("converged"):
            axes.set_ylim(-0.02, 1.05)  # room for markers at both ends
    return figure


def _is_part(name, metrics):
    """Returns whether a metric is drawn in the panel of another one."""
    endings = ("_lower", "_upper")
    if any(name.endswith(e) and name.removesuffix(e) in metrics for e in endings):
        return True
    return name.startswith("val_") and name.removeprefix("val_") in metrics


def _draw_line(axes, metrics, name, label, epochs):
    values = np.asarray(metrics[name], float)
    x, x_label = range(1, len(values) + 1), "measurement"
    if len(values) == len(epochs):
        x, x_label = epochs, "epoch"
    marker = "o" if len(values) < 20 else None
    (line,) = axes.plot(x, values, marker=marker, markersize=3, label=label)
    lower, upper = metrics.get(f"{name}_lower"), metrics.get(f"{name}_upper")
    if lower is not None and upper is not None:
        _draw_intervals(axes, np.asarray(x), values, lower, upper, line.get_color())
    axes.set_xlabel(x_label)


def _draw_intervals(axes, x, values, lower, upper, color):
    """Draws a band where both ends are known, and marks values where one is not."""
    lower, upper = np.asarray(lower, float), np.asarray(upper, float)
    known = np.isfinite(lower) & np.isfinite(upper)
    style = {"color": color, "alpha": 0.25}
    axes.fill_between(x, lower, upper, where=known, lw=0, **style)
    # A band has no width if neither neighbor has one.
    padded = np.pad(known, 1)
    single = known & ~padded[:-2] & ~padded[2:]
    axes.vlines(x[single], lower[single], upper[single], lw=4, **style)
    for end, marker in ((lower, "v"), (upper, "^")):
        unknown = np.isinf(end)
        if unknown.any():
            hollow = {"markerfacecolor": "none", "markersize": 8, "color": color}
            axes.plot(x[unknown], values[unknown], marker, **hollow)
