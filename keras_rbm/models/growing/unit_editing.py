"""Adds, removes and weights the hidden units of an `InfiniteRBM`.

The first `num_units` columns are in use; those after them are empty. The functions also
work inside a `tf.function`, where they check nothing.
"""

import numpy as np
import tensorflow as tf

from keras_rbm.checks import as_array, is_int
from keras_rbm.inference.arguments import as_floats


def insert_unit(model, weights, bias, coefficient):
    """See `InfiniteRBM.insert_unit`."""
    model._assert_built("insert_unit")
    values = {"weights": weights, "bias": bias, "coefficient": coefficient}
    weights, bias, coefficient = (as_floats(*each) for each in values.items())
    if tf.executing_eagerly():
        _check_unit(model, weights, bias, coefficient)
    count = tf.convert_to_tensor(model.num_units)
    empty = tf.reduce_all(model.coefficients[:count] == 0.0)
    slot = tf.where(empty, 0, count)
    model.kernel.value[:, slot].assign(weights)
    model.hidden_bias.value[slot].assign(bias)
    model.coefficients.value[slot].assign(coefficient)
    model.num_units.assign(slot + 1)


def _check_unit(model, weights, bias, coefficient):
    shapes = tuple(weights.shape), tuple(bias.shape), tuple(coefficient.shape)
    finite = all(np.isfinite(value).all() for value in (weights, bias, coefficient))
    if shapes != ((model.kernel.shape[0],), (), ()) or not finite or coefficient < 0:
        raise ValueError(
            f"Expected finite weights of shape ({model.kernel.shape[0]},), a scalar "
            f"bias and a coefficient ≥ 0. Received: shapes {shapes}, "
            f"coefficient={np.asarray(coefficient)}."
        )
    if model.is_full:
        raise ValueError(
            f"Expected room for a unit. Received: {model.hidden_units} of "
            f"max_hidden_units={model.max_hidden_units} in use. Use "
            "InfiniteRBM.from_rbm(model, max_hidden_units=...)."
        )


def remove_unit(model, index):
    """See `InfiniteRBM.remove_unit`."""
    _check_index(model, index, "remove_unit")
    count = tf.convert_to_tensor(model.num_units)
    places = tf.range(model.max_hidden_units)
    order = tf.where(places < index, places, (places + 1) % model.max_hidden_units)
    used = places < count - 1
    for variable in (model.kernel, model.hidden_bias, model.coefficients):
        moved = tf.gather(variable, order, axis=-1)
        variable.assign(tf.where(used, moved, tf.zeros_like(moved)))
    model.num_units.assign(tf.maximum(count - 1, 1))


def set_coefficient(model, index, value):
    """See `InfiniteRBM.set_coefficient`."""
    _check_index(model, index, "set_coefficient")
    value = as_floats("value", value)
    if value.shape.rank or tf.executing_eagerly() and not 0.0 <= value < np.inf:
        raise ValueError(f"Expected a coefficient ≥ 0. Received: value={value}.")
    model.coefficients.value[index].assign(value)


def _check_index(model, index, method):
    model._assert_built(method)
    if not tf.executing_eagerly():
        return
    index = as_array(index)
    if index is None or not is_int(index[()]) or not 0 <= index < model.hidden_units:
        raise ValueError(
            f"Expected the index of one of {model.hidden_units} hidden units. "
            f"Received: index={index!r}."
        )
