"""The base classes of rules: all of them, and those that descend along two phases."""

from typing import Any

import tensorflow as tf

from keras_rbm._checks import check_flags, check_numbers
from keras_rbm._serializable import Serializable
from keras_rbm.inference import Exact
from keras_rbm.inference.potentials import Moments, Potentials
from keras_rbm.rules.centering import Centering
from keras_rbm.rules.learner import Learner
from keras_rbm.rules.step import Phases, Step


class Rule(Serializable):
    """How a model learns: a `LearningRule`, or the settings of `FrankWolfe`.

    Attributes:
        learner: `Learner`, what the rule may ask of its model, once it has one.
        built: bool, whether `build` was called.
        rate_share: float, share of the default learning rate that suits the rule.
        in_nats: bool, whether its loss is in nats an example, of all units.
        inner_steps: int, how many updates a step makes.
        compiles: bool, whether XLA can compile its steps.
    """

    rate_share = 1.0
    in_nats = True
    inner_steps = 1
    compiles = True

    def __init__(self) -> None:
        self.learner: Learner | None = None
        self.built = False

    def check(self, learner: Learner) -> None:
        """Raises a ValueError if the rule does not fit a model and its optimizer.

        Args:
            learner: `Learner` of the model.
        """
        if self.learner is not None and self.learner.model is not learner.model:
            raise ValueError(
                f"Expected a new rule object for each model. Received: {self!r}, which "
                f"belongs to model '{self.learner.model.name}'. Make a new one for "
                "this model: its state (chains) cannot be shared."
            )

    def phases(self, step: Step) -> Phases:
        """Returns the `Phases` of a `Step`, before it changes the model."""
        return Phases(step.positive, None, *self.losses(step))

    def losses(self, step: Step) -> tuple[tf.Tensor, tf.Tensor | None]:
        """Returns what `fit` and `evaluate` report as `loss`, and a prediction.

        By default `Step.default_losses`.

        Returns:
            `(losses, prediction)`: (B,), nats; and the model's prediction, if it has
            been computed anyway, else `None`.
        """
        return step.default_losses(), None

    def update(self, step: Step, phases: Phases) -> dict[str, tf.Tensor]:
        """Changes the model by a step; returns logs, a dict of scalars.

        Args:
            step, phases: `Step`, and the `Phases` that the rule has computed from it.
        """
        raise TypeError(f"{type(self).__name__} must implement update.")

    @property
    def updates_in_parts(self) -> bool:
        """bool: whether a step changes the model before all of it is known."""
        return self.inner_steps > 1

    def build(self, learner: Learner) -> None:
        """Creates the rule's variables; called once, when the model is built."""


class LearningRule(Rule):
    """A rule that estimates averages under the model, the negative phase.

    The gradient of the mean log-likelihood is the model's expected statistics
    given the data (positive phase) minus its expected statistics (negative
    phase). The model computes the first and passes the difference to the optimizer. A
    subclass implements `negative_phase` (or `phases`, if both depend on each other),
    and `check` if it does not fit every model. State that persists from step to step
    is created in `build` by `learner.add_variable`.

    Args:
        sparsity_target: float in (0, 1) or `None`, desired mean activation of
            each hidden unit.
        sparsity_cost: float ≥ 0. `cost * (target - batch mean of E[h | v])` is
            added to the ascent direction of the hidden bias.
        centered: bool or `None`, whether the update is the centered gradient, for which
            it makes no difference if 0 and 1 are exchanged in the data. `None`: for
            models without input, and those whose inference is `Exact`. With others it
            was seen to learn few rows by heart sooner.

    Attributes:
        conditional: bool or `None`, whether the rule is only for models with input
            (`True`), or only for those without (`False`): given x, each example has its
            own model, and chains that serve all examples do not fit.

    Raises:
        TypeError, ValueError: if an argument has another type or is out of range.

    Example:

    >>> class ExactGradient(keras_rbm.rules.LearningRule):
    ...     def negative_phase(self, step):
    ...         visible = tf.constant(list(np.ndindex(2, 2, 2)), tf.float32)
    ...         weights = tf.nn.softmax(-step.potentials.free_energy(visible))
    ...         return keras_rbm.inference.conditional_moments(
    ...             step.potentials, visible, weights)
    >>> rbm = keras_rbm.RBM(2, num_visible=3, seed=0)
    >>> rbm.compile("sgd", rule=ExactGradient())
    >>> history = rbm.fit(np.eye(3, dtype="float32"), verbose=0)
    """

    conditional: bool | None = None

    def __init__(
        self,
        sparsity_target: float | None = None,
        sparsity_cost: float = 0.0,
        centered: bool | None = None,
    ) -> None:
        super().__init__()
        check_numbers(sparsity_cost=sparsity_cost)
        if sparsity_target is not None:
            check_numbers(sparsity_target=sparsity_target)
        if centered is not None:
            check_flags(centered=centered)
        if sparsity_target is not None and not 0.0 < sparsity_target < 1.0:
            raise ValueError(
                "Expected sparsity_target between 0 and 1, or None. Received: "
                f"sparsity_target={sparsity_target}."
            )
        if sparsity_cost < 0.0:
            raise ValueError(
                f"Expected sparsity_cost ≥ 0. Received: sparsity_cost={sparsity_cost}."
            )
        if bool(sparsity_cost) != (sparsity_target is not None):
            raise ValueError(
                "Expected sparsity_target and a sparsity_cost > 0 together. Received: "
                f"sparsity_target={sparsity_target}, sparsity_cost={sparsity_cost}."
            )
        self.sparsity_target = sparsity_target
        self.sparsity_cost = sparsity_cost
        self.centered = None if centered is None else bool(centered)
        self.centering: Centering | None = None

    def check(self, learner: Learner) -> None:
        super().check(learner)
        model = learner.model
        if learner.has_own_models and self.conditional is False:
            raise ValueError(
                f"Expected a model without input for {type(self).__name__}, and "
                "without absent units: otherwise each example has its own model, and "
                f"its chains cannot serve others. Received: {type(model).__name__} "
                f"'{model.name}'. Use the rule 'cd' or 'maximum_likelihood'."
            )
        if self.conditional and not model.conditional:
            raise ValueError(
                f"Expected a model with input for {type(self).__name__}, which learns "
                f"to predict from x. Received: {type(model).__name__} '{model.name}'. "
                "Use a CRBM, or the rule 'cd' or 'pcd'."
            )

    def build(self, learner: Learner) -> None:
        model = learner.model
        suits = not model.conditional or isinstance(model.inference, Exact)
        if self.centered or (self.centered is None and suits):
            self.centering = Centering()
            self.centering.build(learner)

    def phases(self, step: Step) -> Phases:
        """Returns the `Phases` of a `Step`."""
        return Phases(step.positive, self.negative_phase(step), *self.losses(step))

    def negative_phase(self, step: Step) -> Moments:
        """Returns the `Moments` of the model, as the rule approximates them.

        Args:
            step: `Step`.
        """
        raise TypeError(
            f"{type(self).__name__} must implement negative_phase, or phases."
        )

    def update(self, step: Step, phases: Phases) -> dict[str, tf.Tensor]:
        """Descends along the difference of the phases; returns no logs.

        A rule that descends several times, by `Step.descend`, has an attribute
        `inner_steps`, how often.

        Args:
            step, phases: `Step`, and the `Phases` that the rule has computed from it.
        """
        self._descend(step, phases.positive, phases.negative)
        return {}

    def _descend(self, step, positive, negative, of_data=None):
        """Descends along the difference of two phases.

        Args:
            step: `Step`.
            positive, negative: `Moments`.
            of_data: tensor (V, H), the centered kernel of the positive phase; by
                default with the offsets as they are in this update.

        Returns:
            `(gradients, of_data)`: a dict, see `Potentials.gradients`, and the kernel.
        """
        gradients = step.potentials.gradients(positive, negative)
        if self.centering is not None:
            self.centering.slide(positive)
            of_data = self.centering.kernel(positive) if of_data is None else of_data
            gradients["kernel"] = self.centering.kernel(negative) - of_data
        step.descend(gradients | self._sparse(gradients, positive), self.centering)
        return gradients, of_data

    def _sparse(self, gradients, positive):
        """Returns the gradient of the hidden bias with the sparsity penalty added."""
        if not self.sparsity_cost:
            return {}
        mean, bias = positive.mean(), gradients["hidden_bias"]
        change = self.sparsity_cost * (
            mean.hidden.bias - self.sparsity_target * mean.weights
        )
        if bias.shape.rank == 2:  # each row's share of it
            share = tf.math.divide_no_nan(positive.weights, mean.weights)
            change *= share[:, tf.newaxis]
        return {"hidden_bias": bias + change}

    def visible_chains(self, potentials: Potentials) -> tf.Tensor | None:
        """Returns states (C, V) that the rule's chains have reached, or `None`."""
        return None

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            "sparsity_target": self.sparsity_target,
            "sparsity_cost": self.sparsity_cost,
            "centered": self.centered,
        }
