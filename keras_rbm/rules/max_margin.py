"""Structured max-margin learning."""

import keras
import tensorflow as tf

from keras_rbm.inference import Moments, Potentials, conditional_moments
from keras_rbm.inference.potentials import own_log_weight
from keras_rbm.rules.learner import Learner
from keras_rbm.rules.learning_rule import LearningRule
from keras_rbm.rules.step import Phases, Step
from keras_rbm.units.categorical import CategoricalParameters


@keras.saving.register_keras_serializable("keras_rbm")
class MaxMargin(LearningRule):
    """Max-margin learning with latent variables: MSSVM and LSSVM [1, 2, 3].

    Descends along the subgradient of

        max over v* of [ Hamming(v*, v) + score(v* | x) ] - score(v | x),

    which bounds the number of wrong pixels, or of wrong categories, from above if the
    inference finds the maximum. Targets should be states, as v* is: 0 or 1, or numbers
    of categories. The model's inference determines
    the score: `BeliefPropagation("mixed_product")` sums the hidden units out,
    `score = -F` (MSSVM); `BeliefPropagation("max_product")` maximizes over them,
    `score = max over h of -E` (LSSVM, also in the positive phase). If the inference
    finds no v* better than the data, the example has loss 0 and no gradient.

    Args:
        **kwargs: `sparsity_target`, `sparsity_cost`; see `LearningRule`. LSSVM
            uses the most probable h instead of E[h | v].

    Raises:
        ValueError: from `compile`, for a model without input, or one whose inference
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

    conditional = True

    def check(self, learner: Learner) -> None:
        super().check(learner)
        inference = learner.model.inference
        if not inference.finds_state:
            raise ValueError(
                "Expected inference that finds states for MaxMargin. Received: "
                f"{inference!r}. Use BeliefPropagation('mixed_product') for "
                "MSSVM, or BeliefPropagation('max_product') for LSSVM."
            )

    def phases(self, step: Step) -> Phases:
        rival, losses = self._rival(step)
        positive = step.positive
        if step.inference.is_joint:
            data = step.visible, step.hidden_natural
            positive = _joint_moments(step.potentials, *data, step.weights)
            visible, natural = rival
            negative = _joint_moments(step.potentials, visible, natural, step.weights)
        else:
            visible, natural = rival
            negative = conditional_moments(
                step.potentials, visible, step.weights, natural
            )
        return Phases(positive, negative, losses)

    def losses(self, step: Step) -> tuple[tf.Tensor, tf.Tensor | None]:
        return self._rival(step)[1], None

    def _rival(self, step):
        """Returns the states of largest margin violation, with parameters; losses."""
        potentials, visible = step.potentials, step.visible
        units = potentials.visible
        reward, constant = _hamming(units, visible)
        augmented = Potentials(
            potentials.kernel,
            units.with_bias(potentials.visible_bias + reward),
            potentials.hidden,
        )
        means = step.inference.given(step.features)(augmented, pairwise=None).visible
        rival = tf.cast(_decoded(units, means), visible.dtype)
        natural = potentials.hidden_natural(rival)
        score = _joint_score if step.inference.is_joint else _score
        violation = tf.reduce_sum(constant + units.first_of(rival) * reward, -1)
        violation += score(potentials, rival, natural)
        violation -= score(potentials, visible, step.hidden_natural)
        worse = violation[:, tf.newaxis] > 0.0
        states = (
            tf.where(worse, rival, visible),
            tf.where(worse, natural, step.hidden_natural),
        )
        return states, tf.nn.relu(violation)


def _hamming(units, states):
    """Returns what each row adds to the Hamming distance, and a constant, (B, rows).

    The distance is linear: a binary unit that is 1 adds 1 - 2 v to v, and any category
    but the right one adds 1.
    """
    if isinstance(units, CategoricalParameters):
        wrong = 1.0 - units.first_of(states)
        return wrong, tf.zeros_like(wrong)
    return 1.0 - 2.0 * states, states


def _decoded(units, beliefs):
    """Returns the states of beliefs (B, rows) of a state."""
    if isinstance(units, CategoricalParameters):
        return units.mode(beliefs)
    return beliefs > 0.5


def _score(potentials, visible, natural):
    return -potentials.free_energy(visible, natural)


def _joint_score(potentials, visible, natural):
    weight = own_log_weight(potentials.visible, visible)
    return weight + tf.reduce_sum(tf.nn.relu(natural), -1)


def _joint_moments(potentials, visible, natural, weights):
    hidden = tf.cast(natural > 0.0, visible.dtype)
    rows = potentials.visible.first_of(visible) * weights[:, tf.newaxis]
    kernel = tf.matmul(rows, hidden, transpose_a=True)
    v = potentials.visible.statistics(visible)
    return Moments(kernel, v, potentials.hidden.statistics(hidden), weights)
