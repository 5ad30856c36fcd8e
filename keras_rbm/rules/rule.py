"""The base of all learning rules."""

from typing import NamedTuple

import keras
import tensorflow as tf

from keras_rbm import random
from keras_rbm.checks import check_numbers
from keras_rbm.configured import Configured
from keras_rbm.inference import Moments, conditional_moments
from keras_rbm.inference.pseudo_likelihood import (
    reconstruction_log_likelihood,
    stochastic_pseudo_log_likelihood,
)
from keras_rbm.replicas import all_sum, num_replicas
from keras_rbm.rules.centering import Centering
from keras_rbm.units import BernoulliParameters


class Phases(NamedTuple):
    """What one step of a rule computes before the update.

    Attributes:
        positive, negative: `Moments`; the update descends along their difference.
        losses: tensor (B,), what `fit` reports as `loss`.
        prediction: tensor (B, V), the model's output for the batch, where the rule
            has it anyway and says so in `predicts`, else `None`.
    """

    positive: Moments
    negative: Moments
    losses: tf.Tensor
    prediction: tf.Tensor | None = None


class LearningRule(Configured):
    """How a model learns: a way to get the moments of its negative phase.

    The gradient of the mean log-likelihood is the model's expected statistics
    given the data (positive phase) minus its expected statistics (negative
    phase). The base computes the first, sequences a step and hands the
    difference to the optimizer; a subclass implements `negative_phase` (or
    `phases`, where both depend on each other), and `check` if it does not fit every
    model. State that must last from step to
    step is made in `build` by `add_variable`; it is saved with the model.

    Args:
        sparsity_target: float in (0, 1) or `None`, desired mean activation of
            each hidden unit.
        sparsity_cost: float ≥ 0. `cost * (target - batch mean of E[h | v])` is
            added to the ascent direction of the hidden bias.
        centered: bool, whether the update is the centred gradient, see
            `Centering`; for models without input.
        sliding_factor: float in [0, 1], how fast the centring offsets follow the
            batches' means.

    Raises:
        TypeError, ValueError: if an argument is of another type or out of range.

    Example:

    >>> class ExactGradient(keras_rbm.rules.LearningRule):
    ...     def negative_phase(self, potentials, visible, weights, seed):
    ...         visible = tf.constant(list(np.ndindex(2, 2, 2)), tf.float32)
    ...         weights = tf.nn.softmax(-potentials.free_energy(visible))
    ...         return keras_rbm.inference.conditional_moments(
    ...             potentials, visible, weights)
    >>> rbm = keras_rbm.RBM(2, num_visible=3, seed=0)
    >>> rbm.compile("sgd", rule=ExactGradient())
    >>> history = rbm.fit(np.eye(3, dtype="float32"), verbose=0)
    """

    #: Optimizer updates that one step makes.
    updates_per_step = 1
    #: Whether the rule fits models with input.
    fits_conditional = True
    #: Whether the rule adds hidden units, and fits models that take them.
    grows = False

    def __init__(
        self,
        sparsity_target=None,
        sparsity_cost=0.0,
        centered=False,
        sliding_factor=0.01,
    ):
        check_numbers(sparsity_cost=sparsity_cost, sliding_factor=sliding_factor)
        if sparsity_target is not None:
            check_numbers(sparsity_target=sparsity_target)
        if not isinstance(centered, bool):
            raise TypeError(f"Expected True or False. Received: centered={centered!r}.")
        if sparsity_target is not None and not 0.0 < sparsity_target < 1.0:
            raise ValueError(
                "Expected sparsity_target between 0 and 1, or None. Received: "
                f"sparsity_target={sparsity_target}."
            )
        if sparsity_cost < 0.0:
            raise ValueError(
                f"Expected a sparsity_cost ≥ 0. Received: {sparsity_cost}."
            )
        if bool(sparsity_cost) != (sparsity_target is not None):
            raise ValueError(
                "Expected sparsity_target and a sparsity_cost > 0 together. Received: "
                f"sparsity_target={sparsity_target}, sparsity_cost={sparsity_cost}."
            )
        self.sparsity_target = sparsity_target
        self.sparsity_cost = sparsity_cost
        centering = Centering(sliding_factor)
        self.centering = centering if centered else None
        self.sliding_factor = sliding_factor
        self.variables = []
        self.model = None  # the owner, set by its compile()
        self.built = False

    def check(self, model):
        """Raises a ValueError if the rule does not fit the model.

        The base checks that the rule does not belong to another one, and that it is
        for models with input if the model has one.
        """
        if self.model not in (None, model):
            raise ValueError(
                f"Expected a rule of the model's own. Received: {self!r}, which "
                f"belongs to model '{self.model.name}'. Make a new one for each "
                "model: its state (chains) cannot be shared."
            )
        if model.grows != self.grows:
            cure = (
                "Use FrankWolfe(), or train its to_rbm()."
                if model.grows
                else "Use an InfiniteRBM; InfiniteRBM.from_rbm(rbm, ...) goes on from "
                "a trained one."
            )
            raise ValueError(
                f"Expected a {'rule' if model.grows else 'model'} that adds hidden "
                f"units. Received: {type(self).__name__} for {type(model).__name__} "
                f"'{model.name}'. {cure}"
            )
        if model.deep and self.sparsity_cost:
            raise ValueError(
                "Expected no sparsity target for a deep model: it would reach every "
                f"second hidden layer alone. Received: {self!r}. Leave it out."
            )
        if model.conditional and (self.centering or not self.fits_conditional):
            name = type(self).__name__ + ("(centered=True)" if self.centering else "")
            raise ValueError(
                f"Expected a model without input for {name}: given x each example is a "
                "model of its own, and its chains and means cannot serve others. "
                f"Received: {type(model).__name__} '{model.name}'. Use the rule 'cd' "
                "or 'maximum_likelihood'."
            )

    def check_optimizer(self, optimizer):
        """Raises a ValueError if the rule cannot learn by a Keras optimizer."""

    def inference_for(self, model):
        """Returns the `Inference` that a model learns or predicts by, or `None`."""
        return model.inference

    def predicts(self, model):
        """Returns whether `step` and `assess` give the model's own prediction."""
        return False

    def build(self, model):
        """Makes the rule's variables; called once, when the model is built."""
        self.built = True
        if self.centering is not None:
            self.centering.build(self, model)

    def begin(self, model):
        """Takes up the model that is there as `fit` begins; called by it."""

    def adapt(self, model):
        """Takes up what `model.adapt` has set; called by it."""
        if self.centering is not None:
            self.centering.reset(model)

    def add_variable(self, name, shape, initializer):
        """Makes a variable that is saved with the model.

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

    def step(self, model, features, visible, weights):
        """Makes one update of the model's parameters.

        Args:
            model: the model that owns the rule.
            features: tensor (B, X), or `None` for a model without input.
            visible: tensor (B, V), training states.
            weights: tensor (B,), normalised over all replicas.

        Returns:
            `(losses, prediction)`, see `Phases`.
        """
        seed = model.next_seed()
        potentials = model.potentials(features)
        phases = self.phases(potentials, visible, weights, seed)
        if self.centering is not None:
            self.centering.slide(phases.positive)
        self.descend(model, features, phases.positive, phases.negative)
        return phases.losses, phases.prediction

    def descend(self, model, features, positive, negative):
        """Makes one optimizer update along the difference of two `Moments`."""
        gradients = self.gradients(model, features, positive, negative)
        model.update(self.sparsify(gradients, positive))

    def gradients(self, model, features, positive, negative):
        """Returns the model's gradients by variable name, or the centred ones."""
        gradients = model.gradients(features, positive, negative)
        if self.centering is not None:
            gradients = self.centering.centered(gradients, positive, negative)
        return gradients

    def phases(self, potentials, visible, weights, seed):
        """Returns the `Phases` of a step; arguments as of `negative_phase`."""
        losses = self.losses(potentials, visible, random.fold_in(seed, 0))
        positive = self.positive_phase(potentials, visible, weights)
        negative = self.negative_phase(
            potentials, visible, weights, random.fold_in(seed, 1)
        )
        return Phases(positive, negative, losses)

    def assess(self, potentials, visible, seed):
        """Returns `(losses, prediction)` of a test step, see `Phases`."""
        return self.losses(potentials, visible, seed), None

    def positive_phase(self, potentials, visible, weights):
        """Returns the `Moments` of the training states."""
        if self.model is None:
            return conditional_moments(potentials, visible, weights)
        return self.model.data_moments(potentials, visible, weights)

    def negative_phase(self, potentials, visible, weights, seed):
        """Returns the `Moments` of the model, by the rule's approximation.

        Args:
            potentials: `Potentials`.
            visible: tensor (B, V), training states.
            weights: tensor (B,), normalised over all replicas.
            seed: seed tensor of shape (2,).
        """
        raise TypeError(
            f"{type(self).__name__} must implement negative_phase, or phases."
        )

    def losses(self, potentials, visible, seed):
        """Returns what `fit` and `evaluate` report as `loss`, (B,), in nats.

        By default minus the stochastic pseudo-log-likelihood; for visible units
        that are not binary, minus the log-likelihood of the reconstruction.
        """
        observed = None
        if self.model is not None:
            potentials, visible = self.model.merged(potentials, visible)
            observed = self.model.kernel.shape[0]
        if isinstance(potentials.visible, BernoulliParameters):
            return -stochastic_pseudo_log_likelihood(
                potentials, visible, seed, observed
            )
        return -reconstruction_log_likelihood(potentials, visible)

    def visible_chains(self, potentials):
        """Returns states (C, V) that the rule's chains have reached, or `None`."""
        return None

    def report(self, model):
        """Returns a dict of scalars that `fit` logs beside the loss."""
        return {}

    def sparsify(self, gradients, positive):
        """Returns the gradients with the sparsity penalty added."""
        if not self.sparsity_cost:
            return gradients
        mean: Moments = positive.mean()
        shortfall = self.sparsity_target * mean.weights - mean.hidden.bias
        bias = gradients["hidden_bias"] - self.sparsity_cost * shortfall
        return gradients | {"hidden_bias": bias}

    def get_config(self):
        """Returns the constructor's arguments."""
        return {
            "sparsity_target": self.sparsity_target,
            "sparsity_cost": self.sparsity_cost,
            "centered": self.centering is not None,
            "sliding_factor": self.sliding_factor,
        }


def chain_weights(num_chains, weights):
    """Returns weights of a replica's chains, normalised over all replicas.

    Zero if no example of the batch has a weight: then there is nothing to learn.

    Args:
        num_chains: int, C.
        weights: tensor (B,), the examples', normalised over all replicas.

    Returns:
        tensor (C,).
    """
    total = all_sum(tf.reduce_sum(weights))
    return tf.fill([num_chains], tf.sign(total) / (num_chains * num_replicas()))
