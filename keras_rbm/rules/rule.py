"""What all rules have in common: they belong to one model."""

import tensorflow as tf

from keras_rbm._serializable import Serializable
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
    """

    rate_share = 1.0
    in_nats = True
    inner_steps = 1

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
