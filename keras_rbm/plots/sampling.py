"""Plots and animations of a model's Markov chains."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import keras
import numpy as np
from numpy.typing import ArrayLike

from keras_rbm import random
from keras_rbm._checks import as_array, check_counts, check_flags
from keras_rbm._images import checked_image_shape, image_grid
from keras_rbm.plots.figures import check_built, check_title, image_figure, show_gray
from keras_rbm.plots.images import comparison

if TYPE_CHECKING:
    from matplotlib.animation import FuncAnimation
    from matplotlib.figure import Figure

#: 0 to 1000 sweeps, spaced by about the same factor.
_FRAMES = (0, *np.unique(np.geomspace(1, 1000, 40).round().astype(int)).tolist())


def chains(
    rbm: keras.Model,
    num_chains: int = 10,
    sweeps: Sequence[int] = (0, 1, 10, 100, 1000),
    image_shape: tuple[int, int] | None = None,
    initial_visible: ArrayLike | None = None,
    seed: int = 0,
    *,
    means: bool = True,
    title: str | None = None,
) -> "Figure":
    """Draws Gibbs chains: a row for each number of sweeps, a column for each chain.

    The states after k sweeps are what `rbm.sample(num_chains, steps=k, seed=seed)`
    returns; with one seed, all rows show the same chains. A column that keeps its image
    is a chain stuck in a mode; columns that become alike, from noise, have found the
    same mode.

    Args:
        rbm: built model of p(v).
        num_chains: int ≥ 1.
        sweeps: increasing ints ≥ 0, one for each row.
        image_shape: `(height, width)`, or `None` for square images.
        initial_visible: array (num_chains, V) to start from, such as data; by default
            drawn from the base rate. For a `DBN`, states of its top RBM.
        seed: int, the seed of the chains.
        means: bool. If `True`, states are drawn as their reconstructions, which are
            smoother; those after 0 sweeps, and categories, which have no mean, are
            drawn unchanged.
        title: str or `None`.

    Returns:
        `matplotlib.figure.Figure`.

    Raises:
        ImportError: if matplotlib is not installed.
        TypeError: if the model has no chains of its own, like a `CRBM`.
        ValueError: if the model is not built, a number is out of range, or the visible
            units do not form an image of the shape.

    Example:

    >>> rbm = keras_rbm.RBM(20, num_visible=64, seed=0)
    >>> figure = keras_rbm.plots.chains(rbm, num_chains=5, sweeps=(0, 1, 10))
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['0 sweeps', '1 sweep', '10 sweeps']
    """
    check_title(title)
    states = _states(
        rbm, "chains", num_chains, sweeps, image_shape, initial_visible, seed, means
    )
    rows = {_label(count): own for count, own in states.items()}
    title = "Gibbs chains" if title is None else title
    return comparison(rows, image_shape, title=title)


def chain_animation(
    rbm: keras.Model,
    num_chains: int = 25,
    sweeps: Sequence[int] = _FRAMES,
    image_shape: tuple[int, int] | None = None,
    initial_visible: ArrayLike | None = None,
    seed: int = 0,
    *,
    means: bool = True,
    interval: int = 200,
    title: str | None = None,
) -> "FuncAnimation":
    """Makes an animation of Gibbs chains, with a frame for each number of sweeps.

    Save it with `animation.save("chains.gif", writer="pillow", dpi=80)`, or show it in
    a notebook with `IPython.display.HTML(animation.to_jshtml())`.

    Args:
        rbm: built model of p(v).
        num_chains: int ≥ 1, one image for each chain.
        sweeps: increasing ints ≥ 0, one for each frame; by default up to 1000.
        image_shape: `(height, width)`, or `None` for square images.
        initial_visible: as for `chains`.
        seed: int, the seed of the chains.
        means: as for `chains`.
        interval: int ≥ 1, milliseconds from frame to frame.
        title: str or `None`, above each frame, before the number of sweeps.

    Returns:
        `matplotlib.animation.FuncAnimation`.

    Raises:
        ImportError, TypeError, ValueError: as for `chains`.

    Example:

    >>> import tempfile
    >>> rbm = keras_rbm.RBM(20, num_visible=64, seed=0)
    >>> animation = keras_rbm.plots.chain_animation(rbm, 4, sweeps=range(3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     animation.save(f"{folder}/chains.gif", writer="pillow", dpi=40)
    """
    check_title(title)
    check_counts(interval=interval)
    states = _states(
        rbm,
        "chain_animation",
        num_chains,
        sweeps,
        image_shape,
        initial_visible,
        seed,
        means,
    )
    grids = [image_grid(own, image_shape) for own in states.values()]
    above = [f"{title}, {_label(k)}" if title else _label(k) for k in states]
    figure, axes = image_figure(grids[0], above[0])
    image = show_gray(axes, grids[0])
    extremes = np.concatenate([*states.values()])
    image.set_clim(min(extremes.min(), 0.0), max(extremes.max(), 1.0))

    def draw(frame):
        image.set_data(np.ma.masked_invalid(grids[frame]))
        axes.set_title(above[frame], fontsize=10)
        return [image]

    from matplotlib.animation import FuncAnimation

    return FuncAnimation(figure, draw, frames=len(grids), interval=int(interval))


def _label(count):
    return "1 sweep" if count == 1 else f"{count} sweeps"


def _states(
    rbm, function, num_chains, sweeps, image_shape, initial_visible, seed, means
):
    """Returns a dict from sweeps to the arrays (chains, V) to draw."""
    if getattr(rbm, "conditional", False) or not hasattr(rbm, "reconstruct"):
        raise TypeError(
            f"Expected a model of p(v) in plots.{function}(). Received: "
            f"{type(rbm).__name__}. For a CRBM call plots.samples(crbm.sample(x))."
        )
    check_built(rbm, function)
    check_counts(num_chains=num_chains)
    check_flags(means=means)
    sweeps = _checked_sweeps(sweeps)
    options = {"initial_visible": initial_visible, "seed": random.as_seed(seed)}

    def states(steps):
        return rbm.sample(num_chains, steps=steps, **options).numpy()

    # Drawing the start takes no time: it checks the shape before the chains run.
    checked_image_shape(image_shape, states(0).shape[1])
    shown = {steps: states(steps) for steps in sweeps}
    if means:
        for steps, own in shown.items():
            reconstructed = rbm.reconstruct(own).numpy()
            if steps and reconstructed.shape == own.shape:
                shown[steps] = reconstructed
    return shown


def _checked_sweeps(sweeps):
    """Returns numbers of sweeps as a list of ints."""
    values = as_array(sweeps)
    ints = values is not None and values.ndim == 1 and values.dtype.kind in "iu"
    if not ints or values[0] < 0 or (np.diff(values.astype(np.int64)) <= 0).any():
        raise ValueError(
            "Expected sweeps as at least one int ≥ 0, each larger than the one before. "
            f"Received: sweeps={sweeps!r:.100}. Pass for example (0, 1, 10, 100)."
        )
    return values.tolist()
