"""Maximum likelihood with deterministic approximate inference."""

from typing import Any

import keras
import tensorflow as tf

from keras_rbm import inference as inference_module
from keras_rbm.inference import Moments
from keras_rbm.rules.learner import Learner
from keras_rbm.rules.learning_rule import LearningRule
from keras_rbm.rules.step import Phases, Step
from keras_rbm.units.bernoulli import are_binary


@keras.saving.register_keras_serializable("keras_rbm")
class MaximumLikelihood(LearningRule):
    """Negative moments from beliefs: MLE-BP and MLE-MF [1].

    Nothing is sampled. The loss is `F(v) + log Z` in nats, with the inference's
    estimate of log Z (Bethe for sum-product, a lower bound for mean field): minus
    the log-likelihood that the rule maximizes.

    For a model without input contrastive divergence learns better [1, section 7]:
    an RBM's beliefs must describe all data at once, with many modes.

    Args:
        inference: `keras_rbm.inference.Inference` or its name; by default the
            model's own, which also predicts, and for a model without one
            `BeliefPropagation()`, or `MeanField()` if a layer is not binary. It must
            yield marginals: use `"max_product"` and `"mixed_product"` with `MaxMargin`.
        **kwargs: `sparsity_target`, `sparsity_cost`; see `LearningRule`.

    Raises:
        ValueError: if the inference is unknown; from `compile`, if it finds states, or
            is only for binary units and the model has others.

    Example:

    >>> x = np.eye(6, dtype="float32")
    >>> crbm = keras_rbm.CRBM(4, inference="sum_product", seed=0)
    >>> crbm.compile("sgd", rule=keras_rbm.rules.MaximumLikelihood())
    >>> history = crbm.fit(x, 1.0 - x, verbose=0)

    References:
        1. Ping, Ihler. Belief propagation in conditional RBMs for structured
           prediction. AISTATS 2017.
    """

    def __init__(
        self,
        inference: str | dict[str, Any] | inference_module.Inference | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if inference is not None:
            inference = inference_module.get(inference)
        self.inference = inference

    def check(self, learner: Learner) -> None:
        super().check(learner)
        model = learner.model
        binary = are_binary(model.visible, model.hidden)
        inference = self.inference or model.inference
        if inference is None:
            name = "belief_propagation" if binary else "mean_field"
            inference = self.inference = inference_module.get(name)
        if not inference.takes(model.visible, model.hidden):
            raise ValueError(
                "Expected binary units for MaximumLikelihood with this inference. "
                f"Received: inference={inference!r}, visible={model.visible!r}, "
                f"hidden={model.hidden!r}. Use MeanField(), or the rule 'cd' or 'pcd'."
            )
        inference.check_input(model.conditional)
        if inference.finds_state:
            raise ValueError(
                "Expected inference that yields marginals for MaximumLikelihood. "
                f"Received: {inference!r}. Use BeliefPropagation('sum_product'), "
                "MeanField() or Exact(), or the rule MaxMargin()."
            )

    def phases(self, step: Step) -> Phases:
        one = step.potentials.batch_size is None  # model for all examples
        weights = None if one else step.weights
        beliefs = self._infer(step)(step.potentials, weights=weights)
        return Phases(
            step.positive,
            _moments(step.potentials, beliefs, step.weights),
            _losses(step, beliefs),
            self._prediction(step, beliefs),
        )

    def losses(self, step: Step) -> tuple[tf.Tensor, tf.Tensor | None]:
        beliefs = self._infer(step)(step.potentials, pairwise=None)
        return _losses(step, beliefs), self._prediction(step, beliefs)

    def _infer(self, step):
        return (self.inference or step.inference).given(step.features)

    def _prediction(self, step, beliefs):
        """Returns the visible marginals, if they are what the model predicts."""
        is_of_model = self.inference in (None, step.inference)
        if is_of_model and beliefs.visible.shape.rank == 2:
            return step.potentials.visible.compared(beliefs.visible)
        return None

    def get_config(self) -> dict[str, Any]:
        inference = self.inference
        if inference is not None:
            inference = keras.saving.serialize_keras_object(inference)
        return super().get_config() | {"inference": inference}


def _moments(potentials, beliefs, weights):
    v, h, kernel = beliefs.visible, beliefs.hidden, beliefs.pairwise
    if v.shape.rank == 1:
        weights = tf.reduce_sum(weights, keepdims=True)
        v, h, kernel = v[tf.newaxis], h[tf.newaxis], kernel * weights
    other_way = potentials.transpose()
    v, h = (
        _statistics(potentials.visible, v, potentials, h),
        _statistics(potentials.hidden, h, other_way, v),
    )
    return Moments(kernel, v, h, weights)


def _statistics(units, means, potentials, others):
    """Returns the expected statistics of units with given means, and others' means."""
    natural = potentials.visible_natural_of_mean(others)
    statistics = units.expected_statistics(natural)
    return statistics._replace(bias=units.first(means))


def _losses(step, beliefs):
    energies = step.potentials.free_energy(step.visible, step.hidden_natural)
    return energies + beliefs.log_partition
