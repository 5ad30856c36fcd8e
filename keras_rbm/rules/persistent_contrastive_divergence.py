"""Persistent contrastive divergence."""

from typing import Any

import keras
import tensorflow as tf

from keras_rbm._checks import check_counts
from keras_rbm.inference import conditional_moments
from keras_rbm.inference.gibbs import hidden_chain, sample_visible_given_hidden
from keras_rbm.inference.potentials import Moments, Potentials
from keras_rbm.rules.learner import Learner
from keras_rbm.rules.learning_rule import LearningRule
from keras_rbm.rules.step import Step


@keras.saving.register_keras_serializable("keras_rbm")
class PersistentContrastiveDivergence(LearningRule):
    """PCD-k: negative moments from chains that persist from step to step [1].

    The number of chains is independent of the batch size: each phase is averaged
    over its own rows. Under a distribution strategy each replica has its own chains.

    Args:
        gibbs_steps: int ≥ 1, k sweeps of every chain per step; 1 in [1]. With few,
            the chains of long runs fall behind the model.
        num_chains: int ≥ 1.
        **kwargs: `sparsity_target`, `sparsity_cost`, `centered`; see `LearningRule`.

    Attributes:
        chains: variable (num_chains, H), the chains' hidden states; created when the
            model is built, and saved with it.

    Raises:
        ValueError: if a count is not an int ≥ 1, or for a model with input.

    Example:

    >>> rbm = keras_rbm.RBM(4, seed=0)
    >>> rule = keras_rbm.rules.PersistentContrastiveDivergence(num_chains=20)
    >>> rbm.compile("sgd", rule=rule)
    >>> history = rbm.fit(np.eye(6, dtype="float32"), verbose=0)
    >>> rule.chains.shape
    TensorShape([20, 4])

    References:
        1. Tieleman. Training restricted Boltzmann machines using approximations
           to the likelihood gradient. ICML 2008.
    """

    conditional = False

    def __init__(
        self, gibbs_steps: int = 3, num_chains: int = 100, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        check_counts(gibbs_steps=gibbs_steps, num_chains=num_chains)
        self.gibbs_steps = gibbs_steps
        self.num_chains = num_chains
        self.chains: keras.Variable | None = None

    def build(self, learner: Learner) -> None:
        super().build(learner)
        seed = learner.seed()
        potentials = learner.potentials()
        hidden = potentials.hidden

        def initializer(shape, dtype=None):
            natural = hidden.natural(tf.zeros((shape[0], hidden.num_rows)))
            return tf.cast(hidden.draw(natural, seed), dtype)

        shape = (self.num_chains, potentials.num_hidden)
        self.chains = learner.add_variable("chains", shape, initializer)

    def negative_phase(self, step: Step) -> Moments:
        state = hidden_chain(
            step.potentials,
            tf.convert_to_tensor(self.chains),
            step.seed,
            num_sweeps=self.gibbs_steps,
        )
        self.chains.assign(state.hidden)
        each = step.chain_weights(self.num_chains)
        return conditional_moments(step.potentials, state.visible, each)

    def visible_chains(self, potentials: Potentials) -> tf.Tensor | None:
        hidden = tf.convert_to_tensor(self.chains)
        return sample_visible_given_hidden(potentials, hidden, seed=0)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "gibbs_steps": self.gibbs_steps,
            "num_chains": self.num_chains,
        }
