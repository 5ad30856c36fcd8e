"""Layered models as bipartite ones: even layers on one side, odd ones on the other."""

import numpy as np
import tensorflow as tf

from keras_rbm._checks import check_counts


def checked_sizes(hidden_units):
    """Returns numbers of hidden units, at least two, as Python ints."""
    if not isinstance(hidden_units, (list, tuple)) or len(hidden_units) < 2:
        raise ValueError(
            "Expected a list of at least two numbers of hidden units. Received: "
            f"hidden_units={hidden_units!r}. Use an RBM for one hidden layer."
        )
    for count in hidden_units:
        check_counts(hidden_units=count)
    return [int(count) for count in hidden_units]


def joint_kernel(kernels):
    """Returns the kernel between the even and the odd layers of a stack.

    Args:
        kernels: list of L tensors, number l between layers l and l + 1.

    Returns:
        tensor (units in layers 0, 2, …, units in layers 1, 3, …), 0 between layers
        that are not neighbors.
    """
    sizes = [kernel.shape[0] for kernel in kernels] + [kernels[-1].shape[1]]

    def block(even, odd):
        if odd == even + 1:
            return kernels[even]
        if odd == even - 1:
            return tf.transpose(kernels[odd])
        return tf.zeros((sizes[even], sizes[odd]), kernels[0].dtype)

    odd = range(1, len(sizes), 2)
    rows = (
        tf.concat([block(even, o) for o in odd], 1) for even in range(0, len(sizes), 2)
    )
    return tf.concat(list(rows), 0)


def connections(sizes):
    """Returns 1 where a joint kernel is not 0, or `None` if all units are connected."""
    if len(sizes) <= 3:
        return None
    ones = [np.ones(pair, np.float32) for pair in zip(sizes, sizes[1:], strict=False)]
    return joint_kernel([tf.constant(kernel) for kernel in ones])


def both_sides(even, odd, sizes):
    """Returns the list of layers, given the units of the even and the odd layers."""
    layers = [None] * len(sizes)
    layers[0::2] = tf.split(even, sizes[0::2], -1)
    layers[1::2] = tf.split(odd, sizes[1::2], -1)
    return layers


def template(layer):
    """Returns a layer's variable names, with `{}` for the unit's name of a variable."""
    return "visible_{}" if layer == 0 else f"hidden_{{}}_{layer}"
