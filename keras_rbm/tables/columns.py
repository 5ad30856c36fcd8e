"""A column of a table as states: its levels, or bins of its numbers."""

from collections.abc import Callable
from typing import Any

import numpy as np

from keras_rbm.tables.histogram import Histogram, chosen_bins

#: Different numbers up to which each is a state of its own.
FEW_LEVELS = 20
#: Words of a column beyond which they look like names or texts.
MOST_LEVELS = 200
#: Decimal digits that are looked for, and the rounding of numbers with them: of small
#: ones, and of others in their last places.
_MOST_DIGITS, _ROUNDING, _PLACES = 4, 1e-9, 8
#: Up to which float64 holds whole numbers, and the middle of two, exactly.
_MOST_EXACT = 2**51


class Column:
    """A column whose values are states 0 … q-1, and q where it has gaps.

    Attributes:
        name: name of the column.
        dtype: its type in pandas.
        values: `pandas.Series`, what states are drawn back from.
        num_states: int, states of known values.
        has_gaps: bool, whether a missing value is a state, the last.
    """

    kind: Any = ""
    # What values can be, as a sentence.
    _possible: Callable[[], str]
    # What a type of columns defines, of known values: their states, log p(value |
    # state), and the share of each state's rows that meets a condition.
    _states: Callable[[Any], np.ndarray]
    _log_density: Callable[[Any], np.ndarray]
    _shares: Callable[[Any], np.ndarray]

    def __init__(self, series, values, num_states):
        self.name = series.name
        self.dtype = series.dtype
        self.values = values.reset_index(drop=True)
        self.num_states = num_states
        self.has_gaps = bool(series.isna().any())

    @property
    def width(self):
        """Int, states with that of a gap."""
        return self.num_states + self.has_gaps

    def states(self, series, gaps=True):
        """Returns the states (N,) of a column, NaN where they are not known.

        Args:
            series: `pandas.Series`.
            gaps: bool, whether a missing value is a gap, and not unknown.
        """
        known = series.notna().to_numpy()
        fill = self.num_states if gaps and self.has_gaps else np.nan
        states = np.full(len(series), fill)
        states[known] = self._states(series[known])
        return states

    def log_density(self, series):
        """Returns log p(value | its state), (N,), nats; 0 where it is missing."""
        known = series.notna().to_numpy()
        density = np.zeros(len(series))
        density[known] = self._log_density(series[known])
        return density

    def _restored(self, indices):
        """Returns values as a column of the own type, missing where indices are -1."""
        indices = indices.astype(int)
        missing = indices < 0
        if not missing.any():
            column = self.values.iloc[indices]
        else:
            column = self.values.reindex(indices)
            if isinstance(self.dtype, np.dtype) and self.dtype.kind in "biu":
                return column.reset_index(drop=True)  # has no missing values
        return column.astype(self.dtype).reset_index(drop=True)

    def log_weights(self, condition):
        """Returns what a condition adds to the log weight of each state, (width,)."""
        weights = np.zeros(self.width)
        if _is_gap(condition):
            weights[self.num_states :] = 1.0
        else:
            weights[: self.num_states] = self._shares(condition)
        if not weights.any():
            raise ValueError(
                "Expected a condition that some row of fit meets. Received: "
                f"{self.name!r}: {condition!r:.200}. {self._possible()}"
            )
        with np.errstate(divide="ignore"):
            return np.log(weights)

    @property
    def log_weights_known(self):
        """The same for the condition that the value is not missing."""
        return np.where(np.arange(self.width) < self.num_states, 0.0, -np.inf)


class Levels(Column):
    """A column of words, categories or bools: each level is a state."""

    kind = "category"

    def __init__(self, series):
        import pandas

        known = series[series.notna()]
        if isinstance(series.dtype, pandas.CategoricalDtype):
            levels = pandas.Series(series.cat.categories)
        else:
            levels = _sorted(known.drop_duplicates())
        if len(levels) > max(MOST_LEVELS, np.sqrt(len(series))):
            raise ValueError(
                f"Expected at most {MOST_LEVELS} different words in a column. "
                f"Received: {len(levels)} in column {series.name!r}, which look like "
                "names or texts. Drop the column, or group its words; dates, numbers: "
                "pandas.to_datetime, pandas.to_numeric."
            )
        super().__init__(series, levels, len(levels))
        self._index = pandas.Index(self.values)

    def draw(self, states, generator, condition=None):
        """Returns a value for each state, missing for a gap and for NaN."""
        known = states < self.num_states  # NaN is not
        return self._restored(np.where(known, states, -1))

    def mean(self, probabilities):
        """Returns the likeliest levels, given probabilities (N, states)."""
        return self._restored(probabilities.argmax(1))

    mode = mean

    def _states(self, known):
        states = self._index.get_indexer(known.astype(object))
        if (states < 0).any():
            raise ValueError(
                f"Expected levels of column {self.name!r} that fit has seen, "
                f"{list(self.values)!r:.200}. Received: {known[states < 0].iloc[0]!r}. "
                "Make it missing (NaN), or declare it before fit: "
                "column.astype(pandas.CategoricalDtype(levels))."
            )
        return states

    def _log_density(self, known):
        self._states(known)
        return np.zeros(len(known))

    def _possible(self):
        return f"Its levels are {list(self.values)!r:.200}."

    def _shares(self, condition):
        import pandas

        several = _several(condition)
        levels = [condition] if several is None else several
        states = self._index.get_indexer(pandas.Index(levels, dtype=object))
        return np.isin(np.arange(self.num_states), states) & (states >= 0).all()


class Bins(Column):
    """A column of numbers or dates: bins of about the same number of rows.

    Up to 20 different numbers are a bin each, and so is one that is frequent, as zero
    often is. A number is drawn back from the bin's rows. Its density is even between
    the edges, which lie midway to the next bin's rows; of n rows of a bin, 1 / (n + 2)
    is kept for values that no row had: beyond the range, where density falls
    exponentially by the width of the outer bin, and beside the only value of a bin.
    Whole numbers have probabilities instead of densities.
    """

    def __init__(self, series, bins=None):
        known = _sorted(series[series.notna()])
        #: "M" of dates, "m" of durations, else "f".
        self.kind_of_numbers = kind if (kind := known.dtype.kind) in "Mm" else "f"
        self.origin = known.iloc[0] if kind == "M" else None
        numbers = self._numbers(known)
        if kind in "iu" and (known.max() > _MOST_EXACT or known.min() < -_MOST_EXACT):
            raise ValueError(
                "Expected whole numbers up to 2**51. Received: others in column "
                f"{series.name!r}. Subtract the least, or drop the column."
            )
        if not np.isfinite(numbers).all():
            raise ValueError(
                f"Expected finite numbers. Received: others in {series.name!r}."
            )
        self.step = _step(numbers)
        self.numbers = np.sort(self._in_steps(numbers))
        self.is_few = bins is None and len(np.unique(self.numbers)) <= FEW_LEVELS
        if bins is None and not self.is_few:
            bins = chosen_bins(self.numbers, self.step > 0.0)
        self.histogram = Histogram(self.numbers, bins, self.step > 0.0)
        super().__init__(series, known, len(self.histogram.first))

    @property
    def kind(self):
        return "levels" if self.is_few else "bins"

    def draw(self, states, generator, condition=None):
        """Returns a value for each state, missing for a gap and for NaN."""
        import pandas

        known = states < self.num_states  # NaN is not
        bins = np.where(known, states, 0).astype(int)
        if self._is_one(condition):
            return pandas.Series([condition] * len(bins)).astype(self.dtype)
        first, last = self._rows(condition)
        size = (last - first)[bins]
        drawn = first[bins] + (generator.random(len(bins)) * size).astype(int)
        return self._restored(np.where(known, drawn, -1))

    def mean(self, probabilities):
        """Returns means given probabilities (N, states) of the bins."""
        import pandas

        first, last = self._rows(None)
        means = np.add.reduceat(self.numbers, first) / (last - first)
        numbers = probabilities @ means
        if self.dtype.kind not in "iuf":  # a date, or a duration
            return self._nearest(numbers)
        return pandas.Series(numbers * (self.step or 1.0))

    def mode(self, probabilities):
        """Returns the middle row's values of the likeliest bins."""
        first, last = (ends[probabilities.argmax(1)] for ends in self._rows(None))
        return self._restored((first + last - 1) // 2)

    def _nearest(self, numbers):
        index = np.searchsorted(self.numbers, numbers).clip(1, len(self.numbers) - 1)
        below = numbers - self.numbers[index - 1] < self.numbers[index] - numbers
        return self._restored(index - below)

    def _numbers(self, known):
        import pandas

        kind = known.dtype.kind if known.dtype.kind in "Mm" else "f"
        if kind != self.kind_of_numbers:
            raise TypeError("numbers are no dates, and no durations")
        if kind == "M":
            known = known - self.origin
        if kind in "Mm":
            known = known / pandas.Timedelta(days=1)
        elif known.dtype.kind == "f" and known.dtype.itemsize < 8:
            # 0.1, not 0.1000000015
            return known.to_numpy(f"f{known.dtype.itemsize}").astype(str).astype(float)
        return known.to_numpy(np.float64)

    def _in_steps(self, numbers):
        return np.round(numbers / self.step) if self.step else numbers

    def _states(self, known):
        return self.histogram.bins_of(self._checked(known))

    def _checked(self, known):
        try:
            numbers = self._numbers(known)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"Expected column {self.name!r} to be like that of fit, of dtype "
                f"{self.dtype}. Received: {known.dtype}."
            ) from error
        if not np.isfinite(numbers).all():
            raise ValueError(
                f"Expected finite numbers. Received: others in {self.name!r}."
            )
        return self._in_steps(numbers)

    def _log_density(self, known):
        density = self.histogram.log_density(self._checked(known))
        return density - np.log(self.step) if self.step else density

    def _rows(self, condition):
        """Returns where the rows of each bin that meet a condition begin and end."""
        first, last = self.histogram.first, self.histogram.last
        if condition is None or self._is_one(condition):
            return first, last
        if (several := _several(condition)) is not None:
            meets = np.isin(self.histogram.spikes, self._condition(several, condition))
            return first, np.where(meets, last, first)
        ends = condition if isinstance(condition, tuple) else (condition, condition)
        low, high = self._condition(ends, condition)
        low, high = np.nan_to_num([low, -high], nan=-np.inf, neginf=-np.inf)
        high = -high
        if self.step:
            low, high = _whole(low, np.ceil), _whole(high, np.floor)
        low = np.searchsorted(self.numbers, low, side="left")
        high = np.searchsorted(self.numbers, high, side="right")
        return np.maximum(first, low), np.minimum(last, high)

    def _possible(self):
        ends = f"from {self.values.iloc[0]} to {self.values.iloc[-1]}"
        steps = f" in steps of {self.step:g}" if self.step else ""
        return f"Its values are {ends}{steps}; a range is (low, high)."

    def _is_one(self, condition):
        """Returns whether a condition is one number of a bin that has several."""
        alone = not isinstance(condition, tuple) and _several(condition) is None
        return alone and not self.is_few and not _is_gap(condition)

    def _condition(self, values, condition):
        """Returns the numbers of a condition, in steps, NaN where there is no end."""
        import pandas

        try:
            column = pandas.Series(list(values))
            if self.kind_of_numbers in "Mm":  # also of words, such as "2020-01-31"
                column = column.astype(self.dtype)
            elif any(isinstance(each, str | bool | np.bool_) for each in values):
                raise TypeError("no numbers")
            numbers = self._numbers(column) / (self.step or 1.0)
            if isinstance(condition, tuple) and len(numbers) != 2:
                raise ValueError("not two ends")
            if _several(condition) is not None and not self.is_few:
                raise ValueError("levels of a column without")
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"Expected a condition on a column of {self.kind} as a number or date, "
                "(low, high), or a list of levels if it has such. Received: "
                f"{self.name!r}: {condition!r:.200}."
            ) from error
        return numbers

    def _shares(self, condition):
        if not self._is_one(condition):
            first, last = self._rows(condition)
            size = self.histogram.last - self.histogram.first
            return np.maximum(last - first, 0) / size
        (number,) = self._condition([condition], condition)
        if self.step:
            number = _whole(number, lambda x: np.nan)
        if not self.numbers[0] <= number <= self.numbers[-1]:  # nor if it is no step
            return 0.0
        return np.arange(self.num_states) == self.histogram.bins_of(number)


def _is_gap(condition):
    """Returns whether a condition asks for a missing value."""
    import pandas

    return pandas.api.types.is_scalar(condition) and bool(pandas.isna(condition))


def _several(condition):
    """Returns the levels of a condition as a list, or `None` if it is no collection."""
    import pandas

    kinds = list, set, frozenset, np.ndarray, pandas.Series, pandas.Index
    return list(condition) if isinstance(condition, kinds) else None


def _whole(steps, otherwise):
    """Returns the whole number that steps are up to rounding, or `otherwise(steps)`."""
    if np.isinf(steps):
        return steps
    return np.round(steps) if _are_whole(steps) else otherwise(steps)


def _are_whole(steps):
    """Returns whether numbers of steps are whole up to rounding."""
    rounding = np.maximum(_ROUNDING, _PLACES * np.spacing(np.abs(steps)))
    return np.abs(steps - np.round(steps)) <= rounding


def _step(numbers):
    """Returns the decimal step that all numbers are multiples of, 0 if there is none.

    It is 1 for whole numbers, 0.01 for money with cents.
    """
    different = np.unique(numbers)
    for digits in range(_MOST_DIGITS + 1):
        steps = different * 10.0**digits
        are_apart = len(np.unique(np.round(steps))) == len(different)
        if are_apart and _are_whole(steps).all():
            return 10.0**-digits
    return 0.0


def column_of(series, kind=None):
    """Returns the `Column` that suits a `pandas.Series`, or that of a kind.

    Args:
        series: `pandas.Series`.
        kind: `"category"`, an int ≥ 2, the number of bins, or `None`.
    """
    is_number = getattr(series.dtype, "kind", "O") in "iufMm"
    is_number = is_number and not hasattr(series, "cat")
    if kind == "category" or (kind is None and not is_number):
        series = series if is_number else _words(series)
        return Levels(series)
    if not is_number:
        raise TypeError(
            f"Expected numbers or dates to put into bins. Received: column "
            f"{series.name!r} of dtype {series.dtype}."
        )
    return Bins(series, kind) if series.notna().any() else Levels(series)


def _words(series):
    known = series[series.notna()]
    kinds: set[Any] = {type(value) for value in known}
    if hasattr(series, "cat") or series.dtype.kind == "b" or len(kinds) <= 1:
        unhashable = [kind for kind in kinds if kind.__hash__ is None]
        if not unhashable:
            return series
    raise TypeError(
        "Expected columns of bools, numbers, dates, words or categories. Received: "
        f"column {series.name!r} of dtype {series.dtype} with values of types "
        f"{sorted(kind.__name__ for kind in kinds)}. Convert it."
    )


def _sorted(known):
    try:
        return known.sort_values(kind="stable")
    except TypeError as error:
        raise TypeError(
            f"Expected values that can be sorted. Received: column {known.name!r} of "
            f"dtype {known.dtype}. Make them words, or categories."
        ) from error
