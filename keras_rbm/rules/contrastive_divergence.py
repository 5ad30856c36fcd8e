"""Contrastive divergence."""

from typing import Any

import keras

from keras_rbm._checks import check_counts
from keras_rbm.inference import conditional_moments
from keras_rbm.inference.gibbs import visible_chain
from keras_rbm.inference.potentials import Moments
from keras_rbm.rules.learning_rule import LearningRule
from keras_rbm.rules.step import Step


@keras.saving.register_keras_serializable("keras_rbm")
class ContrastiveDivergence(LearningRule):
    """CD-k: negative moments from k Gibbs sweeps started at the data [1].

    Hidden units of the last state enter as probabilities, not as samples. Fits models
    with and without input.

    Args:
        gibbs_steps: int ≥ 1, k.
        **kwargs: `sparsity_target`, `sparsity_cost`, `centered`; see `LearningRule`.

    Raises:
        ValueError: if `gibbs_steps` is not an int ≥ 1.

    Example:

    >>> rbm = keras_rbm.RBM(4, seed=0)
    >>> rbm.compile("sgd", rule=keras_rbm.rules.ContrastiveDivergence(gibbs_steps=5))
    >>> history = rbm.fit(np.eye(6, dtype="float32"), verbose=0)

    References:
        1. Hinton. Training products of experts by minimizing contrastive
           divergence. Neural Computation, 2002.
    """

    def __init__(self, gibbs_steps: int = 1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        check_counts(gibbs_steps=gibbs_steps)
        self.gibbs_steps = gibbs_steps

    def negative_phase(self, step: Step) -> Moments:
        chains = visible_chain(
            step.potentials, step.visible, step.seed, num_sweeps=self.gibbs_steps
        )
        return conditional_moments(
            step.potentials, chains.visible, step.weights, chains.hidden_natural
        )

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"gibbs_steps": self.gibbs_steps}
