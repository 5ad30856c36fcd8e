"""Models between two RBMs: one with a new hidden unit, and the one without it."""

from typing import NamedTuple

import tensorflow as tf

from keras_rbm import random
from keras_rbm.inference.gibbs import ChainState, SweepNoise, draw_states
from keras_rbm.inference.potentials import Potentials
from keras_rbm.inference.traces import traced_by_size
from keras_rbm.units.unit import LayerParameters


class _Fields(NamedTuple):
    bias: tf.Tensor
    coefficients: tf.Tensor


class FractionalParameters(LayerParameters, _Fields):
    """Hidden units of which unit i counts `c_i` times, from 0 to 1 [1, section 3.3].

    Summed out, unit i has the weight `(1 + exp(eta_i))^c_i`, which no distribution of
    states has if c_i is a fraction. `sample` then draws from a similar distribution,
    `1 + exp(c_i eta_i)` [1, proposition 3.2], and `log_correction` is what a Metropolis
    step corrects it by.

    Attributes:
        bias: tensor (H,).
        coefficients: tensor (H,), c.

    References:
        1. Ping, Liu, Ihler. Learning infinite RBMs with Frank-Wolfe. NIPS 2016.
    """

    __slots__ = ()

    def log_partition(self, natural):
        return self.coefficients * tf.math.softplus(natural)

    def mean(self, natural):
        return self.coefficients * tf.math.sigmoid(natural)

    def sample(self, natural, noise):
        c = self.coefficients
        # Either end of the noise may stand for a unit that is on. Which one it is
        # differs between an RBM and the models between, and all results depend on it.
        on = tf.cond(
            tf.reduce_all(c == 1.0),
            lambda: noise < tf.math.sigmoid(natural),
            lambda: tf.where(
                c < 1.0,
                noise < tf.math.sigmoid(c * natural),
                noise >= tf.exp(-tf.math.softplus(natural)),
            ),
        )
        return c * tf.cast(on, natural.dtype)

    def is_whole(self):
        """Returns whether `sample` draws from the units' own distribution, a bool."""
        return tf.reduce_all((self.coefficients == 0.0) | (self.coefficients == 1.0))

    def log_correction(self, natural):
        """Returns the log weight minus that of the model sampled from, (C,)."""
        c = self.coefficients
        difference = c * tf.math.softplus(natural) - tf.math.softplus(c * natural)
        # With c = 0 it is a constant.
        return tf.reduce_sum(tf.where(c > 0.0, difference, 0.0), -1)


def between(before, after, t):
    """Returns the model `p*_before^(1 - t) p*_after^t`.

    Args:
        before, after: `Potentials` with the same `FractionalParameters` hidden units,
            but for their coefficients, and with binary visible units.
        t: scalar from 0 to 1.
    """

    def mixed(first, second):
        return (1.0 - t) * first + t * second

    coefficients = mixed(before.hidden.coefficients, after.hidden.coefficients)
    return Potentials(
        after.kernel,
        mixed(before.visible_bias, after.visible_bias),
        FractionalParameters(after.hidden_bias, coefficients),
    )


def fractional_sweep(potentials, state, seed):
    """Draws h, then v, and accepts v by a Metropolis step if a unit is fractional.

    Args:
        potentials: `Potentials` with `FractionalParameters` hidden units.
        state: `ChainState`.
        seed: int or integer tensor of shape (2,).

    Returns:
        `ChainState`.
    """
    chains, width = tf.shape(state.visible)[0], potentials.num_visible
    noise = random.uniform((chains, width + potentials.num_hidden + 1), seed)
    layers = SweepNoise(noise[:, :width], noise[:, width:-1])
    new = draw_states(potentials, state.hidden_natural, layers).visible
    new = ChainState(new, potentials.hidden_natural(new))

    def metropolis():
        correction = potentials.hidden.log_correction
        gain = correction(new.hidden_natural) - correction(state.hidden_natural)
        accepted = tf.math.log(noise[:, -1:]) < gain[:, tf.newaxis]
        chosen = (tf.where(accepted, *pair) for pair in zip(new, state, strict=True))
        return ChainState(*chosen)

    return tf.cond(potentials.hidden.is_whole(), lambda: new, metropolis)


@traced_by_size
def fractional_chain(potentials, visible, seed, num_sweeps):
    """Returns visible states (C, V) after sweeps.

    Args:
        potentials: `Potentials` with `FractionalParameters` hidden units.
        visible: tensor (C, V), states to start from.
        seed: seed tensor (2,).
        num_sweeps: scalar int tensor.
    """

    def sweep(index, state):
        fresh = random.fold_in(seed, index)
        return index + 1, fractional_sweep(potentials, state, fresh)

    start = ChainState(visible, potentials.hidden_natural(visible))
    return tf.while_loop(
        lambda index, _: index < num_sweeps, sweep, (tf.constant(0), start)
    )[1].visible
