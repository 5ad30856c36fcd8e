"""The path from independent units to a model: temperatures, and replicas along it."""

import numbers
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_rbm.inference.annealing.jumps import Jumps
from keras_rbm.inference.gibbs import ChainState
from keras_rbm.inference.potentials import Potentials

#: Share of the temperatures that are equally spaced, whatever lengths were measured.
_EVEN = 0.1
#: Steps of the bases of each layer, relative to the sum of its units' variances.
_VISIBLE_STEP, _HIDDEN_STEP = 0.1, 0.4
#: Chains of the model from which on the steps are no smaller.
_ENOUGH_CHAINS = 100


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
        jumps: `Jumps` of hidden units that sweeps try, or `None`.
    """

    potentials: Potentials
    base: tf.Tensor
    hidden_base: tf.Tensor | None = None
    jumps: Jumps | None = None

    @classmethod
    def of(cls, potentials, base=None, num_chains=None, jumps=None):
        """Returns the path of models, with a row for each of M chains of B models.

        Args:
            potentials: `Potentials`.
            base: tensor (V,) or (B, V), or `None` for zeros; for a single model also
                (K, V), for M chains from each row.
            num_chains: int, M; by default the potentials already have a row per chain.
            jumps: `Jumps` or `None`.
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
        return cls(potentials, base, jumps=jumps)

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

    def sweep(self, chains, beta, noise, clamp=None, jumps=None):
        """Draws h from p_beta(h | v), lets it jump, draws v from p_beta(v | h).

        Args:
            chains: `ChainState`.
            beta: scalar, or column (C, 1).
            noise: `SweepNoise`.
            clamp: bool tensor (V,) or (C, V), units that keep their value.
            jumps: tensor (J, 4, C), the noise of jumps, or `None`.

        Returns:
            `ChainState`; its natural parameters are those of the model, beta = 1.
        """
        potentials = self.potentials
        hidden = potentials.hidden.sample(
            self.hidden_natural(chains, beta), noise.hidden
        )
        natural = self._visible_natural(hidden, beta)
        for noise_of_jump in [] if jumps is None else tf.unstack(jumps):
            hidden, natural = self._jumped(hidden, natural, beta, noise_of_jump)
        visible = potentials.visible.sample(natural, noise.visible)
        if clamp is not None:
            visible = tf.where(clamp, chains.visible, visible)
        return ChainState(visible, potentials.hidden_natural(visible))

    def _visible_natural(self, hidden, beta):
        model = self.potentials.visible_natural(hidden)
        return (1.0 - beta) * self.base + beta * model

    def _jumped(self, hidden, natural, beta, noise):
        """Returns hidden states after a jump, and visible natural parameters."""
        new = self.jumps.proposed(hidden, noise)
        new_natural = self._visible_natural(new, beta)
        units = self.potentials.hidden
        own = beta * units.bias
        if self.hidden_base is not None:
            own += (1.0 - beta) * self.hidden_base
        gains = tf.reduce_sum(own * (units.first_of(new) - units.first_of(hidden)), -1)
        base_measure = units.base_measure(new) - units.base_measure(hidden)
        gains += tf.reduce_sum(base_measure, -1)
        of_new, of_old = map(
            self.potentials.visible.log_partition, (new_natural, natural)
        )
        gains += tf.reduce_sum(of_new - of_old, -1)
        accepted = self.jumps.accepted(gains, noise)
        pairs = (new, hidden), (new_natural, natural)
        return [
            tf.ensure_shape(tf.where(accepted[:, tf.newaxis], *pair), pair[1].shape)
            for pair in pairs
        ]


def per_model(log_weights, potentials):
    """Returns log weights (M,), or (M, B) where there are B models."""
    batch = potentials.batch_size
    return log_weights if batch is None else tf.reshape(log_weights, (-1, batch))


class Ladder(NamedTuple):
    """Chains of a model, and replicas of it at lower inverse temperatures.

    Attributes:
        betas: tensor (R,), inverse temperatures, increasing from 0 to 1.
        bases, hidden_bases: tensors (R, rows of either layer), natural parameters of
            each replica, as in `TemperedChains`.
        below: tensor (R - 1, L, V), states of the replicas below the model.
        chains: tensor (C, V), states of the model.
    """

    betas: tf.Tensor
    bases: tf.Tensor
    hidden_bases: tf.Tensor
    below: tf.Tensor
    chains: tf.Tensor

    @property
    def num_chains(self):
        """Number of chains of the model, from which states descend."""
        return self.chains.shape[0]

    def path(self, potentials):
        """Returns the path with the bases of each replica."""
        return TemperedPath(potentials, self.bases, self.hidden_bases)

    def states(self, count):
        """Returns states (R, count, V) of all replicas, repeated if there are fewer."""
        index = tf.range(count)
        of_model = tf.gather(self.chains, index % self.chains.shape[0])
        below = tf.gather(self.below, index % self.below.shape[1], axis=1)
        return tf.concat([below, of_model[tf.newaxis]], 0)


def changes_of_bases(path, betas, on_ladders, of_model):
    """Returns changes by which replicas come nearer to the means of the model.

    They go along the gradient of the likelihood that a replica gives states of the
    model, in its bases. It is 0 where the replica's mean of visible units is that of
    the model, and its mean of hidden units is what they have at states of the model,
    seen at the replica's temperature. So modes keep some share at middle temperatures,
    where of common bases all but the largest vanish. Steps are relative to sums of
    variances, so that nothing overshoots where all units move together, and smaller for
    few chains, which would draw the replicas to where they are.

    Args:
        path: `TemperedPath` with bases (R, rows of either layer), one for each replica.
        betas: tensor (R,).
        on_ladders: `ChainState` of R · C rows, C of each replica.
        of_model: `ChainState` of the model's chains.

    Returns:
        tensors of the bases' shapes, 0 for the last replica.
    """
    changes = (
        _visible_change(path, on_ladders, of_model),
        _hidden_change(path, betas, on_ladders, of_model),
    )
    share = min(1.0, of_model.visible.shape[0] / _ENOUGH_CHAINS)
    is_model = np.arange(betas.shape[0]) == betas.shape[0] - 1
    scale = tf.where(is_model, 0.0, share / (1.0 - betas))[:, tf.newaxis]
    return scale * changes[0], scale * changes[1]


def _visible_change(path, on_ladders, of_model):
    first = path.potentials.visible.first_of
    of_replicas, of_model = first(on_ladders.visible), first(of_model.visible)
    means = tf.reshape(of_replicas, (path.base.shape[0], -1, path.base.shape[1]))
    off = tf.reduce_mean(of_model, 0) - tf.reduce_mean(means, 1)
    variances = tf.math.reduce_variance(tf.concat([of_replicas, of_model], 0), 0)
    return tf.math.divide_no_nan(_VISIBLE_STEP * off, tf.reduce_sum(variances))


def _hidden_change(path, betas, on_ladders, of_model):
    replicas, width = path.hidden_base.shape

    def means(natural, shift=0.0):
        """Returns means (R, C, rows) of hidden units at states, given (1 or R, …)."""
        beta = betas[:, tf.newaxis, tf.newaxis]
        natural = beta * natural + (1.0 - beta) * path.hidden_base[:, tf.newaxis]
        expected = path.potentials.hidden.expected_statistics(
            tf.reshape(natural + shift, (-1, width))
        )
        return tf.reshape(expected.bias, (replicas, -1, width))

    of_replicas = tf.reshape(on_ladders.hidden_natural, (replicas, -1, width))
    of_chains = means(of_model.hidden_natural[tf.newaxis])
    off = tf.reduce_mean(of_chains, 1) - tf.reduce_mean(means(of_replicas), 1)
    # A mean's derivative is the variance given v; of binary units at most 1 / 4.
    within = tf.reduce_mean(means(of_replicas, 0.5) - means(of_replicas, -0.5), 1)
    within = tf.maximum(tf.reduce_sum(within, 1), 0.25 * width)
    between = tf.reduce_sum(tf.math.reduce_variance(of_chains, 1), 1)
    return _HIDDEN_STEP * off / (within + between)[:, tf.newaxis]
