"""Layer-by-layer pretraining of a deep Boltzmann machine."""

import keras
import tensorflow as tf

from keras_rbm._checks import check_counts
from keras_rbm._replicas import strategy_scope
from keras_rbm.inference import Potentials
from keras_rbm.models.deep.greedy_training import compile_each, fit_each, one_each
from keras_rbm.models.rbm import RBM


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


def _tied_rbms(dbm):
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
            kernel_initializer=dbm._initializer(layer),
            kernel_regularizer=dbm.kernel_regularizer,
            dtype=dbm.dtype_policy,
        )

    return [tied(layer, count) for layer, count in enumerate(dbm.hidden_units)]


def pretrain(dbm, x, optimizer, rule, epochs, **kwargs):
    """Trains a deep Boltzmann machine layer by layer, see `DBM.pretrain`."""
    for count in one_each(epochs, "epochs", len(dbm.hidden_units)):
        check_counts(epochs=count)
    with strategy_scope(dbm):
        rbms = _tied_rbms(dbm)
        rbms[0].adapt(x)
        compile_each(rbms, optimizer, rule, {})
    histories = fit_each(rbms, x, epochs=epochs, **kwargs)
    if not dbm.built:
        dbm.build((None, rbms[0].num_visible))
    below = [rbm.hidden_bias for rbm in rbms]
    above = [rbm.visible_bias for rbm in rbms[1:]] + below[-1:]
    for layer, rbm in enumerate(rbms):
        dbm.kernels[layer].assign(rbm.kernel)
        dbm.hidden_biases[layer].assign(0.5 * (below[layer] + above[layer]))
    dbm.visible_bias.assign(rbms[0].visible_bias)
    dbm._copy_record(rbms[0])
    if dbm.rule is not None:
        dbm.learner.recenter()
    return histories
