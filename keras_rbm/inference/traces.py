"""Functions of a model, traced for each size of its layers."""

import functools

import tensorflow as tf


def traced_by_size(function):
    """Makes a `tf.function` of a function of `Potentials` and other tensors.

    Each size of its arguments has one of its own: TensorFlow warns of a single one that
    it traces too often where a script scores models of several sizes.
    """

    @functools.cache
    def traced(*sizes):
        return tf.function(functools.partial(function), autograph=False)

    @functools.wraps(function)
    def call(potentials, *args):
        types = type(potentials.visible), type(potentials.hidden)
        leaves = tf.nest.flatten((potentials, args))
        sizes = [str(getattr(leaf, "shape", None)) for leaf in leaves]
        return traced(*types, *sizes)(potentials, *args)

    return call
