"""A plot of what `quality_report` has found."""

import textwrap
from typing import TYPE_CHECKING

import numpy as np

from keras_rbm.plots.figures import check_title, new_figure
from keras_rbm.quality import QualityReport

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def quality_report(report: QualityReport, *, title: str | None = None) -> "Figure":
    """Draws samples beside data, their covariances, and how both change with sweeps.

    Left: data and samples in the first two principal components of the data. A cloud
    without samples is a mode that is missing. Middle: the covariance of each pair of
    columns in the data and in the samples; on the line they agree. Right: how often
    nearest neighbors tell samples from held-out data, by the sweeps of chains from the
    base rate and from training data. They should meet, near 0.5; a curve that falls and
    rises again is of a model that learned from chains that were too short.

    Args:
        report: `keras_rbm.quality.QualityReport`.
        title: str or `None`; by default the report's verdict.

    Returns:
        `matplotlib.figure.Figure` with three axes.

    Raises:
        ImportError: if matplotlib is not installed.
        TypeError: if `report` is not a `QualityReport`.

    Example:

    >>> data = np.random.default_rng(0).integers(0, 2, (60, 6)).astype("float32")
    >>> rbm = keras_rbm.RBM(4, num_visible=6, seed=0)
    >>> report = keras_rbm.quality_report(rbm, data[:30], data[30:], steps=3)
    >>> len(keras_rbm.plots.quality_report(report).axes)
    3
    """
    check_title(title)
    if not isinstance(report, QualityReport):
        raise TypeError(
            "Expected report as a QualityReport. Received: "
            f"{type(report).__name__}. Pass what quality_report() returned."
        )
    figure = new_figure(10.0, 3.6)
    clouds, pairs, lengths = figure.subplots(1, 3)
    for name, rows in report.components.items():
        clouds.scatter(*rows.T, s=6, alpha=0.4, label=name, linewidths=0)
    clouds.set(xlabel="first component", ylabel="second component")
    clouds.legend(fontsize="small", frameon=False, markerscale=2)
    data, samples = report.covariances.values()
    pairs.scatter(data, samples, s=4, alpha=0.3, color="C1", linewidths=0)
    ends = [np.min([data, samples], initial=0.0), np.max([data, samples], initial=0.0)]
    pairs.plot(ends, ends, color="0.6", lw=0.8)
    own, _ = report.correlations["2-point"]
    pairs.set(xlabel="covariance in held-out data", ylabel="in samples")
    pairs.set_title(f"correlation {own:.3f}", fontsize=9)
    curves = {"from the base rate": report.from_noise, "from data": report.from_data}
    for name, values in curves.items():
        lengths.plot(report.sweeps, values, marker="o", ms=3, label=name)
    lengths.axhline(0.5, color="0.6", lw=0.8)
    lengths.set(xscale="log", xlabel="sweeps", ylabel="told from held-out data")
    lengths.legend(fontsize="small", frameon=False)
    for axes in (clouds, pairs, lengths):
        axes.spines[["top", "right"]].set_visible(False)
    if title is None:
        title = "\n".join(textwrap.wrap(" ".join(report.verdict), 130))
    figure.suptitle(title, fontsize=9)
    return figure
