"""Block Gibbs as TensorFlow Probability transition kernels."""

from typing import NamedTuple

import tensorflow as tf
import tensorflow_probability as tfp

from keras_rbm import random
from keras_rbm.inference.gibbs import (
    gibbs_sweep,
    proposal,
    sweep_noise,
)


class BlockGibbsResults(NamedTuple):
    """Diagnostics of a step: `target_log_prob` of the state, and its `seed`."""

    target_log_prob: tf.Tensor
    seed: tf.Tensor


class _Kernel(tfp.mcmc.TransitionKernel):
    """Holds the potentials, the one parameter of the kernels here."""

    def __init__(self, potentials):
        self._parameters = {"potentials": potentials}

    @property
    def potentials(self):
        return self._parameters["potentials"]

    @property
    def parameters(self):
        return self._parameters


class BlockGibbs(_Kernel):
    """`tfp.mcmc` kernel whose step is one block Gibbs sweep of `Potentials`.

    The state is the visible layer, (C, V); the target is the model's
    distribution of v, `-F(v)` up to a constant. Works with
    `tfp.mcmc.sample_chain`, `effective_sample_size` and
    `potential_scale_reduction`.

    Args:
        potentials: `keras_rbm.inference.Potentials`.

    Example:

    >>> import tensorflow_probability as tfp
    >>> rbm = keras_rbm.RBM(4, num_visible=6, seed=0)
    >>> kernel = keras_rbm.inference.BlockGibbs(rbm.potentials())
    >>> states = tfp.mcmc.sample_chain(
    ...     50, tf.zeros((8, 6)), kernel=kernel, trace_fn=None, seed=1)
    >>> states.shape
    TensorShape([50, 8, 6])
    """

    @property
    def is_calibrated(self):
        return True

    def one_step(self, current_state, previous_kernel_results, seed=None):
        seed = tfp.random.sanitize_seed(seed)
        state = gibbs_sweep(self.potentials, current_state, seed).visible
        return state, self._results(state, seed)

    def bootstrap_results(self, init_state):
        return self._results(tf.convert_to_tensor(init_state), random.as_seed(0))

    def _results(self, state, seed):
        return BlockGibbsResults(-self.potentials.free_energy(state), seed)


class GibbsProposalResults(NamedTuple):
    """Results of `GibbsProposal` that `tfp.mcmc.MetropolisHastings` uses, (C,)."""

    target_log_prob: tf.Tensor
    log_acceptance_correction: tf.Tensor
    seed: tf.Tensor


class GibbsProposal(_Kernel):
    """`tfp.mcmc` kernel that proposes a Gibbs sweep of the RBM near a fractional one.

    `tfp.mcmc.MetropolisHastings(GibbsProposal(potentials))` samples a model whose
    hidden units count fractionally [1, section 3.3], and reports in `is_accepted` what
    it accepted. With whole coefficients everything is accepted.

    Args:
        potentials: `keras_rbm.inference.Potentials`, hidden units
            `keras_rbm.units.FractionalParameters`.

    Example:

    >>> import tensorflow_probability as tfp
    >>> coefficients = tf.constant([0.5, 1.5])
    >>> hidden = keras_rbm.units.FractionalParameters(tf.zeros(2), coefficients)
    >>> model = keras_rbm.inference.Potentials(tf.ones((3, 2)), [0.0] * 3, hidden)
    >>> kernel = tfp.mcmc.MetropolisHastings(keras_rbm.inference.GibbsProposal(model))
    >>> accepted = tfp.mcmc.sample_chain(
    ...     20, tf.zeros((8, 3)), kernel=kernel, seed=1,
    ...     trace_fn=lambda _, results: results.is_accepted).trace
    >>> bool(tf.reduce_mean(tf.cast(accepted, tf.float32)) > 0.5)
    True

    References:
        1. Ping, Liu, Ihler. Learning infinite RBMs with Frank-Wolfe. NIPS 2016.
    """

    @property
    def is_calibrated(self):
        return False

    def one_step(self, current_state, previous_kernel_results, seed=None):
        seed = tfp.random.sanitize_seed(seed)
        potentials = self.potentials
        noise = sweep_noise(potentials, tf.shape(current_state)[0], seed).of_sweep(0)
        before = potentials.hidden_natural(current_state)
        state = proposal(potentials, before, noise).visible
        after = potentials.hidden_natural(state)
        old, new = (
            -potentials.free_energy(visible, natural)
            for visible, natural in ((current_state, before), (state, after))
        )
        correction = getattr(potentials.hidden, "log_correction", lambda _: 0.0)
        reverse = old - correction(before) - (new - correction(after))
        return state, GibbsProposalResults(new, reverse, seed)

    def bootstrap_results(self, init_state):
        init_state = tf.convert_to_tensor(init_state)
        log_prob = -self.potentials.free_energy(init_state)
        return GibbsProposalResults(
            log_prob, tf.zeros_like(log_prob), random.as_seed(0)
        )
