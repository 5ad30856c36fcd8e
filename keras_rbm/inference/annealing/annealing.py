"""log Z by annealing both ways, from where a search has found a model's mass."""

import functools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike

from keras_rbm._checks import check_counts, check_flags
from keras_rbm.inference.annealing.bridge_sampling import bridge
from keras_rbm.inference.annealing.search import num_models
from keras_rbm.inference.annealing.starting_point import (
    StartingPoint,
    checked_search,
    seeds_of,
    starting_point,
)
from keras_rbm.inference.annealing.tempered_path import (
    anneal_backward,
    anneal_forward,
    per_model,
    temperatures,
)
from keras_rbm.inference.arguments import checked_states
from keras_rbm.inference.estimates import (
    FEWEST,
    HALF_MARKOV,
    MARKOV,
    WIDTH,
    LogPartition,
    weighted,
    with_rounding,
)
from keras_rbm.inference.full_precision import full_precision
from keras_rbm.inference.gibbs import gibbs_chain
from keras_rbm.inference.potentials import Potentials
from keras_rbm.inference.resampling import effective_number

#: Least share of the chains of one direction that could be those of the other.
_LEAST_OVERLAP = 0.1


class Annealing(NamedTuple):
    """Chains annealed to B models and back: what estimates of log Z are made of.

    `ais`, `reverse_ais` and `bidirectional` are read from the same chains.

    Attributes:
        start: `StartingPoint`.
        betas: array (K + 1,), inverse temperatures.
        forward: tensor (M,) or (M, B), float64, log weights of the chains annealed
            forward; `None` if states were given to be annealed back.
        backward: the same of the states annealed back; `None` without a search.
    """

    start: StartingPoint
    betas: np.ndarray
    forward: tf.Tensor | None
    backward: tf.Tensor | None

    @property
    def base(self) -> tf.Tensor:
        """Tensor (V,) or (B, V), the visible natural parameters at beta = 0."""
        return self.start.base

    @property
    def ais(self) -> LogPartition:
        """`LogPartition` by AIS from the searched means, checked by annealing back.

        Without a search it is the field's, `annealed_importance_sampling`.
        """
        result = LogPartition.from_log_weights(self._chains("forward"))
        if self.backward is not None:
            result = checked(result, self._both(), self.start.missed_mass)
        return self.start.explained(result, "ais")

    @property
    def reverse_ais(self) -> LogPartition:
        """`LogPartition` by annealing back, checked by annealing forward.

        Given states are the caller's samples: then there is nothing to check.
        """
        result = LogPartition.from_log_weights(self._chains("backward"), reverse=True)
        result = result.without_refuted_upper_end(self.start.lower_bound)
        if self.forward is not None:
            both = self._both()
            result = checked(result, both, self.start.missed_mass, reverse=True)
        return self.start.explained(result, "reverse_ais")

    @property
    def bidirectional(self) -> LogPartition:
        """`LogPartition` by both directions together, the best of the three."""
        return self.start.explained(self._both(), "bidirectional")

    def _both(self):
        start, chains = self.start, (self._chains("forward"), self._chains("backward"))
        known = start.ancestors, start.lower_bound, start.missed_mass
        return bidirectional(*chains, *known)

    def _chains(self, direction):
        log_weights = getattr(self, direction)
        if log_weights is None:
            raise ValueError(
                f"Expected chains annealed {direction}. Received: an Annealing with "
                "search=False, or of initial_visible. Leave both out of anneal() "
                "and log_partition()."
            )
        return log_weights


@full_precision()
def anneal(
    potentials: Potentials,
    *,
    base: ArrayLike | None = None,
    chains: ArrayLike | None = None,
    betas: ArrayLike | None = None,
    num_chains: int = 100,
    initial_visible: ArrayLike | None = None,
    steps: int | None = None,
    seed: int | tf.Tensor = 0,
    search: bool = True,
    progress: bool = False,
) -> Annealing:
    """Searches for a model's mass, and anneals chains to the model and back, once.

    Args:
        potentials: `Potentials`.
        base, chains, num_chains, steps, seed, progress: see `estimate_log_partition`.
        betas: as there, by default 1000.
        initial_visible: tensor (C, V), model samples to anneal back; then no chains are
            annealed forward. By default those of the search.
        search: bool. With `False` chains are annealed forward only, from `base`, at
            equal steps.

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
    """
    options = {"base": base, "chains": chains, "num_chains": num_chains, "seed": seed}
    options |= {"initial_visible": initial_visible, "steps": steps, "search": search}
    options |= {"progress": progress}
    return next(annealings(potentials, [betas], **options))  # type: ignore[arg-type]


def annealings(
    potentials: Potentials,
    betas: Sequence[ArrayLike | None],
    *,
    base: ArrayLike | None = None,
    chains: ArrayLike | None = None,
    num_chains: int = 100,
    initial_visible: ArrayLike | None = None,
    steps: int | None = None,
    seed: int | tf.Tensor = 0,
    search: bool = True,
    progress: bool = False,
) -> Iterator[Annealing]:
    """Yields what `anneal` returns for each of several `betas`, by one search."""
    check_flags(search=search)
    base, chains = checked_search(potentials, base, chains, num_chains)
    for each in betas:
        if each is not None:
            temperatures(each)
    if steps is not None:
        check_counts(0, steps=steps)
    given, models = initial_visible is not None, num_models(potentials)
    if given:
        initial_visible = checked_states(potentials, "initial_visible", initial_visible)
        if len(initial_visible) < 2 * models:  # type: ignore[arg-type]
            raise ValueError(
                "Expected at least two chains for each model, for an error. Received: "
                f"{len(initial_visible)} initial_visible."  # type: ignore[arg-type]
            )
    seeds = seeds_of(seed)
    searched = base, chains, num_chains, seeds["start"], search
    start = starting_point(potentials, *searched)

    states = initial_visible if given else start.visible
    if states is not None and steps:  # burned in
        rows = potentials.repeat(len(states) // models)  # type: ignore[arg-type]
        states = gibbs_chain(rows, states, seeds["gibbs"], num_sweeps=steps)

    def forward(path, count, seed):
        base, betas = path
        chains = anneal_forward(potentials, base, betas, count, seed, progress)
        return chains.log_weights

    def backward(path, states, seed):
        base, betas = path
        rows = potentials.repeat(tf.shape(states)[0] // models)
        chains = anneal_backward(rows, states, base, betas, seed, progress)
        return chains.log_weights

    def log_weights(run, work, seed):
        if work is None:
            return None
        return per_model(run(work, seed), potentials)

    for each in betas:
        path = start.base, start.temperatures(each)
        up, down = (functools.partial(run, path) for run in (forward, backward))
        yield Annealing(
            start,
            path[1],
            log_weights(up, None if given else num_chains, seeds["forward"]),
            log_weights(down, states, seeds["backward"]),
        )


def bidirectional(
    forward: tf.Tensor,
    backward: tf.Tensor,
    ancestors: np.ndarray | None = None,
    lower_bound: float | np.ndarray = -math.inf,
    missed_mass: float | np.ndarray = 0.0,
) -> LogPartition:
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


def checked(
    one: LogPartition,
    both: LogPartition,
    missed_mass: float | np.ndarray = 0.0,
    reverse: bool = False,
) -> LogPartition:
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
