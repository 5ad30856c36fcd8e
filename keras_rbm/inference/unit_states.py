"""What each state of a single unit of a finite layer adds to the log-weight."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_rbm.inference.potentials import num_states
from keras_rbm.units import LayerParameters


class UnitStates(NamedTuple):
    """A finite layer, unit by unit; of a unit with fewer states the last is repeated.

    Attributes:
        units: the layer's parameters.
        kernel: tensor (rows, K).
        values: tensor (units, m), each unit's states.
        numbers: tensor (units, m), their first statistics, of units that are one
            number; or (units, m, K), what they add to the other layer's natural
            parameters.
        own: tensor (units, m) or (B, units, m), their own log-weights, minus infinity
            of what is repeated.
    """

    units: LayerParameters
    kernel: tf.Tensor
    values: tf.Tensor
    numbers: tf.Tensor
    own: tf.Tensor

    @classmethod
    def of(cls, units, kernel):
        """Returns the states of a layer's units.

        Args:
            units: parameters of a finite layer.
            kernel: tensor (rows, K), its coupling to the other layer.
        """
        dtype = units.bias.dtype
        values, owner = units.values, units.unit_of_row
        is_number = units.num_rows == units.num_units
        numbers, own = [], []
        for column in values.T:
            states = tf.constant(column[np.newaxis], dtype)
            first = units.first(units.encode(states))[0]
            owned = _by_unit(tf.transpose(units.bias * first), owner)
            own.append(tf.transpose(owned) + units.base_measure(states)[0])
            if is_number:
                numbers.append(first)
            else:
                row = first[:, tf.newaxis] * tf.cast(kernel, dtype)
                numbers.append(_by_unit(row, owner))
        repeated = np.arange(values.shape[1]) >= num_states(units)[:, np.newaxis]
        own = tf.where(repeated, -float("inf"), tf.stack(own, -1))
        values = tf.constant(values, dtype)
        return cls(units, kernel, values, tf.stack(numbers, 1), own)

    @property
    def count(self):
        """int, m, the most states that a unit has."""
        return self.values.shape[1]

    def inputs(self, unit):
        """Returns what each state of a unit adds to the other layer's parameters.

        Args:
            unit: int tensor (), or (C,) of a unit for each chain.

        Returns:
            tensor (m, K), or (C, m, K).
        """
        numbers = tf.gather(self.numbers, unit)
        if self.numbers.shape.rank == 3:
            return numbers
        row = tf.cast(tf.gather(self.kernel, unit), numbers.dtype)
        return numbers[..., tf.newaxis] * row[..., tf.newaxis, :]

    def shares(self, value, unit):
        """Returns which state a value is, 1 there; of a mean, how much of each.

        Args:
            value: tensor (C,).
            unit: int tensor () or (C,).

        Returns:
            tensor (C, m), each row of sum 1.
        """
        values = tf.gather(self.values, unit)
        spacing = values[..., 1:2] - values[..., :1]
        near = 1.0 - tf.abs(value[:, tf.newaxis] - values) / spacing
        real = tf.gather(tf.reduce_max(self.own, 0), unit) if self._batched else None
        real = tf.gather(self.own, unit) if real is None else real
        return tf.where(real > -float("inf"), tf.nn.relu(near), 0.0)

    @property
    def _batched(self):
        return self.own.shape.rank == 3


def _by_unit(rows, owner):
    """Returns rows (rows, …) summed over those of each unit."""
    if len(owner) == owner[-1] + 1:
        return rows
    return tf.math.segment_sum(rows, owner)
