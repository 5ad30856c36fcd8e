"""Whether the numbers of a file are those that were saved: HDF5 does not tell."""

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

    Files of before 2026-12 have no checksums.
    """
    saved = _saved(store)
    for name in saved:
        if name not in store.keys():
            raise _damaged(name)
    _check({name: store[name] for name in saved}, saved)


class OptimizerDigests(keras.Operation):
    """Checksums of a model's optimizer's variables, which Keras saves and loads.

    Keras goes by the names of attributes, and private ones come last: the optimizer
    has been loaded when this is. It is no layer, so that the model does not list it.

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
        """Raises a ValueError if the optimizer's variables are not those saved."""
        saved, values = _saved(store), self._values()
        if saved.keys() == values.keys():  # else another optimizer: Keras has warned
            _check(values, saved)

    def _values(self):
        optimizer = getattr(self._owner(), "optimizer", None)  # none before compile
        variables = [] if optimizer is None else optimizer.variables
        return {f"optimizer.{number}": value for number, value in enumerate(variables)}


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
        "damaged. Nothing was loaded; take a copy of the file, or an earlier one."
    )
