"""A plot of the chains behind an estimate of log Z."""

import math
import textwrap
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logsumexp

from keras_rbm._checks import check_flags
from keras_rbm.inference import LogPartition
from keras_rbm.plots.figures import check_title, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BINS = 30


def annealing(
    log_partition: LogPartition, *, both_ways: bool = False, title: str | None = None
) -> "Figure":
    """Draws the chains' log weights behind an estimate of log Z.

    Each chain of annealing gives an estimate of log Z, its log weight. Bars show the
    share of the chains; the outline shows their share in the estimate of Z (annealed
    back, of 1 / Z). If a few chains to the right of the others dominate it, the
    estimate cannot be trusted. The band is the interval.

    Args:
        log_partition: `keras_rbm.inference.LogPartition` of one model, by `"ais"`,
            `"reverse_ais"`, `"bidirectional"` or `"tempering"`, which has no weights
            and so no outline.
        both_ways: bool, whether the estimate is `"bidirectional"`: then chains
            annealed forwards and back are drawn separately. They should overlap.
        title: str or `None`; by default the estimate, its interval and the effective
            sample size, and below them the estimate's note.

    Returns:
        `matplotlib.figure.Figure`.

    Raises:
        ImportError: if matplotlib is not installed.
        TypeError: if `log_partition` is not a `LogPartition`.
        ValueError: if the estimate has no chains, or is for several models.

    Example:

    >>> rbm = keras_rbm.RBM(4, num_visible=6, seed=0)
    >>> z = rbm.log_partition("ais", num_chains=50, betas=100)
    >>> figure = keras_rbm.plots.annealing(z)
    >>> figure.axes[0].get_xlabel()
    'log Z of each chain, nats'
    """
    check_title(title)
    check_flags(both_ways=both_ways)
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
        for own, name in zip(parts, names, strict=True):
            _draw_shares(axes, own, edges, label=name, alpha=0.5)
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
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize="small", frameon=False)
    if title is None:
        title = (
            f"log Z = {value:.2f}, [{lower:.2f}, {upper:.2f}], "
            f"effective sample size {ess:.4g}"
        )
        if weighted:  # for tempering it counts states, not chains
            title += f" of {len(values) // (1 + both_ways)}"
        title = "\n".join([title, *textwrap.wrap(log_partition.note, 60)])
    axes.set_title(title, fontsize=9)
    return figure


def _checked_weights(log_partition, both_ways):
    """Returns the log weights of an estimate of one model, an array (M,)."""
    if not isinstance(log_partition, LogPartition):
        raise TypeError(
            "Expected log_partition as a LogPartition. Received: "
            f"{type(log_partition).__name__}. Pass what log_partition() returned."
        )
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
