"""Plots of aligned sequences: logos and contact maps."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from keras_rbm._checks import check_counts, import_optional
from keras_rbm.datasets.sequences import PROTEINS
from keras_rbm.plots.figures import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ACIDS = {
    "black": "AFILMPVW",
    "tab:green": "CGSTY",
    "tab:purple": "NQ",
    "tab:blue": "HKR",
    "tab:red": "DE",
}
_BASES = {"tab:green": "A", "tab:blue": "C", "tab:orange": "G", "tab:red": "TU"}


def logos(
    weights: ArrayLike | Sequence[ArrayLike],
    alphabet: str = PROTEINS,
    titles: Sequence[str] | None = None,
) -> "Figure":
    """Draws sequence logos, of what hidden units respond to or of letter frequencies.

    At each site letters are stacked, as high as their numbers; negative ones hang
    below the axis. Colors show the letters' chemistry; other letters are gray.

    Args:
        weights: array (sites, letters), or a list with an array for each logo: for
            example columns of `zero_sum_gauge(rbm.potentials()).kernel`, reshaped, or
            frequencies.
        alphabet: str, the letters.
        titles: list of str, one for each logo, or `None`.

    Returns:
        `matplotlib.figure.Figure`.

    Raises:
        ImportError: if matplotlib or logomaker is not installed.
        ValueError: if an array is not (sites, letters).

    Example:

    >>> weights = np.random.default_rng(0).normal(size=(12, 4))
    >>> figure = keras_rbm.plots.logos([weights], "ACGT", ["unit 0"])  # doctest: +SKIP

    References:
        1. Schneider, Stephens. Sequence logos: a new way to display consensus
           sequences. Nucleic Acids Research, 1990.
    """
    single = getattr(weights, "ndim", 3) == 2
    logos = [weights] if single else weights
    arrays = [np.asarray(logo, np.float64) for logo in logos]
    shapes = [array.shape for array in arrays]
    if not arrays or any(len(s) != 2 or s[1] != len(alphabet) for s in shapes):
        raise ValueError(
            f"Expected a list of arrays (sites, {len(alphabet)}), a column for each of "
            f"{alphabet!r}. Received: shapes {shapes!r:.200}."
        )
    logomaker = import_optional("logomaker", "draws the letters")
    pandas = import_optional("pandas", "holds what logomaker draws")
    sites = max(len(array) for array in arrays)
    figure = new_figure(max(4.0, 0.24 * sites + 1.0), 1.5 * len(arrays) + 0.3)
    for row, array in enumerate(arrays):
        axes = figure.add_subplot(len(arrays), 1, row + 1)
        table = pandas.DataFrame(array, columns=list(alphabet))
        options = {"flip_below": False, "show_spines": False, "ax": axes}
        logo = logomaker.Logo(table, color_scheme=_colors(alphabet), **options)
        logo.ax.axhline(0.0, color="0.3", linewidth=0.6)
        axes.set_xticks(range(4, len(array), 5), range(5, len(array) + 1, 5))
        axes.spines["left"].set_visible(True)
        axes.tick_params(labelsize=8)
        if titles is not None:
            axes.set_title(titles[row], fontsize=9, loc="left")
    axes.set_xlabel("site", fontsize=9)
    return figure


def contact_map(
    scores: ArrayLike,
    contacts: ArrayLike | None = None,
    num_pairs: int = 50,
    distance: int = 5,
) -> "Figure":
    """Draws the pairs of highest score, together with known contacts.

    Known contacts are gray. The predicted pairs, above the diagonal, are filled if
    right and hollow if wrong. Sites are numbered from 1. The title says how many pairs
    are right.

    Args:
        scores: symmetric array (V, V), as from `keras_rbm.inference.contact_scores`.
        contacts: array (V, V), not 0 where units are in contact, on one or both sides
            of the diagonal, or `None`.
        num_pairs: int ≥ 1, the number of best pairs to draw.
        distance: int ≥ 1, least `|i - j|` of a pair.

    Returns:
        `matplotlib.figure.Figure`.

    Raises:
        ImportError: if matplotlib is not installed.
        ValueError: if an array is not (V, V), or a number is out of range.

    Example:

    >>> scores = np.random.default_rng(0).random((20, 20))
    >>> figure = keras_rbm.plots.contact_map(scores + scores.T, num_pairs=10)
    >>> figure.axes[0].get_title()
    '10 pairs of highest score'
    """
    check_counts(num_pairs=num_pairs, distance=distance)
    scores = np.asarray(scores)
    size = len(scores)
    known = None if contacts is None else np.asarray(contacts) != 0
    if known is not None and known.ndim == 2 and known.shape == known.T.shape:
        known = known | known.T
    shapes = [array.shape for array in (scores, known) if array is not None]
    if any(shape != (size, size) for shape in shapes) or size <= distance:
        raise ValueError(
            "Expected arrays (V, V) of one size, larger than the distance. Received: "
            f"shapes {shapes}, distance={distance}."
        )
    finite = np.isfinite(scores).all()
    rounding = 1e-5 * np.abs(scores).max()
    if not finite or np.abs(scores - scores.T).max() > rounding:
        raise ValueError(
            "Expected symmetric, finite scores. Received: scores[i, j] that differ "
            "from scores[j, i], or NaN."
        )
    i, j = np.triu_indices(size, distance)
    best = np.argsort(-scores[i, j])[:num_pairs]
    i, j = i[best], j[best]
    figure = new_figure(4.6, 4.8)
    axes = figure.add_subplot()
    right = np.ones(len(i), bool)
    if known is not None:
        right = known[i, j]
        places = np.arange(size)
        apart = abs(places[:, np.newaxis] - places) >= distance
        rows, columns = np.nonzero(known & apart)
        axes.scatter(columns + 1, rows + 1, s=14, c="0.85", marker="s")
    axes.scatter(j[right] + 1, i[right] + 1, s=16, c="tab:blue", zorder=2)
    wrong = {"facecolors": "none", "edgecolors": "tab:red", "zorder": 2}
    axes.scatter(j[~right] + 1, i[~right] + 1, s=16, **wrong)
    axes.plot([1, size], [1, size], color="0.7", linewidth=0.6)
    axes.set(xlim=(0, size + 1), ylim=(size + 1, 0), xlabel="site", ylabel="site")
    axes.set_aspect("equal")
    title = f"{len(i)} pairs of highest score"
    if known is not None:
        title += f", {int(right.sum())} right"
    axes.set_title(title, fontsize=10)
    return figure


def _colors(alphabet):
    """Returns a dict of letter to color, by the chemistry of amino acids or bases."""
    groups = _ACIDS if set(alphabet) >= set("ACDEFGHIKLMNPQRSTVWY") else _BASES
    by_letter = {letter: color for color, own in groups.items() for letter in own}
    return {letter: by_letter.get(letter, "0.5") for letter in alphabet}
