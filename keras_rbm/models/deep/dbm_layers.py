"""The layers of a deep Boltzmann machine: as a bipartite model, and pretrained."""

import keras
import numpy as np
import tensorflow as tf

from keras_rbm._checks import check_counts
from keras_rbm._replicas import strategy_scope
from keras_rbm.inference import Potentials
from keras_rbm.models.deep.greedy_training import compile_each, fit_each, one_each
from keras_rbm.models.rbm import RBM


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


@keras.saving.register_keras_serializable("keras_rbm")
class TiedRBM(RBM):
    """An RBM whose layers count several times, as copies with the same weights.

    Its potentials are of all copies side by side. Called on data, it returns the
    features of one copy of the hidden layer. It is not a model of p(v).

    Args:
        hidden_units: int ≥ 1, those of one copy.
        visible_copies, hidden_copies: ints ≥ 1.
        **kwargs: as for `RBM`, of binary units.
    """

    sample = log_partition = log_likelihood = None

    def __init__(self, hidden_units, *, visible_copies=1, hidden_copies=1, **kwargs):
        self.visible_copies, self.hidden_copies = visible_copies, hidden_copies
        super().__init__(hidden_units, **kwargs)

    def potentials(self, features=None, dtype=None, training=False):
        one = super().potentials(dtype=dtype)
        copies = self.visible_copies, self.hidden_copies
        return Potentials(
            tf.tile(one.kernel, copies),
            tf.tile(one.visible_bias, copies[:1]),
            tf.tile(one.hidden_bias, copies[1:]),
        )

    def _copied(self, visible):
        return tf.tile(visible, (1, self.visible_copies))

    def _positive_phase(self, potentials, visible, weights, seed):
        states = self._copied(visible)
        return super()._positive_phase(potentials, states, weights, seed)

    def _scored(self, potentials, visible):
        width, copies = self.num_visible, self.visible_copies
        kernel = copies * potentials.kernel[:width]
        bias = copies * potentials.visible_bias[:width]
        return Potentials(kernel, bias, potentials.hidden), visible[:, :width], width

    def _natural_of_mean(self, means):
        return super()._natural_of_mean(self._copied(means))[:, : self.hidden_units]

    def _mean_states(self):
        return self._copied(super()._mean_states()[tf.newaxis])[0]

    def get_config(self):
        return super().get_config() | {
            "visible_copies": self.visible_copies,
            "hidden_copies": self.hidden_copies,
        }


def _tied_rbms(dbm, initializers):
    """Returns untrained RBMs for a deep Boltzmann machine's layers, from below."""
    sizes = [dbm.kernel.shape[0] if dbm.built else dbm.num_visible, *dbm.hidden_units]
    top = len(dbm.hidden_units) - 1

    def tied(layer, count):
        return TiedRBM(
            count,
            visible_copies=1 if layer == top else 2,
            hidden_copies=1 if layer == 0 else 2,
            num_visible=sizes[layer],
            seed=None if dbm.seed is None else dbm.seed + layer,
            kernel_initializer=initializers[layer],
            kernel_regularizer=dbm.kernel_regularizer,
            dtype=dbm.dtype_policy,
        )

    return [tied(layer, count) for layer, count in enumerate(dbm.hidden_units)]


def pretrained(dbm, initializers, x, optimizer, rule, epochs, **kwargs):
    """Returns RBMs trained on a DBM's layers, from below, and their histories.

    Args:
        dbm: `DBM` of binary units.
        initializers: list of Keras initializers, of the kernels.
        x, optimizer, rule, epochs, **kwargs: as for `DBM.pretrain`.
    """
    for count in one_each(epochs, "epochs", len(dbm.hidden_units)):
        check_counts(epochs=count)
    with strategy_scope(dbm):
        rbms = _tied_rbms(dbm, initializers)
        rbms[0].adapt(x)
        compile_each(rbms, optimizer, rule, {})
    return rbms, fit_each(rbms, x, epochs=epochs, **kwargs)
