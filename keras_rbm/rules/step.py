"""What a model passes to its learning rule, and what it gets back."""

from typing import TYPE_CHECKING, Any, NamedTuple

import tensorflow as tf
from numpy.typing import ArrayLike

from keras_rbm import random
from keras_rbm._replicas import all_sum, num_replicas
from keras_rbm.inference import Inference, Moments, Potentials, conditional_moments
from keras_rbm.inference.pseudo_likelihood import (
    reconstruction_log_likelihood,
    stochastic_pseudo_log_likelihood,
)
from keras_rbm.rules.forward_pass import ForwardPass
from keras_rbm.rules.learner import Learner

if TYPE_CHECKING:
    from keras_rbm.rules.centering import Centering


class Step(NamedTuple):
    """One batch and a model: all that a rule needs to know of both.

    Attributes:
        potentials: `Potentials` of the model, given the batch's input.
        visible: tensor (B, V), states of the visible layer.
        weights: tensor (B,), the examples' weights, normalized over all replicas.
        hidden_natural: tensor (B, H), natural parameters of the hidden units given v.
        positive: `Moments` of the states, the positive phase.
        root_seed: seed tensor (2,), from which all other seeds of the step are made.
        loss_seed: seed tensor (2,), for the loss.
        features: tensor (B, X), or `None` for a model without input.
        inference: `Inference` that the model predicts with, or `None`.
        learner: `Learner`, what else the rule may ask of the model, or `None`.
        known: bool tensor (B, V), which states are data, where not all are, or `None`.
        forward_pass: `ForwardPass` that made the potentials, or `None`.
    """

    potentials: Potentials
    visible: tf.Tensor
    weights: tf.Tensor
    hidden_natural: tf.Tensor
    positive: Moments
    root_seed: tf.Tensor
    loss_seed: tf.Tensor
    features: tf.Tensor | None = None
    inference: Inference | None = None
    learner: Learner | None = None
    known: tf.Tensor | None = None
    forward_pass: ForwardPass | None = None

    @classmethod
    def of(
        cls,
        potentials: Potentials,
        visible: ArrayLike,
        weights: ArrayLike | None = None,
        seed: int | tf.Tensor = 0,
        **fields: Any,
    ) -> "Step":
        """Returns the step of a model that is given only by its potentials.

        Args:
            potentials: `Potentials`.
            visible: array (B, V).
            weights: array (B,), by default 1 / B each.
            seed: int or seed tensor (2,), `root_seed`.
            **fields: other attributes.
        """
        visible = tf.convert_to_tensor(visible, tf.float32)
        if weights is None:
            weights = tf.fill([len(visible)], 1.0 / len(visible))  # type: ignore[arg-type]
        seed = random.as_seed(seed)
        natural = potentials.hidden_natural(visible)
        made = {
            "hidden_natural": natural,
            "positive": conditional_moments(potentials, visible, weights, natural),
            "loss_seed": random.fold_in(seed, 0),
        }
        return cls(potentials, visible, weights, root_seed=seed, **made | fields)

    @property
    def seed(self) -> tf.Tensor:
        """Seed tensor (2,), for the negative phase."""
        return random.fold_in(self.root_seed, 1)

    def again(self) -> "Step":
        """Returns the step with the model's parameters as they are now."""
        forward_pass = self.learner.forward_pass(self.features)
        return self._replace(
            potentials=forward_pass.potentials, forward_pass=forward_pass
        )

    def descend(
        self, gradients: dict[str, tf.Tensor], centering: "Centering | None" = None
    ) -> None:
        """Descends along gradients, and those of the losses of regularizers and layers.

        Nothing happens if a gradient, or anything before it in this step, is not
        finite.

        Args:
            gradients: dict of the names of parameters to tensors, as
                `Potentials.gradients` returns it.
            centering: `Centering` whose parameters they are of, or `None` for the
                ordinary ones.
        """
        self.learner.descend(self.forward_pass.gradients(gradients), centering)

    def scored(self) -> tuple[Potentials, tf.Tensor, int | None]:
        """Returns what the loss is computed from.

        Returns:
            `(potentials, visible, num_observed)`: by default those of the step; the
            third is how many of the visible units are data, or `None` for all.
        """
        if self.learner is None:
            return self.potentials, self.visible, None
        return self.learner.scored(self.potentials, self.visible)

    def default_losses(self) -> tf.Tensor:
        """Returns minus the stochastic pseudo-log-likelihood, (B,), in nats.

        For visible units with infinitely many states, minus the log-likelihood of the
        reconstruction.
        """
        potentials, visible, num_observed = self.scored()
        if potentials.visible.whole.finite:
            return -stochastic_pseudo_log_likelihood(
                potentials, visible, self.loss_seed, num_observed, self.known
            )
        return -reconstruction_log_likelihood(potentials, visible, self.known)

    def chain_weights(self, num_chains: int) -> tf.Tensor:
        """Returns weights (C,) of a replica's chains, normalized over all replicas.

        Zero if no example of the batch has a weight: then there is nothing to learn.

        Args:
            num_chains: int, C.
        """
        total = all_sum(tf.reduce_sum(self.weights))
        return tf.fill([num_chains], tf.sign(total) / (num_chains * num_replicas()))


class Phases(NamedTuple):
    """What a rule computes from a step, before the update.

    Attributes:
        positive, negative: `Moments`; the update descends along their difference. Where
            a rule's own `update` takes something else, that, or `None`.
        losses: tensor (B,), what `fit` reports as `loss`.
        prediction: tensor (B, V), the model's prediction for the batch, if the rule has
            computed it anyway, else `None`.
    """

    positive: Moments | None
    negative: Any
    losses: tf.Tensor
    prediction: tf.Tensor | None = None
