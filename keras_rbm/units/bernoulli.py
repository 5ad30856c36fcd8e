"""Units of two states: binary units, and spins."""

import keras
import tensorflow as tf

from keras_rbm.units.unit import BiasFields, LayerParameters, Unit

#: Mean activations are kept this far from 0 and 1 before a logit is taken.
MEAN_MARGIN = 1e-3
#: The same for means that a model expects, which are not those of a few examples.
EXPECTED_MARGIN = 1e-6
#: By how much a scaler's smallest and largest values may miss 0 and 1.
_ROUNDING = 1e-6


def logit(mean, margin=MEAN_MARGIN):
    """Returns the natural parameter of a binary unit with a mean, which is clipped."""
    mean = tf.clip_by_value(mean, margin, 1.0 - margin)
    return tf.math.log(mean) - tf.math.log1p(-mean)


class BernoulliParameters(LayerParameters, BiasFields):
    """A layer of binary units: `bias` of shape (units,) or (B, units)."""

    __slots__ = ()
    states = (0.0, 1.0)

    def log_partition(self, natural):
        return tf.math.softplus(natural)

    def mean(self, natural):
        return tf.math.sigmoid(natural)

    def mode(self, natural):
        return tf.cast(natural > 0.0, natural.dtype)

    def sample(self, natural, noise):
        return tf.cast(noise < tf.math.sigmoid(natural), natural.dtype)

    def natural_for_mean(self, mean):
        return logit(mean)

    def natural_for_expected(self, mean):
        return logit(mean, EXPECTED_MARGIN)


@keras.saving.register_keras_serializable("keras_rbm")
class Bernoulli(Unit):
    """Binary units with states 0 and 1.

    `A(eta) = log(1 + exp(eta))`, mean `sigmoid(eta)`.

    In data, a number between 0 and 1, such as a gray level, is the probability of 1:
    a model of p(v) draws states with these probabilities in each step of a training,
    and of an evaluation, and so learns the expected log-likelihood of states. The
    targets of a `CRBM` enter as they are.

    Example:

    >>> rbm = keras_rbm.RBM(8, visible=keras_rbm.units.Bernoulli())
    """

    description = "0 or 1, or means between 0 and 1"
    takes_means = True
    has_one_scale = True

    def parameters(self, bias):
        return BernoulliParameters(bias)

    def contains(self, states):
        return (states >= -_ROUNDING) & (states <= 1.0 + _ROUNDING)

    def is_state(self, states):
        return (states == 0) | (states == 1)

    def drawn(self, values, noise):
        return tf.cast(noise < values, values.dtype)


def are_binary(*types):
    """Returns whether all unit types are `Bernoulli`."""
    return all(isinstance(unit, Bernoulli) for unit in types)


class SpinParameters(LayerParameters, BiasFields):
    """A layer of spins: `bias` of shape (units,) or (B, units)."""

    __slots__ = ()
    states = (-1.0, 1.0)

    def log_partition(self, natural):
        return tf.math.softplus(2.0 * natural) - natural

    def mean(self, natural):
        return tf.math.tanh(natural)

    def mode(self, natural):
        return tf.where(natural > 0.0, tf.ones_like(natural), -1.0)

    def sample(self, natural, noise):
        up = noise < tf.math.sigmoid(2.0 * natural)
        return tf.where(up, tf.ones_like(natural), -1.0)

    def natural_for_mean(self, mean):
        return 0.5 * logit(0.5 * (1.0 + mean))

    def natural_for_expected(self, mean):
        return 0.5 * logit(0.5 * (1.0 + mean), EXPECTED_MARGIN)


@keras.saving.register_keras_serializable("keras_rbm")
class Spin(Unit):
    """Units of two states, -1 and 1, as in the Ising model.

    `A(eta) = log(2 cosh(eta))`, mean `tanh(eta)`. The models are the same as with
    Bernoulli units, but the parameters treat both states alike.

    Example:

    >>> rbm = keras_rbm.RBM(8, visible="spin", hidden="spin")
    """

    description = "-1 or 1"
    has_one_scale = True

    def parameters(self, bias):
        return SpinParameters(bias)

    def contains(self, states):
        return (states == -1.0) | (states == 1.0)
