"""New figures, and what all plots share."""

import io

import numpy as np

from keras_rbm._checks import import_optional

_GRID_INCHES = 6.0
_SEPARATOR = "0.6"


def new_figure(width, height):
    """Returns a matplotlib figure; its size is in inches."""
    module = import_optional("matplotlib.figure", "draws the pictures")

    class Shown(module.Figure):
        """A figure that a notebook draws, even if pyplot was never imported."""

        def _repr_png_(self):
            buffer = io.BytesIO()
            self.savefig(buffer, format="png")
            return buffer.getvalue()

    return Shown((width, height), layout="constrained", dpi=150)


def check_built(rbm, function):
    """Raises a ValueError unless `plots.function` can draw the model."""
    if not getattr(rbm, "built", False):
        raise ValueError(
            f"Expected a built model in plots.{function}(). Received: rbm={rbm!r}. "
            "Call build(), adapt() or fit() first."
        )


def image_figure(grid, title, margin=0.0):
    """Returns a figure and its only axes, sized for a grid of images."""
    height, width = grid.shape
    scale = _GRID_INCHES / max(height, width)
    title_height = 0.35 if title else 0.0
    figure = new_figure(width * scale + margin, height * scale + title_height)
    axes = figure.add_subplot()
    axes.set_axis_off()
    axes.set_title(title or "", fontsize=10)
    return figure, axes


def show_grid(axes, grid, colors, low, high):
    """Draws a grid of images, NaN as the gray between them; returns the artist."""
    import matplotlib

    colors = matplotlib.colormaps[colors].with_extremes(bad=_SEPARATOR)
    return axes.imshow(grid, cmap=colors, vmin=low, vmax=high, interpolation="nearest")


def show_gray(axes, grid):
    """Draws a grid of images from black to white, at least 0 to 1."""
    low, high = min(np.nanmin(grid), 0.0), max(np.nanmax(grid), 1.0)
    return show_grid(axes, grid, "gray", low, high)


def without_frame(axes):
    """Hides the upper and the right edge."""
    axes.spines[["top", "right"]].set_visible(False)
