"""Inference as an object that a model or a learning rule holds."""

import abc
import copy
import functools
from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

from keras_rbm._checks import check_counts
from keras_rbm._serializable import Serializable, find
from keras_rbm.inference import exact
from keras_rbm.inference.messages.belief_propagation import max_product, sum_product
from keras_rbm.inference.messages.beliefs import Beliefs, check_options, without_batch
from keras_rbm.inference.messages.mean_field import mean_field
from keras_rbm.inference.messages.mixed_product import mixed_product
from keras_rbm.units import Categorical
from keras_rbm.units.bernoulli import are_binary
from keras_rbm.units.unit import Unit

_METHODS = {
    "sum_product": sum_product,
    "max_product": max_product,
    "mixed_product": mixed_product,
}


class Inference(Serializable, abc.ABC):
    """A way to get `Beliefs` from `Potentials`, as a serializable object.

    A subclass implements `__call__` and `get_config`, and is registered with Keras.
    """

    #: Whether the beliefs are of the most probable state, not marginals.
    finds_state = False
    #: Whether that state is of both layers, not only of the visible one.
    is_joint = False
    #: Whether it always compiles itself with XLA.
    is_compiled = False
    #: Whether it starts at a model's input, which it then needs.
    needs_input = False
    #: Variables that may change between calls.
    variables = ()

    @abc.abstractmethod
    def __call__(self, potentials, weights=None, pairwise="mean"):
        """Returns the `Beliefs` of `Potentials`.

        Args:
            potentials: `Potentials`.
            weights: tensor (B,), of the models in `pairwise="mean"`.
            pairwise: `"mean"`, `"each"` or `None`, see `Beliefs`.
        """

    def takes(self, visible: Unit, *hidden: Unit) -> bool:
        """Returns whether it is for layers of these unit types (`keras_rbm.units`)."""
        return True

    def check_input(self, conditional: bool) -> None:
        """Raises a ValueError if it needs an input and the model has none."""
        if self.needs_input and not conditional:
            raise ValueError(
                f"Expected inference for a model without input. Received: {self!r}, "
                "which starts at the input. Use MeanField()."
            )

    def given(self, features: tf.Tensor | None) -> "Inference":
        """Returns the inference for the models of these examples, by default itself.

        Args:
            features: tensor (B, X), the models' input, or `None`.
        """
        return self


class IterativeInference(Inference):
    """Base class of inference that sweeps until convergence.

    Args:
        max_iterations: int ≥ 1, maximum number of sweeps.
        tolerance: float ≥ 0, largest change of a belief that counts as converged.
        damping: float in [0, 1), weight of the old values.

    Attributes:
        max_iterations: int; may be set at any time, without a new trace. Models that
            share the object share this value.
    """

    def __init__(self, max_iterations: int, tolerance: float, damping: float) -> None:
        check_options(max_iterations, tolerance, damping)
        self.tolerance = float(tolerance)
        self.damping = float(damping)
        with tf.init_scope():
            self._max_iterations = tf.Variable(
                int(max_iterations), trainable=False, dtype=tf.int32
            )

    @property
    def variables(self) -> list[tf.Variable]:
        return [self._max_iterations]

    @property
    def max_iterations(self) -> int:
        return int(self._max_iterations.numpy())

    @max_iterations.setter
    def max_iterations(self, value: int) -> None:
        check_counts(max_iterations=value)
        self._max_iterations.assign(int(value))

    def get_config(self) -> dict[str, Any]:
        return {
            "max_iterations": self.max_iterations,
            "tolerance": self.tolerance,
            "damping": self.damping,
        }


@keras.saving.register_keras_serializable("keras_rbm")
class BeliefPropagation(IterativeInference):
    """Belief propagation: see `sum_product`, `max_product` and `mixed_product`.

    Hidden units are binary, visible ones binary or categorical.

    Args:
        method: `"sum_product"` (marginals), `"max_product"` (most probable joint
            state) or `"mixed_product"` (most probable visible state).
        max_iterations: int ≥ 1, maximum number of sweeps.
        tolerance: float ≥ 0. Mixed-product stops at a fixed point and ignores it.
        damping: float in [0, 1), of messages; not for mixed-product.

    Raises:
        ValueError: if the method is unknown or an argument out of range.

    Example:

    >>> infer = keras_rbm.inference.BeliefPropagation(max_iterations=20)
    >>> model = keras_rbm.inference.Potentials(tf.ones((3, 2)), [0.0] * 3, [0.0] * 2)
    >>> bool(infer(model).converged)
    True

    References:
        1. Ping, Ihler. Belief propagation in conditional RBMs for structured
           prediction. AISTATS 2017.
    """

    def __init__(
        self,
        method: str = "sum_product",
        *,
        max_iterations: int = 50,
        tolerance: float = 1e-3,
        damping: float = 0.0,
    ) -> None:
        if not isinstance(method, str) or method not in _METHODS:
            raise ValueError(
                f"Expected method to be one of {tuple(_METHODS)}. Received: "
                f"method={method!r}."
            )
        if method == "mixed_product" and damping:
            raise ValueError(
                "Expected no damping with mixed-product, which keeps no messages. "
                f"Received: damping={damping}."
            )
        super().__init__(max_iterations, tolerance, damping)
        self.method = method

    is_compiled = True

    def takes(self, visible: Unit, *hidden: Unit) -> bool:
        categorical = isinstance(visible, Categorical) and len(hidden) == 1
        return are_binary(*hidden) and (categorical or are_binary(visible))

    @property
    def finds_state(self) -> bool:
        return self.method != "sum_product"

    @property
    def is_joint(self) -> bool:
        return self.method == "max_product"

    def __call__(self, potentials, weights=None, pairwise="mean"):
        options = {
            "max_iterations": self._max_iterations,
            "weights": weights,
            "pairwise": pairwise,
        }
        if self.method != "mixed_product":
            options |= {"tolerance": self.tolerance, "damping": self.damping}
        return _METHODS[self.method](potentials, **options)

    def get_config(self) -> dict[str, Any]:
        return {"method": self.method} | super().get_config()


@keras.saving.register_keras_serializable("keras_rbm")
class MeanField(IterativeInference):
    """Naive mean field, for units of all types: see `mean_field`.

    If weights are strong the start decides which fixed point is found. A CRBM that
    restores pictures starts best at the picture that it is given: after training by
    CD-1 on MNIST with a square of 8 × 8 pixels covered, 1.9 % of the pixels are wrong,
    and 12.0 % from `"independent"`. From the better of both bounds it is 4.9 %: a
    higher bound of log Z need not mean a better prediction. A model trained by maximum
    likelihood must predict with the start that it was trained with.

    Args:
        max_iterations: int ≥ 1, maximum number of sweeps.
        tolerance: float ≥ 0, largest change of a mean that counts as converged.
        damping: float in [0, 1), weight of the old natural parameters.
        starts: list of starts, each one of: `"independent"`, the hidden units' means
            without coupling, `sigmoid(c(x))`; `"input"`, x as the state of the visible
            units; a function of x that returns means of the visible units, (B, rows).
            Of several, the result with the highest bound is taken for each example. By
            default `["input"]` if x has as many columns as the visible layer and its
            units are one number each, else `["independent"]`.

    Raises:
        ValueError: if an argument is out of range.

    Example:

    >>> model = keras_rbm.inference.Potentials(tf.ones((3, 2)), [0.0] * 3, [0.0] * 2)
    >>> keras_rbm.inference.MeanField()(model).visible.shape
    TensorShape([3])
    """

    _features = None

    def __init__(
        self,
        *,
        max_iterations: int = 50,
        tolerance: float = 1e-3,
        damping: float = 0.0,
        starts: Sequence[str | Callable[[tf.Tensor], tf.Tensor]] | None = None,
    ) -> None:
        super().__init__(max_iterations, tolerance, damping)
        if starts is not None:
            starts = _checked(starts)
        self._starts = starts

    def given(self, features: tf.Tensor | None) -> "MeanField":
        inference = copy.copy(self)  # it shares the limit of sweeps
        inference._features = features
        return inference

    def __call__(self, potentials, weights=None, pairwise="mean"):
        return mean_field(
            potentials,
            max_iterations=self._max_iterations,
            tolerance=self.tolerance,
            damping=self.damping,
            weights=weights,
            pairwise=pairwise,
            starts=self._visible_means(potentials),
        )

    @property
    def starts(self) -> list[str | Callable[[tf.Tensor], tf.Tensor]] | None:
        """List of starts, or `None` for the default; fixed once it is made."""
        return None if self._starts is None else list(self._starts)

    @property
    def needs_input(self) -> bool:
        return self._starts is not None and self._starts != ["independent"]

    def _visible_means(self, potentials):
        """Returns the starts that `mean_field` takes."""
        x, units, starts = self._features, potentials.visible, self._starts
        columns = None if x is None else x.shape[-1]
        if starts is None:
            starts = ["input" if can_start_at(potentials, x) else "independent"]
        if columns != potentials.num_visible and "input" in starts:
            raise ValueError(
                "Expected an input with a column for each visible unit, "
                f"{potentials.num_visible}, for mean field from 'input'. Received: "
                f"{columns} columns. Use MeanField(starts=['independent'])."
            )
        if x is not None:
            x = tf.cast(x, units.bias.dtype)
        return [_means(start, units, x) for start in starts]

    def get_config(self) -> dict[str, Any]:
        starts = keras.saving.serialize_keras_object(self._starts)
        return super().get_config() | {"starts": starts}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "MeanField":
        return cls(**keras.saving.deserialize_keras_object(config))


def can_start_at(potentials, x):
    """Returns whether x has the width of visible units that are one number each."""
    columns = None if x is None or x.shape.rank != 2 else x.shape[-1]
    return columns == potentials.num_visible == potentials.visible.num_rows


def _means(start, units, x):
    """Returns the means of the visible units at a start, `None` for no such means."""
    if start == "independent":
        return None
    return units.statistics(x).bias if start == "input" else start(x)


def _checked(starts):
    """Returns starts as a list; raises a ValueError if one is unknown."""
    named = ("independent", "input")

    def known(start):
        return callable(start) or isinstance(start, str) and start in named

    if (
        not isinstance(starts, (list, tuple))
        or not starts
        or not all(map(known, starts))
    ):
        raise ValueError(
            "Expected starts, a list of 'independent', 'input' or functions of x. "
            f"Received: starts={starts!r}."
        )
    return list(starts)


@keras.saving.register_keras_serializable("keras_rbm")
class Exact(Inference):
    """Exact inference by enumerating the smaller layer, for small models.

    A layer of 8 binary units, or of 256 states of others, such as the classes of a
    label, costs no more than the sweeps of belief propagation, so a `CRBM` with such a
    layer has it by default. Each unit more doubles the cost; 25 are the most. Gradients
    pass through it: the Jacobian is the covariance of the statistics.

    Example:

    >>> model = keras_rbm.inference.Potentials(tf.ones((3, 2)), [0.0] * 3, [0.0] * 2)
    >>> beliefs = keras_rbm.inference.Exact()(model)
    >>> print(beliefs.hidden.numpy().round(4))
    [0.9153 0.9153]
    """

    def __call__(self, potentials, weights=None, pairwise="mean"):
        check_options(pairwise=pairwise)
        (log_partition, visible, hidden), pairs = exact.enumerated(
            potentials, weights, "means", pairwise, tf.float32
        )
        beliefs = Beliefs(
            visible,
            hidden,
            pairs,
            log_partition,
            tf.ones_like(log_partition, tf.int32),
            tf.ones_like(log_partition, tf.bool),
            tf.zeros_like(log_partition),
        )
        return without_batch(beliefs, potentials, pairwise)


_BY_NAME: dict[str, Callable[[], Inference]] = {
    "exact": Exact,
    "mean_field": MeanField,
    **{name: functools.partial(BeliefPropagation, name) for name in _METHODS},
    "belief_propagation": BeliefPropagation,
}


def get(identifier: str | dict[str, Any] | Inference) -> Inference:
    """Returns the inference object that a name, config or object stands for.

    Args:
        identifier: str (`"belief_propagation"`, `"sum_product"`, `"max_product"`,
            `"mixed_product"`, `"mean_field"`, `"exact"`), a serialized config, or
            an `Inference`.

    Raises:
        ValueError: if the identifier is unknown.

    Example:

    >>> keras_rbm.inference.get("mean_field").max_iterations
    50
    """
    return find(
        identifier,
        Inference,
        _BY_NAME,
        "an inference method",
        "keras_rbm.inference.BeliefPropagation(max_iterations=7)",
    )
