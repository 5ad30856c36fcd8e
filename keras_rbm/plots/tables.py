"""A picture of what `table_report` has found."""

from typing import TYPE_CHECKING

import numpy as np

from keras_rbm.plots.figures import new_figure, without_frame

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from keras_rbm.tables.report import TableReport

#: Most columns that are drawn, and letters of their names.
_COLUMNS, _LETTERS = 24, 16
#: Measures from 0 to 1, the first of which should be large.
_MEASURES = (
    *("column_shapes", "pair_trends", "all_pair_trends", "target"),
    *("classifier", "neighbors", "copies"),
)


def table_report(report: "TableReport") -> "Figure":
    """Draws a `TableReport`: its columns, their pairs, and a summary.

    Left: how alike the shape of each column is. Middle: how alike the trend of each
    pair is, of synthetic rows below the diagonal, of other real rows above it; gray has
    no score. Right: the measures from 0 to 1, with two standard errors; R² below 0 is
    drawn at 0. Dots should lie on the lines of real rows. Of more than 24 columns the
    worst are drawn.

    Args:
        report: what `keras_rbm.tables.table_report` returned.

    Returns:
        `matplotlib.figure.Figure` with three axes and a color bar.

    Raises:
        ImportError: if matplotlib is not installed.

    Example:

    >>> import pandas
    >>> from keras_rbm.tables import table_report
    >>> rows = np.random.default_rng(0).normal(size=(80, 3))
    >>> frame = pandas.DataFrame(rows, columns=["a", "b", "c"])
    >>> report = table_report(frame[:40], frame[40:])
    >>> len(keras_rbm.plots.table_report(report).axes)
    4
    """
    columns, measures = report.columns, report.measures
    order = np.argsort(columns["score"].fillna(-1.0).to_numpy(), kind="stable")
    shown = np.sort(order[:_COLUMNS])
    names = [_cut(str(columns.index[k])) for k in shown]
    figure = new_figure(10.0, max(3.4, 1.4 + 0.19 * len(shown)))
    shapes, pairs, summary = figure.subplots(1, 3, width_ratios=[1.0, 1.4, 1.0])
    values, real = (columns[name].to_numpy()[shown] for name in ("score", "real"))
    _draw_dots(shapes, names, values, real)
    low = np.nanmin([*values, *real, 0.95])
    shapes.set_xlim(low - 0.05 * (1.0 - low), 1.0 + 0.05 * (1.0 - low))
    shapes.set_title("column shapes", fontsize=9)
    style = {"fontsize": 8, "frameon": False, "loc": "upper center", "ncols": 2}
    shapes.legend(bbox_to_anchor=(0.5, -0.08), **style)

    matrix = np.full((len(columns), len(columns)), np.nan)
    upper = np.triu_indices(len(columns), 1)
    matrix[upper], matrix.T[upper] = report.pairs["real"], report.pairs["score"]
    _draw_pairs(figure, pairs, names, matrix[np.ix_(shown, shown)])

    known = {name: measures[name] for name in _MEASURES if name in measures}
    labels = [
        f"{name.replace('_', ' ')}  {measure.value:.2f}".replace("nan", "–")
        for name, measure in known.items()
    ]
    values, errors, real, _ = zip(*known.values(), strict=True)
    values, real = np.clip(values, 0.0, 1.0), np.clip(real, 0.0, 1.0)
    _draw_dots(summary, labels, values, real, 2.0 * np.array(errors))
    summary.set_xlim(-0.03, 1.03)
    summary.set_title("summary", fontsize=9)
    return figure


def _draw_dots(axes, names, values, real, errors=None):
    """Draws a dot for each name, from top to bottom, and a line where it should be."""
    rows = np.arange(len(names))
    axes.vlines(real, rows - 0.35, rows + 0.35, color="0.5", label="real rows")
    axes.errorbar(values, rows, xerr=errors, fmt="o", ms=4, label="synthetic rows")
    axes.set_yticks(rows, names, fontsize=8)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="x", labelsize=8)
    axes.grid(axis="y", color="0.92", lw=0.6)
    axes.set_axisbelow(True)
    without_frame(axes)


def _draw_pairs(figure, axes, names, matrix):
    """Draws scores of pairs, rows in line with the columns left of them."""
    import matplotlib

    colors = matplotlib.colormaps["viridis"].with_extremes(bad="0.85")
    low = min(0.9, np.nanmin(matrix, initial=1.0))
    image = axes.imshow(matrix, cmap=colors, vmin=low, vmax=1.0, aspect="auto")
    axes.set_xticks(range(len(names)), names, fontsize=7, rotation=90)
    axes.set_yticks(range(len(names)), [])
    axes.set_title("pair trends: synthetic below, real above", fontsize=9)
    bar = figure.colorbar(image, ax=axes, fraction=0.05, pad=0.02, aspect=30)
    bar.ax.tick_params(labelsize=8)


def _cut(name):
    half = _LETTERS // 2
    return name if len(name) <= _LETTERS else f"{name[:half]}…{name[1 - half :]}"
