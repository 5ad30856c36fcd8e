"""Binary hidden units that count a fractional number of times."""

from typing import NamedTuple

import tensorflow as tf

from keras_rbm.units.layer_parameters import LayerParameters


class _Fields(NamedTuple):
    bias: tf.Tensor
    coefficients: tf.Tensor


class FractionalParameters(LayerParameters, _Fields):
    """A hidden layer whose unit i counts `c_i` ≥ 0 times: `bias`, `coefficients` (H,).

    Summed out, unit i has the weight `(1 + exp(eta_i))^c_i`. For whole c_i this is the
    weight of c_i units that share their parameters and whose sum is the state; else no
    distribution of states has it. `sample` then draws from a similar distribution:
    floor(c_i) units of natural parameter eta_i and one of `rest_i eta_i` that counts
    `rest_i`. A Metropolis step corrects this by `log_correction` [1, section 3.3].

    References:
        1. Ping, Liu, Ihler. Learning infinite RBMs with Frank-Wolfe. NIPS 2016.
    """

    __slots__ = ()

    def log_partition(self, natural):
        return self.coefficients * tf.math.softplus(natural)

    def mean(self, natural):
        return self.coefficients * tf.math.sigmoid(natural)

    def sample(self, natural, noise):
        return tf.cond(
            tf.reduce_all(self.coefficients == 1.0),
            lambda: tf.cast(noise < tf.math.sigmoid(natural), natural.dtype),
            lambda: self._sample_copies(natural, noise),
        )

    def mode(self, natural):
        return tf.where(natural > 0.0, self.coefficients, 0.0)

    def is_whole(self):
        """Returns whether `sample` draws from the unit's own distribution, a bool."""
        return tf.reduce_all(self.coefficients == tf.floor(self.coefficients))

    def log_correction(self, natural):
        """Returns the log weight minus that of the model sampled from, (C,)."""
        rest = self.coefficients - tf.floor(self.coefficients)
        # sp(0) of whole coefficients is a constant, and left out.
        difference = rest * tf.math.softplus(natural) - tf.math.softplus(rest * natural)
        return tf.reduce_sum(tf.where(rest > 0.0, difference, 0.0), -1)

    def _sample_copies(self, natural, noise):
        """Draws the unit that counts `rest`, then the sum of the others."""
        whole = tf.floor(self.coefficients)
        rest = self.coefficients - whole
        probability = tf.math.sigmoid(rest * natural)
        on = noise < probability
        left = tf.where(
            on, noise / probability, (noise - probability) / (1 - probability)
        )
        left = tf.where(rest > 0.0, left, noise)

        def add(count, total, cumulative, log_probability):
            cumulative += tf.exp(log_probability)
            more = (left >= cumulative) & (count < whole)
            factor = tf.maximum(whole - count, 1e-30) / (count + 1.0)
            log_probability += tf.math.log(factor) + natural
            total += tf.cast(more, natural.dtype)
            return count + 1.0, total, cumulative, log_probability

        total = rest * tf.cast(on, natural.dtype)
        none = -whole * tf.math.softplus(natural)
        most = tf.reduce_max(whole)
        state = (tf.constant(0.0), total, tf.zeros_like(natural), none)
        return tf.while_loop(lambda count, *_: count < most, add, state)[1]
