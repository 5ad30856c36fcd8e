"""Contrastive divergence, and that of a perceptron."""

from typing import Any

import keras
import tensorflow as tf

from keras_rbm import random
from keras_rbm._checks import check_counts
from keras_rbm.inference import conditional_moments
from keras_rbm.inference.gibbs import ChainNoise, ChainState, noisy_sweep, visible_chain
from keras_rbm.inference.potentials import Moments
from keras_rbm.rules.learning_rule import LearningRule
from keras_rbm.rules.step import Phases, Step


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


@keras.saving.register_keras_serializable("keras_rbm")
class ContrastiveDivergencePerceptron(LearningRule):
    """CD-PercLoss: pushes away states that the model prefers to the data [1].

    A chain starts at `v ~ sigmoid(b(x))`, the model without coupling, makes k
    Gibbs sweeps and remembers the state v* of lowest free energy. The loss is
    `max(0, F(v | x) - F(v* | x))`, in nats: only examples with
    `F(v* | x) < F(v | x)` have a loss and a gradient.

    At small learning rates it may stop early, with loss 0: if chains find no better
    state than the data, nothing is learned, even if the prediction is poor.

    Args:
        gibbs_steps: int ≥ 1, k.
        centered: bool, see `LearningRule`; few examples have a gradient.
        **kwargs: `sparsity_target`, `sparsity_cost`; see `LearningRule`.

    Raises:
        ValueError: for a model without input, or if `gibbs_steps` is not an
            int ≥ 1.

    Example:

    >>> x = np.eye(6, dtype="float32")
    >>> crbm = keras_rbm.CRBM(4, inference="mean_field", seed=0)
    >>> crbm.compile("sgd", rule="cd_perceptron")
    >>> history = crbm.fit(x, 1.0 - x, verbose=0)

    References:
        1. Mnih, Larochelle, Hinton. Conditional restricted Boltzmann machines for
           structured output prediction. UAI 2011.
    """

    conditional = True
    rate_share = 0.1  # few examples have a gradient, and Adam makes full steps of it

    def __init__(
        self, gibbs_steps: int = 10, centered: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(centered=centered, **kwargs)
        check_counts(gibbs_steps=gibbs_steps)
        self.gibbs_steps = gibbs_steps

    def phases(self, step: Step) -> Phases:
        rival, losses = self._rival(step)
        better = losses[:, tf.newaxis] > 0.0
        rival = ChainState(
            tf.where(better, rival.visible, step.visible),
            tf.where(better, rival.hidden_natural, step.hidden_natural),
        )
        negative = conditional_moments(
            step.potentials, rival.visible, step.weights, rival.hidden_natural
        )
        return Phases(step.positive, negative, losses)

    def losses(self, step: Step) -> tuple[tf.Tensor, tf.Tensor | None]:
        return self._rival(step)[1], None

    def _rival(self, step):
        """Returns the best state that each chain visits, and the perceptron losses."""
        potentials = step.potentials
        seeds = [random.fold_in(step.root_seed, number) for number in range(2)]
        start = random.uniform(tf.shape(step.visible), seeds[0])
        state = potentials.visible.sample(potentials.visible_bias, start)
        state = ChainState(state, potentials.hidden_natural(state))
        rows = start.shape[0] or tf.shape(start)[0]
        noise = ChainNoise(potentials, rows, seeds[1], self.gibbs_steps)

        def sweep(noise, visited):
            state, best, lowest = visited
            state = noisy_sweep(potentials, state, noise)
            energy = potentials.free_energy(*state)
            lower = (energy < lowest)[:, tf.newaxis]
            best = tf.nest.map_structure(
                lambda new, old: tf.where(lower, new, old), state, best
            )
            return state, best, tf.minimum(energy, lowest)

        visited = state, state, potentials.free_energy(*state)
        _, best, lowest = noise.loop(sweep, visited, 0, self.gibbs_steps)
        of_data = potentials.free_energy(step.visible, step.hidden_natural)
        return best, tf.nn.relu(of_data - lowest)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"gibbs_steps": self.gibbs_steps}
