"""Learning by a loss of the predicted marginals."""

from typing import Any

import keras
import tensorflow as tf

from keras_rbm.rules.learner import Learner
from keras_rbm.rules.learning_rule import LearningRule
from keras_rbm.rules.step import Phases, Step
from keras_rbm.units.bernoulli import are_binary

_UNKNOWN = (
    "Expected a Keras loss or its name. Received: loss={!r}. Pass for example "
    "loss='binary_crossentropy'. A function of your own needs "
    "keras.saving.register_keras_serializable(), or custom_objects= to load it."
)


@keras.saving.register_keras_serializable("keras_rbm")
class MarginalLoss(LearningRule):
    """Minimizes a Keras loss of the marginals that the model predicts [1, 2].

    The gradient passes through the sweeps of the model's inference as they were made,
    converged or not. So what is trained is what predicts, and few sweeps suffice, such
    as `BeliefPropagation(max_iterations=5)`. Maximum likelihood wants the whole image
    to be probable; binary cross-entropy only each pixel. `compile(loss=...)` of a
    `CRBM` makes this rule.

    The reported loss is Keras', a mean over the V units and then over the examples,
    whatever the loss' `reduction` is. The model descends along V times that, so that
    rates and regularizers mean what they do with other rules.

    Args:
        loss: str or `keras.losses.Loss`, or a function of targets and marginals (B, V)
            that returns (B,) or (B, V).

    Raises:
        ValueError: if the loss is unknown; from `compile`, if a unit is not binary, the
            model has no input, or its inference finds states.

    Example:

    >>> x = np.eye(6, dtype="float32")
    >>> crbm = keras_rbm.CRBM(4, seed=0)
    >>> crbm.compile("adam", loss="binary_crossentropy")
    >>> history = crbm.fit(x, 1.0 - x, verbose=0)

    References:
        1. Domke. Learning graphical model parameters with approximate marginal
           inference. IEEE TPAMI 2013.
        2. Stoyanov, Ropson, Eisner. Empirical risk minimization of graphical model
           parameters given approximate inference, decoding, and model structure.
           AISTATS 2011.
    """

    conditional = True
    in_nats = False

    def __init__(
        self, loss: str | dict[str, Any] | keras.losses.Loss = "binary_crossentropy"
    ) -> None:
        super().__init__()
        try:
            instance = keras.losses.get(loss)
        except (TypeError, ValueError) as error:
            raise ValueError(_UNKNOWN.format(loss)) from error
        if instance is None:
            raise ValueError(_UNKNOWN.format(loss))
        config = (
            instance.get_config() if isinstance(instance, keras.losses.Loss) else {}
        )
        if config.get("from_logits"):
            raise ValueError(
                "Expected a loss of probabilities. Received: a loss with "
                "from_logits=True. Leave that out: marginals are probabilities."
            )
        self.loss = instance

    def check(self, learner: Learner) -> None:
        super().check(learner)
        model = learner.model
        if not are_binary(model.visible, model.hidden):
            raise ValueError(
                "Expected binary units for a loss of marginals. Received: "
                f"visible={model.visible!r}, hidden={model.hidden!r}. Use the rule "
                "'maximum_likelihood'."
            )
        if model.inference.finds_state:
            raise ValueError(
                "Expected inference that yields marginals for a loss. Received: "
                f"{model.inference!r}. Use BeliefPropagation('sum_product'), "
                "MeanField() or Exact(), or the rule 'max_margin'."
            )

    def phases(self, step: Step) -> Phases:
        parameters = step.potentials.named()
        with tf.GradientTape() as tape:
            tape.watch(parameters)
            losses, marginals = self.losses(step)
            total = tf.reduce_sum(losses * step.weights) * step.visible.shape[-1]
        gradients = tape.gradient(total, parameters)
        gradients["kernel"] = tf.cast(gradients["kernel"], total.dtype)
        return Phases(None, gradients, losses, marginals)

    def update(self, step: Step, phases: Phases) -> dict[str, tf.Tensor]:
        step.descend(phases.negative)
        return {}

    def losses(self, step: Step) -> tuple[tf.Tensor, tf.Tensor | None]:
        infer = step.inference.given(step.features)
        marginals = infer(step.potentials, pairwise=None).visible
        compute = getattr(self.loss, "call", self.loss)
        losses = tf.convert_to_tensor(compute(step.visible, marginals))
        if losses.shape.rank == 2 and losses.shape[1] == marginals.shape[1]:
            losses = tf.reduce_mean(losses, -1)
        if losses.shape.rank != 1 or losses.shape[0] not in (
            None,
            step.visible.shape[0],
        ):
            raise ValueError(
                "Expected a loss that returns a number for each example, or for each "
                f"unit of it. Received: {self.loss!r}, which returns shape "
                f"{tuple(losses.shape)} for {tuple(marginals.shape)}. Average over the "
                "last axis only."
            )
        return losses, marginals

    def get_config(self) -> dict[str, Any]:
        return {"loss": keras.losses.serialize(self.loss)}
