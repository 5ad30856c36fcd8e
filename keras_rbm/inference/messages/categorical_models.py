"""Models with categorical visible units, in the order in which messages are sent."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_rbm.inference.messages.beliefs import (
    Beliefs,
    BinaryModels,
    batch_of_models,
)
from keras_rbm.inference.potentials import Potentials
from keras_rbm.units.bernoulli import BernoulliParameters
from keras_rbm.units.categorical import CategoricalParameters

#: Units are padded to a multiple of this, because logarithms are of eight ratios.
_BLOCK = 8
#: The bias of the other categories of a unit that only pads a block.
_OFF = -80.0


def is_categorical(potentials: Potentials) -> bool:
    """Returns whether visible units are categorical, and hidden ones binary."""
    visible, hidden = potentials.visible, potentials.hidden
    return isinstance(visible, CategoricalParameters) and isinstance(
        hidden, BernoulliParameters
    )


class ByCategory(NamedTuple):
    """The order of rows by category: first category 0 of all units, then category 1.

    A category of all units is one piece of memory, and a sum over categories is one of
    q arrays. Units are padded to a multiple of eight by units without weights,
    which are sure to be in category 0.

    Attributes:
        num_units: int, units of the model.
        num_states: int, q.
    """

    num_units: int
    num_states: int

    @classmethod
    def of(cls, potentials: Potentials) -> "ByCategory":
        """Returns the order for `Potentials` with categorical visible units."""
        num_states = len(potentials.visible.states)
        return cls(potentials.kernel.shape[0] // num_states, num_states)

    def models(self, potentials: Potentials, weights: tf.Tensor | None) -> BinaryModels:
        """Returns B models in this order, one if there is no batch.

        Args:
            potentials: `Potentials`, kernel (units · q, H).
            weights: tensor (B,), of the models in means; by default 1 / B.

        Returns:
            `BinaryModels`: kernel (q · padded units, H), biases (B, q · padded units)
            and (B, H).
        """
        models, weights = batch_of_models(potentials, weights)
        kernel = self._by_category(models.kernel[tf.newaxis])[0]
        bias = self._by_category(models.visible_bias[..., tf.newaxis])[..., 0]
        off = np.zeros((self.num_states, bias.shape[-1] // self.num_states))
        off[1:, self.num_units :] = _OFF
        bias += tf.constant(off.ravel(), bias.dtype)
        return BinaryModels(kernel, bias, models.hidden_bias, weights)

    def restored(self, beliefs: Beliefs, pairwise: str | None) -> Beliefs:
        """Returns `Beliefs` of models in this order in the order of the kernel."""
        visible = self._rows(beliefs.visible[..., tf.newaxis])[..., 0]
        pairs = None if pairwise is None else self._rows(beliefs.pairwise)
        return beliefs._replace(visible=visible, pairwise=pairs)

    def _by_category(self, array):
        """Returns (m, units · q, n) as (m, q · padded units, n)."""
        q, missing, width = self.num_states, -self.num_units % _BLOCK, array.shape[-1]
        units = tf.reshape(array, (-1, self.num_units, q, width))
        units = tf.transpose(units, (0, 2, 1, 3))
        units = tf.pad(units, [[0, 0], [0, 0], [0, missing], [0, 0]])
        return tf.reshape(units, (-1, q * (self.num_units + missing), width))

    def _rows(self, array):
        """Returns (…, q · padded units, n) as (…, units · q, n)."""
        *leading, rows, width = tf.unstack(tf.shape(array))
        q = self.num_states
        units = tf.reshape(array, (-1, q, rows // q, width))[:, :, : self.num_units]
        units = tf.transpose(units, (0, 2, 1, 3))
        return tf.reshape(units, (*leading, self.num_units * q, width))
