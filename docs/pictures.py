"""Draws the site's pictures: `python docs/pictures.py [name …]`, all by default.

The background is transparent and text is grey, so that they show on light pages and
dark ones.
"""

import pathlib
import sys

import keras
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


def digits():
    """What models of MNIST do: restore, complete, draw digits. Takes five minutes."""
    train, test = (
        kr.datasets.load("mnist", split, binarize="sample", redraw=False)
        for split in ("train", "test")
    )
    train = train.batch(60_000).get_single_element().numpy()
    test = next(iter(test.batch(10))).numpy()

    rbm = kr.RBM(500, seed=0)
    steps = 25 * len(train) // 100
    falling = keras.optimizers.schedules.PolynomialDecay(0.05, steps, 0.0)
    rule = kr.rules.PersistentContrastiveDivergence(1, 100, centered=True)
    rbm.compile(keras.optimizers.SGD(falling), rule=rule)
    rbm.fit(train, batch_size=100, epochs=25, verbose=0)
    # Each sample is the end of a chain of its own, drawn in means.
    samples = rbm.reconstruct(rbm.sample(10, steps=5000, seed=3)).numpy()

    known = np.arange(784) < 392
    hidden_half = np.where(known, test, 0.4)
    start = np.where(known, test, rbm.sample(10, steps=0, seed=0))
    completed = rbm.sample(10, initial_visible=start, clamp=known, steps=2000, seed=1)
    completed = np.where(known, test, rbm.reconstruct(completed))

    rng = np.random.default_rng(0)
    noisy = np.abs(train[:20_000] - (rng.random((20_000, 784)) < 0.1))
    crbm = kr.CRBM(
        128, inference=kr.inference.BeliefPropagation(max_iterations=7), seed=0
    )
    crbm.compile(keras.optimizers.SGD(0.02, momentum=0.9), rule="maximum_likelihood")
    crbm.fit(noisy, train[:20_000], batch_size=40, epochs=4, verbose=0)
    flipped = np.abs(test - (rng.random(test.shape) < 0.1))
    restored = crbm.predict(flipped, verbose=0)

    rows = {
        "noisy": flipped,
        "restored": restored,
        "half hidden": hidden_half,
        "completed": completed,
        "new": samples,
    }
    figure, panels = plt.subplots(5, 10, figsize=(7.6, 4.0))
    for line, (name, images) in zip(panels, rows.items(), strict=True):
        for axes, image in zip(line, images, strict=True):
            axes.imshow(image.reshape(28, 28), cmap="gray", vmin=0, vmax=1)
            axes.set_xticks([])
            axes.set_yticks([])
            axes.spines[:].set_visible(False)
        label = {"rotation": 0, "ha": "right", "va": "center", "fontsize": 10}
        line[0].set_ylabel(name, **label)
    figure.subplots_adjust(0.13, 0.01, 0.995, 0.99, 0.05, 0.05)
    _FOLDER.mkdir(exist_ok=True)
    figure.savefig(_FOLDER / "digits.png", dpi=140)
    plt.close(figure)


PICTURES = {picture.__name__: picture for picture in (units, digits)}


if __name__ == "__main__":
    style()
    for name in sys.argv[1:] or PICTURES:
        PICTURES[name]()
