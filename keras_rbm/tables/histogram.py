"""A density of numbers by bins of about as many rows, with spikes and tails."""

import numpy as np

#: Least and most bins, and the rows that one bin takes, two bins four times as many.
_FEWEST, _MOST, _ROWS = 4, 150, 5
#: Multiples of the fewest bins that are tried, and parts of the rows that judge them.
_MULTIPLES, _FOLDS = (1.0, 1.7, 3.0), 5
#: Nats that e times as many bins must gain: each has weights that a model must learn.
_LEAST_GAIN = 0.2


class Histogram:
    """Bins of sorted numbers, and a density p(x | bin) in each.

    The edge between two bins is midway between their rows. Density is even inside a
    bin. Of the n rows of a bin, a share of 1 / (n + 2) is kept for numbers that no row
    had: beyond the range of all rows, where density falls exponentially by the width of
    the outer bin, and beside the only number of a bin, which has a probability.

    Args:
        numbers: array (N,), sorted.
        bins: int, about how many; a number that more than N / bins rows have is a bin
            of its own. `None`: each different number is.
        is_whole: bool, whether numbers are whole: all then have probabilities.

    Attributes:
        first, last: arrays (K,), where the rows of each bin begin and end.
        edges: array (K + 1,).
    """

    def __init__(self, numbers, bins, is_whole):
        self.is_whole = is_whole
        distinct, counts = np.unique(numbers, return_counts=True)
        starts = np.arange(len(distinct)) if bins is None else _starts(counts, bins)
        ends = np.append(starts[1:], len(distinct))
        rows = np.append(0, np.cumsum(counts))
        self.first, self.last = rows[starts], rows[ends]
        below, above = distinct[ends[:-1] - 1], distinct[starts[1:]]
        middle = np.maximum(below + 0.5 * (above - below), np.nextafter(below, np.inf))
        middle = np.floor(middle) + 0.5 if is_whole else middle
        margin = 0.5 if is_whole else 0.0
        low, high = distinct[0] - margin, distinct[-1] + margin
        self.edges = np.concatenate([[low], middle, [high]])
        width, is_spike = np.diff(self.edges), ends - starts == 1
        self.spikes = np.where(is_spike, distinct[starts], np.nan)
        #: Of numbers inside a bin that are no spike: their length, or how many.
        self.extent = width - is_spike if is_whole else width
        share = 1.0 / (self.last - self.first + 2.0)
        self.tail = np.where(np.isin(starts, starts[[0, -1]]), share, 0.0)
        self.inside = np.where(is_spike & (self.extent > 0.0), share, 0.0)
        self.inside = np.where(is_spike, self.inside, 1.0 - self.tail)
        self.spike = 1.0 - self.inside - self.tail
        size = np.maximum(np.abs(distinct[starts]), 1.0)
        self.scale = np.where(width > 0.0, width, size)
        if len(starts) == 1:
            self.tail = 0.5 * self.tail  # on either side

    def bins_of(self, numbers):
        """Returns the bins of numbers; those beyond the range are in the outer ones."""
        return np.searchsorted(self.edges[1:-1], numbers, side="right")

    def log_density(self, numbers):
        """Returns log p(x | bin of x), (N,), nats."""
        bins = self.bins_of(numbers)
        beyond = np.maximum(self.edges[0] - numbers, numbers - self.edges[-1])
        scale = self.scale[bins]
        if self.is_whole:  # a geometric distribution
            log_rate = np.log(-np.expm1(-1.0 / scale))
            beyond = np.where(beyond > 0.0, beyond + 0.5, beyond)
            steps = np.maximum(beyond - 1.0, 0.0)
        else:
            log_rate, steps = -np.log(scale), np.maximum(beyond, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            outer = np.log(self.tail[bins]) + log_rate - steps / scale
            even = np.log(self.inside[bins] / self.extent[bins])
            at_spike = np.log(self.spike[bins])
        inner = np.where(numbers == self.spikes[bins], at_spike, even)
        return np.where(beyond > 0.0, outer, inner)


def chosen_bins(numbers, is_whole):
    """Returns the number of bins that gives other rows clearly higher likelihoods.

    √(N / 5) are tried by parts of the rows, and 1.7 and 3 times as many, which must
    gain 0.1 and 0.2 nats a row: smooth columns have few bins, round numbers many.

    Args:
        numbers: array (N,), sorted.
        is_whole: bool, as for `Histogram`.
    """
    fewest = np.sqrt(len(numbers) / _ROWS)
    tried = [int(np.clip(round(m * fewest), _FEWEST, _MOST)) for m in _MULTIPLES]
    fold = np.random.default_rng(0).permutation(len(numbers)) % _FOLDS
    spacing = np.diff(np.unique(numbers)).min() if not is_whole else 1.0
    gained = np.zeros(len(tried))
    for number in range(_FOLDS):
        learned, judged = numbers[fold != number], numbers[fold == number]
        for index, bins in enumerate(tried):
            own = Histogram(learned, bins, is_whole)
            count = own.last - own.first
            log_p = np.log((count + 1.0) / (len(learned) + len(count)))
            bins_of = own.bins_of(judged)
            at_spike = judged == own.spikes[bins_of]
            # A spike's probability as a density: between it and the nearest number.
            log_p = log_p[bins_of] + own.log_density(judged)
            gained[index] += np.sum(log_p - at_spike * np.log(spacing))
    gained = gained / len(numbers) - _LEAST_GAIN * np.log(_MULTIPLES)
    return tried[int(np.argmax(gained))]


def _starts(counts, bins):
    """Returns where bins begin among different numbers, (K,), each of a fair share."""
    share = counts.sum() / bins
    starts, rows = [0], 0
    for index, count in enumerate(counts):
        if rows and (rows + 0.5 * count > share or count >= share):
            starts.append(index)
            rows = 0
        rows += count
    return np.array(starts)
