"""Maximum likelihood with deterministic approximate inference."""

import keras
import tensorflow as tf

from keras_rbm import inference as inference_module
from keras_rbm.inference import Moments
from keras_rbm.rules.learning_rule import LearningRule
from keras_rbm.rules.step import Phases
from keras_rbm.units import Bernoulli


@keras.saving.register_keras_serializable("keras_rbm")
class MaximumLikelihood(LearningRule):
    """Negative moments from beliefs: MLE-BP and MLE-MF [1].

    Nothing is sampled. The loss is `F(v) + log Z` in nats, with the inference's
    estimate of log Z (Bethe for sum-product, a lower bound for mean field): minus
    the log-likelihood that the rule climbs.

    On a model without input contrastive divergence learns better [1, section 7]:
    an RBM's beliefs must describe all data at once, with many modes.

    Args:
        inference: `keras_rbm.inference.Inference` or its name; by default the
            model's own, which also predicts, and `BeliefPropagation()` for a model
            without one. It must yield marginals: `"max_product"` and
            `"mixed_product"` go with `MaxMargin`.
        **kwargs: `sparsity_target`, `sparsity_cost`; see `LearningRule`.

    Raises:
        ValueError: if the inference is unknown; by `compile`, if it finds states or
            the model's units are not binary.

    Example:

    >>> x = np.eye(6, dtype="float32")
    >>> crbm = keras_rbm.CRBM(4, inference="sum_product", seed=0)
    >>> crbm.compile("sgd", rule=keras_rbm.rules.MaximumLikelihood())
    >>> history = crbm.fit(x, 1.0 - x, verbose=0)

    References:
        1. Ping, Ihler. Belief propagation in conditional RBMs for structured
           prediction. AISTATS 2017.
    """

    def __init__(self, inference=None, **kwargs):
        super().__init__(**kwargs)
        if inference is not None:
            inference = inference_module.get(inference)
        self.inference = inference
        self._default = None  # for a model without one

    def check(self, model, optimizer=None):
        super().check(model, optimizer)
        for side in ("visible", "hidden"):
            unit = getattr(model, side)
            if not isinstance(unit, Bernoulli):
                raise ValueError(
                    "Expected binary units for MaximumLikelihood, which needs "
                    f"inference. Received: {side}={unit!r}. Use the rule 'cd' or 'pcd'."
                )
        inference = self.inference or model.inference
        if inference is not None and inference.finds_state:
            raise ValueError(
                "Expected inference that yields marginals for MaximumLikelihood. "
                f"Received: {inference!r}. Use BeliefPropagation('sum_product'), "
                "MeanField() or Exact(), or the rule MaxMargin()."
            )

    def inference_for(self, inference):
        inference = self.inference or inference or self._default
        if inference is None:
            inference = self._default = inference_module.BeliefPropagation()
        return inference

    def phases(self, step):
        one = step.potentials.batch_size is None  # model for all examples
        weights = None if one else step.weights
        beliefs = self.inference_for(step.inference)(step.potentials, weights=weights)
        return Phases(
            step.positive,
            _moments(step.potentials, beliefs, step.weights),
            _losses(step, beliefs),
            self._prediction(step, beliefs),
        )

    def test_losses(self, step):
        beliefs = self.inference_for(step.inference)(step.potentials, pairwise=None)
        return _losses(step, beliefs), self._prediction(step, beliefs)

    def _prediction(self, step, beliefs):
        """Returns the visible marginals, if they are what the model predicts."""
        own = self.inference_for(step.inference) is step.inference
        return beliefs.visible if own and beliefs.visible.shape.rank == 2 else None

    def get_config(self):
        inference = self.inference or self._default
        if inference is not None:
            inference = keras.saving.serialize_keras_object(inference)
        return super().get_config() | {"inference": inference}


def _moments(potentials, beliefs, weights):
    v, h, kernel = beliefs.visible, beliefs.hidden, beliefs.pairwise
    if v.shape.rank == 1:
        weights = tf.reduce_sum(weights, keepdims=True)
        v, h, kernel = v[tf.newaxis], h[tf.newaxis], kernel * weights
    v, h = potentials.visible.statistics(v), potentials.hidden.statistics(h)
    return Moments(kernel, v, h, weights)


def _losses(step, beliefs):
    own = step.potentials.free_energy(step.visible, step.hidden_natural)
    return own + beliefs.log_partition
