"""Where annealing starts: a base model near the model, and states that are samples."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike

from keras_rbm import random
from keras_rbm._checks import check_counts
from keras_rbm.inference.annealing.search import Search, num_models
from keras_rbm.inference.annealing.tempered_path import (
    spaced,
    temperatures,
)
from keras_rbm.inference.arguments import (
    check_proper,
    checked_base,
    checked_states,
    spectral_gap,
)
from keras_rbm.inference.estimates import LogPartition
from keras_rbm.inference.full_precision import full_precision
from keras_rbm.inference.potentials import Potentials

#: Least `spectral_gap` at which annealing follows the model.
_LEAST_GAP = 0.03
_STREAMS = "start", "forward", "backward", "tempering", "gibbs"
_BLIND = "No data are known (no fit, no adapt): the search began without them."


class StartingPoint(NamedTuple):
    """A base model for B models, samples of them, and how to space temperatures.

    Attributes:
        base: tensor (V,) or (B, V), visible natural parameters at beta = 0.
        visible: tensor (M, V) or (M · B, V), states that are nearly model samples, or
            `None` without a search.
        ancestors: int array (M, B); states with the same ancestor are not independent.
        betas, lengths: arrays (n,), inverse temperatures and the thermodynamic length
            from 0 up to each.
        lower_bound: array (B,), of log Z, at 97.5 %.
        missed_mass: array (B,), share of the mass that is known to lie in regions
            without any of the states.
        note: str, a remark for the estimates, or `""`.
        is_slow: bool, whether two layers of unbounded units are so near the limit of
            normalizability that chains do not reach all of the mass.
    """

    base: tf.Tensor
    visible: tf.Tensor | None
    ancestors: np.ndarray
    betas: np.ndarray
    lengths: np.ndarray
    lower_bound: np.ndarray
    missed_mass: np.ndarray
    note: str = ""
    is_slow: bool = False

    def explained(self, estimate: LogPartition, method: str) -> LogPartition:
        """Returns an estimate from here, with a note, and an open end if `is_slow`."""
        if not self.is_slow:
            return estimate.explained(method, self.note)
        return estimate.with_open_ends(
            "The error of log Z is not known: two layers of unbounded units are near "
            "the limit of normalizability, where chains need too many sweeps. Use a "
            "smaller kernel, or units with finitely many states in one of the layers."
        )

    def temperatures(
        self, betas: ArrayLike | None = None, default: int = 1000
    ) -> np.ndarray:
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


@full_precision()
def find_starting_point(
    potentials: Potentials,
    base: ArrayLike | None = None,
    chains: ArrayLike | None = None,
    *,
    num_chains: int = 100,
    seed: int | tf.Tensor = 0,
) -> StartingPoint:
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
    base, chains = checked_search(potentials, base, chains, num_chains)
    return starting_point(potentials, base, chains, num_chains, random.as_seed(seed))


def starting_point(
    potentials: Potentials,
    base: tf.Tensor | None,
    chains: tf.Tensor | None,
    num_chains: int,
    seed: tf.Tensor,
    search: bool = True,
) -> StartingPoint:
    """Returns what `find_starting_point` does, for arguments that are sound.

    Args:
        search: bool. With `False` it is the given base, or zeros, from which the field
            anneals in equal steps, without states.
    """
    units = potentials.visible
    first = tf.zeros(units.num_rows) if base is None else base
    if not search:
        batch = num_models(potentials)
        independent = np.tile(np.arange(num_chains)[:, np.newaxis], batch)
        even, nothing = np.array([0.0, 1.0]), np.zeros(batch)
        return StartingPoint(
            first, None, independent, even, even, nothing - np.inf, nothing
        )
    own = Search(potentials, num_chains, seed)
    reached = own.explore(first, chains)
    broad = reached if base is None else units.mean(first)
    natural, states, ancestors, missed, lengths = own.refine(broad)
    note = _BLIND if base is None else ""
    is_slow = spectral_gap(potentials) < _LEAST_GAP
    found = natural, states, ancestors, *lengths, own.lower_bound(), missed, note
    return StartingPoint(*found, is_slow=is_slow)


def checked_search(
    potentials: Potentials,
    base: ArrayLike | None,
    chains: ArrayLike | None,
    num_chains: int,
) -> tuple[tf.Tensor | None, tf.Tensor | None]:
    """Returns base and chains as tensors; raises an error unless all can be used."""
    check_proper(potentials)
    check_counts(2, num_chains=num_chains)
    base = checked_base(potentials, base)
    if chains is not None:
        chains = checked_states(potentials, "chains", chains)
    return base, chains


def seeds_of(seed: int | tf.Tensor) -> dict[str, tf.Tensor]:
    """Returns a dict with the seed of each part of an estimate, tensors (2,)."""
    seed = random.as_seed(seed)
    return {name: random.fold_in(seed, i) for i, name in enumerate(_STREAMS)}
