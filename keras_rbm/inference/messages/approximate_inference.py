"""Inference as an object that a model or a learning rule holds."""

import abc

import keras
import tensorflow as tf

from keras_rbm.checks import check_counts
from keras_rbm.configured import Configured, find
from keras_rbm.inference.exact import exact_log_partition, exact_moments
from keras_rbm.inference.messages.belief_propagation import max_product, sum_product
from keras_rbm.inference.messages.beliefs import (
    Beliefs,
    BinaryModels,
    check_options,
    without_batch,
)
from keras_rbm.inference.messages.mean_field import mean_field
from keras_rbm.inference.messages.mixed_product import mixed_product

_METHODS = ("sum_product", "max_product", "mixed_product")


class Inference(Configured, abc.ABC):
    """A way to get `Beliefs` from `Potentials`, as a serializable object.

    A subclass implements `__call__` and `get_config`, and is registered with Keras.
    """

    #: Whether the beliefs are of the most probable state, not marginals.
    finds_state = False
    #: Whether that state is of both layers, not only of the visible one.
    is_joint = False
    #: Whether it takes only binary units.
    binary_only = True
    #: Whether it always compiles itself with XLA.
    is_compiled = False
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

    def __init__(self, max_iterations, tolerance, damping):
        check_counts(max_iterations=max_iterations)
        check_options(max_iterations, tolerance, damping)
        self.tolerance = float(tolerance)
        self.damping = float(damping)
        with tf.init_scope():
            self._max_iterations = tf.Variable(
                int(max_iterations), trainable=False, dtype=tf.int32
            )

    @property
    def variables(self):
        return [self._max_iterations]

    @property
    def max_iterations(self):
        return int(self._max_iterations.numpy())

    @max_iterations.setter
    def max_iterations(self, value):
        check_counts(max_iterations=value)
        self._max_iterations.assign(int(value))

    def get_config(self):
        return {
            "max_iterations": self.max_iterations,
            "tolerance": self.tolerance,
            "damping": self.damping,
        }


@keras.saving.register_keras_serializable("keras_rbm")
class BeliefPropagation(IterativeInference):
    """Belief propagation: see `sum_product`, `max_product` and `mixed_product`.

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
        self, method="sum_product", *, max_iterations=50, tolerance=1e-3, damping=0.0
    ):
        if not isinstance(method, str) or method not in _METHODS:
            raise ValueError(
                f"Expected method to be one of {_METHODS}. Received: method={method!r}."
            )
        if method == "mixed_product" and damping:
            raise ValueError(
                "Expected no damping with mixed-product, which keeps no messages. "
                f"Received: damping={damping}."
            )
        super().__init__(max_iterations, tolerance, damping)
        self.method = method

    is_compiled = True

    @property
    def finds_state(self):
        return self.method != "sum_product"

    @property
    def is_joint(self):
        return self.method == "max_product"

    def __call__(self, potentials, weights=None, pairwise="mean"):
        options = {
            "max_iterations": self._max_iterations,
            "weights": weights,
            "pairwise": pairwise,
        }
        if self.method == "mixed_product":
            return mixed_product(potentials, **options)
        function = sum_product if self.method == "sum_product" else max_product
        options |= {"tolerance": self.tolerance, "damping": self.damping}
        return function(potentials, **options)

    def get_config(self):
        return {"method": self.method} | super().get_config()


@keras.saving.register_keras_serializable("keras_rbm")
class MeanField(IterativeInference):
    """Naive mean field, for units of all types: see `mean_field`.

    Args:
        max_iterations: int ≥ 1, maximum number of sweeps.
        tolerance: float ≥ 0, largest change of a mean that counts as converged.
        damping: float in [0, 1), weight of the old natural parameters.

    Raises:
        ValueError: if an argument is out of range.

    Example:

    >>> model = keras_rbm.inference.Potentials(tf.ones((3, 2)), [0.0] * 3, [0.0] * 2)
    >>> keras_rbm.inference.MeanField()(model).visible.shape
    TensorShape([3])
    """

    binary_only = False

    def __init__(self, *, max_iterations=50, tolerance=1e-3, damping=0.0):
        super().__init__(max_iterations, tolerance, damping)

    def __call__(self, potentials, weights=None, pairwise="mean"):
        return mean_field(
            potentials,
            max_iterations=self._max_iterations,
            tolerance=self.tolerance,
            damping=self.damping,
            weights=weights,
            pairwise=pairwise,
        )


@keras.saving.register_keras_serializable("keras_rbm")
class Exact(Inference):
    """Exact inference by enumerating the smaller layer, for tiny models.

    Example:

    >>> model = keras_rbm.inference.Potentials(tf.ones((3, 2)), [0.0] * 3, [0.0] * 2)
    >>> beliefs = keras_rbm.inference.Exact()(model)
    >>> print(beliefs.hidden.numpy().round(4))
    [0.9153 0.9153]
    """

    def __call__(self, potentials, weights=None, pairwise="mean"):
        check_options(1, pairwise=pairwise)
        models = BinaryModels.of(potentials, weights)
        batch = models.potentials()
        moments = exact_moments(batch)
        visible, hidden, pairs, log_partition = (
            tf.cast(value, tf.float32)
            for value in (
                moments.visible.bias,
                moments.hidden.bias,
                moments.kernel,
                exact_log_partition(batch),
            )
        )
        if pairwise == "mean":
            pairs = tf.einsum("n,nvh->vh", models.weights, pairs)
        elif pairwise is None:
            pairs = None
        iterations = tf.ones_like(log_partition, tf.int32)
        converged = tf.ones_like(log_partition, tf.bool)
        residual = tf.zeros_like(log_partition)
        beliefs = Beliefs(
            visible, hidden, pairs, log_partition, iterations, converged, residual
        )
        if potentials.batch_size is None:
            return without_batch(beliefs, pairwise)
        return beliefs


_BY_NAME = {
    "exact": Exact,
    "mean_field": MeanField,
    **{name: lambda name=name: BeliefPropagation(name) for name in _METHODS},
    "belief_propagation": BeliefPropagation,
}


def get(identifier):
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
