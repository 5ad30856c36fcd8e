"""Binary models as Ising models, and as those of D-Wave's dimod."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from keras_rbm._checks import import_optional
from keras_rbm.interop.checks import written
from keras_rbm.models.rbm import RBM

#: A state as `offset + slope * spin`, by the class of its units.
_OF_SPIN = {"Bernoulli": (0.5, 0.5), "Spin": (0.0, 1.0)}


def to_ising(rbm: RBM) -> tuple[np.ndarray, np.ndarray, float]:
    """Returns a model's energy by spins of -1 and 1.

    `E = offset + h' s + sum_ij J_ij s_i s_(V+j)`, of which `exp(-E)` is the probability
    up to log Z; visible spins come first.

    Args:
        rbm: built `RBM` of binary units or spins.

    Returns:
        `(h, J, offset)`: arrays (V + H,) and (V, H), and a float.

    Raises:
        ValueError: for other units.

    Example:

    >>> rbm = keras_rbm.RBM(2, num_visible=3, seed=0)
    >>> rbm.build((None, 3))
    >>> h, J, offset = keras_rbm.interop.to_ising(rbm)
    >>> h.shape, J.shape
    ((5,), (3, 2))
    """
    rbm = written(rbm)
    names = [type(unit).__name__ for unit in (rbm.visible, rbm.hidden)]
    if not set(names) <= set(_OF_SPIN):
        raise ValueError(
            "Expected binary units or spins. Received: "
            f"visible={rbm.visible!r}, hidden={rbm.hidden!r}."
        )
    (offset_v, slope_v), (offset_h, slope_h) = (_OF_SPIN[name] for name in names)
    kernel, b, c = (
        np.asarray(array, np.float64)
        for array in (rbm.kernel, rbm.visible_bias, rbm.hidden_bias)
    )
    fields = (
        slope_v * (b + offset_h * kernel.sum(1)),
        slope_h * (c + offset_v * kernel.sum(0)),
    )
    constant = offset_v * b.sum() + offset_h * c.sum()
    constant += offset_v * offset_h * kernel.sum()
    return -np.concatenate(fields), -slope_v * slope_h * kernel, -float(constant)


def from_ising(h: ArrayLike, J: ArrayLike, **kwargs: Any) -> RBM:
    """Returns the RBM of spins with an Ising energy, see `to_ising`.

    Args:
        h: array (V + H,), fields, of the visible spins first.
        J: array (V, H), couplings.
        **kwargs: of `RBM`, such as `seed`.

    Raises:
        ValueError: if shapes do not fit.
    """
    fields, couplings = (np.asarray(each, np.float32) for each in (h, J))
    is_finite = np.isfinite(fields).all() and np.isfinite(couplings).all()
    if couplings.ndim != 2 or fields.shape != (sum(couplings.shape),) or not is_finite:
        raise ValueError(
            "Expected h of shape (V + H,) and J of shape (V, H), finite numbers. "
            f"Received: {fields.shape} and {couplings.shape}, finite: {is_finite}."
        )
    visible, hidden = couplings.shape
    rbm = RBM(hidden, num_visible=visible, visible="spin", hidden="spin", **kwargs)
    rbm.build((None, visible))
    rbm.kernel.assign(-couplings)
    rbm.visible_bias.assign(-fields[:visible])
    rbm.hidden_bias.assign(-fields[visible:])
    return rbm


def to_bqm(rbm: RBM) -> Any:
    """Returns a model as a `dimod.BinaryQuadraticModel`; variables as in `to_ising`."""
    dimod = import_optional("dimod", "holds quadratic models")
    h, couplings, offset = to_ising(rbm)
    first, second = np.indices(couplings.shape).reshape(2, -1)
    pairs = first, second + len(couplings), couplings.ravel()
    return dimod.BinaryQuadraticModel.from_numpy_vectors(h, pairs, offset, dimod.SPIN)


def from_bqm(bqm: Any, visible: Sequence[Hashable], **kwargs: Any) -> tuple[RBM, float]:
    """Returns the RBM of spins that a bipartite `dimod.BinaryQuadraticModel` is.

    Args:
        bqm: `dimod.BinaryQuadraticModel`, of spins or binary variables.
        visible: the visible variables, in order; all others are hidden.
        **kwargs: of `RBM`.

    Returns:
        `(rbm, offset)`: energies of the model are those of the RBM and the offset.

    Raises:
        ValueError: if variables are missing, or two of the same side are coupled.
    """
    dimod = import_optional("dimod", "holds quadratic models")
    if not isinstance(bqm, dimod.BinaryQuadraticModel):
        raise TypeError(
            f"Expected a dimod.BinaryQuadraticModel. Received: {type(bqm).__name__}."
        )
    bqm, visible = bqm.change_vartype("SPIN", inplace=False), list(visible)
    hidden = [name for name in bqm.variables if name not in visible]
    missing = [name for name in visible if name not in bqm.variables]
    if missing or not hidden or not visible or len(set(visible)) < len(visible):
        raise ValueError(
            f"Expected visible as some of the variables, each once: "
            f"{list(bqm.variables)!r:.200}. "
            f"Received: visible={visible!r:.200}."
        )
    place = {name: number for number, name in enumerate(visible + hidden)}
    couplings = np.zeros((len(visible), len(hidden)))
    for (one, two), value in bqm.quadratic.items():
        low, high = sorted((place[one], place[two]))
        if value and (low >= len(visible)) == (high >= len(visible)):
            raise ValueError(
                "Expected couplings between visible and hidden variables only. "
                f"Received: {one!r} and {two!r}, {value:g}."
            )
        if value:
            couplings[low, high - len(visible)] = value
    fields = [bqm.linear[name] for name in visible + hidden]
    return from_ising(fields, couplings, **kwargs), float(bqm.offset)
