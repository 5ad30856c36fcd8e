"""Categorical units."""

from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from keras_rbm._checks import check_counts
from keras_rbm.units.bernoulli import EXPECTED_MARGIN, MEAN_MARGIN
from keras_rbm.units.unit import LayerParameters, Unit, index_of_noise, is_whole


class _Fields(NamedTuple):
    bias: tf.Tensor
    categories: tf.Tensor


class CategoricalParameters(LayerParameters, _Fields):
    """A layer of units with q categories each.

    `bias` of shape (units · q,) or (B, units · q), a unit's q numbers together;
    `categories`, (q,), the numbers 0 to q - 1.
    """

    __slots__ = ()

    @property
    def num_states(self):
        """int, q."""
        return self.categories.shape[0]

    @property
    def num_units(self):
        return self.num_rows // self.num_states

    @property
    def states(self):
        return np.arange(self.num_states)

    @property
    def unit_of_row(self):
        return np.arange(self.num_rows) // self.num_states

    def log_partition(self, natural):
        return tf.reduce_logsumexp(self._by_unit(natural), -1)

    def mean(self, natural):
        return self._by_row(tf.nn.softmax(self._by_unit(natural)))

    def mode(self, natural):
        return tf.cast(tf.argmax(self._by_unit(natural), -1), natural.dtype)

    def sample(self, natural, noise):
        return index_of_noise(self._by_unit(natural), noise)

    def encode(self, states):
        return self._by_row(one_hot(states, self.num_states, self.bias.dtype))

    def natural_for_mean(self, mean):
        return tf.math.log(tf.maximum(mean, MEAN_MARGIN))

    def natural_for_expected(self, mean):
        return tf.math.log(tf.maximum(mean, EXPECTED_MARGIN))

    def _by_unit(self, rows):
        """Returns (..., units · q) as (..., units, q)."""
        shape = (*_sizes(rows)[:-1], self.num_units, self.num_states)
        return tf.reshape(rows, shape)

    def _by_row(self, units):
        return tf.reshape(units, (*_sizes(units)[:-2], self.num_rows))


@keras.saving.register_keras_serializable("keras_rbm")
class Categorical(Unit):
    """Units of q categories, numbered 0 to q - 1: Potts variables.

    A unit is one column of the data and q rows of the kernel. With natural parameters
    `eta_1, …, eta_q`, `A(eta) = log(sum_a exp(eta_a))` and category a has the
    probability `exp(eta_a - A)`. For these units `predict` and `reconstruct` return
    these probabilities, q columns per unit.

    Adding a constant to a unit's q rows does not change the model:
    `keras_rbm.inference.zero_sum_gauge` removes it.

    Args:
        num_states: int ≥ 2, q.

    Raises:
        ValueError: if `num_states` is not an int ≥ 2.

    Example:

    >>> sequences = np.random.default_rng(0).integers(0, 4, (50, 10))
    >>> rbm = keras_rbm.RBM(3, visible=keras_rbm.units.Categorical(4), seed=0)
    >>> rbm.compile(rule="pcd")
    >>> history = rbm.fit(sequences, verbose=0)
    >>> rbm.sample(2, steps=10).shape, rbm.kernel.shape
    (TensorShape([2, 10]), TensorShape([40, 3]))
    """

    encodes = True
    has_one_scale = True

    def __init__(self, num_states: int) -> None:
        check_counts(2, num_states=num_states)
        self.num_states = int(num_states)

    @property
    def description(self):
        return f"whole numbers from 0 to {self.num_states - 1}"

    def parameters(self, bias):
        categories = tf.range(self.num_states, dtype=tf.float32)
        return CategoricalParameters(bias, tf.cast(categories, bias.dtype))

    def num_rows(self, num_units):
        return num_units * self.num_states

    def encode(self, states):
        rows = one_hot(states, self.num_states, tf.float32)
        return tf.reshape(rows, (-1, states.shape[1] * self.num_states))

    def by_row(self, values):
        repeat = tf.repeat if tf.is_tensor(values) else np.repeat
        return repeat(values, self.num_states, axis=-1)

    def data_warning(self, states):
        states, q = np.asarray(states), self.num_states
        if q < 3 or states.shape[1] % q or not np.isin(states, (0, 1)).all():
            return None
        if (states.reshape(len(states), -1, q).sum(-1) != 1).any():
            return None
        return (
            f"rows that look like one-hot vectors, with a 1 in every {q} columns. Pass "
            f"one column per unit: x.reshape(len(x), -1, {q}).argmax(-1)"
        )

    def contains(self, states):
        return is_whole(states, self.num_states - 1)

    def get_config(self) -> dict[str, Any]:
        return {"num_states": self.num_states}


def one_hot(states, num_states, dtype):
    """Returns categories (...) as (..., q), 1 at the category and 0 elsewhere."""
    return tf.one_hot(tf.cast(states, tf.int32), num_states, dtype=dtype)


def _sizes(tensor):
    """Returns the shape as ints, or as tensors for unknown sizes."""
    dynamic = tf.shape(tensor)
    return [dynamic[i] if n is None else n for i, n in enumerate(tensor.shape)]
