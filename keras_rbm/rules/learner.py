"""A model as its learning rule sees it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf
from numpy.typing import ArrayLike

from keras_rbm.inference.potentials import Potentials
from keras_rbm.rules.forward_pass import ForwardPass

if TYPE_CHECKING:
    from keras_rbm.rules.centering import Centering
    from keras_rbm.rules.learning_rule import Rule
    from keras_rbm.rules.step import Step


class Learner:
    """What a learning rule may ask of a model, and how it changes the model.

    A rule gets it in `check` and `build`, and finds it in each `Step`.

    Args:
        model: Keras model.
        rule: its `Rule`.
        optimizer: Keras optimizer.

    Attributes:
        model: the Keras model, for its `name`, `conditional`, the unit types `visible`
            and `hidden`, and the `inference` that it predicts with, or `None`.
        optimizer: the Keras optimizer.
        variables: list of the rule's own variables, see `add_variable`.
    """

    def __init__(
        self, model: keras.Model, rule: "Rule", optimizer: keras.optimizers.Optimizer
    ) -> None:
        self.model, self.optimizer = model, optimizer
        self._rule = rule
        # Compiled again with the same rule, a model goes on with its chains.
        self.variables = [] if rule.learner is None else rule.learner.variables

    def build(self) -> None:
        """Lets the rule create its variables, once."""
        if not self._rule.built:
            self._rule.build(self)
            self._rule.built = True

    def add_variable(
        self, name: str, shape: tuple[int, ...], initializer: str | Callable[..., Any]
    ) -> keras.Variable:
        """Creates a variable of the rule that is saved with the model.

        It is float32, in which a number that counts in ones stops at 2^24. Under a
        distribution strategy each replica has its own value; the first replica's is
        saved, and restored on all.

        Args:
            name: str, unique in the rule.
            shape: tuple of ints.
            initializer: callable of `(shape, dtype)`, or the name of one of Keras'.

        Raises:
            ValueError: if the rule has a variable of that name.
        """
        if any(variable.name == name for variable in self.variables):
            raise ValueError(
                "Expected another name for each variable of a rule: it is saved under "
                f"it. Received: name={name!r} twice."
            )
        variable = keras.Variable(
            initializer,
            shape=shape,
            dtype="float32",
            trainable=False,
            aggregation="only_first_replica",
            synchronization="on_read",
            name=name,
        )
        self.variables.append(variable)
        return variable

    def seed(self) -> tf.Tensor:
        """Draws a seed (2,) from the model's generator, different per replica."""
        return self.model._next_seed()

    def potentials(self, features: tf.Tensor | None = None) -> Potentials:
        """Returns the model's `Potentials` with the current parameters.

        Args:
            features: those of the step, or `None` for a model without input.
        """
        return self.model.potentials(features)

    def forward_pass(self, features: tf.Tensor | None = None) -> ForwardPass:
        """Returns the same as a `ForwardPass`, with the way back to the variables."""
        return ForwardPass(self.model, features)

    def base_natural(self, potentials: Potentials) -> tf.Tensor:
        """Returns visible natural parameters (V,) of the base-rate model.

        It is the model without coupling that has the data's mean.
        """
        return self.model._base_natural(potentials)

    def biases(self) -> Potentials:
        """Returns the `Potentials`, of a model with input without what x adds."""
        return self.model._of_biases()

    def mean_states(self) -> tf.Tensor:
        """Returns the mean of the visible layer's encoded states, (rows,)."""
        return self.model._mean_states()

    @property
    def has_own_models(self) -> bool:
        """bool: whether each example has a model of its own, so that none is common.

        It has one given its input, or if it lacks units that others have.
        """
        return self.model.conditional or self.model.gaps.has_own_models

    @property
    def kernel_mask(self) -> tf.Tensor | None:
        """Tensor (V, H), 1 where units are connected, or `None` if all are."""
        return getattr(self.model, "_kernel_mask", None)

    @property
    def frozen(self) -> set[str]:
        """Set of the names of the model's variables that are not trained."""
        return {variable.name for variable in self.model.non_trainable_variables}

    def descend(
        self, gradients: list[tf.Tensor], centering: "Centering | None" = None
    ) -> None:
        """Descends along gradients of the model's variables, see `Step.descend`."""
        self.model._descend(gradients, centering)

    def grow(self, step: "Step") -> dict[str, tf.Tensor]:
        """Lets an `InfiniteRBM` grow by a step; returns logs, a dict of scalars."""
        return self.model._grow(step)

    def recenter(self, mean: ArrayLike | None = None) -> None:
        """Moves the rule's offsets to the data's mean, after it has been set.

        Args:
            mean: array (rows,), of encoded states, for a model with input.
        """
        centering = getattr(self._rule, "centering", None)
        if centering is not None and self._rule.built:
            centering.reset(mean)

    def scored(
        self, potentials: Potentials, visible: tf.Tensor
    ) -> tuple[Potentials, tf.Tensor, int | None]:
        """Returns what the loss of states is computed from, see `Step.scored`."""
        return self.model._scored(potentials, visible)
