"""log Z by annealing both ways, from where a search has found a model's mass."""

import math
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike

from keras_rbm.inference.annealing.bridge import bridge
from keras_rbm.inference.annealing.chains import anneal_backward, anneal_forward
from keras_rbm.inference.annealing.options import Options
from keras_rbm.inference.annealing.path import per_model
from keras_rbm.inference.annealing.search import StartingPoint, find_start
from keras_rbm.inference.estimates import (
    FEWEST,
    HALF_MARKOV,
    MARKOV,
    WIDTH,
    LogPartition,
    weighted,
    with_rounding,
)
from keras_rbm.inference.potentials import Potentials
from keras_rbm.inference.traces import full_precision
from keras_rbm.inference.weights import effective_number

#: Temperatures, and how many if an interval is then too wide; the last only if a
#: precision is asked for.
_BETAS = 100, 1000, 10_000
#: Least share of the chains of one direction that could be those of the other.
_LEAST_OVERLAP = 0.1


class Annealing(NamedTuple):
    """Chains annealed to B models and back: what estimates of log Z are made of.

    `ais`, `reverse_ais` and `bidirectional` are read from the same chains.

    Attributes:
        start: the states annealed back, and what the search has found.
        betas: array (K + 1,), inverse temperatures.
        forward: tensor (M,) or (M, B), float64, log weights of the chains annealed
            forward.
        backward: the same of the states annealed back.
    """

    start: StartingPoint
    betas: np.ndarray
    forward: tf.Tensor
    backward: tf.Tensor

    @property
    def base(self) -> tf.Tensor:
        """Tensor (V,) or (B, V), the visible natural parameters at beta = 0."""
        return self.start.base

    @property
    def ais(self) -> LogPartition:
        """`LogPartition` by AIS from the searched means, checked by annealing back."""
        result = LogPartition.from_log_weights(self.forward)
        result = checked(result, self._both(), self.start.missed_mass)
        return self.start.explained(result, "ais")

    @property
    def reverse_ais(self) -> LogPartition:
        """`LogPartition` by annealing back, checked by annealing forward."""
        result = LogPartition.from_log_weights(self.backward, reverse=True)
        result = result.without_refuted_upper_end(self.start.lower_bound)
        result = checked(result, self._both(), self.start.missed_mass, reverse=True)
        return self.start.explained(result, "reverse_ais")

    @property
    def bidirectional(self) -> LogPartition:
        """`LogPartition` by both directions together, the best of the three."""
        return self.start.explained(self._both(), "bidirectional")

    def _both(self):
        start = self.start
        known = start.ancestors, start.lower_bound, start.missed_mass
        return bidirectional(self.forward, self.backward, *known)


@full_precision()
def anneal(
    potentials: Potentials,
    *,
    base: ArrayLike | None = None,
    chains: ArrayLike | None = None,
    num_chains: int = 100,
    precision: float | None = None,
    seed: int | tf.Tensor = 0,
) -> Annealing:
    """Searches for a model's mass, and anneals chains to the model and back.

    This is more than the field's AIS [1, 2], `annealed_importance_sampling`: it starts
    at the means that the search found, spaces its temperatures by measured lengths, and
    also anneals back, from states that the search found, to check whether its chains
    have missed any. No method can detect a mode that none of its chains has met.

    Args:
        potentials: `Potentials`, B models if the biases have a batch dimension.
        base: tensor (V,) or (B, V), visible natural parameters of independent units
            with the means of the data, from which the search begins. It always begins
            in other places, too; with `None`, if no data are known, only there, and the
            estimates' `note` says so.
        chains: tensor (C, V), states that other chains of a single model have reached,
            such as those of a learning rule: the search looks there, too.
        num_chains: int ≥ 2, M; with fewer than 10 intervals are infinite.
        precision: float > 0, nats. Chains are annealed at 100, 1000 or 10,000
            temperatures, until the interval of `bidirectional` is within ± this; by
            default at 100, or at 1000 if it is then not within ± 0.1.
        seed: int or integer tensor of shape (2,).

    Returns:
        `Annealing`.

    Raises:
        ValueError: if a parameter is not finite, or an argument out of range.

    Example:

    >>> model = keras_rbm.inference.Potentials(tf.zeros((3, 2)), [0.0] * 3, [0.0] * 2)
    >>> annealing = keras_rbm.inference.anneal(model)
    >>> for z in (annealing.ais, annealing.reverse_ais, annealing.bidirectional):
    ...     print(f"{z.value / np.log(2):.4f}")
    5.0000
    5.0000
    5.0000

    References:
        1. Neal. Annealed importance sampling. Statistics and Computing, 2001.
        2. Salakhutdinov, Murray. On the quantitative analysis of deep belief networks.
           ICML 2008.
    """
    options = Options(num_chains, precision, seed, base, chains).checked(potentials)
    start = find_start(potentials, options)
    return annealed(potentials, start, options, ["bidirectional"])


def annealed(potentials, start, options, methods):
    """Returns what `anneal` does, from a start, until all methods are precise."""
    states = start.visible
    models = potentials.repeat(len(states) // len(start.lower_bound))
    up, down = (options.seed_of(name) for name in ("forward", "backward"))
    for count in options.tries(_BETAS):
        betas = start.temperatures(count)
        way = start.base, betas
        forward = anneal_forward(potentials, *way, options.num_chains, up, start.jumps)
        backward = anneal_backward(models, states, *way, down, start.jumps)
        log_weights = (
            per_model(x.log_weights, potentials) for x in (forward, backward)
        )
        annealing = Annealing(start, betas, *log_weights)
        if all(options.is_narrow(getattr(annealing, method)) for method in methods):
            break
    return annealing


def bidirectional(
    forward, backward, ancestors=None, lower_bound=-math.inf, missed_mass=0.0
):
    """Estimates log Z from annealing in both directions [1, 2].

    With log weights u of chains annealed forwards and r of as many annealed back from
    samples of the model, Bennett's acceptance ratio is the f that solves

        mean of sigma(u - f) = mean of sigma(f - r)

    It has the least variance of all estimates that use both. For its error, states with
    the same ancestor count as one. The upper end of the interval is infinite if chains
    of the two directions hardly overlap, if the states annealed back have few
    ancestors, or if other estimates contradict it: annealing forwards, from any base,
    exceeds log Z by more than log 40 in at most 2.5 % of the cases. The lower end then
    follows from Markov's inequality.

    Args:
        forward, backward: tensors (M,) or (M, B), float64, log weights with log Z_0.
        ancestors: int array (M, B), equal for states annealed back that are not
            independent; by default all are independent.
        lower_bound: array (B,), of log Z, from elsewhere, at 97.5 %.
        missed_mass: array (B,), share of the mass that is known to lie in regions
            without any of the states annealed back; it is added to the error.

    Returns:
        `LogPartition`; its `ess` is M if both directions agree everywhere.

    References:
        1. Bennett. Efficient estimation of free energy differences from Monte Carlo
           data. Journal of Computational Physics, 1976.
        2. Grosse, Ancha, Roy. Measuring the reliability of MCMC inference with
           bidirectional Monte Carlo. NIPS 2016.
    """
    shape = forward.shape[1:]
    chains = forward.shape[0]
    low, high = (
        tf.reshape(tf.cast(x, tf.float64), (chains, -1)) for x in (forward, backward)
    )
    if ancestors is None:
        ancestors = np.repeat(np.arange(chains)[:, np.newaxis], low.shape[1], 1)
    numbers = np.stack([np.unique(x, return_inverse=True)[1] for x in ancestors.T])
    families = effective_number(ancestors)
    value, parts = bridge(
        tf.transpose(low)[tf.newaxis], tf.transpose(high)[tf.newaxis], numbers
    )
    stderr = tf.math.reduce_std(parts, 1) / math.sqrt(chains - 1)
    stderr = tf.sqrt(tf.square(stderr) + np.square(np.log1p(-np.asarray(missed_mass))))
    overlap = 2.0 * tf.reduce_mean(tf.sigmoid(low - value), 0)

    lower_bound = tf.maximum(weighted(low)[0] - HALF_MARKOV, lower_bound)
    most = value + WIDTH * with_rounding(stderr, value)
    tests = {
        f"fewer than {FEWEST} independent states were annealed back": (
            tf.constant(families >= FEWEST)
        ),
        "chains annealed forwards and back hardly meet": overlap > _LEAST_OVERLAP,
        "other estimates find more mass": lower_bound < most,
    }
    agree = tf.reduce_all(tf.stack([*tests.values()]), 0)
    failed = [name for name, test in tests.items() if not tf.reduce_all(test)]
    stderr = tf.where(agree, stderr, tf.constant(math.inf, tf.float64))
    result = LogPartition.of_error(
        tf.reshape(value, shape),
        tf.reshape(stderr, shape),
        tf.reshape(chains * overlap, shape),
        tf.concat([forward, backward], 0),
    )
    lower = tf.reshape(lower_bound, shape)
    lower = tf.where(result.is_finite, result.lower, lower)
    return result._replace(lower=lower, note=", and ".join(failed))


def checked(one, both, missed_mass=0.0, reverse=False):
    """Returns an estimate by annealing one way, with an error that both ways inform.

    Annealing forwards cannot see a mode that none of its chains meets, and annealing
    back cannot see that its states are not model samples. If both estimates have a
    finite error, their difference is added to it. Otherwise the upper end of the
    interval is infinite. The lower end then follows from Markov's inequality; for
    annealing back, whose states are samples as far as is known, it is that of both.

    Args:
        one: `LogPartition`, of annealing one way.
        both: `LogPartition`, of the same chains and those of the other way.
        missed_mass: as in `bidirectional`.
        reverse: bool, whether `one` is from annealing back.
    """
    difference = tf.abs(one.value - both.value)
    difference -= np.reshape(np.log1p(-np.asarray(missed_mass)), difference.shape)
    stderr = tf.sqrt(tf.square(one.stderr) + tf.square(difference))
    known = one.is_finite & both.is_finite
    infinite = tf.fill(tf.shape(stderr), tf.constant(math.inf, tf.float64))
    lower = tf.where(one.is_finite, one.value - MARKOV, one.lower)
    ends = both.lower if reverse else lower, infinite
    return one._replace(
        note=both.note,
        stderr=tf.where(known, stderr, infinite),
        lower=tf.where(known, one.lower - 3 * difference, ends[0]),
        upper=tf.where(known, one.upper + 3 * difference, ends[1]),
    )
