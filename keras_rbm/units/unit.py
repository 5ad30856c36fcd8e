"""The base class of unit types."""

import abc

import keras
import numpy as np
import tensorflow as tf

from keras_rbm._serializable import Serializable
from keras_rbm.units.layer_parameters import LayerParameters


class Unit(Serializable, abc.ABC):
    """Base class of all unit types.

    A unit with state `y` is an exponential family: given the other layer its
    density is `exp(eta * t(y) + base(y) - A(eta))`, where the natural parameter
    `eta` is the unit's bias plus the input from the other layer, `t` is its
    first statistic and `A` its log-partition [1].

    A type has two parts. The *config object*, a subclass of this class, defines
    the variables of a layer of these units, their initial values, and the valid
    states. The *parameters*, a `NamedTuple` of tensors made by `parameters` and also a
    subclass of `LayerParameters`, hold their values for one step and implement the
    mathematics:

    * `log_partition(natural)`: `A`, per unit, in nats;
    * `mean(natural)`: the expected state, encoded by `encode`;
    * `mode(natural)`: the likeliest state;
    * `sample(natural, noise)`: a state, made from noise of its shape, uniform on
      (0, 1);
    * `statistics(states)`, `expected_statistics(natural)`: derivatives of the
      log-density's exponent by each *learned* parameter, a `NamedTuple` whose
      fields are named after them; the first, `bias`, is `t(y)`;
    * `base_measure(states)`: `base(y)`, per unit, if it is not 0;
    * `natural_for_mean(mean)`: the natural parameter of an isolated unit with
      that mean (the base-rate model of annealed importance sampling), if units can be
      visible, or hidden in a `DBM`; and `natural_for_expected(mean)`, if the former
      keeps means away from the ends;
    * `states`, or `finite` and `values` where units of a layer differ, if there are
      finitely many, so that they can be enumerated; else `curvature`, if the states are
      unbounded;
    * `first`, if `t(y)` is not y; and `encode`, `num_units`, `unit_of_row`, if a unit
      is more than one number.

    The model owns the variables; no config object enters a `tf.function`.

    References:
        1. Welling, Rosen-Zvi, Hinton. Exponential family harmoniums with an
           application to information retrieval. NIPS 2004.
    """

    #: Description of the states for error messages.
    description = "finite numbers"
    #: Whether these units can only be hidden.
    hidden_only = False
    #: Whether states are indices, so that other numbers have no meaning.
    encodes = False
    #: Whether data may hold means, for which training draws states.
    takes_means = False
    #: Whether all units of a layer have one scale, so that their moments compare.
    has_one_scale = False

    def variables(self) -> dict[str, tuple[keras.initializers.Initializer, bool]]:
        """Returns a dict of variable name to `(Keras initializer, trainable)`.

        By default a bias that starts at 0.
        """
        return {"bias": (constant(0.0), True)}

    def constraint(self, name: str) -> keras.constraints.Constraint | None:
        """Returns the Keras constraint of one of the `variables`, by default `None`."""
        return None

    @abc.abstractmethod
    def parameters(self, **values: tf.Tensor) -> LayerParameters:
        """Returns the parameters' NamedTuple for tensors named like `variables`."""

    def fitted(self, mean: np.ndarray, variance: np.ndarray) -> dict[str, np.ndarray]:
        """Returns a dict of `variables`, as arrays, that fit visible units to data.

        Units are fitted one by one, without connections. By default the bias is the
        parameters' `natural_for_mean`.

        Args:
            mean, variance: arrays (rows,), moments of the encoded data.
        """
        parameters = self.parameters(bias=tf.zeros(len(mean)))
        return {"bias": parameters.natural_for_mean(tf.constant(mean)).numpy()}

    def pooled(
        self, mean: np.ndarray, variance: np.ndarray, count: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns moments, shrunk where few examples have a unit.

        Args:
            mean, variance: arrays (rows,), moments of the encoded data.
            count: array (rows,), number of examples.
        """
        if not self.has_one_scale:
            return mean, variance
        size = self.num_rows(1)
        mean, variance = shrunk(
            mean.reshape(-1, size),
            variance.reshape(-1, size),
            count.reshape(-1, size)[:, :1],
        )
        return mean.ravel(), variance.ravel()

    def num_rows(self, num_units: int) -> int:
        """Returns the number of kernel rows for a number of units, an int."""
        return num_units

    def shape_of(self, name: str, num_units: int) -> tuple[int, ...]:
        """Returns the shape of one of the `variables`."""
        return (self.num_rows(num_units) if name == "bias" else num_units,)

    def unit_of_column(self, column: int) -> "Unit":
        """Returns the type of one unit of the layer."""
        return self

    def encode(self, states: np.ndarray | tf.Tensor) -> np.ndarray | tf.Tensor:
        """Returns data (n, units) as (n, rows), as the parameters' `encode` does."""
        return states

    def by_row(self, values: np.ndarray | tf.Tensor) -> np.ndarray | tf.Tensor:
        """Returns numbers of units, (n, units), for each of their rows, (n, rows)."""
        return values

    def data_warning(self, states: np.ndarray) -> str | None:
        """Returns a str that says why data (n, units) look wrong, or `None`."""
        return None

    def contains(self, states: np.ndarray | tf.Tensor) -> np.ndarray | tf.Tensor:
        """Returns bools (n, units): whether values are states or may replace them.

        Uses only operators that arrays and tensors share.
        """
        return abs(states) < np.inf  # false for NaN

    def is_state(self, states: np.ndarray | tf.Tensor) -> np.ndarray | tf.Tensor:
        """Returns bools (n, units): whether values are states with a likelihood."""
        return self.contains(states)

    def drawn(self, values: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
        """Returns states (n, units): a value that is a mean is replaced by a state.

        Args:
            values: tensor (n, units), for which `contains` holds.
            noise: tensor (n, units), uniform on (0, 1).
        """
        return values


def constant(value):
    """Returns a Keras initializer with one value."""
    return keras.initializers.Constant(value)


def is_whole(states, most):
    """Returns bools: whether values are whole numbers from 0 to `most`."""
    return (states >= 0) & (states <= most) & (states % 1 == 0)


def shrunk(mean, variance, count):
    """Returns moments as if each unit had `a` more examples, of all units alike.

    With the variance sigma^2 within units, and tau^2 of the units' means beyond what
    their numbers of examples explain, `a = sigma^2 / tau^2` is the best for units of
    one normal distribution [1]: units that differ little share their moments, those
    that differ much keep their own.

    Args:
        mean, variance: arrays (units, rows), moments of the encoded data.
        count: array (units, 1), number of examples that have a unit.

    Returns:
        the same two arrays, shrunk.

    References:
        1. Efron, Morris. Data analysis using Stein's estimator and its
           generalizations. JASA 1975.
    """
    total = count.sum()
    if not total or len(count) == 1:
        return mean, variance
    common = (count * mean).sum(0) / total
    squares = (count * variance).sum()
    within = squares / max(total - len(count), 1.0)
    apart = (count * np.square(mean - common)).sum() - (len(count) - 1) * within
    between = max(apart, 0.0) / (total - np.square(count).sum() / total)
    # The share of a unit's own moments, n / (n + a).
    weight = count * between
    both = weight + within
    own = np.divide(weight, both, np.ones_like(weight), where=both > 0.0)
    shifted = own * mean + (1.0 - own) * common
    spread = variance + np.square(mean - shifted)
    pooled = (count * variance).sum(0) / max(total - len(count), 1.0)
    return shifted, own * spread + (1.0 - own) * pooled
