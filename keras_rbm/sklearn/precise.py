"""A model's scores in float64, as scikit-learn expects them."""

import hashlib

import numpy as np
import tensorflow as tf

from keras_rbm.inference.potentials import Potentials
from keras_rbm.models.rbm import RBM


def precise_potentials(model: RBM) -> Potentials:
    """Returns a model as `Potentials` of float64."""
    parts = tuple(model.potentials(dtype=model.variable_dtype))
    return Potentials(*tf.nest.map_structure(lambda x: tf.cast(x, tf.float64), parts))


def digest(model: RBM) -> str:
    """Returns a str that differs if the model's weights do."""
    weights = hashlib.sha256()
    for weight in model.get_weights():
        weights.update(np.ascontiguousarray(weight).tobytes())
    return weights.hexdigest()
