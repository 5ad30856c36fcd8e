"""Data frames as numbers, for what compares them."""

from typing import NamedTuple

import numpy as np

from keras_rbm._checks import import_optional
from keras_rbm.tables.columns import FEW_LEVELS

#: Fewest rows of a table.
_FEWEST = 20


class Columns(NamedTuple):
    """What the columns of a table are.

    Attributes:
        names: list of their names.
        words: bool array (C,), whether numbers stand for words.
        discrete: bool array (C,), whether each value counts for itself: words, bools,
            categories, and whole numbers of at most 20 different values.
    """

    names: list
    words: np.ndarray
    discrete: np.ndarray

    @property
    def pairs(self):
        """Int array (P, 2), the columns of each pair."""
        return np.stack(np.triu_indices(len(self.names), 1), 1)


def check_frame(frame, name="frame"):
    """Raises an error unless it is a `pandas.DataFrame` of different columns."""
    pandas = import_optional("pandas", "holds tables")
    if not isinstance(frame, pandas.DataFrame):
        raise TypeError(
            f"Expected {name} as a pandas.DataFrame. Received: {name} of type "
            f"{type(frame).__name__}. Make one: pandas.DataFrame(rows, columns=names)."
        )
    if not frame.columns.is_unique:
        raise ValueError(
            f"Expected {name} with columns of different names. Received: "
            f"{list(frame.columns)!r:.200}."
        )


def checked(**frames):
    """Returns frames with the columns of the first, in its order.

    Raises:
        TypeError: if one is no frame.
        ValueError: if columns differ, or have no known value in the first; or there are
            too few rows.
    """
    for name, frame in frames.items():
        check_frame(frame, name)
    first = next(iter(frames))
    columns = list(frames[first].columns)
    for name, frame in frames.items():
        if set(frame.columns) != set(columns):
            raise ValueError(
                f"Expected {name} with the columns of {first}. Received: "
                f"{list(frame.columns)!r:.200} in {name}, {columns!r:.200} in {first}. "
                "Rename columns, or drop those that are not in both."
            )
        if len(frame) < _FEWEST:
            raise ValueError(
                f"Expected at least {_FEWEST} rows of {name}. Received: {len(frame)}. "
                "Pass more rows."
            )
    empty = [name for name in columns if frames[first][name].isna().all()]
    if empty or not columns:
        raise ValueError(
            f"Expected columns of {first} with known values. Received: "
            + (f"only gaps in {empty!r:.200}. Drop them." if columns else "no columns.")
        )
    return {name: frame[columns] for name, frame in frames.items()}


def as_numbers(frames):
    """Returns frames of the same columns as arrays (N, C), and what columns are.

    Args:
        frames: dict of names to frames, of which the first says what columns are.

    Returns:
        List of float64 arrays, and `Columns`. Dates are seconds, words are numbers
        common to all frames, in the order in which they appear, gaps are NaN.

    Raises:
        TypeError: if a column has values without a hash.
        ValueError: if numbers are infinite, or a column of numbers has other values in
            another frame.
    """
    import pandas

    first, *others = frames
    names, kinds, columns = list(frames[first].columns), [], []
    for name in names:
        read = {key: _read(frame[name]) for key, frame in frames.items()}
        kinds.append(read[first][0])
        if kinds[-1] == "words":
            objects = [frame[name].astype(object) for frame in frames.values()]
            try:
                codes, _ = pandas.factorize(pandas.concat(objects, ignore_index=True))
            except TypeError as error:
                raise TypeError(
                    f"Expected words, numbers, dates or bools. Received: {error} in "
                    f"column {name!r}. Make them str, or drop the column."
                ) from error
            ends = np.cumsum([len(each) for each in objects])[:-1]
            columns.append(np.split(np.where(codes < 0, np.nan, codes), ends))
            continue
        for key in others:
            if read[key][0] not in (kinds[-1], "gaps"):
                raise ValueError(
                    f"Expected {kinds[-1]} in column {name!r} of {key}, as in {first}. "
                    f"Received: {read[key][0]}. Convert them, as by pandas.to_numeric "
                    "or pandas.to_datetime."
                )
        columns.append([numbers for _, numbers in read.values()])
        if any(np.isinf(numbers).any() for numbers in columns[-1]):
            raise ValueError(
                f"Expected finite numbers. Received: infinite ones in column {name!r}. "
                "Replace them by NaN."
            )
    tables = [np.stack(table, 1) for table in zip(*columns, strict=True)]
    discrete = [
        kind == "words" or (kind == "numbers" and _are_few(values))
        for kind, values in zip(kinds, tables[0].T, strict=True)
    ]
    words = np.array([kind == "words" for kind in kinds])
    return tables, Columns(names, words, np.array(discrete))


def _read(column):
    """Returns what a column holds, and its floats, or `None` for words."""
    import pandas

    if column.isna().all():
        return "gaps", np.full(len(column), np.nan)
    held = pandas.api.types.infer_dtype(column, skipna=True)
    if held in ("datetime64", "datetime", "date"):
        times = pandas.to_datetime(column, utc=True).astype("datetime64[us, UTC]")
        since = times - pandas.Timestamp(0, tz="UTC").as_unit("us")
        return "dates", since.dt.total_seconds().to_numpy(np.float64)
    if held in ("timedelta64", "timedelta"):
        seconds = pandas.to_timedelta(column).dt.total_seconds()
        return "durations", seconds.to_numpy(np.float64)
    if held in ("integer", "floating", "mixed-integer-float", "decimal"):
        return "numbers", column.to_numpy(np.float64, na_value=np.nan)
    return "words", None


def _are_few(values):
    values = np.unique(values[~np.isnan(values)])
    return len(values) <= FEW_LEVELS and bool((values % 1.0 == 0.0).all())
