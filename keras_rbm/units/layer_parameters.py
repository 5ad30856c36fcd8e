"""The base class of the parameters of a layer of units."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from keras_rbm import random


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
