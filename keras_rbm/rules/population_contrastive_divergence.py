"""Population contrastive divergence."""

from typing import Any

import keras
import tensorflow as tf

from keras_rbm import random
from keras_rbm._checks import check_counts
from keras_rbm.inference import Moments, conditional_moments
from keras_rbm.inference.gibbs import visible_chain
from keras_rbm.rules.learning_rule import LearningRule
from keras_rbm.rules.step import Step


@keras.saving.register_keras_serializable("keras_rbm")
class PopulationContrastiveDivergence(LearningRule):
    """pop-CD-k: the batch's chains as one importance sample of the model [1].

    After k - 1 Gibbs sweeps from the data, `h_i ~ p(h | v_i)`, with the examples'
    weights w, represent the mixture `q(h) = sum_j w_j p(h | v_j)`. Each is weighted by
    `omega_i ~ w_i p*(h_i) / q(h_i)`, normalized over the batch. As the batch grows, the
    negative moments are consistent, unlike those of CD-k, which stay biased. They
    cost O(B² H) more. If the mixture is far from the model, a few chains have all the
    weight, and the gradient is noisier than that of CD.

    Under a distribution strategy the chains of each replica are a separate population.

    Args:
        gibbs_steps: int ≥ 1, k.
        **kwargs: `centered`, `sparsity_target`, …; see `LearningRule`.

    Raises:
        ValueError: if `gibbs_steps` is not an int ≥ 1, or for a model with input.

    Example:

    >>> rbm = keras_rbm.RBM(4, seed=0)
    >>> rbm.compile("sgd", rule=keras_rbm.rules.PopulationContrastiveDivergence())
    >>> history = rbm.fit(np.eye(6, dtype="float32"), verbose=0)

    References:
        1. Krause, Fischer, Igel. Population-contrastive-divergence: does
           consistency help with RBM training? Pattern Recognition Letters, 2018.
    """

    conditional = False

    def __init__(self, gibbs_steps: int = 1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        check_counts(gibbs_steps=gibbs_steps)
        self.gibbs_steps = gibbs_steps

    def negative_phase(self, step: Step) -> Moments:
        potentials, weights = step.potentials, step.weights
        seeds = [random.fold_in(step.seed, number) for number in range(2)]
        chains = visible_chain(
            potentials, step.visible, seeds[0], num_sweeps=self.gibbs_steps - 1
        )
        natural = chains.hidden_natural
        hidden = potentials.hidden.draw(natural, seeds[1])
        importance = _log_importance(potentials, natural, hidden, weights)
        share = tf.nn.softmax(importance) * tf.reduce_sum(weights)
        moments = conditional_moments(potentials.transpose(), hidden, share)
        kernel = tf.transpose(moments.kernel)
        return Moments(kernel, moments.hidden, moments.visible, share)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"gibbs_steps": self.gibbs_steps}


def _log_importance(potentials, natural, hidden, weights):
    """Returns the log of `w_i p*(h_i) / sum_j w_j p(h_i | v_j)`, (B,)."""
    units = potentials.hidden
    first = units.first_of(hidden)
    of_pairs = tf.matmul(first, natural, transpose_b=True)
    of_pairs -= tf.reduce_sum(units.log_partition(natural), -1)
    floor = weights.dtype.min / 2  # for the log of 0
    log_weights = tf.maximum(tf.math.log(weights), floor)
    mixture = tf.reduce_logsumexp(of_pairs + log_weights, -1)
    base = tf.reduce_sum(units.base_measure(hidden), -1)
    return log_weights - potentials.transpose().free_energy(hidden) - mixture - base
