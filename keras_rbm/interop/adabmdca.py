"""Potts models in the text format of adabmDCA: an RBM of Gaussian hidden units."""

import os
from typing import Any

import numpy as np

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
        ValueError: if a line is neither, or has another letter.
    """
    index = {letter: state for state, letter in enumerate(alphabet)}
    biases, couplings = {}, {}
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            parts = line.split()
            if not parts or parts[0].startswith("#"):
                continue
            try:
                if (parts[0], len(parts)) == ("h", 4):
                    biases[int(parts[1]), index[parts[2]]] = float(parts[3])
                elif (parts[0], len(parts)) == ("J", 6):
                    one, two = int(parts[1]), int(parts[2])
                    states = index[parts[3]], index[parts[4]]
                    couplings[one, states[0], two, states[1]] = float(parts[5])
                else:
                    raise ValueError("neither")
            except (KeyError, ValueError) as error:
                raise ValueError(
                    "Expected lines 'J i j a b value' and 'h i a value' with letters "
                    f"of {alphabet!r}. Received: line {number}, {line.strip()!r:.100}."
                ) from error
    if not biases:
        raise ValueError(f"Expected lines of biases. Received: none in {str(path)!r}.")
    units, q = 1 + max(unit for unit, _ in biases), len(alphabet)
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
    rbm._assert_built("write_adabmdca")
    q = getattr(rbm.visible, "num_states", None)
    if type(rbm.hidden).__name__ != "Gaussian" or q != len(set(alphabet)):
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
