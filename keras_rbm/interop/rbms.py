"""Files of the library rbms."""

import os
from typing import Any

import numpy as np

from keras_rbm._checks import import_optional
from keras_rbm.interop.checks import written
from keras_rbm.models.rbm import RBM
from keras_rbm.units.categorical import Categorical

#: The visible units of its types of models.
_TYPES = {"BBRBM": "bernoulli", "PBRBM": "categorical"}


def read_rbms(path: str | os.PathLike, update: int | None = None, **kwargs: Any) -> RBM:
    """Returns the RBM that rbms has saved in an HDF5 file.

    Args:
        path: path of the file.
        update: int, number of updates after which it was saved; by default the last.
        **kwargs: of `RBM`, such as `seed`.

    Raises:
        ValueError: if it is no such file, or has no such update.
    """
    h5py = import_optional("h5py", "reads HDF5 files")
    with h5py.File(path, "r") as file:
        kind = file["model_type"][()].decode() if "model_type" in file else None
        updates = sorted(
            int(n[7:]) for n in file if n.startswith("update_") and n[7:].isdigit()
        )
        update = update if update is not None or not updates else updates[-1]
        if kind not in _TYPES or update not in updates:
            raise ValueError(
                f"Expected a file of rbms with a model of type {sorted(_TYPES)} and "
                f"update {update!r}. Received: type {kind}, updates {updates!r:.200}."
            )
        saved = file[f"update_{update}"]["params"]
        kernel, vbias, hbias = (
            np.asarray(saved[n]) for n in ("weight_matrix", "vbias", "hbias")
        )
    unit = "bernoulli" if kind == "BBRBM" else Categorical(vbias.shape[1])
    units = len(vbias)
    rbm = RBM(len(hbias), num_visible=units, visible=unit, **kwargs)
    rbm.build((None, units))
    rbm.kernel.assign(kernel.reshape(-1, len(hbias)))
    rbm.visible_bias.assign(vbias.ravel())
    rbm.hidden_bias.assign(hbias)
    return rbm


def write_rbms(rbm: RBM, path: str | os.PathLike, update: int = 1) -> None:
    """Writes a model as rbms does, for its `load_params`.

    Args:
        rbm: built `RBM` of binary hidden and binary or categorical visible units.
        path: path of a new file.
        update: int, the number of updates that the file names.

    Raises:
        ValueError: for other units, or if the file exists.
    """
    h5py = import_optional("h5py", "writes HDF5 files")
    rbm = written(rbm)
    names = [type(unit).__name__.lower() for unit in (rbm.visible, rbm.hidden)]
    if names[0] not in _TYPES.values() or names[1] != "bernoulli":
        raise ValueError(
            "Expected binary hidden, and binary or categorical visible units. "
            f"Received: visible={rbm.visible!r}, hidden={rbm.hidden!r}."
        )
    if os.path.exists(path):
        raise ValueError(f"Expected a new file. Received: {str(path)!r}, which exists.")
    shape = (rbm.num_visible, -1) if names[0] == "categorical" else (-1,)
    kernel = np.asarray(rbm.kernel)
    with h5py.File(path, "w") as file:
        file["model_type"] = {unit: kind for kind, unit in _TYPES.items()}[names[0]]
        saved = file.create_group(f"update_{update}").create_group("params")
        saved["vbias"] = np.asarray(rbm.visible_bias).reshape(shape)
        saved["hbias"] = np.asarray(rbm.hidden_bias)
        saved["weight_matrix"] = kernel.reshape(*shape, kernel.shape[1])
