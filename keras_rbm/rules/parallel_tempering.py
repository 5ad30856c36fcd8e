"""Parallel tempering as a learning rule."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_rbm import random
from keras_rbm._checks import check_counts
from keras_rbm.inference import conditional_moments
from keras_rbm.inference.annealing.path import (
    Ladder,
    TemperedPath,
    changes_of_bases,
    temperatures,
)
from keras_rbm.inference.annealing.replicas import equalized_betas, swap_neighbors
from keras_rbm.inference.gibbs import ChainState, sweep_noise, visible_chain
from keras_rbm.inference.potentials import Moments, Potentials
from keras_rbm.rules.learner import Learner
from keras_rbm.rules.learning_rule import LearningRule
from keras_rbm.rules.step import Step

#: How fast averaged swap rates and the temperatures move per step.
_RATE = 0.01


@keras.saving.register_keras_serializable("keras_rbm")
class ParallelTempering(LearningRule):
    """PCD whose chains exchange states with tempered ones [1].

    As in PCD, `num_chains` chains of the model go on from step to step, and the
    negative moments are theirs. Some of them, in turn, have a ladder below, of replicas
    at inverse temperatures down to 0, where the units are independent. After the sweeps
    of a step, neighbors on a ladder swap their states. So chains leave a mode that
    Gibbs sweeps stay in, if replicas meet another one. In [1] all chains have a ladder;
    a few do as well, and cost little.

    Temperatures move until neighbors accept equally many swaps, and the replica at beta
    is

    `log p*(v) = ((1 - beta) a_beta + beta b)' v + base(v)
    + sum_j A_j((1 - beta) d_beta,j + beta (v'W + c)_j)`

    where each a_beta and d_beta is learned along the gradient of the likelihood that
    the replica gives to states of the model's chains. So its visible units have the
    chains' means, and hidden ones those that they have there at its temperature. With
    the same a for all, and d = 0, smaller modes vanish at middle temperatures, and no
    chain comes from one to another. Because replicas follow the chains, few chains have
    modes' shares that are not exact, the less the more they are.

    Args:
        gibbs_steps: int ≥ 1, sweeps of the model's chains per step; replicas below
            make one.
        num_chains: int ≥ 1.
        num_replicas: int ≥ 2, of a ladder, the model among them.
        num_ladders: int ≥ 1; at most `num_chains` are used.
        **kwargs: `centered`, `sparsity_target`, …; see `LearningRule`.

    Attributes:
        chains: variable (num_chains, V), states of the model.
        ladders: variable (num_replicas - 1, num_ladders, V), states of the replicas
            below, the hottest first.
        betas: variable (num_replicas,), inverse temperatures from 0 to 1.
        shifts: variable (num_replicas, rows of the kernel), a_beta less that of the
            base-rate model.
        hidden_bases: variable (num_replicas, columns of the kernel), d_beta.
        swap_rates: variable (num_replicas - 1,), running averages of the accepted
            share over some hundred steps; 0.5 at first.

    Raises:
        ValueError: if an argument is out of range, or for a model with input.

    Example:

    >>> rbm = keras_rbm.RBM(4, seed=0)
    >>> rule = keras_rbm.rules.ParallelTempering(num_replicas=5, num_ladders=20)
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
    ladders: keras.Variable | None
    betas: keras.Variable | None
    shifts: keras.Variable | None
    hidden_bases: keras.Variable | None
    swap_rates: keras.Variable | None

    def __init__(
        self,
        gibbs_steps: int = 3,
        num_chains: int = 100,
        num_replicas: int = 10,
        num_ladders: int = 10,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_counts(2, num_replicas=num_replicas)
        check_counts(
            gibbs_steps=gibbs_steps, num_chains=num_chains, num_ladders=num_ladders
        )
        self.gibbs_steps = gibbs_steps
        self.num_chains = num_chains
        self.num_replicas = num_replicas
        self.num_ladders = min(num_ladders, num_chains)
        self.chains = self.ladders = None
        self.betas = self.swap_rates = self.shifts = self.hidden_bases = None

    def build(self, learner: Learner) -> None:
        super().build(learner)
        seed = learner.seed()
        potentials = learner.potentials()
        path = TemperedPath(potentials, learner.base_natural(potentials))
        below = self.num_replicas - 1
        width, rows = potentials.num_visible, potentials.visible.num_rows
        first, count = below * self.num_ladders, self.num_chains
        start = path.sample_base(first + count, seed)

        def add(name, shape, values):
            def initializer(shape, dtype=None):
                return tf.reshape(tf.cast(values, dtype), shape)

            return learner.add_variable(name, shape, initializer)

        self.chains = add("chains", (count, width), start[first:])
        shape = (below, self.num_ladders, width)
        self.ladders = add("ladders", shape, start[:first])
        self.betas = add("betas", (below + 1,), temperatures(below))
        self.shifts = add("shifts", (below + 1, rows), tf.zeros((below + 1, rows)))
        shape = (below + 1, potentials.hidden.num_rows)
        self.hidden_bases = add("hidden_bases", shape, tf.zeros(shape))
        self.swap_rates = add("swap_rates", (below,), tf.fill([below], 0.5))

    def negative_phase(self, step: Step) -> Moments:
        potentials = step.potentials
        base = step.learner.base_natural(potentials)
        ladder = self.ladder(base)
        below, count = self.num_replicas - 1, self.num_ladders
        seeds = [random.fold_in(step.seed, number) for number in range(3)]
        below_states = tf.reshape(ladder.below, (below * count, -1))
        # First the ladders, whose last rung are chains of the model, then its others.
        rows = _joined(
            ChainState(below_states, potentials.hidden_natural(below_states)),
            visible_chain(
                potentials, ladder.chains, seeds[0], num_sweeps=self.gibbs_steps - 1
            ),
        )
        rungs = (below + 1) * count
        replica = np.minimum(np.arange(below * count + self.num_chains) // count, below)
        path, betas = ladder.path(potentials), ladder.betas
        beta = tf.gather(betas, replica)[:, tf.newaxis]
        noise = sweep_noise(potentials, len(replica), seeds[1]).of_sweep(0)
        rows = path.rows(replica).sweep(rows, beta, noise)
        on_ladders = ChainState(*(layer[:rungs] for layer in rows))
        of_model = ChainState(*(layer[below * count :] for layer in rows))
        changes = changes_of_bases(path, betas, on_ladders, of_model)
        swapped, accepted, *_ = swap_neighbors(path, on_ladders, betas, seeds[2])
        # Chains that were on a ladder go to the end: next is the turn of others.
        chains = _joined(
            ChainState(*(layer[rungs:] for layer in rows)),
            ChainState(*(layer[below * count :] for layer in swapped)),
        )
        self.chains.assign(chains.visible)
        self.ladders.assign(
            tf.reshape(swapped.visible[: below * count], ladder.below.shape)
        )
        self.shifts.assign_add(changes[0])
        self.hidden_bases.assign_add(changes[1])
        swap_rates = self.swap_rates + _RATE * (accepted - self.swap_rates)
        self.swap_rates.assign(swap_rates)
        self.betas.assign(betas + _RATE * (equalized_betas(betas, swap_rates) - betas))
        each = step.chain_weights(self.num_chains)
        return conditional_moments(
            potentials, chains.visible, each, chains.hidden_natural
        )

    def ladder(self, base: tf.Tensor) -> Ladder:
        """Returns the `Ladder` as training has left it, for the base-rate's `base`."""
        return Ladder(
            tf.convert_to_tensor(self.betas),
            base + self.shifts,
            *map(tf.convert_to_tensor, (self.hidden_bases, self.ladders, self.chains)),
        )

    def visible_chains(self, potentials: Potentials) -> tf.Tensor | None:
        return tf.convert_to_tensor(self.chains)

    def start_chains(self, states: tf.Tensor) -> None:
        """Lets the model's chains begin at its states (N, V), independent ones."""
        self.chains.assign(np.resize(states, self.chains.shape))

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "gibbs_steps": self.gibbs_steps,
            "num_chains": self.num_chains,
            "num_replicas": self.num_replicas,
            "num_ladders": self.num_ladders,
        }


def _joined(first, second):
    """Returns the `ChainState` of both."""
    return ChainState(
        *(tf.concat(layers, 0) for layers in zip(first, second, strict=True))
    )
