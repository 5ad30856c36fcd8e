"""Parallel tempering as a learning rule."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_rbm import random
from keras_rbm._checks import check_counts
from keras_rbm.inference import TemperedPath, conditional_moments, temperatures
from keras_rbm.inference.annealing.tempering import (
    equalized_betas,
    start_tempering,
    tempering_step,
)
from keras_rbm.inference.potentials import Moments, Potentials
from keras_rbm.rules.learner import Learner
from keras_rbm.rules.learning_rule import LearningRule
from keras_rbm.rules.step import Step

#: How fast averaged swap rates and adaptive temperatures move per step.
_RATE = 0.01


@keras.saving.register_keras_serializable("keras_rbm")
class ParallelTempering(LearningRule):
    """PT: negative moments from persistent, tempered chains [1].

    Each chain is a ladder of replicas from the base-rate model to the model, which
    exchange their states, see `keras_rbm.inference.parallel_tempering`. The moments
    are those of the model's own replicas. These chains still mix where those of PCD
    stay in one mode, at `num_replicas` times the cost.

    Args:
        num_replicas: int ≥ 2, R.
        num_chains: int ≥ 1.
        gibbs_steps: int ≥ 1, sweeps (each with swaps) per step.
        betas: `None` for equally spaced inverse temperatures; `"adaptive"` to move them
            in each step by a hundredth of the way to `equalized_betas` of the swap
            rates; or R increasing values from 0 to 1.
        **kwargs: `centered`, `sparsity_target`, …; see `LearningRule`.

    Attributes:
        chains: variable (R, num_chains, V), visible states; `chains[-1]` are states of
            the model.
        betas: variable (R,).
        swap_rates: variable (R - 1,), running averages of the accepted share.

    Raises:
        ValueError: if an argument is out of range, or for a model with input.

    Example:

    >>> rbm = keras_rbm.RBM(4, seed=0)
    >>> rule = keras_rbm.rules.ParallelTempering(num_replicas=5, num_chains=20)
    >>> rbm.compile("sgd", rule=rule)
    >>> history = rbm.fit(np.eye(6, dtype="float32"), verbose=0)
    >>> rule.swap_rates.shape
    TensorShape([4])

    References:
        1. Desjardins, Courville, Bengio, Vincent, Delalleau. Tempered Markov chain
           Monte Carlo for training of restricted Boltzmann machines. AISTATS 2010.
    """

    conditional = False
    chains: keras.Variable | None
    betas: keras.Variable | None
    swap_rates: keras.Variable | None

    def __init__(
        self,
        num_replicas: int = 10,
        num_chains: int = 100,
        gibbs_steps: int = 1,
        betas: str | Sequence[float] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_counts(2, num_replicas=num_replicas)
        check_counts(num_chains=num_chains, gibbs_steps=gibbs_steps)
        self.num_replicas = num_replicas
        self.num_chains = num_chains
        self.gibbs_steps = gibbs_steps
        self._start = _start(betas, num_replicas)
        by_name = betas is None or isinstance(betas, str)
        self._requested_betas = betas if by_name else self._start.tolist()
        self.chains = self.betas = self.swap_rates = None

    def build(self, learner: Learner) -> None:
        super().build(learner)
        seed = learner.seed()
        potentials = learner.potentials()
        path = TemperedPath(potentials, learner.base_natural(potentials))
        width = path.potentials.num_visible
        replicas = self.num_replicas

        def initializer(shape, dtype=None):
            rows = path.sample_base(replicas * self.num_chains, seed)
            return tf.reshape(rows, shape)

        self.chains = learner.add_variable(
            "chains", (replicas, self.num_chains, width), initializer
        )
        self.betas = learner.add_variable(
            "betas", (replicas,), keras.initializers.Constant(self._start)
        )
        self.swap_rates = learner.add_variable(
            "swap_rates", (replicas - 1,), keras.initializers.Constant(0.5)
        )

    def negative_phase(self, step: Step) -> Moments:
        potentials = step.potentials
        path = TemperedPath(potentials, step.learner.base_natural(potentials))
        visible, betas, swap_rates = (
            tf.convert_to_tensor(variable)
            for variable in (self.chains, self.betas, self.swap_rates)
        )
        chains = start_tempering(potentials, visible, betas)
        for index in range(self.gibbs_steps):
            chains = tempering_step(path, chains, random.fold_in(step.seed, index))
            swap_rates += _RATE * (chains.swap_rates - swap_rates)
        self.chains.assign(chains.visible)
        self.swap_rates.assign(swap_rates)
        if self._requested_betas == "adaptive":
            self.betas.assign(
                betas + _RATE * (equalized_betas(betas, swap_rates) - betas)
            )
        each = step.chain_weights(self.num_chains)
        return conditional_moments(potentials, chains.visible[-1], each)

    def visible_chains(self, potentials: Potentials) -> tf.Tensor | None:
        return tf.convert_to_tensor(self.chains)[-1]

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "num_replicas": self.num_replicas,
            "num_chains": self.num_chains,
            "gibbs_steps": self.gibbs_steps,
            "betas": self._requested_betas,
        }


def _start(betas, num_replicas):
    if betas is None or (isinstance(betas, str) and betas == "adaptive"):
        return temperatures(num_replicas - 1)
    if np.shape(betas) != (num_replicas,):
        raise ValueError(
            f"Expected betas None, 'adaptive', or {num_replicas} values, one for each "
            f"replica. Received: betas={betas!r}, num_replicas={num_replicas}."
        )
    return temperatures(betas)
