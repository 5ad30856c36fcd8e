"""A model's scores in float64, as scikit-learn expects them."""

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from keras_rbm.inference.potentials import Potentials
from keras_rbm.models.rbm import RBM

_ROWS_AT_ONCE = 1000


def precise_potentials(model: RBM) -> Potentials:
    """Returns a model as `Potentials` of float64."""
    parts = tuple(model.potentials(dtype=model.variable_dtype))
    return Potentials(*tf.nest.map_structure(lambda x: tf.cast(x, tf.float64), parts))


def map_precisely(function: Callable[[tf.Tensor], tf.Tensor], X: Any) -> np.ndarray:
    """Applies a function of float64 tensors (B, V) to all rows, some at a time."""
    parts = [
        function(tf.convert_to_tensor(X[start : start + _ROWS_AT_ONCE], tf.float64))
        for start in range(0, len(X), _ROWS_AT_ONCE)
    ]
    return np.concatenate([part.numpy() for part in parts])


def digest(model: RBM) -> str:
    """Returns a str that differs if the model's weights do."""
    weights = hashlib.sha256()
    for weight in model.get_weights():
        weights.update(np.ascontiguousarray(weight).tobytes())
    return weights.hexdigest()
