"""Converts tables with columns of several kinds to rows of numbers, and back."""

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from keras_rbm.units.bernoulli import Bernoulli
from keras_rbm.units.binomial import Binomial
from keras_rbm.units.categorical import Categorical
from keras_rbm.units.gaussian import Gaussian
from keras_rbm.units.joined_units import Joined

if TYPE_CHECKING:
    import pandas

#: Sampling a count needs memory for as many numbers as the count has states.
_LARGEST_COUNT = 10_000


def from_dataframe(
    frame: "pandas.DataFrame", counts: Iterable[Hashable] = ()
) -> tuple[np.ndarray, Joined]:
    """Returns a table as numbers, with the unit types of its columns.

    | column | unit | numbers |
    | --- | --- | --- |
    | bools, or only 0 and 1 | `"bernoulli"` | 0 and 1 |
    | categories | `Categorical` | `column.cat.codes`, also of unseen categories |
    | words | `Categorical` | indices of the sorted words |
    | named in `counts` | `Binomial` up to the largest | unchanged |
    | other numbers | `"gaussian"` | unchanged |

    What is missing (NaN, `None`, `pandas.NA`) becomes NaN, which models take with
    `missing="latent"`. A column's unit is that of its known values.

    To number several tables alike, such as parts of one, first give their columns of
    words the same categories: `column.astype(pandas.CategoricalDtype(words))`.

    Args:
        frame: `pandas.DataFrame`, with a known value in each column.
        counts: names of columns of counts, such as a list of str.

    Returns:
        `(rows, visible)`: float32 array (N, columns), and the `keras_rbm.units.Joined`
        whose states the rows are.

    Raises:
        TypeError: if a column has neither words nor numbers.
        ValueError: if a column has infinite or no known values, a
            column in `counts` does not hold counts, or whole numbers are too large to
            be exact in float32. The error names the column.

    Example:

    >>> import pandas
    >>> ages = [22.0, 38.0, 26.0, 35.0]
    >>> frame = pandas.DataFrame({"class": ["3rd", "1st", "3rd", "1st"], "age": ages})
    >>> rows, visible = keras_rbm.units.from_dataframe(frame)
    >>> visible.parts
    [(Categorical(num_states=2), 1), (Gaussian(standardize=True), 1)]
    >>> rows.tolist()[0]
    [1.0, 22.0]
    >>> rbm = keras_rbm.RBM(4, visible=visible, seed=0)
    """
    if not frame.columns.is_unique:
        raise ValueError(
            "Expected columns of different names. Received: "
            f"{list(frame.columns)!r:.200}."
        )
    single = isinstance(counts, str) or not isinstance(counts, Iterable)
    counts = [] if counts is None else [counts] if single else list(counts)
    unknown = [name for name in counts if name not in frame.columns]
    if unknown:
        raise ValueError(
            f"Expected counts as names of columns, {list(frame.columns)!r:.200}. "
            f"Received: counts={counts!r:.200}."
        )
    pairs = [_column(frame[name], name, name in counts) for name in frame.columns]
    parts = []
    for _, unit in pairs:
        if parts and repr(parts[-1][0]) == repr(unit):
            parts[-1] = (unit, parts[-1][1] + 1)
        else:
            parts.append((unit, 1))
    rows = np.stack([numbers for numbers, _ in pairs], 1).astype(np.float32)
    return rows, Joined(parts)


def to_dataframe(rows: ArrayLike, frame: "pandas.DataFrame") -> "pandas.DataFrame":
    """Returns rows of numbers as a table: the inverse of `from_dataframe`.

    Args:
        rows: array (n, columns), such as `rbm.sample` or `rbm.impute` returns. NaN is
            missing again.
        frame: the `pandas.DataFrame` that `from_dataframe` was given.

    Returns:
        `pandas.DataFrame`, with words and categories instead of their numbers. Numbers
        beyond an integer column's range are clipped.

    Raises:
        ValueError: if the rows do not have the frame's columns, have a value that is
            not the number of a category, or NaN where the column's type has no missing
            values.

    Example:

    >>> import pandas
    >>> frame = pandas.DataFrame({"class": ["3rd", "1st"], "age": [22.0, 38.0]})
    >>> rows, _ = keras_rbm.units.from_dataframe(frame)
    >>> keras_rbm.units.to_dataframe(rows, frame).equals(frame)
    True
    """
    pairs = zip(frame.columns, np.asarray(rows).T, strict=True)
    return type(frame)({name: _restored(n, frame[name], name) for name, n in pairs})


def _restored(numbers, column, name):
    """Returns numbers as a column with the type of another column."""
    known = ~np.isnan(numbers)
    of_numpy = isinstance(column.dtype, np.dtype)
    if of_numpy and column.dtype.kind in "biu" and not known.all():
        raise ValueError(
            f"Expected finite numbers. Received: NaN in {name!r}, whose type "
            f"{column.dtype} has no missing values. Call impute(rows) first."
        )
    values = _values(numbers[known], _known(column), name)
    values = type(column)(values, np.flatnonzero(known)).astype(column.dtype)
    return values.reindex(range(len(numbers)))


def _values(numbers, known, name):
    """Returns numbers without NaN as values of the kind of others."""
    words = _words(known)
    if words is not None:
        are_categories = np.isin(numbers, np.arange(len(words)))
        if not are_categories.all():
            raise ValueError(
                f"Expected numbers of categories in column {name!r}, whole ones from 0 "
                f"to {len(words) - 1}. Received: {numbers[~are_categories][0]:g}. Pass "
                "states, not means."
            )
        values = np.empty(len(numbers), object)
        values[:] = [words[int(number)] for number in numbers]
        return values
    if np.isinf(numbers).any():
        raise ValueError(f"Expected finite numbers. Received: others in {name!r}.")
    if known.dtype.kind == "b":
        return numbers > 0.5
    if known.dtype.kind in "iu":  # a Gaussian unit may leave the dtype's range
        ends = np.iinfo(getattr(known.dtype, "numpy_dtype", known.dtype))
        high = min(ends.max, 2**53)  # larger ones are not exact in float64
        numbers = np.clip(numbers.astype(np.float64), max(ends.min, -(2**53)), high)
        return numbers.round().astype(np.int64)
    return numbers


def _known(column):
    """Returns the values of a column that are not missing, of the type they have."""
    return column[column.notna()].infer_objects()


def _column(column, name, is_count):
    """Returns a column's numbers, NaN where they are missing, and its unit."""
    known = _known(column)
    if known.empty:
        raise ValueError(
            "Expected a known value in each column. Received: only missing ones in "
            f"column {name!r}. Drop the column."
        )
    values, unit = _numbers(known, name, is_count)
    numbers = np.full(len(column), np.nan)
    numbers[column.notna()] = values
    return numbers, unit


def _numbers(column, name, is_count):
    """Returns the numbers of a column without missing values, and its unit."""
    words = _words(column)
    if words is not None and is_count:
        raise ValueError(
            f"Expected counts to be numbers. Received: words in column {name!r}."
        )
    if words is not None:
        if len(words) < 2:
            raise ValueError(
                f"Expected at least two categories. Received: column {name!r} with "
                f"only {words!r}. Drop the column."
            )
        number = {word: index for index, word in enumerate(words)}
        return np.array([number[word] for word in column]), Categorical(len(words))
    if column.dtype.kind not in "biuf":
        raise TypeError(
            "Expected columns of bools, numbers, words or categories. Received: "
            f"column {name!r} of dtype {column.dtype}. Convert it: dates into numbers, "
            "mixed values into words."
        )
    numbers = column.to_numpy(np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError(f"Expected finite numbers. Received: others in {name!r}.")
    if is_count:
        if (numbers < 0).any() or (numbers % 1).any() or not numbers.any():
            raise ValueError(
                "Expected counts: whole numbers ≥ 0, not all 0. Received: column "
                f"{name!r} with values from {numbers.min():g} to {numbers.max():g}."
            )
        if numbers.max() > _LARGEST_COUNT:
            raise ValueError(
                f"Expected counts up to {_LARGEST_COUNT}. Received: {numbers.max():g} "
                f"in column {name!r}. Leave it out of counts: it is a measurement."
            )
        return numbers, Binomial(int(numbers.max()))
    whole = column.to_numpy()
    is_whole = column.dtype.kind in "iu"
    if is_whole and (whole.astype(np.float32).astype(whole.dtype) != whole).any():
        raise ValueError(
            "Expected whole numbers that float32 holds exactly, as those up to 2**24. "
            f"Received: {np.abs(numbers).max():.0f} in column {name!r}. Subtract the "
            "least number from the column, or make it floats, which are rounded."
        )
    binary = np.isin(numbers, (0.0, 1.0)).all()
    return numbers, Bernoulli() if binary else Gaussian()


def _words(column):
    """Returns the categories of a column in their order, or `None` for numbers."""
    if hasattr(column, "cat"):
        return list(column.cat.categories)
    if column.dtype.kind in "biuf":
        return None
    if all(isinstance(value, str) for value in column):
        return sorted(set(column))
    return None
