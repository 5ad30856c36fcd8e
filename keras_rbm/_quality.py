"""Did it learn? Samples of a model beside its data."""

import contextlib
import math
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist

from keras_rbm import random
from keras_rbm._checks import check_counts
from keras_rbm.inference.missing import is_known
from keras_rbm.models.boltzmann_machine import BoltzmannMachine
from keras_rbm.models.data.rows import as_rows, held_rows, some_rows
from keras_rbm.models.generative_model import GenerativeModel, energies_of
from keras_rbm.models.layer_variables import visible_parameters

#: Most rows of each kind, and chains that are followed to measure how they mix.
_ROWS, _CHAINS = 1000, 100
#: Moments at which followed chains are looked at.
_MOMENTS = 100
#: Most columns whose correlations are compared, and triples of these.
_COLUMNS, _TRIPLES = 100, 2000
#: Chains with a larger split R-hat depend on where they started [3].
_LARGEST_R_HAT = 1.1
#: An accuracy differs from another if it does by as many standard errors, and by this.
_ERRORS, _LEAST = 3.0, 0.05
#: Correlations of samples are as those of data if they lack less than this.
_LACKING = 0.05


class Accuracy(NamedTuple):
    """How often a nearest neighbor tells whether a state is data or sample.

    Attributes:
        value: float, 0.5 if they have the same distribution; nearer to 1 the more
            they differ, and nearer to 0 the more samples are copies.
        stderr: float.
        of_data, of_samples: floats, of which `value` is the mean: how often the
            neighbor of data is data, and that of a sample a sample. If samples are more
            scattered than data, or less, one is large and the other small.
    """

    value: float
    stderr: float
    of_data: float
    of_samples: float

    def exceeds(self, other):
        """Returns whether it is larger than a number, clearly."""
        return self.value - other > max(_LEAST, _ERRORS * self.stderr)

    @property
    def is_lopsided(self):
        """Whether data and samples are told with different success, clearly."""
        difference = abs(self.of_data - self.of_samples)
        return difference > 2.0 * max(_LEAST, _ERRORS * self.stderr)

    def __str__(self):
        return f"{self.value:.3f} ± {self.stderr:.3f}"


class QualityReport(NamedTuple):
    """The result of `quality_report`, which prints as a table and a verdict.

    Attributes:
        held_out, train: `Accuracy` of samples against either data.
        data: `Accuracy` of training data against held-out data, the best to be
            expected.
        correlations: dict of `"1-point"`, `"2-point"`, `"3-point"` to a pair of
            floats: the Pearson correlation of these statistics of samples with those
            of held-out data, and of training data with them, the most to be expected.
        sweeps: int array (T,), lengths of chains.
        from_noise, from_data: float arrays (T,), accuracy against held-out data after
            as many sweeps from the base rate, and from training data.
        r_hat: float, split R-hat of chains from both starts, the largest of their
            free energy and of the first two principal components of the data.
        autocorrelation: float, integrated autocorrelation time of these, the longest,
            in sweeps.
        samples: array (N, V), chains from the base rate after all sweeps.
        components: dict of `"held-out data"` and `"samples"` to arrays (N, 2), in the
            first two principal components of the held-out data.
        covariances: dict of the same names to arrays (P,), of pairs of columns.
        verdict: tuple of str.
    """

    held_out: Accuracy
    train: Accuracy
    data: Accuracy
    correlations: dict[str, tuple[float, float]]
    sweeps: np.ndarray
    from_noise: np.ndarray
    from_data: np.ndarray
    r_hat: float
    autocorrelation: float
    samples: np.ndarray
    components: dict[str, np.ndarray]
    covariances: dict[str, np.ndarray]
    verdict: tuple[str, ...]

    @property
    def privacy_loss(self):
        """Accuracy against held-out data less that against training data [1].

        Above 0 if samples are nearer to the examples that the model has seen.
        """
        return self.held_out.value - self.train.value

    def __str__(self):
        lines = [
            "nearest neighbors tell samples from held-out data: "
            f"{self.held_out} (0.5 if alike); of data {self.held_out.of_data:.2f}, of "
            f"samples {self.held_out.of_samples:.2f}",
            f"samples from training data: {self.train}; privacy loss "
            f"{self.privacy_loss:.3f}",
            f"training data from held-out data: {self.data}",
        ]
        lines += [
            f"{name} statistics: correlation with held-out data {own:.3f} "
            f"(training data {most:.3f})"
            for name, (own, most) in self.correlations.items()
        ]
        lines += [
            f"chains: split R-hat {self.r_hat:.3f}, autocorrelation time "
            f"{self.autocorrelation:.0f} sweeps",
            "accuracy after sweeps from noise, from data:",
        ]
        lines += [
            f"{sweeps:8}  {noise:.3f}  {data:.3f}"
            for sweeps, noise, data in zip(
                self.sweeps, self.from_noise, self.from_data, strict=True
            )
        ]
        return "\n".join([*lines, *self.verdict])


def quality_report(
    model: BoltzmannMachine,
    train: ArrayLike | tf.data.Dataset,
    held_out: ArrayLike | tf.data.Dataset,
    *,
    steps: int = 1000,
    seed: int = 0,
) -> QualityReport:
    """Compares a model's samples with its data: are they alike, new, and do they mix?

    Its numbers need no log Z. *Nearest neighbors*: the share of states whose nearest
    neighbor is of their own kind, averaged over data and samples [1]. It is 0.5 if both
    have one distribution; ties count half. Distances are Euclidean, of one-hot
    categories, and of numbers in standard deviations. *Statistics*: means, covariances,
    and third central moments of up to 100 columns that vary, compared by their
    correlation. *Mixing*: split R-hat [3] and the autocorrelation time of the free
    energy and of two principal components. *Length*: the accuracy after 1, 3, 10, …
    sweeps from the base rate and from data. A model that learned from chains that were
    too short makes its best samples after as many sweeps as its rule took, and worse
    ones later [2].

    Args:
        model: built `RBM`, `InfiniteRBM` or `DBM`.
        train: array (N, V) or dataset, the examples it has learned.
        held_out: array (M, V) or dataset, others of the same kind. Up to 1,000 of both
            are used, as many of each.
        steps: int ≥ 1, sweeps of the chains.
        seed: int.

    Returns:
        `QualityReport`; print it.

    Raises:
        TypeError: if the model is none of p(v).
        ValueError: if the model is not built, there are fewer than 10 rows, or the data
            do not fit the model or have gaps.

    Example:

    >>> data = np.random.default_rng(0).integers(0, 2, (200, 6)).astype("float32")
    >>> rbm = keras_rbm.RBM(4, seed=0)
    >>> rbm.compile("sgd")
    >>> history = rbm.fit(data[:100], epochs=5, verbose=0)
    >>> report = keras_rbm.quality_report(rbm, data[:100], data[100:], steps=30)
    >>> report.sweeps.tolist()
    [1, 3, 10, 30]

    References:
        1. Yale, Dash, Dutta, Guyon, Pavao, Bennett. Generation and evaluation of
           privacy preserving synthetic health data. Neurocomputing, 2020.
        2. Decelle, Furtlehner, Seoane. Equilibrium and non-equilibrium regimes in the
           learning of restricted Boltzmann machines. NeurIPS 2021.
        3. Vehtari, Gelman, Simpson, Carpenter, Bürkner. Rank-normalization, folding,
           and localization: an improved R-hat. Bayesian Analysis, 2021.
    """
    check_counts(steps=steps)
    if not isinstance(model, GenerativeModel):
        raise TypeError(
            "Expected an RBM, InfiniteRBM or DBM. Received: "
            f"{type(model).__name__}. Of a model with input look at its metrics."
        )
    train, held_out = _rows(model, train, "train"), _rows(model, held_out, "held_out")
    count = min(len(train), len(held_out), _ROWS)
    if count < 10:
        raise ValueError(
            "Expected at least 10 rows of train and of held_out. Received: "
            f"{len(train)} and {len(held_out)}."
        )
    train, held_out = some_rows(train, count), some_rows(held_out, count)
    encode = _encoder(model, train)
    data, others = encode(held_out), encode(train)
    seeds = [random.fold_in(random.as_seed(seed), number) for number in range(3)]
    sweeps = _lengths(steps)
    noise = _followed(model, None, count, sweeps, seeds[0])
    started = _followed(model, train, count, sweeps, seeds[1])
    from_noise, from_data = (
        np.array([_accuracy(data, encode(states)).value for states in kind])
        for kind in (noise, started)
    )
    samples = noise[-1]
    directions = np.linalg.svd(data - data.mean(0), full_matrices=False)[2][:2].T
    r_hat, autocorrelation = _mixing(
        model,
        (samples, started[-1]),
        steps,
        lambda states: encode(states) @ directions,
        seeds[2],
    )
    coded = encode(samples)
    correlations, covariances = _statistics_compared(data, coded, others)
    report = QualityReport(
        _accuracy(data, coded),
        _accuracy(others, coded),
        _accuracy(data, others),
        correlations,
        sweeps,
        from_noise,
        from_data,
        r_hat,
        autocorrelation,
        samples,
        {
            name: (rows - data.mean(0)) @ directions
            for name, rows in (("held-out data", data), ("samples", coded))
        },
        covariances,
        (),
    )
    return report._replace(verdict=_verdict(report))


def _rows(model, data, name):
    rows = np.asarray(
        as_rows(held_rows(model._visible_states(data, "quality_report", name)))
    )
    if not np.all(is_known(rows)):
        raise ValueError(
            f"Expected {name} without gaps. Received: NaN. Pass the rows that are "
            "complete, or impute(x) first."
        )
    return rows


def _encoder(model, train):
    """Returns a function of states to rows whose distances mean something."""
    units = visible_parameters(model).whole

    def encoded(states):
        return np.asarray(units.encode(tf.constant(states, tf.float32)), np.float64)

    if units.finite:
        return encoded
    scale = encoded(train).std(0)
    scale = np.where(scale > 0.0, scale, 1.0)
    return lambda states: encoded(states) / scale


def _lengths(steps):
    """Returns 1, 3, 10, 30, … up to the number of sweeps."""
    most = math.ceil(math.log10(steps)) + 1
    lengths = {first * 10**power for power in range(most) for first in (1, 3)}
    return np.array(sorted({length for length in lengths if length < steps} | {steps}))


def _followed(model, start, count, sweeps, seed):
    """Returns states (N, V) of chains after each of several numbers of sweeps."""
    states, reached, done = start, [], 0
    for number, end in enumerate(sweeps):
        more: dict[str, Any] = {} if states is None else {"initial_visible": states}
        fresh = random.fold_in(seed, number)
        states = np.asarray(model.sample(count, steps=end - done, seed=fresh, **more))
        reached, done = [*reached, states], end
    return reached


def _accuracy(data, samples):
    """Returns the `Accuracy` of nearest neighbors, of as many rows of either."""
    nearest = []
    for one in (data, samples):
        distances = cdist(one, one)
        np.fill_diagonal(distances, np.inf)
        nearest.append(distances.min(1))
    between = cdist(data, samples)
    told = [
        np.where(near == other, 0.5, near < other)
        for near, other in zip(nearest, (between.min(1), between.min(0)), strict=True)
    ]
    of_data, of_samples = (float(shares.mean()) for shares in told)
    variance = 0.25 * sum(shares.var() for shares in told) / len(data)
    # Not 0 where all are told: one of them could have been the other way.
    stderr = float(np.sqrt(variance + 0.25 / len(data) ** 2))
    return Accuracy(0.5 * (of_data + of_samples), stderr, of_data, of_samples)


def _statistics_compared(data, samples, others):
    """Returns correlations of statistics with those of data, and the covariances."""
    rng = np.random.default_rng(0)
    varies = np.flatnonzero((data.std(0) > 0.0) & (others.std(0) > 0.0))
    columns = np.sort(rng.permutation(varies)[:_COLUMNS])
    places = rng.integers(0, max(1, len(columns)), (3, _TRIPLES))
    places = places[:, (np.diff(np.sort(places, 0), axis=0) > 0).all(0)]
    kinds = ("1-point", "2-point", "3-point")
    of_data, *rest = (
        _statistics(rows[:, columns], places) for rows in (data, samples, others)
    )
    correlations = {
        name: tuple(_pearson(of_data[number], other[number]) for other in rest)
        for number, name in enumerate(kinds)
    }
    return correlations, {"held-out data": of_data[1], "samples": rest[0][1]}


def _statistics(rows, places):
    centered = rows - rows.mean(0)
    upper = np.triu_indices(rows.shape[1], 1)
    covariance = centered.T @ centered / len(rows)
    third = np.mean(np.prod(centered[:, places], 1), 0)
    return rows.mean(0), covariance[upper], third


def _pearson(x, y):
    if len(x) < 2 or not x.std() * y.std() > 0.0:
        return math.nan
    return float(np.corrcoef(x, y)[0, 1])


def _mixing(model, starts, steps, project, seed):
    """Returns the largest split R-hat, and the longest autocorrelation time."""
    import tensorflow_probability as tfp

    half = min(len(starts[0]), _CHAINS // 2)
    states = np.concatenate([start[:half] for start in starts])
    apart = max(1, steps // _MOMENTS)
    moments = []
    for number in range(_MOMENTS):
        fresh = random.fold_in(seed, number)
        states = np.asarray(
            model.sample(len(states), steps=apart, initial_visible=states, seed=fresh)
        )
        energies = np.asarray(energies_of(model, states), np.float64)
        moments.append(np.concatenate([energies[:, np.newaxis], project(states)], 1))
    values = np.stack(moments)  # (moments, chains, quantities)
    values = values[..., values.std((0, 1)) > 0.0]
    if not values.shape[-1]:
        return 1.0, 1.0
    r_hats = tfp.mcmc.potential_scale_reduction(values, 1, split_chains=True)
    with _no_warning_of_complex():
        sizes = tfp.mcmc.effective_sample_size(values, cross_chain_dims=1)
    states = values.shape[0] * values.shape[1]
    return float(np.max(r_hats)), float(apart * states / np.min(sizes))


@contextlib.contextmanager
def _no_warning_of_complex():
    """TensorFlow warns of what TensorFlow Probability does with Fourier transforms."""
    logger = tf.get_logger()

    def is_other(record):
        return "casting an input of type complex" not in record.getMessage()

    logger.addFilter(is_other)
    try:
        yield
    finally:
        logger.removeFilter(is_other)


def _verdict(report):
    """Returns sentences: what is good, what is not, and what to do."""
    said = []
    differ = report.held_out.exceeds(max(0.5, report.data.value))
    gap = report.privacy_loss
    errors = math.hypot(report.held_out.stderr, report.train.stderr)
    stuck = not report.r_hat < _LARGEST_R_HAT
    memorizes = gap > max(_LEAST, _ERRORS * errors)
    cure = "" if memorizes or stuck else " Train longer, or take more hidden units."
    if differ:
        said.append(
            f"Samples differ from data: neighbors tell {report.held_out.value:.0%} "
            f"of them apart.{cure}"
        )
    if report.held_out.is_lopsided:
        scattered = report.held_out.of_data > report.held_out.of_samples
        said.append(
            f"Samples are {'more' if scattered else 'less'} scattered than data: the "
            f"nearest neighbor is a sample for {report.held_out.of_samples:.0%} of "
            f"the samples, and data for {report.held_out.of_data:.0%} of the data."
        )
    if not said:
        said.append("Nearest neighbors do not tell samples from data.")
    if memorizes:
        said.append(
            f"Samples are nearer to the training data than to others, by {gap:.2f}: "
            "the model memorizes. Stop earlier, take fewer hidden units or a narrower "
            "prior, or more data."
        )
    correlation, most = report.correlations["2-point"]
    if most - correlation > _LACKING:
        said.append(
            f"The covariances of samples correlate less with those of held-out data "
            f"than training data's do: {correlation:.2f} and {most:.2f}."
        )
    if stuck:
        said.append(
            f"Chains depend on where they began (R-hat {report.r_hat:.2f}): modes may "
            "have wrong shares. Train with rule='parallel_tempering', if you have "
            "not, and sample an RBM with method='tempering'."
        )
    best = int(np.argmin(report.from_noise))
    worse = report.from_noise[-1] - report.from_noise[best]
    # Of a difference; with fewer errors one in fourteen is as large by chance, because
    # the best of several is taken.
    if worse > max(_LEAST, _ERRORS * math.sqrt(2.0) * report.held_out.stderr):
        said.append(
            f"Samples are best after {report.sweeps[best]} sweeps and get worse: the "
            "model has learned from chains that were too short. Train by the default "
            "rule, if you have not, or with more gibbs_steps."
        )
    return tuple(said)
