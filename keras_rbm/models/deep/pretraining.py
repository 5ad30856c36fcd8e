"""Layer-by-layer pretraining of a deep Boltzmann machine."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from keras_rbm._checks import check_counts
from keras_rbm.inference import Potentials
from keras_rbm.models.boltzmann_machine import BoltzmannMachine
from keras_rbm.models.deep.greedy_training import compile_each, fit_each, one_each
from keras_rbm.models.generative_model import mean_gradients
from keras_rbm.models.rbm import RBM


@keras.saving.register_keras_serializable("keras_rbm")
class TiedRBM(BoltzmannMachine):
    """Trains an RBM whose layers count several times, as copies with the same weights.

    Called on data, it returns the features of one copy of the hidden layer. It is not a
    model of p(v) and has no scores.

    Args:
        rbm: `RBM` of binary units, one copy of each layer.
        visible_copies, hidden_copies: ints ≥ 1.
        **kwargs: `name`, `dtype`, `trainable`, as for `keras.Model`.
    """

    def __init__(
        self,
        rbm: Any,
        *,
        visible_copies: int = 1,
        hidden_copies: int = 1,
        **kwargs: Any,
    ) -> None:
        super().__init__(rbm.seed, rbm.num_visible, **kwargs)
        self.rbm, self.visible, self.hidden = rbm, rbm.visible, rbm.hidden
        self.visible_copies, self.hidden_copies = visible_copies, hidden_copies
        if rbm.built:
            self.build((None, rbm._visible_width))

    def _add_variables(self, width):
        self.rbm.build((None, width))

    @property
    def visible_bias(self) -> keras.Variable:
        return self.rbm.visible_bias

    def adapt(self, data: Any) -> None:
        """Fits the visible units to data, as `RBM.adapt` does."""
        self.rbm.adapt(data)
        self.build((None, self.rbm._visible_width))
        self._recenter()

    def _start_at(self, mean, variance):
        self.rbm._start_at(mean, variance)
        self._recenter()

    def _recenter(self):
        if self._learner is not None:
            self._learner.recenter()

    def potentials(
        self, features: tf.Tensor | None = None, dtype: str | None = None
    ) -> Potentials:
        own = self.rbm.potentials(dtype=dtype)
        copies = self.visible_copies, self.hidden_copies
        return Potentials(
            tf.tile(own.kernel, copies),
            tf.tile(own.visible_bias, copies[:1]),
            tf.tile(own.hidden_bias, copies[1:]),
        )

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        natural = self._natural_of_mean(tf.cast(inputs, self.variable_dtype))
        return tf.cast(self._hidden_parameters().mean(natural), self.compute_dtype)

    def _natural_of_mean(self, means):
        natural = self.potentials().hidden_natural_of_mean(self._complete(means))
        return natural[:, : self.rbm.hidden_units]

    def _hidden_parameters(self):
        return self.rbm._hidden_parameters()

    def _complete(self, visible, seed=None):
        return tf.tile(visible, (1, self.visible_copies))

    def _scored(self, potentials, visible):
        width, copies = self._visible_width, self.visible_copies
        kernel = copies * potentials.kernel[:width]
        bias = copies * potentials.visible_bias[:width]
        joined = Potentials(kernel, bias, potentials.hidden)
        return joined, visible[:, :width], width

    def _mean_states(self):
        return tf.tile(self.rbm._mean_states(), (self.visible_copies,))

    def _base_natural(self, potentials):
        return potentials.visible.natural_for_mean(self._mean_states())

    def _gradients(self, features, positive, negative):
        return mean_gradients(positive, negative)

    def _by_variable(self, gradients):
        """Returns the sums of the copies' gradients."""
        rows, columns = self.visible_copies, self.hidden_copies
        folded = {
            "kernel": ((rows, -1, columns, self.rbm.hidden_units), (0, 2)),
            "visible_bias": ((rows, -1), 0),
            "hidden_bias": ((columns, -1), 0),
        }
        return {
            name: tf.reduce_sum(tf.reshape(gradients[name], shape), axes)
            for name, (shape, axes) in folded.items()
        }

    def _bias_changes(self, visible, hidden):
        width, units = self._visible_width, self.rbm.hidden_units
        return super()._bias_changes(visible[:width], hidden[:units])  # of one copy

    def _state_of_a_step(self):
        return [*super()._state_of_a_step(), *self.rbm._recorded()]

    def _record(self, visible, weights):
        self.rbm._record(visible, weights)

    def _knows_data(self):
        return self.rbm._knows_data()

    def _set_data_mean(self, mean):
        self.rbm._set_data_mean(mean)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "rbm": keras.saving.serialize_keras_object(self.rbm),
            "visible_copies": self.visible_copies,
            "hidden_copies": self.hidden_copies,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "TiedRBM":
        rbm = keras.saving.deserialize_keras_object(config["rbm"])
        return cls(rbm, **{name: v for name, v in config.items() if name != "rbm"})


def _tied_rbms(dbm):
    """Returns untrained RBMs for a deep Boltzmann machine's layers, from below."""
    sizes = [dbm.kernel.shape[0] if dbm.built else dbm.num_visible, *dbm.hidden_units]
    top = len(dbm.hidden_units) - 1

    def tied(layer, count):
        rbm = RBM(
            count,
            num_visible=sizes[layer],
            seed=None if dbm.seed is None else dbm.seed + layer,
            kernel_initializer=dbm._initializer(layer),
            kernel_regularizer=dbm._kernel_regularizer,
            dtype=dbm.dtype_policy,
        )
        return TiedRBM(
            rbm,
            visible_copies=1 if layer == top else 2,
            hidden_copies=1 if layer == 0 else 2,
            dtype=dbm.dtype_policy,
        )

    return [tied(layer, count) for layer, count in enumerate(dbm.hidden_units)]


def pretrain(
    dbm: Any,
    x: Any,
    optimizer: Any,
    rule: Any,
    epochs: int | Sequence[int],
    **kwargs: Any,
) -> list[keras.callbacks.History]:
    """Trains a deep Boltzmann machine layer by layer, see `DBM.pretrain`."""
    for count in one_each(epochs, "epochs", len(dbm.hidden_units)):
        check_counts(epochs=count)
    with dbm._strategy_scope():
        tied = _tied_rbms(dbm)
        tied[0].adapt(x)
        compile_each(tied, optimizer, rule, {})
    histories = fit_each(tied, x, epochs=epochs, **kwargs)
    if not dbm.built:
        dbm.build((None, tied[0]._visible_width))
    rbms = [each.rbm for each in tied]
    below = [rbm.hidden_bias for rbm in rbms]
    above = [rbm.visible_bias for rbm in rbms[1:]] + below[-1:]
    for layer, rbm in enumerate(rbms):
        dbm.kernels[layer].assign(rbm.kernel)
        dbm.hidden_biases[layer].assign(0.5 * (below[layer] + above[layer]))
    dbm.visible_bias.assign(rbms[0].visible_bias)
    dbm._copy_record(rbms[0])
    if dbm.rule is not None:
        dbm._learner.recenter()
    return histories
