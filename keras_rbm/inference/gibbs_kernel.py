"""Block Gibbs as a TensorFlow Probability transition kernel."""

from typing import NamedTuple

import tensorflow as tf
import tensorflow_probability as tfp

from keras_rbm import random
from keras_rbm.inference.gibbs import gibbs_sweep


class BlockGibbsResults(NamedTuple):
    """Diagnostics of a step: `target_log_prob` of the state, and its `seed`."""

    target_log_prob: tf.Tensor
    seed: tf.Tensor


class BlockGibbs(tfp.mcmc.TransitionKernel):
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

    def __init__(self, potentials):
        self._parameters = {"potentials": potentials}

    @property
    def potentials(self):
        return self._parameters["potentials"]

    @property
    def parameters(self):
        return self._parameters

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
