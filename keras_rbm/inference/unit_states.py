"""The states of single units of a finite layer, and what each adds to log-weights."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_rbm import random
from keras_rbm.inference.potentials import num_states


class UnitStates(NamedTuple):
    """A finite layer, unit by unit; units with fewer states repeat their last one.

    State k of unit i adds `numbers[i, k] · kernel[rows[i, k]]` to the other layer's
    natural parameters, and `own[i, k]` to the log-weight.

    Attributes:
        kernel: tensor (rows, K).
        values: tensor (units, m), each unit's states.
        rows: int tensor (units, m), or (units,) for units that are one number each.
        numbers: tensor (units, m), the first statistics.
        own: tensor (units, m) or (B, units, m), minus infinity for repeated states.
        is_real: bool tensor (units, m), false for repeated states.
    """

    kernel: tf.Tensor
    values: tf.Tensor
    rows: tf.Tensor
    numbers: tf.Tensor
    own: tf.Tensor
    is_real: tf.Tensor

    @classmethod
    def of(cls, units, kernel):
        """Returns the states of a layer's units.

        Args:
            units: parameters of a finite layer.
            kernel: tensor (rows, K), its coupling to the other layer.
        """
        dtype, values = units.bias.dtype, units.values
        counts, most = num_states(units), values.shape[1]
        # A unit with several rows is categorical: state k is its row k.
        sizes = np.bincount(units.unit_of_row)[:, np.newaxis]
        starts = np.cumsum(sizes, 0) - sizes
        rows = starts + np.minimum(np.arange(most), sizes - 1)
        states = tf.constant(values.T, dtype)
        first = units.first_of(states)
        numbers = tf.stack([tf.gather(first[k], rows[:, k]) for k in range(most)], 1)
        base = tf.transpose(units.base_measure(states))
        log_weights = tf.gather(units.bias, rows, axis=-1) * numbers + base
        is_real = np.arange(most) < counts[:, np.newaxis]
        log_weights = tf.where(is_real, log_weights, -float("inf"))
        if units.num_rows == units.num_units:
            rows = rows[:, 0]
        rows, is_real = tf.constant(rows, tf.int32), tf.constant(is_real)
        return cls(
            kernel, tf.constant(values, dtype), rows, numbers, log_weights, is_real
        )

    @property
    def count(self):
        """int, m, the largest number of states of a unit."""
        return self.values.shape[1]

    def inputs(self, unit):
        """Returns what each state of a unit adds to the other layer's parameters.

        Args:
            unit: int tensor (), or (C,) for one unit per chain.

        Returns:
            tensor (m, K), or (C, m, K).
        """
        numbers = tf.gather(self.numbers, unit)[..., tf.newaxis]
        rows = tf.gather(self.kernel, tf.gather(self.rows, unit))
        rows = tf.cast(rows, numbers.dtype)
        return numbers * (
            rows[..., tf.newaxis, :] if self.rows.shape.rank == 1 else rows
        )

    def shares(self, value, unit):
        """Returns 1 for the state that a value is; for a mean, each state's share.

        Args:
            value: tensor (C,).
            unit: int tensor () or (C,).

        Returns:
            tensor (C, m), whose rows sum to 1; 0 where the value is not a state.
        """
        values = tf.gather(self.values, unit)
        spacing = values[..., 1:2] - values[..., :1]
        near = tf.nn.relu(1.0 - tf.abs(value[:, tf.newaxis] - values) / spacing)
        return tf.where(tf.gather(self.is_real, unit), near, 0.0)


def chosen_unit(among, seed):
    """Returns the index of a random true entry of each row, (B,); 0 if there is none.

    Args:
        among: bool tensor (B, V).
        seed: seed of the B numbers that it takes.
    """
    so_far = tf.cumsum(tf.cast(among, tf.int32), -1)
    count = so_far[:, -1]
    noise = random.uniform([tf.shape(among)[0]], seed)
    rank = tf.cast(noise * tf.cast(count, noise.dtype), tf.int32)
    return tf.argmax(so_far > rank[:, tf.newaxis], -1, tf.int32)


def conditional_log_weights(potentials, table, visible, natural, unit):
    """Returns `log p(v_i, other v)` up to a constant for each state of one unit i.

    Args:
        potentials: `Potentials`.
        table: `UnitStates` of the visible units.
        visible: tensor (B, V), states.
        natural: tensor (B, H), natural parameters of h given v.
        unit: int tensor (B,), i for each row.

    Returns:
        `(log_weights, shares)`: tensors (B, m); the second is 1 at the present state.
    """
    shares = table.shares(tf.gather(visible, unit, batch_dims=1), unit)
    inputs = table.inputs(unit)
    other = natural - tf.reduce_sum(shares[..., tf.newaxis] * inputs, 1)
    log_weights = table.own
    if log_weights.shape.rank == 3:
        log_weights = tf.gather(log_weights, unit, batch_dims=1)
    else:
        log_weights = tf.gather(log_weights, unit)
    hidden = [
        tf.reduce_sum(potentials.hidden.log_partition(other + inputs[:, k]), -1)
        for k in range(table.count)
    ]
    return log_weights + tf.stack(hidden, -1), shares
