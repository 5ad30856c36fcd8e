"""Adding, removing and weighing the hidden units of a model."""

import numpy as np
import tensorflow as tf

from keras_rbm.checks import is_int


class UnitEditing:
    """What `InfiniteRBM` does to single hidden units, also inside a `tf.function`.

    The first `num_units` columns are in use; those after them are empty.
    """

    def insert_unit(self, weights, bias, coefficient=1.0):
        """Adds a hidden unit.

        Args:
            weights: tensor (V,).
            bias: scalar.
            coefficient: scalar ≥ 0, how often the unit counts.

        Raises:
            ValueError: if there is no room, or a value is not finite or of another
                shape; checked outside of a `tf.function` only.
        """
        self._assert_built("insert_unit")
        weights, bias, coefficient = map(_as_float, (weights, bias, coefficient))
        if tf.executing_eagerly():
            self._check_unit(weights, bias, coefficient)
        count = tf.convert_to_tensor(self.num_units)
        empty = tf.reduce_all(self.coefficients[:count] == 0.0)
        slot = tf.where(empty, 0, count)
        self.kernel.value[:, slot].assign(weights)
        self.hidden_bias.value[slot].assign(bias)
        self.coefficients.value[slot].assign(coefficient)
        self.num_units.assign(slot + 1)

    def _check_unit(self, weights, bias, coefficient):
        shapes = tuple(weights.shape), tuple(bias.shape), tuple(coefficient.shape)
        finite = all(np.isfinite(value).all() for value in (weights, bias, coefficient))
        if shapes != ((self.kernel.shape[0],), (), ()) or not finite or coefficient < 0:
            raise ValueError(
                f"Expected finite weights of shape ({self.kernel.shape[0]},), a scalar "
                f"bias and a coefficient ≥ 0. Received: shapes {shapes}, "
                f"coefficient={np.asarray(coefficient)}."
            )
        if self.is_full:
            raise ValueError(
                f"Expected room for a unit. Received: {self.hidden_units} of "
                f"max_hidden_units={self.max_hidden_units} in use. Use "
                "InfiniteRBM.from_rbm(model, max_hidden_units=...)."
            )

    def remove_unit(self, index):
        """Removes a hidden unit; the units after it move up.

        Args:
            index: int from 0, or scalar integer tensor.

        Raises:
            ValueError: if there is no such unit; checked outside of a `tf.function`
                only.
        """
        self._check_index(index, "remove_unit")
        count = tf.convert_to_tensor(self.num_units)
        places = tf.range(self.max_hidden_units)
        order = tf.where(places < index, places, (places + 1) % self.max_hidden_units)
        used = places < count - 1
        for variable in (self.kernel, self.hidden_bias, self.coefficients):
            moved = tf.gather(variable, order, axis=-1)
            variable.assign(tf.where(used, moved, tf.zeros_like(moved)))
        self.num_units.assign(tf.maximum(count - 1, 1))

    def set_coefficient(self, index, value):
        """Sets how often a hidden unit counts; arguments as of the others."""
        self._check_index(index, "set_coefficient")
        value = _as_float(value)
        if value.shape.rank or tf.executing_eagerly() and not 0.0 <= value < np.inf:
            raise ValueError(f"Expected a coefficient ≥ 0. Received: value={value}.")
        self.coefficients.value[index].assign(value)

    def _check_index(self, index, method):
        self._assert_built(method)
        if not tf.executing_eagerly():
            return
        index = np.asarray(index)
        if not is_int(index[()]) or not 0 <= index < self.hidden_units:
            raise ValueError(
                f"Expected the index of one of {self.hidden_units} hidden units. "
                f"Received: index={index!r}."
            )


def _as_float(value):
    try:
        return tf.cast(value, tf.float32)
    except (TypeError, ValueError, tf.errors.UnimplementedError) as error:
        raise TypeError(f"Expected numbers. Received: {value!r}.") from error
