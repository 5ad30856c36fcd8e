"""Draws the site's pictures: `python docs/pictures.py`, each into its place.

The background is transparent and text is grey, so that they show on light pages and
dark ones.
"""

import pathlib

import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf

import keras_rbm as kr

_FOLDER = pathlib.Path(__file__).parent / "pictures"
_GREY = "#888888"
_INPUTS = (-1.5, 0.0, 1.5)
_COLOURS = ("#4c72b0", "#8c8c8c", "#dd8452")


def style():
    """Sets what all pictures have in common."""
    names = ("axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
    plt.rcParams.update(dict.fromkeys((*names, "text.color"), _GREY))
    plt.rcParams.update(
        {
            "axes.spines.top": False,
            "axes.spines.right": False,
            "font.size": 9,
            "svg.hashsalt": "pictures",
            "savefig.transparent": True,
        }
    )


def save(figure, name):
    """Saves a figure as SVG, the same file each time."""
    _FOLDER.mkdir(exist_ok=True)
    figure.savefig(_FOLDER / f"{name}.svg", metadata={"Date": None})
    plt.close(figure)


def units():
    """What one unit's states are like for three inputs from the other layer."""
    zero = tf.zeros(1)
    layers = {
        "Bernoulli": kr.units.Bernoulli().parameters(bias=zero),
        "Spin": kr.units.Spin().parameters(bias=zero),
        "Binomial(8)": kr.units.Binomial(8).parameters(bias=zero),
        "Categorical(4)": kr.units.Categorical(4).parameters(bias=tf.zeros(4)),
        "Gaussian": kr.units.Gaussian().parameters(
            bias=zero, log_precision=zero, shift=zero, scale=zero + 1.0
        ),
        "Rectified": kr.units.Rectified().parameters(bias=zero, log_precision=zero),
        "DoubleRectified": kr.units.DoubleRectified().parameters(
            bias=zero,
            threshold=zero - 1.5,
            log_precision=zero,
            log_precision_below=zero + 1.0,
        ),
    }
    figure, panels = plt.subplots(2, 4, figsize=(9.2, 4.0), layout="constrained")
    for axes, (name, layer) in zip(panels.flat, layers.items(), strict=False):
        _draw_unit(axes, layer)
        axes.set_title(name, fontsize=10)
        axes.set_yticks([])
    legend = panels.flat[-1]
    legend.set_axis_off()
    for number, (value, colour) in enumerate(zip(_INPUTS, _COLOURS, strict=True)):
        y = 0.7 - 0.2 * number
        legend.plot([0.05, 0.2], [y, y], color=colour, linewidth=5)
        legend.text(0.28, y, f"input {value:g}", va="center", fontsize=10)
    legend.set(xlim=(0, 1), ylim=(0, 1))
    save(figure, "units")


def _draw_unit(axes, layer):
    """Draws probabilities as bars, densities as curves."""
    for number, (value, colour) in enumerate(zip(_INPUTS, _COLOURS, strict=True)):
        rows = layer.num_rows  # of categories, the input goes to the second one
        natural = value * tf.one_hot([1 if rows > 1 else 0], rows)
        if layer.finite:
            states = np.float32(layer.states)[:, np.newaxis]
        else:
            low = 0.0 if isinstance(layer, kr.units.RectifiedParameters) else -4.0
            states = np.linspace(low, 4.5, 120, dtype="float32")[:, np.newaxis]
        given = tf.repeat(natural, len(states), 0)
        log_p = kr.inference.potentials.log_conditional(layer, states, given)
        p = np.exp(log_p)
        if layer.finite:
            gap = float(np.diff(states[:, 0]).min())
            places = states[:, 0] + 0.25 * gap * (number - 1)
            axes.bar(places, p, width=0.23 * gap, color=colour)
            axes.set_xticks(states[:: max(1, len(states) // 4), 0])
        else:
            axes.plot(states[:, 0], p, color=colour)
            axes.fill_between(states[:, 0], p, color=colour, alpha=0.15)


PICTURES = (units,)


if __name__ == "__main__":
    style()
    for picture in PICTURES:
        picture()
        print(_FOLDER / f"{picture.__name__}.svg")
