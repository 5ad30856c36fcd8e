"""The mathematics of each type of units in NumPy, as in `keras_rbm.units`."""

import functools
import itertools
import math
from typing import Any

import numpy as np

#: Factors between 1 and 2 whose product float32 holds.
_FACTORS = 100
#: By how much bits may miss 0 and 1.
_ROUNDING = 1e-6


class Units:
    """Units of one kind: their states (N, units), and natural parameters (N, rows).

    A kind defines `total`, the sum of the units' log-partition functions (N,), `mean`
    (N, rows), `draw` (N, units), and `contains` if it can be visible.
    """

    #: States that each unit has, if they are finitely many.
    states: Any = None
    # Fields of some kinds.
    log_precision: np.ndarray
    log_precision_below: np.ndarray
    threshold: np.ndarray
    shift: np.ndarray
    scale: np.ndarray
    log_binomial_coefficients: np.ndarray

    def __init__(self, units, **fields):
        self.units = self.rows = units
        self.__dict__.update(fields)

    def first(self, states):
        """Returns the first statistic, (N, rows)."""
        return states

    def base(self, states):
        """Returns the sum of the units' base measures, (N,)."""
        return np.float32(0.0)


class Bernoulli(Units):
    """0 or 1."""

    states = (0.0, 1.0)

    def total(self, natural):
        """Sums max(x, 0) and the logs of products of 1 + exp(-|x|)."""
        factors = np.exp(-np.abs(natural))
        factors += 1.0
        starts = range(0, self.rows, _FACTORS)
        products = [factors[:, at : at + _FACTORS].prod(1) for at in starts]
        return np.maximum(natural, 0.0).sum(1) + np.log(products).sum(0)

    def mean(self, natural):
        return _sigmoid(natural)

    def draw(self, natural, rng):
        return rng.random(natural.shape, np.float32) < _sigmoid(natural)

    def contains(self, states):
        return (states >= -_ROUNDING) & (states <= 1.0 + _ROUNDING)


class Spin(Bernoulli):
    """-1 or 1."""

    states = (-1.0, 1.0)

    def total(self, natural):
        return super().total(2.0 * natural) - natural.sum(1)

    def mean(self, natural):
        return np.tanh(natural)

    def draw(self, natural, rng):
        return 2.0 * super().draw(2.0 * natural, rng) - 1.0

    def contains(self, states):
        return np.abs(states) == 1.0


class Binomial(Bernoulli):
    """Counts up to a limit."""

    def __init__(self, units, **fields):
        super().__init__(units, **fields)
        self.trials = len(self.log_binomial_coefficients) - 1
        self.states = range(self.trials + 1)

    def total(self, natural):
        return self.trials * super().total(natural)

    def mean(self, natural):
        return self.trials * _sigmoid(natural)

    def draw(self, natural, rng):
        return rng.binomial(self.trials, _sigmoid(natural))

    def base(self, states):
        return self.log_binomial_coefficients[states.astype(int)].sum(1)

    def contains(self, states):
        return _is_whole(states, self.trials)


class Categorical(Units):
    """Categories, a row of the kernel for each."""

    def __init__(self, units, categories, **fields):
        super().__init__(units, **fields)
        self.states = range(len(categories))
        self.rows = units * len(categories)

    def _by_unit(self, natural):
        return natural.reshape(len(natural), self.units, len(self.states))

    def first(self, states):
        hot = states[..., np.newaxis] == np.arange(len(self.states), dtype=np.float32)
        return hot.reshape(len(states), self.rows).astype(np.float32)

    def total(self, natural):
        return log_sum_exp(self._by_unit(natural)).sum(1)

    def mean(self, natural):
        natural = self._by_unit(natural)
        weights = np.exp(natural - natural.max(-1, keepdims=True))
        return (weights / weights.sum(-1, keepdims=True)).reshape(len(natural), -1)

    def draw(self, natural, rng):
        below = np.cumsum(self._by_unit(self.mean(natural)), -1)
        noise = rng.random((len(natural), self.units, 1), np.float32)
        return (noise > below[..., :-1]).sum(-1)

    def contains(self, states):
        return _is_whole(states, len(self.states) - 1)


class Gaussian(Units):
    """Real numbers."""

    @functools.cached_property
    def precision(self):
        return np.exp(self.log_precision)

    def first(self, states):
        return (states - self.shift) / self.scale

    def base(self, states):
        return -0.5 * np.square(self.first(states)) @ self.precision

    def total(self, natural):
        ends = 0.5 * (math.log(2.0 * math.pi) - self.log_precision) + np.log(self.scale)
        return 0.5 * np.square(natural) @ (1.0 / self.precision) + ends.sum()

    def mean(self, natural):
        return self.shift + self.scale * natural / self.precision

    def draw(self, natural, rng):
        noise = rng.standard_normal(natural.shape, np.float32)
        return self.mean(natural) + self.scale * noise / np.sqrt(self.precision)

    def contains(self, states):
        return np.isfinite(states)


class Rectified(Units):
    """Numbers of at least 0."""

    def total(self, natural):
        return _half_total(natural, self.log_precision).sum(1)

    def mean(self, natural):
        return _half_mean(natural, self.log_precision)

    def draw(self, natural, rng):
        return _half_draw(natural, self.log_precision, rng)

    def base(self, states):
        return -0.5 * np.square(states) @ np.exp(self.log_precision)


class DoubleRectified(Units):
    """Numbers with a threshold, and a precision on each side."""

    def _sides(self, natural):
        above = natural - self.threshold, self.log_precision
        below = -natural - self.threshold, self.log_precision_below
        return above, below, _sigmoid(_half_total(*above) - _half_total(*below))

    def total(self, natural):
        above, below, _ = self._sides(natural)
        return np.logaddexp(_half_total(*above), _half_total(*below)).sum(1)

    def mean(self, natural):
        above, below, share = self._sides(natural)
        return share * _half_mean(*above) - (1.0 - share) * _half_mean(*below)

    def draw(self, natural, rng):
        above, below, share = self._sides(natural)
        is_above = rng.random(natural.shape) < share
        upper, lower = (_half_draw(at, size, rng) for at, size in (above, below))
        return np.where(is_above, upper, -lower)


class Joined(Units):
    """Several kinds side by side."""

    def __init__(self, parts):
        super().__init__(sum(part.units for part in parts))
        self.parts, self.rows = parts, sum(part.rows for part in parts)

    def _each(self, function, values, *others):
        by = "rows" if function in ("total", "mean", "draw") else "units"
        ends = np.cumsum([getattr(part, by) for part in self.parts])[:-1]
        return [
            getattr(part, function)(own, *others)
            for part, own in zip(self.parts, np.split(values, ends, 1), strict=True)
        ]

    def first(self, states):
        return np.concatenate(self._each("first", states), 1)

    def base(self, states):
        return sum(self._each("base", states))

    def total(self, natural):
        return sum(self._each("total", natural))

    def mean(self, natural):
        return np.concatenate(self._each("mean", natural), 1)

    def draw(self, natural, rng):
        return np.concatenate(self._each("draw", natural, rng), 1)

    def contains(self, states):
        return np.concatenate(self._each("contains", states), 1)


KINDS = {
    kind.__name__: kind
    for kind in (
        *(Bernoulli, Spin, Binomial, Categorical, Gaussian, Rectified),
        DoubleRectified,
    )
}


def all_states(units, most):
    """Returns all states of a layer, (S, units), or `None` if they are too many."""
    parts = getattr(units, "parts", [units])
    states = [part.states for part in parts for _ in range(part.units)]
    if any(each is None for each in states) or math.prod(map(len, states)) > most:
        return None
    return np.array(list(itertools.product(*states)), np.float32)


def log_sum_exp(values):
    """Returns log sum exp along the last axis."""
    highest = values.max(-1)
    return highest + np.log(np.exp(values - highest[..., np.newaxis]).sum(-1))


def _sigmoid(x):
    return 0.5 * (1.0 + np.tanh(0.5 * x))


def _is_whole(states, most):
    return (states >= 0) & (states <= most) & (states == np.round(states))


def _half_total(natural, log_precision):
    """Returns log of the integral of exp(eta h - gamma h² / 2) over h ≥ 0."""
    from scipy.special import log_ndtr

    location = natural * np.exp(-0.5 * log_precision.astype(np.float64))
    normal = 0.5 * (math.log(2.0 * math.pi) - log_precision)
    return normal + 0.5 * np.square(location) + log_ndtr(location)


def _half_mean(natural, log_precision):
    from scipy.special import erfcx

    deviation = np.exp(-0.5 * log_precision.astype(np.float64))
    location = natural * deviation
    hazard = math.sqrt(2.0 / math.pi) / erfcx(-location * math.sqrt(0.5))
    return deviation * (location + hazard)


def _half_draw(natural, log_precision, rng):
    from scipy.special import log_ndtr, ndtri_exp

    deviation = np.exp(-0.5 * log_precision.astype(np.float64))
    location = natural * deviation
    share = np.log(1.0 - rng.random(natural.shape)) + log_ndtr(location)
    return deviation * np.maximum(location - ndtri_exp(share), 0.0)
