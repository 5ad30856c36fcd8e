"""What one unit is: the seam under every model."""

import abc

import keras

from keras_rbm.configured import Configured


class Unit(Configured, abc.ABC):
    """Base of all unit types.

    A unit with state `y` is an exponential family: given the other layer its
    density is `exp(eta * t(y) + base(y) - A(eta))`, where the natural parameter
    `eta` is the unit's bias plus the input from the other layer, `t` is its
    first statistic (`y` itself unless the type standardises) and `A` its
    log-partition [1].

    A type is two things. The *config object*, a subclass of this class, names
    the variables that a layer of such units has and how they start. The
    *parameters*, a `NamedTuple` of tensors made by `parameters`, hold their
    values for one step and know the mathematics:

    * `natural(inputs)`: natural parameter, bias + inputs;
    * `log_partition(natural)`: `A`, per unit, in nats;
    * `mean(natural)`: expected state;
    * `sample(natural, noise)`: a state, made of noise of the same shape, uniform on
      [0, 1);
    * `statistics(states)`, `expected_statistics(natural)`: derivatives of the
      log-density's exponent by each *learned* parameter, a `NamedTuple` whose
      fields are named after them; the first, `bias`, is `t(y)`;
    * `base_measure(states)`: `base(y)`, per unit;
    * `natural_for_mean(mean)`: the natural parameter of an isolated unit with
      that mean (the base-rate model of annealed importance sampling).

    The model owns the variables; no config object enters a `tf.function`.

    References:
        1. Welling, Rosen-Zvi, Hinton. Exponential family harmoniums with an
           application to information retrieval. NIPS 2004.
    """

    #: `(low, high)` that states must lie in, or `None`: data outside are refused, and
    #: its middle is the mean of the data until `adapt` or `fit` has seen some.
    support = None
    #: Whether states are whole numbers: others have no likelihood.
    discrete = False

    @abc.abstractmethod
    def variables(self):
        """Returns a dict of variable name to `(Keras initializer, trainable)`."""

    @abc.abstractmethod
    def parameters(self, **values):
        """Returns the parameters' NamedTuple for tensors named as `variables`."""

    @abc.abstractmethod
    def fitted(self, mean, variance):
        """Returns a dict of the `variables`, arrays (units,), that fit units to data.

        The units are taken one by one, as without connections.

        Args:
            mean: array of shape (units,).
            variance: array of shape (units,).
        """


def constant(value):
    """Returns a Keras initialiser of one value."""
    return keras.initializers.Constant(value)
