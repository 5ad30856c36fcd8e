"""Structured max-margin learning."""

import keras
import tensorflow as tf

from keras_rbm.inference import Moments, Potentials, conditional_moments
from keras_rbm.rules.rule import LearningRule, Phases


@keras.saving.register_keras_serializable("keras_rbm")
class MaxMargin(LearningRule):
    """Max-margin learning with latent variables: MSSVM and LSSVM [1, 2, 3].

    Descends along the subgradient of

        max over v* of [ Hamming(v*, v) + score(v* | x) ] - score(v | x),

    which bounds the number of wrong pixels from above if the inference finds the
    maximum. Targets should be binary: v* is. The model's inference says
    which score: `BeliefPropagation("mixed_product")` sums the hidden units out,
    `score = -F` (MSSVM); `BeliefPropagation("max_product")` maximises over them,
    `score = max over h of -E` (LSSVM, the positive phase too). Where the inference
    finds no v* better than the data, the example has loss 0 and no gradient.

    Args:
        **kwargs: `sparsity_target`, `sparsity_cost`; see `LearningRule`. LSSVM
            counts the most probable h for E[h | v].

    Raises:
        ValueError: by `compile`, for a model without input, or one whose inference
            yields marginals.

    Example:

    >>> x = np.eye(6, dtype="float32")
    >>> crbm = keras_rbm.CRBM(4, inference="mixed_product", seed=0)
    >>> crbm.compile(keras.optimizers.SGD(0.02), rule="max_margin")
    >>> history = crbm.fit(x, 1.0 - x, verbose=0)

    References:
        1. Ping, Ihler. Belief propagation in conditional RBMs for structured
           prediction. AISTATS 2017.
        2. Ping, Liu, Ihler. Marginal structured SVM with hidden variables. ICML
           2014.
        3. Yu, Joachims. Learning structural SVMs with latent variables. ICML 2009.
    """

    def check(self, model):
        super().check(model)
        if not model.conditional:
            raise ValueError(
                "Expected a model with input for MaxMargin: without x there is no "
                f"output to get right. Received: {type(model).__name__}. Use a CRBM, "
                "or another rule."
            )
        if not model.inference.finds_state:
            raise ValueError(
                "Expected inference that finds states for MaxMargin. Received: "
                f"{model.inference!r}. Use BeliefPropagation('mixed_product') for "
                "MSSVM, or BeliefPropagation('max_product') for LSSVM."
            )

    def phases(self, potentials, visible, weights, seed):
        rival, losses = self._rival(potentials, visible)
        return Phases(
            self._moments(potentials, visible, weights),
            self._moments(potentials, rival, weights),
            losses,
        )

    def losses(self, potentials, visible, seed):
        return self._rival(potentials, visible)[1]

    @property
    def _joint(self):
        return self.model.inference.is_joint

    def _rival(self, potentials, visible):
        """Returns the states that violate the margin most, and by how much."""
        reward = 1.0 - 2.0 * visible  # of a 1; the Hamming distance is linear
        augmented = Potentials(
            potentials.kernel, potentials.visible_bias + reward, potentials.hidden_bias
        )
        found = self.model.inference(augmented, pairwise=None).visible
        rival = tf.cast(found > 0.5, visible.dtype)
        distance = tf.reduce_sum(visible + rival * reward, -1)
        score = self._score(potentials, rival) - self._score(potentials, visible)
        violation = distance + score
        rival = tf.where(violation[:, tf.newaxis] > 0.0, rival, visible)
        return rival, tf.nn.relu(violation)

    def _score(self, potentials, visible):
        if not self._joint:
            return -potentials.free_energy(visible)
        hidden = tf.nn.relu(potentials.hidden_natural(visible))
        return tf.reduce_sum(potentials.visible_bias * visible, -1) + tf.reduce_sum(
            hidden, -1
        )

    def _moments(self, potentials, visible, weights):
        if not self._joint:
            return conditional_moments(potentials, visible, weights)
        natural = potentials.hidden_natural(visible)
        hidden = tf.cast(natural > 0.0, visible.dtype)
        kernel = tf.matmul(visible * weights[:, tf.newaxis], hidden, transpose_a=True)
        v = potentials.visible.statistics(visible)
        return Moments(kernel, v, potentials.hidden.statistics(hidden), weights)
