"""A negative phase from a sampler of another library, such as an annealer."""

import warnings
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_rbm._checks import check_counts
from keras_rbm.inference.potentials import Moments, conditional_moments
from keras_rbm.inference.pseudo_likelihood import pseudo_log_likelihood
from keras_rbm.rules.learner import Learner
from keras_rbm.rules.learning_rule import LearningRule
from keras_rbm.rules.step import Step

#: Factors of beta that are compared in each step, and how far it moves to the best.
_FACTORS, _RATE = np.float32(2.0) ** np.linspace(-1.0, 1.0, 17, dtype=np.float32), 0.1

#: Betas below it, or above its inverse, are those of no Boltzmann distribution.
_LEAST = np.float32(2.0**-10)


@keras.saving.register_keras_serializable("keras_rbm")
class OutsideSampler(LearningRule):
    """Negative moments from states that any function draws [1].

    Annealers and other devices draw from `exp(-beta E)` with a beta of their own. It is
    estimated by the pseudo-likelihood of the states, and what the function is given is
    divided by it, so that its states are those of the model. The function is called in
    each step, outside of TensorFlow's graph; XLA is off. To load a model that has been
    saved with it, register the function, by
    `keras.saving.register_keras_serializable()`.

    Args:
        sample: `sample(kernel, visible_bias, hidden_bias, number)`, of arrays (V, H),
            (V,) and (H,), returns visible states (number, V) of binary units.
        num_chains: int ≥ 1, the number.
        **kwargs: `sparsity_target`, `sparsity_cost`, `centered`; see `LearningRule`.

    Attributes:
        beta: variable, the estimate of beta, from 1 on; in the logs as `beta`. Where it
            does not settle, the function does not draw from a Boltzmann distribution.

    Raises:
        TypeError: if `sample` cannot be called.
        ValueError: for units that are not binary or spins, or other states.

    Example:

    >>> def sample(kernel, visible_bias, hidden_bias, number):
    ...     return np.random.default_rng().integers(0, 2, (number, len(visible_bias)))
    >>> rbm = keras_rbm.RBM(4, seed=0)
    >>> rbm.compile("sgd", rule=keras_rbm.rules.OutsideSampler(sample, num_chains=20))
    >>> history = rbm.fit(np.eye(6, dtype="float32"), verbose=0)
    >>> "beta" in history.history
    True

    References:
        1. Benedetti, Realpe-Gómez, Biswas, Perdomo-Ortiz. Estimation of effective
           temperatures in quantum annealers for sampling applications. Physical Review
           A, 2016.
    """

    conditional = False
    compiles = False

    def __init__(
        self, sample: Callable[..., Any], num_chains: int = 100, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        if not callable(sample):
            raise TypeError(
                "Expected sample as a function of a kernel, two biases and a number. "
                f"Received: {sample!r:.100}."
            )
        check_counts(num_chains=num_chains)
        self.sample, self.num_chains = sample, num_chains
        self.beta: keras.Variable | None = None
        self._told = False

    def check(self, learner: Learner) -> None:
        super().check(learner)
        for unit in (learner.model.visible, learner.model.hidden):
            if type(unit).__name__ not in ("Bernoulli", "Spin"):
                raise ValueError(
                    "Expected binary units or spins for an outside sampler. Received: "
                    f"{unit!r}."
                )

    def build(self, learner: Learner) -> None:
        super().build(learner)
        self.beta = learner.add_variable("beta", (), "ones")

    def negative_phase(self, step: Step) -> Moments:
        potentials = step.potentials
        width = potentials.num_visible

        def drawn(beta, *arrays):
            if not _LEAST < beta < 1.0 / _LEAST and not self._told:
                self._told = True
                warnings.warn(
                    f"States of the outside sampler seem to have beta {beta:.1e}: they "
                    "do not depend on the arrays that it is given. Look at it.",
                    stacklevel=2,
                )
            states = np.asarray(self.sample(*arrays, self.num_chains), np.float32)
            possible = np.asarray(potentials.visible.states)
            if (
                states.shape != (self.num_chains, width)
                or not np.isin(states, possible).all()
            ):
                raise ValueError(
                    f"Expected sample to return ({self.num_chains}, {width}) states "
                    f"of {possible}. Received: shape {states.shape}, values "
                    f"{np.unique(states)[:5]}. Of 0 and 1, spins are 2 * states - 1."
                )
            return states

        parameters = potentials.kernel, potentials.visible_bias, potentials.hidden_bias
        beta = tf.convert_to_tensor(self.beta)
        arrays = [tf.cast(each, tf.float32) / beta for each in parameters]
        states = tf.numpy_function(drawn, [beta, *arrays], tf.float32)
        states = tf.ensure_shape(states, (self.num_chains, width))
        fits = [self._fit(potentials, states, factor) for factor in _FACTORS]
        best = tf.gather(tf.constant(_FACTORS), tf.argmax(tf.stack(fits)))
        ends = 0.5 * _LEAST, 2.0 / _LEAST
        self.beta.assign(tf.clip_by_value(beta * best**_RATE, *ends))
        weights = step.chain_weights(self.num_chains)
        return conditional_moments(potentials, states, weights)

    @staticmethod
    def _fit(potentials, states, factor):
        """Returns the pseudo-likelihood of states, by the model at another beta."""
        scaled = potentials._replace(
            kernel=potentials.kernel * factor,
            visible=potentials.visible.with_bias(potentials.visible_bias * factor),
            hidden=potentials.hidden.with_bias(potentials.hidden_bias * factor),
        )
        return tf.reduce_mean(pseudo_log_likelihood(scaled, states))

    def update(self, step, phases):
        """Descends; returns beta for the logs."""
        return super().update(step, phases) | {"beta": tf.convert_to_tensor(self.beta)}

    def get_config(self) -> dict[str, Any]:
        sample = keras.saving.serialize_keras_object(self.sample)
        return super().get_config() | {"sample": sample, "num_chains": self.num_chains}

    @classmethod
    def from_config(cls, config):
        sample = keras.saving.deserialize_keras_object(config.pop("sample"))
        return cls(sample, **config)
