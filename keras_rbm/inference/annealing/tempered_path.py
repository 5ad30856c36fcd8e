"""The path of models from independent units to a Boltzmann machine."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_rbm.checks import is_int
from keras_rbm.inference.gibbs import ChainState
from keras_rbm.inference.potentials import Potentials

#: Share of the temperatures that are equally spaced, whatever lengths were measured.
_EVEN = 0.1


def temperatures(betas):
    """Returns inverse temperatures from 0 to 1 as an array.

    Args:
        betas: int K, for K equal steps; a sequence of `(end, steps)` pairs, for
            segments of equal steps each; or the increasing values themselves,
            beginning with 0 and ending with 1.

    Raises:
        ValueError: if the values do not increase strictly from 0 to 1, in float32.

    Example:

    >>> keras_rbm.inference.temperatures(4).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    >>> len(keras_rbm.inference.temperatures([(0.5, 500), (0.9, 4000), (1.0, 10000)]))
    14501
    """
    values = _values(betas)
    used = values.astype(np.float32)
    increasing = used.ndim == 1 and len(used) > 1 and np.all(np.diff(used) > 0)
    if not increasing or values[0] != 0.0 or values[-1] != 1.0:
        raise ValueError(
            "Expected betas that increase strictly from 0 to 1. Received: "
            f"betas={betas!r}. Pass a number of steps ≥ 1, a list of (end, steps) "
            "segments such as [(0.5, 500), (1.0, 10000)], or the values."
        )
    return values


def _values(betas):
    """Returns `betas` as an array, empty if they cannot be converted."""
    if is_int(betas):
        count = int(betas) if 0 < betas < 2**31 else 0
        return np.linspace(0.0, 1.0, count + 1)
    try:
        values = np.asarray(betas, np.float64)
    except (TypeError, ValueError):
        return np.zeros(0)
    if values.ndim == 2 and values.shape[1] == 2:
        ends, steps = values.T
        if not np.all((steps >= 1) & (steps == np.round(steps))):
            return np.zeros(0)
        starts = np.concatenate([[0.0], ends[:-1]])
        pieces = [
            np.linspace(start, end, int(count) + 1)[1:]
            for start, end, count in zip(starts, ends, steps, strict=True)
        ]
        values = np.concatenate([[0.0], *pieces])
    return values


def spaced(betas, lengths, count):
    """Returns `count` + 1 inverse temperatures in steps of equal length, nearly.

    Args:
        betas, lengths: arrays (n,), inverse temperatures from 0 to 1 and the length of
            the path from 0 up to each.
        count: int ≥ 1.
    """
    if not np.isfinite(lengths).all():  # energies beyond float32
        lengths = betas
    share = (1.0 - _EVEN) * lengths / lengths[-1] + _EVEN * betas
    values = np.interp(np.linspace(0.0, 1.0, count + 1), share, betas)
    values[0], values[-1] = 0.0, 1.0
    return temperatures(values)


class TemperedPath(NamedTuple):
    """The models between the base-rate model and `potentials`.

    `log p*_beta(v) = ((1 - beta) a + beta b)' v + base(v)
    + sum_j A_j(beta (v'W + c)_j)`; at beta = 0 the units are independent, at 1
    the path has reached the model.

    Attributes:
        potentials: `Potentials`.
        base: tensor (V,) or (C, V), visible natural parameters `a` at beta = 0.
    """

    potentials: Potentials
    base: tf.Tensor

    @classmethod
    def of(cls, potentials, base=None, num_chains=None):
        """Returns the path of models, with a row for each of M chains of B models.

        Args:
            potentials: `Potentials`.
            base: tensor (V,) or (B, V), or `None` for zeros; for a single model also
                (K, V), for M chains from each row.
            num_chains: int, M; by default the potentials already have a row per chain.
        """
        if num_chains is not None:
            potentials = potentials.repeat(num_chains)
        if base is None:
            base = tf.zeros(potentials.visible.num_rows)
        base = tf.cast(base, tf.float32)
        if potentials.batch_size is not None:
            rows = potentials.batch_size
            base = tf.reshape(base, (-1, potentials.visible.num_rows))
            base = tf.tile(base, (rows // tf.shape(base)[0], 1))
        elif base.shape.rank == 2:
            base = tf.tile(base, (num_chains or 1, 1))
        return cls(potentials, base)

    def log_partition_of_base(self):
        """Returns log Z_0, () or (B,), float64, nats."""
        visible, hidden, base = tf.nest.map_structure(
            lambda tensor: tf.cast(tensor, tf.float64),
            (self.potentials.visible, self.potentials.hidden, self.base),
        )
        of_hidden = hidden.log_partition(tf.zeros_like(hidden.bias))
        of_visible = visible.log_partition(base)
        return tf.reduce_sum(of_visible, -1) + tf.reduce_sum(of_hidden, -1)

    def sample_base(self, chains, seed):
        """Returns visible states (C, V) of C chains, drawn at beta = 0."""
        units = self.potentials.visible
        return units.draw(tf.broadcast_to(self.base, (chains, units.num_rows)), seed)

    def log_weight_difference(self, chains, low, high):
        """Returns log p*_high(v) - log p*_low(v), (C,), in float64.

        `chains` is a `ChainState`; `low` and `high` are scalars, or columns (C, 1).
        """
        visible, natural = chains
        units = self.potentials.hidden
        hidden = units.log_partition(high * natural) - units.log_partition(
            low * natural
        )
        units = self.potentials.visible
        first = units.first_of(visible)
        bias = (high - low) * first * (units.bias - self.base)
        return tf.cast(tf.reduce_sum(bias, -1) + tf.reduce_sum(hidden, -1), tf.float64)

    def sweep(self, chains, beta, noise, clamp=None):
        """Draws h from p_beta(h | v), then v from p_beta(v | h).

        Args:
            chains: `ChainState`.
            beta: scalar, or column (C, 1).
            noise: `SweepNoise`.
            clamp: bool tensor (V,) or (C, V), units that keep their value.

        Returns:
            `ChainState`; its natural parameters are those of the model, beta = 1.
        """
        potentials = self.potentials
        hidden = potentials.hidden.sample(beta * chains.hidden_natural, noise.hidden)
        model = potentials.visible_natural(hidden)
        natural = (1.0 - beta) * self.base + beta * model
        visible = potentials.visible.sample(natural, noise.visible)
        if clamp is not None:
            visible = tf.where(clamp, chains.visible, visible)
        return ChainState(visible, potentials.hidden_natural(visible))
