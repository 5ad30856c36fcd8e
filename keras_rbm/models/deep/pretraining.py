"""Layer-by-layer pretraining of a deep Boltzmann machine."""

import keras
import tensorflow as tf

from keras_rbm.checks import check_counts
from keras_rbm.inference import Potentials
from keras_rbm.models.deep.greedy_training import compile_each, fit_each, one_each
from keras_rbm.models.rbm import RBM


def _no_model():
    def refuse(self):
        raise AttributeError(
            "Expected a model of p(v). Received: a layer in pretraining. Score the "
            "deep model instead."
        )

    return property(refuse)


@keras.saving.register_keras_serializable("keras_rbm")
class TiedRBM(RBM):
    """An RBM whose layers count several times, copies with the same weights.

    It predicts and is saved like any RBM. It has no scores, because it is not a model
    of p(v).

    Args:
        hidden_units: int ≥ 1, of one copy.
        visible_copies, hidden_copies: ints ≥ 1.
        **kwargs: as for `RBM`; binary units.
    """

    free_energy = pseudo_log_likelihood = log_likelihood = _no_model()
    anneal = log_partition = sample = _no_model()

    def __init__(self, hidden_units, *, visible_copies=1, hidden_copies=1, **kwargs):
        super().__init__(hidden_units, **kwargs)
        self.visible_copies, self.hidden_copies = visible_copies, hidden_copies

    def get_config(self):
        copies = ("visible_copies", "hidden_copies")
        return super().get_config() | {name: getattr(self, name) for name in copies}

    def potentials(self, features=None, dtype=None):
        own = super().potentials(dtype=dtype)
        copies = self.visible_copies, self.hidden_copies
        return Potentials(
            tf.tile(own.kernel, copies),
            tf.tile(own.visible_bias, copies[:1]),
            tf.tile(own.hidden_bias, copies[1:]),
        )

    def _complete(self, visible, seed=None):
        return tf.tile(visible, (1, self.visible_copies))

    def _scored(self, potentials, visible):
        width, copies = self.kernel.shape[0], self.visible_copies
        kernel = copies * potentials.kernel[:width]
        bias = copies * potentials.visible_bias[:width]
        return Potentials(kernel, bias, potentials.hidden), visible[:, :width]

    def mean_states(self):
        return tf.tile(super().mean_states(), (self.visible_copies,))

    def _natural_of_mean(self, means):
        return super()._natural_of_mean(self._complete(means))[:, : self.hidden_units]

    def _reconstruct(self, visible):
        return super()._reconstruct(self._complete(visible))[:, : visible.shape[1]]

    def descend(self, gradients):
        """Descends along the sums of the copies' gradients."""
        rows, columns = self.visible_copies, self.hidden_copies
        folded = {
            "kernel": ((rows, -1, columns, self.hidden_units), (0, 2)),
            "visible_bias": ((rows, -1), 0),
            "hidden_bias": ((columns, -1), 0),
        }
        super().descend(
            {
                name: tf.reduce_sum(tf.reshape(gradients[name], shape), axes)
                for name, (shape, axes) in folded.items()
            }
        )


def tied_rbms(dbm):
    """Returns untrained RBMs for a deep Boltzmann machine's layers, from below."""
    sizes = [dbm.kernel.shape[0] if dbm.built else dbm.num_visible, *dbm.hidden_units]
    top = len(dbm.hidden_units) - 1
    return [
        TiedRBM(
            count,
            num_visible=sizes[layer],
            visible_copies=1 if layer == top else 2,
            hidden_copies=1 if layer == 0 else 2,
            seed=None if dbm.seed is None else dbm.seed + layer,
            kernel_initializer=dbm._initializer(layer),
            kernel_regularizer=dbm.kernel_regularizer,
        )
        for layer, count in enumerate(dbm.hidden_units)
    ]


def pretrain(dbm, x, optimizer, rule, epochs, **kwargs):
    """Trains a deep Boltzmann machine layer by layer, see `DBM.pretrain`."""
    for count in one_each(epochs, "epochs", len(dbm.hidden_units)):
        check_counts(epochs=count)
    with dbm._strategy_scope():
        rbms = tied_rbms(dbm)
        rbms[0].adapt(x)
        compile_each(rbms, optimizer, rule, {})
    histories = fit_each(rbms, x, epochs=epochs, **kwargs)
    if not dbm.built:
        dbm.build((None, rbms[0]._visible_width))
    below = [rbm.hidden_bias for rbm in rbms]
    above = [rbm.visible_bias for rbm in rbms[1:]] + below[-1:]
    for layer, rbm in enumerate(rbms):
        dbm.kernels[layer].assign(rbm.kernel)
        dbm.hidden_biases[layer].assign(0.5 * (below[layer] + above[layer]))
    dbm.visible_bias.assign(rbms[0].visible_bias)
    dbm._copy_record(rbms[0])
    if dbm.rule is not None:
        dbm.rule.adapt(dbm)
    return histories
