"""Plots of scores, of their chains, and of what `quality_report` has found."""

import math
import textwrap
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logsumexp

from keras_rbm._quality import QualityReport
from keras_rbm._scoring import ScoreReport
from keras_rbm.inference import LogPartition
from keras_rbm.plots.figures import new_figure, without_frame

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BINS = 30


def score_report(report: ScoreReport, *, title: str | None = None) -> "Figure":
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


def quality_report(report: QualityReport) -> "Figure":
    """Draws samples beside data, their covariances, and how both change with sweeps.

    Above it is the report's verdict.

    Left: data and samples in the first two principal components of the data. A cloud
    without samples is a mode that is missing. Middle: the covariance of each pair of
    columns in the data and in the samples; on the line they agree. Right: how often
    nearest neighbors tell samples from held-out data, by the sweeps of chains from the
    base rate and from training data. They should meet, near 0.5; a curve that falls and
    rises again is of a model that learned from chains that were too short.

    Args:
        report: `keras_rbm._quality.QualityReport`.

    Returns:
        `matplotlib.figure.Figure` with three axes.

    Raises:
        ImportError: if matplotlib is not installed.

    Example:

    >>> data = np.random.default_rng(0).integers(0, 2, (60, 6)).astype("float32")
    >>> rbm = keras_rbm.RBM(4, num_visible=6, seed=0)
    >>> report = keras_rbm.quality_report(rbm, data[:30], data[30:], steps=3)
    >>> len(keras_rbm.plots.quality_report(report).axes)
    3
    """
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
    correlation, _ = report.correlations["2-point"]
    pairs.set(xlabel="covariance in held-out data", ylabel="in samples")
    pairs.set_title(f"correlation {correlation:.3f}", fontsize=9)
    curves = {"from the base rate": report.from_noise, "from data": report.from_data}
    for name, values in curves.items():
        lengths.plot(report.sweeps, values, marker="o", ms=3, label=name)
    lengths.axhline(0.5, color="0.6", lw=0.8)
    lengths.set(xscale="log", xlabel="sweeps", ylabel="told from held-out data")
    lengths.legend(fontsize="small", frameon=False)
    for axes in (clouds, pairs, lengths):
        without_frame(axes)
    verdict = textwrap.wrap(" ".join(report.verdict), 130)
    figure.suptitle("\n".join(verdict), fontsize=9)
    return figure


def annealing(log_partition: LogPartition, *, both_ways: bool = False) -> "Figure":
    """Draws the chains' log weights behind an estimate of log Z.

    Each chain of annealing gives an estimate of log Z, its log weight. Bars show the
    share of the chains; the outline shows their share in the estimate of Z (annealed
    back, of 1 / Z). If a few chains to the right of the others dominate it, the
    estimate cannot be trusted. The band is the interval. Above are the estimate, its
    interval, the effective sample size and the estimate's note.

    Args:
        log_partition: `keras_rbm.inference.LogPartition` of one model, by `"ais"`,
            `"reverse_ais"`, `"bidirectional"` or `"tempering"`, which has no weights
            and so no outline.
        both_ways: bool, whether the estimate is `"bidirectional"`: then chains
            annealed forwards and back are drawn separately. They should overlap.

    Returns:
        `matplotlib.figure.Figure`.

    Raises:
        ImportError: if matplotlib is not installed.
        ValueError: if the estimate has no chains, or is for several models.

    Example:

    >>> rbm = keras_rbm.RBM(4, num_visible=6, seed=0)
    >>> z = rbm.log_partition("ais", num_chains=50)
    >>> figure = keras_rbm.plots.annealing(z)
    >>> figure.axes[0].get_xlabel()
    'log Z of each chain, nats'
    """
    values = _checked_weights(log_partition, both_ways)
    fields = ("value", "lower", "upper", "ess")
    value, lower, upper, ess = (
        float(np.squeeze(getattr(log_partition, name))) for name in fields
    )
    figure = new_figure(5.0, 3.2)
    axes = figure.add_subplot()
    ends = [end for end in (value, lower, upper) if math.isfinite(end)]
    left, right = min(values.min(), *ends), max(values.max(), *ends)
    margin = 0.05 * (right - left) + 1e-3
    left, right = left - margin, right + margin
    band = max(lower, left), min(upper, right)
    axes.axvspan(*band, color="C2", alpha=0.2, lw=0, label="interval")
    axes.axvline(value, color="C2", label="estimate")
    edges = np.histogram_bin_edges(values, _BINS)
    weighted = both_ways
    if both_ways:
        parts = np.split(values, 2)
        names = ("annealed forwards", "annealed back")
        for part, name in zip(parts, names, strict=True):
            _draw_shares(axes, part, edges, label=name, alpha=0.5)
    else:
        _draw_shares(axes, values, edges, label="chains", color="C0", alpha=0.5)
        weights = _shares(values, value)
        weighted = weights is not None
        if weights is not None:
            style = {"histtype": "step", "color": "C3", "label": "their part in Z"}
            axes.hist(values, edges, weights=weights, **style)
    axes.set_xlim(left, right)
    axes.set(xlabel="log Z of each chain, nats", ylabel="share")
    axes.locator_params(axis="x", nbins=6)
    axes.ticklabel_format(axis="x", useOffset=False)
    without_frame(axes)
    axes.legend(fontsize="small", frameon=False)
    title = (
        f"log Z = {value:.2f}, [{lower:.2f}, {upper:.2f}], "
        f"effective sample size {ess:.4g}"
    )
    if weighted:  # for tempering it counts states, not chains
        title += f" of {len(values) // (1 + both_ways)}"
    lines = [title, *textwrap.wrap(log_partition.note, 60)]
    axes.set_title("\n".join(lines), fontsize=9)
    return figure


def _checked_weights(log_partition, both_ways):
    """Returns the log weights of an estimate of one model, an array (M,)."""
    values = np.asarray(log_partition.log_weights, np.float64)
    if values.ndim > 1 and values.shape[1] != 1:
        raise ValueError(
            "Expected an estimate of one model. Received: log_partition of "
            f"{values.shape[1]} models. Pass that of one: crbm.log_partition(x[:1], "
            "'ais')."
        )
    values = values.reshape(-1)
    if len(values) < 2 or not np.isfinite(values).all():
        raise ValueError(
            "Expected an estimate by at least two chains, with finite log weights. "
            f"Received: log_weights={values!r:.100}. Use log_partition('ais')."
        )
    if both_ways and len(values) % 2:
        raise ValueError(
            "Expected as many chains annealed back as forwards. Received: "
            f"both_ways=True for {len(values)} chains. Use "
            "log_partition('bidirectional')."
        )
    return values


def _draw_shares(axes, values, edges, **style):
    axes.hist(values, edges, weights=np.full(len(values), 1.0 / len(values)), **style)


def _shares(values, estimate):
    """Returns each chain's share in an estimate, or `None` if it is not their mean.

    The direction of annealing is inferred from the estimate's value.
    """
    for sign in (1.0, -1.0):
        total = logsumexp(sign * values)
        if math.isclose(sign * (total - math.log(len(values))), estimate, abs_tol=1e-6):
            return np.exp(sign * values - total)
    return None
