"""Average contrastive divergence."""

from typing import Any

import keras
import tensorflow as tf

from keras_rbm._checks import check_counts
from keras_rbm.inference import conditional_moments
from keras_rbm.inference.gibbs import visible_chain
from keras_rbm.inference.potentials import Moments
from keras_rbm.rules.learning_rule import LearningRule
from keras_rbm.rules.step import Step


@keras.saving.register_keras_serializable("keras_rbm")
class AverageContrastiveDivergence(LearningRule):
    """ACD-k: CD-k with moments averaged over several chains from each example [1].

    The bias is that of CD-k; the variance of the negative phase is smaller by the
    number of chains. Fits models with and without input.

    Args:
        gibbs_steps: int ≥ 1, k.
        num_chains: int ≥ 1, chains from each example.
        **kwargs: `centered`, `sparsity_target`, …; see `LearningRule`.

    Raises:
        ValueError: if a count is not an int ≥ 1.

    Example:

    >>> rbm = keras_rbm.RBM(4, seed=0)
    >>> rule = keras_rbm.rules.AverageContrastiveDivergence(num_chains=3)
    >>> rbm.compile("sgd", rule=rule)
    >>> history = rbm.fit(np.eye(6, dtype="float32"), verbose=0)

    References:
        1. Ma, Wang. Average contrastive divergence for training restricted Boltzmann
           machines. Entropy 2016.
    """

    def __init__(
        self, gibbs_steps: int = 1, num_chains: int = 10, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        check_counts(gibbs_steps=gibbs_steps, num_chains=num_chains)
        self.gibbs_steps = gibbs_steps
        self.num_chains = num_chains

    def negative_phase(self, step: Step) -> Moments:
        count = self.num_chains
        copies = step.potentials.repeat(count)
        visible = tf.tile(step.visible, (count, 1))
        chains = visible_chain(copies, visible, step.seed, num_sweeps=self.gibbs_steps)
        each = tf.tile(step.weights / count, (count,))
        moments = conditional_moments(
            copies, chains.visible, each, chains.hidden_natural
        )
        of_examples = tf.nest.map_structure(
            lambda rows: tf.reduce_mean(
                tf.reshape(rows, (count, -1, rows.shape[1])), 0
            ),
            (moments.visible, moments.hidden),
        )
        return moments._replace(
            visible=of_examples[0], hidden=of_examples[1], weights=step.weights
        )

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "gibbs_steps": self.gibbs_steps,
            "num_chains": self.num_chains,
        }
