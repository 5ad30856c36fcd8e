"""Layer-by-layer training of what will be one deep Boltzmann machine."""

import keras
import tensorflow as tf

from keras_rbm.inference import Potentials
from keras_rbm.models.greedy_training import compile_each, fit_each
from keras_rbm.models.rbm import RBM


@keras.saving.register_keras_serializable("keras_rbm")
class TiedRBM(RBM):
    """An RBM whose layers count several times, copies with the same weights.

    Args:
        hidden_units: int ≥ 1, of one copy.
        visible_copies, hidden_copies: ints ≥ 1.
        **kwargs: as for `RBM`; binary units.
    """

    def __init__(self, hidden_units, *, visible_copies=1, hidden_copies=1, **kwargs):
        super().__init__(hidden_units, **kwargs)
        self.visible_copies = visible_copies
        self.hidden_copies = hidden_copies

    def potentials(self, features=None):
        own = super().potentials()
        copies = self.visible_copies, self.hidden_copies
        return Potentials(
            tf.tile(own.kernel, copies),
            tf.tile(own.visible_bias, copies[:1]),
            tf.tile(own.hidden_bias, copies[1:]),
        )

    def complete(self, visible):
        return tf.tile(visible, (1, self.visible_copies))

    def mean_states(self):
        return tf.tile(super().mean_states(), (self.visible_copies,))

    def call(self, inputs):
        return super().call(self.complete(inputs))[:, : self.hidden_units]

    def _reconstruct(self, visible):
        return super()._reconstruct(self.complete(visible))[:, : visible.shape[1]]

    def update(self, gradients):
        """Descends along the sums of the copies' gradients."""
        rows, columns = self.visible_copies, self.hidden_copies
        folded = {
            "kernel": ((rows, -1, columns, self.hidden_units), (0, 2)),
            "visible_bias": ((rows, -1), 0),
            "hidden_bias": ((columns, -1), 0),
        }
        super().update(
            {
                name: tf.reduce_sum(tf.reshape(gradients[name], shape), axes)
                for name, (shape, axes) in folded.items()
            }
        )


def pretrained(hidden_units, x, *, seed=None, optimizer="sgd", rule="cd", **kwargs):
    """Returns the RBMs of a deep Boltzmann machine's layers, and their histories."""
    top = len(hidden_units) - 1
    rbms = [
        TiedRBM(
            count,
            visible_copies=1 if layer == top else 2,
            hidden_copies=1 if layer == 0 else 2,
            seed=None if seed is None else seed + layer,
        )
        for layer, count in enumerate(hidden_units)
    ]
    rbms[0].adapt(x)
    compile_each(rbms, optimizer, rule, {})
    defaults = dict.fromkeys(("validation_data", "callbacks"))
    defaults |= {"epochs": 1, "verbose": "auto"}
    return rbms, fit_each(rbms, x, **defaults | kwargs)
