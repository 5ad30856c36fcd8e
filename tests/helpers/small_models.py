"""Small data and models, made in one line."""

import keras
import numpy as np
import pytest
import tensorflow as tf


def binary(rows=40, columns=6, seed=0):
    """Returns random rows of 0 and 1, float32."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 2, (rows, columns)).astype("float32")


def batches(*arrays, size=10):
    """Returns a dataset of batches of rows, or of pairs of rows."""
    rows = arrays if len(arrays) > 1 else arrays[0]
    return tf.data.Dataset.from_tensor_slices(rows).batch(size)


def all_states(*num_states):
    """Returns all states of units that have so many each, float32."""
    return np.array(list(np.ndindex(*num_states)), "float32")


def randomized(model, scale=1.0, seed=1):
    """Returns a built model whose variables are normal numbers."""
    rng = np.random.default_rng(seed)
    for variable in model.trainable_variables:
        variable.assign(rng.normal(0.0, scale, variable.shape))
    return model


def compiled(model, *args, **kwargs):
    """Returns a model that is compiled."""
    model.compile(*args, **kwargs)
    return model


def fitted(model, *data, **kwargs):
    """Returns a compiled model after `fit`."""
    model.fit(*data, **{"verbose": 0} | kwargs)
    return model


def reloaded(model, folder):
    """Returns what a file of a model holds."""
    model.save(folder / "model.keras")
    return keras.saving.load_model(folder / "model.keras")


def slow(*values):
    """Returns a test's parameters that only the slow run takes."""
    return pytest.param(*values, marks=pytest.mark.slow)


def quick(values, *few):
    """Returns parameters of a test, of which all but a few are slow."""
    return [value if value in few else slow(value) for value in values]


class Loader(keras.utils.PyDataset):
    """Gives out batches of rows."""

    def __init__(self, rows, size=10):
        super().__init__()
        self.rows, self.size = rows, size

    def __len__(self):
        return -(-self.rows.shape[0] // self.size)

    def __getitem__(self, index):
        return (self.rows[self.size * index : self.size * (index + 1)],)


def generator(rows, size=10):
    """Yields batches of rows, once."""
    yield from (Loader(rows, size)[index] for index in range(len(Loader(rows, size))))
