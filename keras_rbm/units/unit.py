"""What one unit is: the seam under every model."""

import abc

import keras
import numpy as np
import tensorflow as tf

from keras_rbm.configured import Configured


class Unit(Configured, abc.ABC):
    """Base of all unit types.

    A unit with state `y` is an exponential family: given the other layer its
    density is `exp(eta * t(y) + base(y) - A(eta))`, where the natural parameter
    `eta` is the unit's bias plus the input from the other layer, `t` is its
    first statistic and `A` its log-partition [1].

    A type is two things. The *config object*, a subclass of this class, names
    the variables that a layer of such units has and how they start, and says what
    their states are. The *parameters*, a `NamedTuple` of tensors made by `parameters`,
    a subclass of `LayerParameters` too, hold their values for one step and know the
    mathematics:

    * `log_partition(natural)`: `A`, per unit, in nats;
    * `mean(natural)`: the expected state (of what `encode` makes of it);
    * `mode(natural)`: the likeliest state;
    * `sample(natural, noise)`: a state, made of noise of its shape, uniform on
      [0, 1);
    * `statistics(states)`, `expected_statistics(natural)`: derivatives of the
      log-density's exponent by each *learned* parameter, a `NamedTuple` whose
      fields are named after them; the first, `bias`, is `t(y)`;
    * `base_measure(states)`: `base(y)`, per unit, where it is not 0;
    * `natural_for_mean(mean)`: the natural parameter of an isolated unit with
      that mean (the base-rate model of annealed importance sampling), of a type
      for visible units;
    * `finite` and `values`, if the unit has finitely many states, so that they can be
      enumerated; else `curvature`, if the states have no limit;
    * `encode`, `first`, `num_units`, `unit_of_row`, if a unit is more than one number.

    The model owns the variables; no config object enters a `tf.function`.

    References:
        1. Welling, Rosen-Zvi, Hinton. Exponential family harmoniums with an
           application to information retrieval. NIPS 2004.
    """

    #: What states are, as errors say it.
    description = "finite numbers"
    #: Whether such units can only be hidden.
    hidden_only = False
    #: Whether states are numbers of something, so that no others have a meaning.
    encodes = False

    def variables(self):
        """Returns a dict of variable name to `(Keras initializer, trainable)`.

        By default a bias that starts at 0.
        """
        return {"bias": (constant(0.0), True)}

    def constraint(self, name):
        """Returns the Keras constraint of one of the `variables`, by default `None`."""
        return None

    @abc.abstractmethod
    def parameters(self, **values):
        """Returns the parameters' NamedTuple for tensors named as `variables`."""

    def fitted(self, mean, variance):
        """Returns a dict of the `variables`, arrays, that fit visible units to data.

        The units are taken one by one, as without connections. By default the bias is
        what the parameters' `natural_for_mean` says.

        Args:
            mean, variance: arrays (rows,), of what `encode` makes of the data.
        """
        parameters = self.parameters(bias=tf.zeros(len(mean)))
        return {"bias": parameters.natural_for_mean(tf.constant(mean)).numpy()}

    def num_rows(self, num_units):
        """Returns how many rows of the kernel so many units have, an int."""
        return num_units

    def shape_of(self, name, num_units):
        """Returns the shape of one of the `variables`."""
        return (self.num_rows(num_units) if name == "bias" else num_units,)

    def unit_of_column(self, column):
        """Returns the type of one unit of the layer."""
        return self

    def encode(self, states):
        """Returns data (n, units) as (n, rows), as the parameters' `encode` does."""
        return states

    def doubt(self, states):
        """Returns why data (n, units) may not be what they seem, a str, or `None`."""
        return None

    def contains(self, states):
        """Returns bools (n, units): what may stand for a state.

        Written in operators that arrays and tensors share.
        """
        return abs(states) < np.inf  # not so for NaN

    def is_state(self, states):
        """Returns bools (n, units): what is a state, which has a likelihood."""
        return self.contains(states)


def constant(value):
    """Returns a Keras initializer of one value."""
    return keras.initializers.Constant(value)


def is_whole(states, most):
    """Returns bools: what is a whole number from 0 to `most`."""
    return (states >= 0) & (states <= most) & (states % 1 == 0)
