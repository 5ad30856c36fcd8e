"""Functions of a model, traced for each size of its layers."""

import functools

import tensorflow as tf


def traced_by_size(function):
    """Makes a `tf.function` of a function whose first argument is `Potentials`.

    Each size of model has one of its own: TensorFlow warns of a single one that it
    traces too often where a script scores models of several sizes.
    """

    @functools.cache
    def traced(*size):
        return tf.function(functools.partial(function), autograph=False)

    @functools.wraps(function)
    def call(potentials, *args):
        sides = potentials.visible, potentials.hidden
        ranks = [side.bias.shape.rank for side in sides]
        shape = tuple(potentials.kernel.shape)
        return traced(*shape, *map(type, sides), *ranks)(potentials, *args)

    return call
