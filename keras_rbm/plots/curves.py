"""Plots of training curves and of scores."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import keras
import numpy as np

from keras_rbm._checks import check_counts, is_int
from keras_rbm.plots.figures import check_title, new_figure
from keras_rbm.scoring import ScoreReport

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def history(
    history: keras.callbacks.History | dict[str, Sequence[float]],
    every: int | None = None,
    *,
    title: str | None = None,
) -> "Figure":
    """Draws training curves, with one panel per metric.

    A metric and its `val_…` share a panel. `…_lower` and `…_upper` become a band around
    their metric; a hollow triangle points to an end that is infinite. Counts get
    integer ticks, and `…converged`, a share, an axis from 0 to 1.

    Args:
        history: what `fit` returned, or its dict `history`.
        every: int or `None`, epochs between the values of a metric that is not
            measured in each epoch (`keras_rbm.callbacks.LogLikelihood`). With `None`
            such a metric is drawn over the number of the measurement.
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
    if not isinstance(metrics, dict) or not _are_courses(metrics.values()):
        raise ValueError(
            "Expected what fit() returned, with at least one epoch (of pretrain one "
            f"of the list, histories[0]). Received: history={metrics!r:.200}."
        )
    check_title(title)
    if every is not None:
        check_counts(every=every)
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


def score_report(report: ScoreReport, *, title: str | None = None) -> "Figure":
    """Draws a `ScoreReport`: intervals of the likelihood, and free energies.

    Args:
        report: what `keras_rbm.score_report` returned.
        title: str or `None`.

    Returns:
        `matplotlib.figure.Figure`. Open intervals end in an arrow.

    Raises:
        ImportError: if matplotlib is not installed.
        TypeError: if `report` is not a `ScoreReport`.
    """
    check_title(title)
    if not hasattr(report, "free_energies"):
        raise TypeError(
            "Expected what keras_rbm.score_report returned. Received: "
            f"{type(report).__name__}."
        )
    panels = 1 + bool(report.free_energies)
    figure = new_figure(5.0 * panels, 3.2)
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


def _are_courses(courses):
    """Returns whether there are lists of numbers, not all of them empty."""
    try:
        arrays = [np.asarray(course, float) for course in courses]
    except (TypeError, ValueError):
        return False
    return any(map(np.size, arrays)) and all(array.ndim == 1 for array in arrays)


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


def _positions(name, count, epochs, every):
    """Returns the x positions of a metric's values, and the label of that axis."""
    if count == len(epochs):
        return epochs, "epoch"
    if every is None:
        return list(range(1, count + 1)), "measurement"
    chosen = [epoch for epoch in epochs if epoch % every == 0]
    if len(chosen) != count:
        raise ValueError(
            f"Expected every to give the epochs of {count} values of {name!r} in "
            f"{len(epochs)} epochs. Received: every={every}. Pass the callback's "
            "every, or None."
        )
    return chosen, "epoch"
