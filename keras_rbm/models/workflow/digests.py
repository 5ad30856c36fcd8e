"""Checksums that tell whether a file's numbers are those saved; HDF5 has none."""

import json
import zlib

import keras
import numpy as np

_DIGESTS = "digests"


def save_digests(store, values):
    """Writes a checksum of each of a dict of arrays into a Keras weights store."""
    text = json.dumps({name: _digest(value) for name, value in values.items()})
    store[_DIGESTS] = np.frombuffer(text.encode(), np.uint8)


def check_digests(store):
    """Raises a ValueError if a store's arrays are not those that were saved.

    Files from before 2026-12 have no checksums.
    """
    saved = _saved(store)
    for name in saved:
        if name not in store.keys():
            raise _damaged(name)
    _check({name: store[name] for name in saved}, saved)


class OptimizerDigests(keras.Operation):
    """Checksums of the variables of a model's optimizer, saved and loaded by Keras.

    Keras sorts attributes by name and private ones come last, so the optimizer is
    loaded before this. It is not a layer, so the model does not list it.

    Args:
        owner: function that returns the model.
    """

    def __init__(self, owner):
        super().__init__()
        self._owner = owner

    def save_own_variables(self, store):
        """Saves the checksums."""
        save_digests(store, self._values())

    def load_own_variables(self, store):
        """Raises a ValueError if the optimizer's variables differ from those saved."""
        saved, values = _saved(store), self._values()
        if saved.keys() == values.keys():  # else another optimizer: Keras has warned
            _check(values, saved)

    def _values(self):
        optimizer = getattr(self._owner(), "optimizer", None)  # none before compile
        variables = [] if optimizer is None else optimizer.variables
        return {f"optimizer.{n}": _single(value) for n, value in enumerate(variables)}


def _single(value):
    """Returns floats as float32: `keras.config.floatx` may differ when loading."""
    array = np.array(value)
    return array.astype(np.float32) if array.dtype.kind == "f" else array


def _check(values, saved):
    for name, value in values.items():
        if _digest(value) != saved[name]:
            raise _damaged(name)


def _digest(value):
    array = np.array(value)
    return zlib.crc32(array.tobytes(), zlib.crc32(str(array.shape).encode()))


def _saved(store):
    """Returns the saved checksums, a dict, empty if there are none."""
    if _DIGESTS not in store.keys():
        return {}
    try:
        return dict(json.loads(np.asarray(store[_DIGESTS]).tobytes()))
    except (TypeError, ValueError) as error:
        raise _damaged(_DIGESTS) from error


def _damaged(name):
    return ValueError(
        f"Expected {name} as it was saved. Received: other numbers: the file is "
        "damaged. Nothing was loaded; use a copy of the file, or an earlier file."
    )
