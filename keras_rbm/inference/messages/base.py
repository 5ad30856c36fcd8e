"""What every inference object is."""

import abc

import tensorflow as tf

from keras_rbm.checks import check_counts
from keras_rbm.configured import Configured
from keras_rbm.inference.messages.beliefs import check_options


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

    def check_input(self, conditional):
        """Raises a ValueError if it needs an input and the model has none."""
        if self.needs_input and not conditional:
            raise ValueError(
                f"Expected inference for a model without input. Received: {self!r}, "
                "which starts at the input. Use MeanField()."
            )

    def given(self, features):
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
