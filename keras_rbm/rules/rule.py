"""What all rules have in common: they belong to one model."""

from keras_rbm._serializable import Serializable
from keras_rbm.rules.learner import Learner


class Rule(Serializable):
    """How a model learns: a `LearningRule`, or the settings of `FrankWolfe`.

    Attributes:
        learner: `Learner`, what the rule may ask of its model, once it has one.
        built: bool, whether `build` was called.
        rate_share: float, share of the default learning rate that suits the rule.
        in_nats: bool, whether its loss is in nats an example, of all units.
    """

    rate_share = 1.0
    in_nats = True

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

    def build(self, learner: Learner) -> None:
        """Creates the rule's variables; called once, when the model is built."""
