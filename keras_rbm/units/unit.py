"""The base classes of a unit type and of the parameters of a layer."""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from keras_rbm import random
from keras_rbm._serializable import Serializable


class BiasFields(NamedTuple):
    """Parameters of units that have only a bias, or their first statistic."""

    bias: tf.Tensor


class LayerParameters:
    """A layer's parameters: the mathematics of its units, for any inference.

    A type of units derives its parameters from this class and from a `NamedTuple` of
    tensors, whose first is `bias`, of shape (rows,) or (B, rows). It must implement
    `log_partition`, `mean`, `mode` and `sample`. The defaults of the other methods are
    for units that learn only a bias, are one number each, and whose state is their
    first statistic. Other units override `statistics` and `expected_statistics`,
    `encode` and `first`, `num_units`, or `base_measure`.

    *States* have a column for each unit. The kernel has a row for each number that the
    other layer sees: one for a unit that is a number, q for a unit of q categories.
    """

    __slots__ = ()

    #: Natural parameter at which a unit is sure to be in its highest state.
    certain = 30.0
    #: The states that each unit has, if they are finitely many and the same.
    states: Any = None
    # What a type of units defines: its fields, of which `bias` is the first, and these.
    bias: tf.Tensor
    _fields: tuple[str, ...]
    _asdict: Callable[[], dict[str, Any]]
    _replace: Callable[..., Any]
    log_partition: Callable[[tf.Tensor], tf.Tensor]
    mean: Callable[[tf.Tensor], tf.Tensor]
    mode: Callable[[tf.Tensor], tf.Tensor]
    sample: Callable[[tf.Tensor, tf.Tensor], tf.Tensor]
    natural_for_mean: Callable[[tf.Tensor], tf.Tensor]

    @property
    def finite(self) -> bool:
        """Bool, whether each unit has finitely many states: those in `values`."""
        return self.states is not None

    @property
    def ends(self) -> tf.Tensor:
        """Natural parameters (2, rows) of the units' lowest and highest states.

        They are 0 for units that have none: for categories, and for units without
        limit.
        """
        limited = self.finite and self.num_rows == self.num_units
        ends = tf.constant([[-1.0], [1.0]]) * (self.certain if limited else 0.0)
        return tf.tile(ends, (1, self.num_rows))

    @property
    def num_rows(self) -> int | tf.Tensor:
        """Number of rows of the kernel: int, or a scalar tensor if it may change."""
        size = self.bias.shape[-1]
        return tf.shape(self.bias)[-1] if size is None else size

    @property
    def num_units(self) -> int | tf.Tensor:
        """The same for the columns of states."""
        return self.num_rows

    @property
    def values(self) -> np.ndarray:
        """Array (units, most) of a finite layer: each unit's states.

        Units with fewer states repeat their last one.
        """
        return np.tile(np.float32(self.states), (self.num_units, 1))

    @property
    def unit_of_row(self) -> np.ndarray:
        """Int array (rows,): the unit to which each row of the kernel belongs."""
        return np.arange(self.num_rows)

    @property
    def curvature(self) -> tf.Tensor:
        """Tensor (rows,): the least `-d² base / dt²`, infinite for bounded units."""
        return tf.fill([self.num_rows], tf.constant(np.inf, self.bias.dtype))

    def natural(self, inputs: tf.Tensor) -> tf.Tensor:
        """Returns the natural parameters, bias + inputs, (C, rows)."""
        return self.bias + inputs

    def with_bias(self, bias: tf.Tensor) -> "LayerParameters":
        """Returns the same units with another bias."""
        return self._replace(bias=bias)

    @property
    def whole(self) -> "LayerParameters":
        """The layer with all its units, where each example has only some of them."""
        return self

    def named(self) -> dict[str, tf.Tensor]:
        """Returns a dict of the fields, of which `statistics` has some."""
        return self._asdict()

    def of_model(self, index: int | tf.Tensor) -> "LayerParameters":
        """Returns one of B layers."""
        return self if self.bias.shape.rank == 1 else self.with_bias(self.bias[index])

    def repeat(self, count: int | tf.Tensor) -> "LayerParameters":
        """Returns `count` copies of each of B layers, one after the other."""
        if self.bias.shape.rank != 2:
            return self
        return self.with_bias(tf.tile(self.bias, (count, 1)))

    def encode(self, states: tf.Tensor) -> tf.Tensor:
        """Returns states (C, units) as (C, rows); `mean` is its expectation."""
        return states

    def first(self, encoded: tf.Tensor) -> tf.Tensor:
        """Returns the first statistic, (C, rows), an affine function of `encode`."""
        return encoded

    def first_of(self, states: tf.Tensor) -> tf.Tensor:
        """Returns the first statistic of states, (C, rows)."""
        return self.first(self.encode(states))

    def state_like(self, means: tf.Tensor) -> tf.Tensor:
        """Returns means (C, rows) as (C, units): for categories the likeliest one."""
        if self.num_rows == self.num_units:
            return means
        return self.mode(self.natural_for_mean(means))

    def compared(self, means: tf.Tensor) -> tf.Tensor:
        """Returns means (C, rows) as what metrics compare with states.

        It is `state_like`, but for a single categorical unit, such as a label, the
        probabilities of its categories.
        """
        single = self.num_units == 1 and self.num_rows > 1
        return means if single else self.state_like(means)

    def natural_for_expected(self, mean: tf.Tensor) -> tf.Tensor:
        """Returns `natural_for_mean` of a mean that the model expects, (C, rows).

        It may be nearer to the ends than one of a few examples is taken to be: else
        annealing begins with states that the model almost never has.
        """
        return self.natural_for_mean(mean)

    def statistics(self, states: tf.Tensor) -> Any:
        """Returns derivatives of the log-density's exponent by each parameter."""
        return BiasFields(self.first_of(states))

    def expected_statistics(self, natural: tf.Tensor) -> Any:
        """Returns the expectation of `statistics`."""
        return BiasFields(self.first(self.mean(natural)))

    def draw(
        self, natural: tf.Tensor, seed: int | tf.Tensor, first: int = 0
    ) -> tf.Tensor:
        """Returns states (C, units) drawn from natural parameters (C, rows).

        They are those of more chains from number `first` on, a multiple of 4.
        """
        chains = natural.shape[0]
        chains = tf.shape(natural)[0] if chains is None else chains
        first *= self.num_units
        noise = random.uniform((chains, self.num_units), seed, first)
        return self.sample(natural, noise)

    def base_measure(self, states: tf.Tensor) -> tf.Tensor:
        """Returns `base(y)`, (C, units)."""
        return tf.zeros_like(states)


def index_of_noise(logits, noise):
    """Draws which of q values each unit takes.

    Args:
        logits: tensor (..., q), unnormalized log-probabilities.
        noise: tensor (...), uniform on (0, 1).

    Returns:
        tensor (...), numbers 0 to q - 1, in the logits' dtype.
    """
    q = logits.shape[-1]
    weights = tf.exp(logits - tf.reduce_max(logits, -1, keepdims=True))
    # A product with ones, because XLA's cumulative sums take q times as long. It sums
    # from the last value down, so that two values are drawn like a binary unit.
    from_here = tf.constant(np.tril(np.ones((q, q))), logits.dtype)
    tails = tf.matmul(weights, from_here)
    passed = noise[..., tf.newaxis] * tails[..., :1] < tails[..., 1:]
    return tf.reduce_sum(tf.cast(passed, logits.dtype), -1)


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
    share = np.divide(weight, both, np.ones_like(weight), where=both > 0.0)
    shifted = share * mean + (1.0 - share) * common
    spread = variance + np.square(mean - shifted)
    pooled = (count * variance).sum(0) / max(total - len(count), 1.0)
    return shifted, share * spread + (1.0 - share) * pooled
