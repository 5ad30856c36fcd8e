"""Potts models in the text format of adabmDCA: an RBM of Gaussian hidden units."""

import math
import os
from typing import Any

import numpy as np

from keras_rbm.interop.checks import written
from keras_rbm.models.rbm import RBM
from keras_rbm.units.categorical import Categorical


def read_adabmdca(path: str | os.PathLike, alphabet: str, **kwargs: Any) -> RBM:
    """Returns the RBM that is a Potts model, with the same probabilities.

    `J + s I = W W'`, where s makes it positive, and Gaussian hidden units couple states
    by `W W'`; half of s leaves the biases. So log Z, samples and intervals are those of
    the Potts model.

    Args:
        path: path of a file of lines `J i j a b value` and `h i a value`.
        alphabet: str of q letters, the states in their order.
        **kwargs: of `RBM`, such as `seed`.

    Raises:
        ValueError: if a line is neither, has another letter, or contradicts an earlier
            one; or a site has no bias.
    """
    index = _states_of(alphabet)
    biases, couplings = {}, {}
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            parts = line.split()
            if not parts or parts[0].startswith("#"):
                continue
            try:
                if (parts[0], len(parts)) == ("h", 4):
                    key, kept = (int(parts[1]), index[parts[2]]), biases
                elif (parts[0], len(parts)) == ("J", 6):
                    one, two = ((int(parts[k]), index[parts[k + 2]]) for k in (1, 2))
                    key, kept = (*min(one, two), *max(one, two)), couplings
                    if one[0] == two[0]:
                        raise ValueError("a site and itself")
                else:
                    raise ValueError("neither")
                value = float(parts[-1])
                is_new = kept.setdefault(key, value) == value  # both triangles may be
                if not (is_new and math.isfinite(value) and min(key) >= 0):
                    raise ValueError("another value, or not finite")
            except (KeyError, ValueError) as error:
                raise ValueError(
                    "Expected lines 'J i j a b value' and 'h i a value' with letters "
                    f"of {alphabet!r}. Received: line {number}, {line.strip()!r:.100}."
                ) from error
    sites = {site for site, _ in biases}
    coupled = {site for one, _, two, _ in couplings for site in (one, two)}
    if not biases or sites != set(range(len(sites))) or not coupled <= sites:
        raise ValueError(
            "Expected lines of biases for each site from 0 on. Received: sites "
            f"{sorted(sites)!r:.200}, coupled ones {sorted(coupled)!r:.200}."
        )
    units, q = len(sites), len(alphabet)
    bias, both = np.zeros((units, q)), np.zeros((units, q, units, q))
    for key, value in biases.items():
        bias[key] = value
    for (one, a, two, b), value in couplings.items():
        both[one, a, two, b] = both[two, b, one, a] = value
    values, vectors = np.linalg.eigh(both.reshape(units * q, -1))
    shift = max(0.0, -values[0])
    kernel = vectors * np.sqrt(values + shift)
    kernel = kernel[:, values + shift > 1e-9 * (values[-1] + shift)]
    visible = Categorical(q)
    hidden = max(1, kernel.shape[1])
    rbm = RBM(hidden, num_visible=units, visible=visible, hidden="gaussian", **kwargs)
    rbm.build((None, units))
    if kernel.size:
        rbm.kernel.assign(kernel)
    rbm.visible_bias.assign(bias.ravel() - 0.5 * shift)
    return rbm


def _states_of(alphabet):
    """Returns a dict of letters to states."""
    letters = list(alphabet)
    single = all(len(each) == 1 and not each.isspace() for each in letters)
    if not single or len(set(letters)) < len(letters):
        raise ValueError(
            "Expected an alphabet of different letters, without spaces. Received: "
            f"{alphabet!r}."
        )
    return {letter: state for state, letter in enumerate(letters)}


def write_adabmdca(rbm: RBM, path: str | os.PathLike, alphabet: str) -> None:
    """Writes an RBM of categories and Gaussian hidden units as a Potts model.

    `J = W diag(1 / gamma) W'`, and biases have what is left on its diagonal:
    probabilities are the same.

    Args:
        rbm: built `RBM`, `visible=Categorical(q)`, `hidden="gaussian"`.
        path: path of the file.
        alphabet: str of q letters.

    Raises:
        ValueError: for other units, or another number of letters.
    """
    rbm = written(rbm)
    q = getattr(rbm.visible, "num_states", None)
    letters = len(_states_of(alphabet))
    if type(rbm.hidden).__name__ != "Gaussian" or q != letters:
        raise ValueError(
            "Expected categories with a letter each, and Gaussian hidden units, which "
            f"couple pairs. Received: visible={rbm.visible!r}, "
            f"hidden={rbm.hidden!r}, alphabet={alphabet!r}."
        )
    kernel, visible_bias, hidden_bias, log_precision = (
        np.asarray(array, np.float64)
        for array in (
            *(rbm.kernel, rbm.visible_bias, rbm.hidden_bias),
            rbm.hidden_log_precision,
        )
    )
    couplings = (kernel * np.exp(-log_precision)) @ kernel.T
    bias = visible_bias + kernel @ (hidden_bias * np.exp(-log_precision))
    bias = np.reshape(bias + 0.5 * np.diag(couplings), (-1, q))
    couplings = couplings.reshape(len(bias), q, len(bias), q)
    with open(path, "w", encoding="utf-8") as file:
        for one, two in zip(*np.triu_indices(len(bias), 1), strict=True):
            for (a, b), value in np.ndenumerate(couplings[one, :, two]):
                file.write(f"J {one} {two} {alphabet[a]} {alphabet[b]} {value:.9g}\n")
        for (unit, a), value in np.ndenumerate(bias):
            file.write(f"h {unit} {alphabet[a]} {value:.9g}\n")
