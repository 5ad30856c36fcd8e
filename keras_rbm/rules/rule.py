"""The interface between a model and its learning rule."""

import keras

from keras_rbm.configured import Configured
from keras_rbm.inference.pseudo_likelihood import (
    reconstruction_log_likelihood,
    stochastic_pseudo_log_likelihood,
)


class Rule(Configured):
    """How a model learns. A model's step calls `phases`, then `update`.

    Rules that descend along the difference of two phases are `LearningRule`s. This is
    their base class, and that of rules that change the model in another way.

    Attributes:
        variables: list of the variables that `add_variable` has created; they are saved
            with the model.
        owner: the model that the rule belongs to, or `None`.
        updates_per_step: int, number of optimizer updates in one step.
        descends_once: bool, whether `update` calls `model.descend` once, which a bad
            step skips. If not, the step is reverted.
        relative_rate: float, a suitable learning rate, relative to that of contrastive
            divergence.
    """

    updates_per_step = 1
    descends_once = False
    relative_rate = 1.0

    def __init__(self):
        self.variables = []
        self.owner = None
        self.built = False

    def check(self, model, optimizer=None):
        """Raises a ValueError if the rule does not fit a model or an optimizer."""
        if self.owner not in (None, model):
            raise ValueError(
                f"Expected a new rule object for each model. Received: {self!r}, which "
                f"belongs to model '{self.owner.name}'. Make a new one for this "
                "model: its state (chains) cannot be shared."
            )

    def build(self, model):
        """Creates the rule's variables; called once, when the model is built."""
        self.built = True

    def add_variable(self, name, shape, initializer):
        """Creates a variable that is saved with the model.

        Under a distribution strategy each replica has its own value; the first
        replica's is saved, and restored on all.

        Args:
            name: str, unique in the rule.
            shape: tuple of ints.
            initializer: callable of `(shape, dtype)`.
        """
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

    def adapt(self, model):
        """Called by `model.adapt` after it has changed the model."""

    def inference_for(self, inference):
        """Returns the `Inference` that the rule runs, or `None`.

        Args:
            inference: the model's `Inference`, or `None`.
        """
        return inference

    def phases(self, step):
        """Returns the `Phases` of a `Step`."""
        raise TypeError(f"{type(self).__name__} must implement phases.")

    def update(self, model, step, phases):
        """Changes the model, and returns a dict of scalars for `fit` to log.

        Args:
            model: the model.
            step, phases: `Step`, and the `Phases` that the rule has computed from it.
        """
        raise TypeError(f"{type(self).__name__} must implement update.")

    def losses(self, step):
        """Returns what `fit` and `evaluate` report as `loss`, (B,), in nats.

        By default minus the stochastic pseudo-log-likelihood; for visible units with
        infinitely many states, minus the log-likelihood of the reconstruction.
        """
        potentials, visible = step.scored or (step.potentials, step.visible)
        if potentials.visible.finite:
            return -stochastic_pseudo_log_likelihood(
                potentials, visible, step.loss_seed, step.num_observed
            )
        return -reconstruction_log_likelihood(potentials, visible)

    def test_losses(self, step):
        """Returns `(losses, prediction)` of a test step, see `Phases`."""
        return self.losses(step), None

    def visible_chains(self, potentials):
        """Returns states (C, V) that the rule's chains have reached, or `None`."""
        return None
