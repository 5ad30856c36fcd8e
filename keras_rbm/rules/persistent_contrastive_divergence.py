"""Persistent contrastive divergence, and with fast weights."""

from typing import Any

import keras
import tensorflow as tf

from keras_rbm._checks import check_counts, check_numbers
from keras_rbm._replicas import all_sum
from keras_rbm.inference import conditional_moments
from keras_rbm.inference.gibbs import (
    hidden_chain,
    sample_visible_given_hidden,
)
from keras_rbm.inference.potentials import Moments, Potentials
from keras_rbm.rules.learner import Learner
from keras_rbm.rules.learning_rule import LearningRule
from keras_rbm.rules.step import Phases, Step


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
        weights = step.chain_weights(self.num_chains)
        return conditional_moments(step.potentials, state.visible, weights)

    def visible_chains(self, potentials: Potentials) -> tf.Tensor | None:
        hidden = tf.convert_to_tensor(self.chains)
        return sample_visible_given_hidden(potentials, hidden, seed=0)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "gibbs_steps": self.gibbs_steps,
            "num_chains": self.num_chains,
        }


@keras.saving.register_keras_serializable("keras_rbm")
class FastPersistentContrastiveDivergence(PersistentContrastiveDivergence):
    """FPCD-k: PCD whose chains move under the weights plus fast weights [1].

    The fast weights (of the kernel and both biases) learn along the same gradient,
    `fast <- fast_decay * fast + fast_learning_rate * gradient`: they raise the energy
    where the chains are, which drives the chains away, and soon decay. Like the chains,
    `E[h | v]` in the negative moments uses the fast weights.

    Args:
        gibbs_steps: int ≥ 1, k sweeps of every chain per step; the fast weights take
            the place of more.
        num_chains: int ≥ 1.
        fast_learning_rate: float ≥ 0; at 0 this is PCD.
        fast_decay: float in [0, 1).
        **kwargs: `centered`, `sparsity_target`, …; see `LearningRule`.

    Attributes:
        chains: variable (num_chains, H), the chains' hidden states.
        fast: dict of the fast weights' variables, by parameter name.

    Raises:
        ValueError: if an argument is out of range, or for a model with input.

    Example:

    >>> rbm = keras_rbm.RBM(4, seed=0)
    >>> rule = keras_rbm.rules.FastPersistentContrastiveDivergence(num_chains=20)
    >>> rbm.compile("sgd", rule=rule)
    >>> history = rbm.fit(np.eye(6, dtype="float32"), verbose=0)

    References:
        1. Tieleman, Hinton. Using fast weights to improve persistent contrastive
           divergence. ICML 2009.
    """

    def __init__(
        self,
        gibbs_steps: int = 1,
        num_chains: int = 100,
        fast_learning_rate: float = 0.01,
        fast_decay: float = 0.95,
        **kwargs: Any,
    ) -> None:
        super().__init__(gibbs_steps, num_chains, **kwargs)
        check_numbers(fast_learning_rate=fast_learning_rate, fast_decay=fast_decay)
        if not (fast_learning_rate >= 0.0 and 0.0 <= fast_decay < 1.0):
            raise ValueError(
                "Expected fast_learning_rate ≥ 0 and fast_decay in [0, 1). Received: "
                f"fast_learning_rate={fast_learning_rate}, fast_decay={fast_decay}."
            )
        self.fast_learning_rate = float(fast_learning_rate)
        self.fast_decay = float(fast_decay)
        self.fast = {}

    def build(self, learner: Learner) -> None:
        super().build(learner)
        potentials = learner.potentials()
        for name in ("kernel", "visible_bias", "hidden_bias"):
            shape = getattr(potentials, name).shape
            self.fast[name] = learner.add_variable(f"fast_{name}", shape, "zeros")

    def negative_phase(self, step: Step) -> Moments:
        potentials = step.potentials
        accelerated = Potentials(
            potentials.kernel + tf.cast(self.fast["kernel"], potentials.kernel.dtype),
            _biased(potentials.visible, self.fast["visible_bias"]),
            _biased(potentials.hidden, self.fast["hidden_bias"]),
        )
        return super().negative_phase(step._replace(potentials=accelerated))

    def update(self, step: Step, phases: Phases) -> dict[str, tf.Tensor]:
        gradients, _ = self._descend(step, phases.positive, phases.negative)
        if step.learner.kernel_mask is not None:
            gradients["kernel"] *= step.learner.kernel_mask
        if self.centering is not None:
            gradients = self.centering.ordinary(gradients)
        total = all_sum({name: gradients[name] for name in self.fast})
        for name, fast in self.fast.items():
            fast.assign(self.fast_decay * fast - self.fast_learning_rate * total[name])
        return {}

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "fast_learning_rate": self.fast_learning_rate,
            "fast_decay": self.fast_decay,
        }


def _biased(units, bias):
    return units.with_bias(units.bias + bias)
