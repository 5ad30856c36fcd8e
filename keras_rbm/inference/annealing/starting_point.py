"""Where annealing starts: independent units with the model's own means.

The base model of a tempered path should be near the model. Of all models of
independent units the one with the model's own marginals has the least
KL(model || base). `Search` estimates them.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_rbm.checks import check_counts
from keras_rbm.inference.annealing.search import Search
from keras_rbm.inference.annealing.tempered_path import spaced, temperatures
from keras_rbm.inference.arguments import check_model, checked_base, checked_states


class StartingPoint(NamedTuple):
    """A base model for B models, samples of them, and how to space temperatures.

    Attributes:
        base: tensor (V,) or (B, V), visible natural parameters at beta = 0.
        visible: tensor (M, V) or (M · B, V), states that are nearly model samples.
        ancestors: int array (M, B); states with the same ancestor are not independent.
        betas, lengths: arrays (n,), inverse temperatures and the thermodynamic length
            from 0 up to each.
        least: array (B,), a lower bound of log Z, at 97.5 %.
        absent: array (B,), share of the mass that is known to lie in regions without
            any of the states.
    """

    base: tf.Tensor
    visible: tf.Tensor
    ancestors: np.ndarray
    betas: np.ndarray
    lengths: np.ndarray
    least: np.ndarray
    absent: np.ndarray

    def temperatures(self, betas=None, default=1000):
        """Returns inverse temperatures: those given, or a number of well-spaced ones.

        Steps of equal thermodynamic length add equally to the variance of the log
        weights [1].

        Args:
            betas: a sequence, as for `temperatures`; or int, the number of steps of
                equal measured length; `None` for `default` steps.

        References:
            1. Grosse, Maddison, Salakhutdinov. Annealing between distributions by
               averaging moments. NIPS 2013.
        """
        if betas is not None and np.ndim(betas):
            return temperatures(betas)
        count = len(temperatures(default if betas is None else betas)) - 1
        return spaced(self.betas, self.lengths, count)


def find_starting_point(potentials, base=None, chains=None, *, num_chains=100, seed=0):
    """Finds a base model near the model, with samples of it.

    Args:
        potentials: `Potentials`, B models if the biases have a batch dimension.
        base: tensor (V,) or (B, V), visible natural parameters of independent units
            with the means of the data, or `None` if they are not known.
        chains: tensor (C, V), states that a single model's own chains have reached,
            such as those of a learning rule, or `None`.
        num_chains: int ≥ 2, M.
        seed: int or integer tensor of shape (2,).

    Returns:
        `StartingPoint`.
    """
    check_model(potentials)
    check_counts(2, num_chains=num_chains)
    base = checked_base(potentials, base)
    if chains is not None:
        chains = checked_states(potentials, "chains", chains)
    search = Search(potentials, num_chains, seed)
    units = potentials.visible
    first = tf.zeros(units.num_rows) if base is None else tf.cast(base, tf.float32)
    reached = search.explore(first, chains)
    broad = reached if base is None else units.mean(first)
    natural, states, ancestors, absent, lengths = search.refine(broad)
    return StartingPoint(natural, states, ancestors, *lengths, search.least(), absent)
