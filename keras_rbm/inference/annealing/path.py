"""The path from independent units to a model, and temperatures along it."""

import numbers
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_rbm.inference.gibbs import ChainState
from keras_rbm.inference.potentials import Potentials

#: Share of the temperatures that are equally spaced, whatever lengths were measured.
_EVEN = 0.1


def temperatures(betas):
    """Returns inverse temperatures from 0 to 1 as an array.

    Args:
        betas: int K, for K equal steps; or the increasing values, from 0 to 1.

    Raises:
        ValueError: if the values do not increase strictly from 0 to 1, in float32.
    """
    try:
        if isinstance(betas, numbers.Integral) and not isinstance(betas, bool):
            values = np.linspace(0.0, 1.0, int(betas) + 1 if 0 < betas < 2**31 else 0)
        else:
            values = np.asarray(betas, np.float64)
    except (TypeError, ValueError):
        values = np.zeros(0)
    used = values.astype(np.float32)
    increasing = used.ndim == 1 and len(used) > 1 and np.all(np.diff(used) > 0)
    if not increasing or values[0] != 0.0 or values[-1] != 1.0:
        raise ValueError(
            "Expected betas that increase strictly from 0 to 1. Received: "
            f"betas={betas!r:.200}. Pass a number of steps ≥ 1, or the values."
        )
    return values


def spaced(betas, lengths, count):
    """Returns `count` + 1 inverse temperatures in steps of equal length, nearly.

    Steps of equal thermodynamic length add equally to the variance of the log
    weights [1].

    Args:
        betas, lengths: arrays (n,), inverse temperatures from 0 to 1 and the length of
            the path from 0 up to each.
        count: int ≥ 1.

    References:
        1. Grosse, Maddison, Salakhutdinov. Annealing between distributions by averaging
           moments. NIPS 2013.
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
    + sum_j A_j((1 - beta) d_j + beta (v'W + c)_j)`; at beta = 0 the units are
    independent, at 1 the path has reached the model.

    Attributes:
        potentials: `Potentials`.
        base: tensor (V,) or (C, V), visible natural parameters `a` at beta = 0.
        hidden_base: tensor (H,) or (C, H), hidden ones, `d`; `None` for zeros.
    """

    potentials: Potentials
    base: tf.Tensor
    hidden_base: tf.Tensor | None = None

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
        units, hidden_base = self.potentials, self.hidden_base
        if hidden_base is None:
            hidden_base = tf.zeros_like(units.hidden.bias)
        parts = units.visible, units.hidden, self.base, hidden_base
        visible, hidden, base, hidden_base = tf.nest.map_structure(
            lambda tensor: tf.cast(tensor, tf.float64), parts
        )
        of_visible = tf.reduce_sum(visible.log_partition(base), -1)
        return of_visible + tf.reduce_sum(hidden.log_partition(hidden_base), -1)

    def sample_base(self, chains, seed):
        """Returns visible states (C, V) of C chains, drawn at beta = 0."""
        units = self.potentials.visible
        return units.draw(tf.broadcast_to(self.base, (chains, units.num_rows)), seed)

    def rows(self, index):
        """Returns the path with those rows of its bases, which have several."""
        base, hidden_base = (
            tf.gather(each, index) for each in (self.base, self.hidden_base)
        )
        return self._replace(base=base, hidden_base=hidden_base)

    def hidden_natural(self, chains, beta):
        """Returns the natural parameter of each hidden unit given v, (C, H)."""
        natural = beta * chains.hidden_natural
        if self.hidden_base is None:
            return natural
        return natural + (1.0 - beta) * self.hidden_base

    def hidden_log_partition(self, chains, beta):
        """Returns the log-partition of each hidden unit given v, (C, H)."""
        hidden = self.potentials.hidden
        return hidden.log_partition(self.hidden_natural(chains, beta))

    def log_weight_difference(
        self, chains, low, high, of_low=None, of_high=None, high_base=None
    ):
        """Returns log p*_high(v) - log p*_low(v), (C,), in float64.

        `chains` is a `ChainState`; `low` and `high` are scalars, or columns (C, 1). The
        `hidden_log_partition` of either may be passed if it is already known, and
        another `base` for `high`; with another hidden base `of_high` must be passed.
        """
        of_high = (
            self.hidden_log_partition(chains, high) if of_high is None else of_high
        )
        of_low = self.hidden_log_partition(chains, low) if of_low is None else of_low
        units = self.potentials.visible
        change = (high - low) * (units.bias - self.base)
        if high_base is not None:
            change += (1.0 - high) * (high_base - self.base)
        bias = tf.reduce_sum(change * units.first_of(chains.visible), -1)
        return tf.cast(bias + tf.reduce_sum(of_high - of_low, -1), tf.float64)

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
        hidden = potentials.hidden.sample(
            self.hidden_natural(chains, beta), noise.hidden
        )
        model = potentials.visible_natural(hidden)
        natural = (1.0 - beta) * self.base + beta * model
        visible = potentials.visible.sample(natural, noise.visible)
        if clamp is not None:
            visible = tf.where(clamp, chains.visible, visible)
        return ChainState(visible, potentials.hidden_natural(visible))


def per_model(log_weights, potentials):
    """Returns log weights (M,), or (M, B) where there are B models."""
    batch = potentials.batch_size
    return log_weights if batch is None else tf.reshape(log_weights, (-1, batch))
