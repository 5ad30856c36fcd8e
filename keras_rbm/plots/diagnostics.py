"""Plots of a model on data: free energies, and the activity of hidden units."""

from typing import TYPE_CHECKING

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike

from keras_rbm.models.data.rows import held_rows, map_rows
from keras_rbm.models.generative_model import GenerativeModel
from keras_rbm.plots.figures import check_built, new_figure, without_frame
from keras_rbm.units.bernoulli import are_binary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
        label: held_rows(rbm.form.states(own, name))
        for name, (label, own) in zip(names, given.items(), strict=False)
    }
    count = min(len(rows["training data"]), _MOST_NOISE)
    rows["noise at the base rate"] = rbm.sample(count, steps=0, seed=seed)
    energies = {
        label: np.asarray(map_rows(rbm._energies, own), np.float64)
        for label, own in rows.items()
    }
    _check_finite("free energies", *energies.values())
    figure = new_figure(5.0, 3.2)
    axes = figure.add_subplot()
    known = np.concatenate([energies[label] for label in given])
    for index, (label, own) in enumerate(energies.items()):
        # Noise lies far away: with common bins each would be a single bar.
        edges = np.histogram_bin_edges(known if label in given else own, _BINS)
        color = f"C{index}" if label in given else "0.6"
        style = {"histtype": "stepfilled", "alpha": 0.4, "color": color}
        axes.hist(own, edges, density=True, label=label, **style)
        axes.axvline(own.mean(), color=color, linestyle="--", linewidth=1)
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
    error = np.sqrt(sum(own.var() / len(own) for own in pair))
    return f"Free-energy gap {gap:.2f} ± {error:.2f} nats"


def _layers(model, means):
    """Returns a list of (unit type, means (N, rows)), one for each hidden layer."""
    if isinstance(model.hidden, (list, tuple)):
        ends = np.cumsum(model._rows[1:])[:-1]
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
