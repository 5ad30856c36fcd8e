"""Plots of a training: its curves, free energies, and activity of hidden units."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike

from keras_rbm._checks import is_int
from keras_rbm.models.data.rows import held_rows, map_rows
from keras_rbm.models.generative_model import GenerativeModel, energies_of
from keras_rbm.plots.figures import check_built, new_figure, without_frame
from keras_rbm.units.bernoulli import are_binary

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


_BINS = 40
_MOST_NOISE = 1000
#: The band of binary units holds the middle 80 % of the data.
_QUANTILES = (0.1, 0.9)
#: Mean, or share of the largest deviation, of a unit that does nothing.
_DEAD = 0.01
_COLORS = {"alive": "tab:blue", "dead": "tab:red", "saturated": "tab:orange"}


def free_energies(
    rbm: keras.Model,
    data: ArrayLike | tf.data.Dataset,
    held_out: ArrayLike | tf.data.Dataset | None = None,
    seed: int = 0,
) -> "Figure":
    """Draws histograms of the free energies of data, held-out data and noise.

    `F(v) = -log p(v) - log Z`: the lower, the likelier. A model that overfits gives
    training data lower free energies than held-out data. The title shows the
    difference, the free-energy gap, with its standard error. A model that has learned
    its data gives noise, up to 1000 states of independent units at the base rate, far
    higher free energies.

    Args:
        rbm: built `RBM`, `InfiniteRBM` or `DBM` (whose free energy is a bound).
        data: array (N, V) or `tf.data.Dataset`, training examples.
        held_out: examples of the same kind that were not trained on, as for `data`, or
            `None`.
        seed: int, the seed of the noise.

    Returns:
        `matplotlib.figure.Figure`. Dashed lines are means.

    Raises:
        ImportError: if matplotlib is not installed.
        TypeError: if the model has no free energy of v.
        ValueError: if the model is not built, the data cannot be its states, or a free
            energy is not finite.

    Example:

    >>> data = np.random.default_rng(0).integers(0, 2, (200, 6)).astype("float32")
    >>> rbm = keras_rbm.RBM(4, seed=0)
    >>> rbm.adapt(data)
    >>> figure = keras_rbm.plots.free_energies(rbm, data[:100], data[100:])
    >>> [text.get_text() for text in figure.legends[0].get_texts()]
    ['training data', 'held-out data', 'noise at the base rate']
    """
    if not isinstance(rbm, GenerativeModel):
        raise TypeError(
            "Expected a model with free energies of v only, in plots.free_energies(). "
            f"Received: {type(rbm).__name__}."
            + (" Pass an RBM: dbn.rbms[0]." if hasattr(rbm, "rbms") else "")
        )
    check_built(rbm, "free_energies")
    given = {"training data": data}
    if held_out is not None:
        given["held-out data"] = held_out
    names = ("data", "held_out")
    rows = {
        label: held_rows(rbm.form.states(states, name))
        for name, (label, states) in zip(names, given.items(), strict=False)
    }
    count = min(len(rows["training data"]), _MOST_NOISE)
    rows["noise at the base rate"] = rbm.sample(count, steps=0, seed=seed)
    energies = {
        label: np.asarray(energies_of(rbm, states), np.float64)
        for label, states in rows.items()
    }
    _check_finite("free energies", *energies.values())
    figure = new_figure(5.0, 3.2)
    axes = figure.add_subplot()
    known = np.concatenate([energies[label] for label in given])
    for index, (label, states) in enumerate(energies.items()):
        # Noise lies far away: with common bins each would be a single bar.
        edges = np.histogram_bin_edges(known if label in given else states, _BINS)
        color = f"C{index}" if label in given else "0.6"
        style = {"histtype": "stepfilled", "alpha": 0.4, "color": color}
        axes.hist(states, edges, density=True, label=label, **style)
        axes.axvline(states.mean(), color=color, linestyle="--", linewidth=1)
    axes.set(xlabel="free energy, nats", ylabel="density")
    without_frame(axes)
    # Below the axes, because histograms may be anywhere.
    figure.legend(loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    axes.set_title(_gap(energies), fontsize=10)
    return figure


def activations(rbm: keras.Model, x: ArrayLike | tf.data.Dataset) -> "Figure":
    """Draws how active each hidden unit is on data, sorted by mean.

    A point is the mean of `E[h_j | v]` over the data. For binary units the bar holds
    the middle 80 % of the data; a unit is *dead* if the mean is below 0.01, and
    *saturated* if it is above 0.99. For other units the bar is a standard deviation on
    either side; a unit is dead, the same for all data, if its standard deviation is
    below 0.01 times the largest of the layer. Titles count dead and saturated units.

    Args:
        rbm: built `RBM`, `InfiniteRBM` (whose units count once here), `DBM` (a panel
            for each layer) or `DBN` (its top layer).
        x: array (N, V) or `tf.data.Dataset`, examples.

    Returns:
        `matplotlib.figure.Figure`.

    Raises:
        ImportError: if matplotlib is not installed.
        TypeError: if the model returns no activations, like a `CRBM`.
        ValueError: if the model is not built, or the data cannot be its states.

    Example:

    >>> rbm = keras_rbm.RBM(20, num_visible=64, seed=0)
    >>> biases = rbm.hidden_bias.assign(np.repeat([-9.0, 0.0, 9.0], [3, 15, 2]))
    >>> keras_rbm.plots.activations(rbm, np.eye(64)).axes[0].get_title()
    '20 hidden units: 3 dead, 2 saturated'
    """
    first, top = (getattr(rbm, "rbms", [rbm])[end] for end in (0, -1))
    if getattr(rbm, "conditional", False) or not hasattr(top, "hidden"):
        raise TypeError(
            "Expected a model of p(v) in plots.activations(). Received: "
            f"{type(rbm).__name__}."
        )
    check_built(first, "activations")
    rows = held_rows(first.form.states(x))
    means = map_rows(rbm, rows).numpy().astype(np.float64)
    _check_finite("activations", means)
    layers = _layers(top, means)
    figure = new_figure(5.0, 2.8 * len(layers))
    for index, (unit, own) in enumerate(layers):
        axes = figure.add_subplot(len(layers), 1, index + 1)
        name = f"Layer {index + 1}, " if len(layers) > 1 else ""
        _draw_layer(axes, own, are_binary(unit), name)
    return figure


def _check_finite(what, *arrays):
    """Raises a ValueError if a model gives NaN or infinite values."""
    if not all(np.isfinite(array).all() for array in arrays):
        raise ValueError(
            f"Expected finite {what}. Received: NaN or infinite values. Training has "
            "diverged: load an earlier model, or lower the learning rate."
        )


def _gap(energies):
    """Returns a title with the free-energy gap of held-out and training data."""
    pair = [energies.get(label) for label in ("training data", "held-out data")]
    if pair[1] is None:
        return "Free energies"
    gap = pair[1].mean() - pair[0].mean()
    error = np.sqrt(sum(values.var() / len(values) for values in pair))
    return f"Free-energy gap {gap:.2f} ± {error:.2f} nats"


def _layers(model, means):
    """Returns a list of (unit type, means (N, rows)), one for each hidden layer."""
    if isinstance(model.hidden, (list, tuple)):
        layers = zip(model.hidden, model.hidden_units, strict=True)
        ends = np.cumsum([unit.num_rows(count) for unit, count in layers])[:-1]
        return list(zip(model.hidden, np.split(means, ends, axis=1), strict=True))
    return [(model.hidden, means)]


def _draw_layer(axes, activity, binary, name):
    mean, deviation = activity.mean(0), activity.std(0)
    if binary:
        low, high = np.quantile(activity, _QUANTILES, axis=0)
        kinds = {"dead": mean < _DEAD, "saturated": mean > 1.0 - _DEAD}
        axes.set_ylim(-0.03, 1.03)
    else:
        low, high = mean - deviation, mean + deviation
        kinds = {"dead": deviation <= _DEAD * deviation.max()}
    kinds["alive"] = ~np.any([*kinds.values()], axis=0)
    order = np.argsort(mean, kind="stable")
    place = np.argsort(order)
    for kind, which in kinds.items():
        if not which.any():
            continue
        where, color = place[which], _COLORS[kind]
        axes.vlines(where, low[which], high[which], color=color, alpha=0.35)
        axes.scatter(where, mean[which], s=6, color=color, label=kind)
    counts = [f"{kinds[k].sum()} {k}" for k in kinds if k != "alive"]
    axes.set_title(f"{name}{len(mean)} hidden units: {', '.join(counts)}", fontsize=10)
    if len(axes.get_legend_handles_labels()[1]) > 1:
        axes.legend(loc="upper left", fontsize="small", frameon=False)
    axes.set(xlabel="hidden unit, by its mean", ylabel="E[h | v]")
    axes.locator_params(axis="x", integer=True, min_n_ticks=1)
    without_frame(axes)
