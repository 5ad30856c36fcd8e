"""Tables with columns of several kinds, as rows of numbers and back."""

import numpy as np

from keras_rbm.units.bernoulli import Bernoulli
from keras_rbm.units.binomial import Binomial
from keras_rbm.units.categorical import Categorical
from keras_rbm.units.gaussian import Gaussian
from keras_rbm.units.joined import Joined


def from_dataframe(frame, counts=()):
    """Returns a table as numbers, and the units that its columns are.

    | column | unit | numbers |
    | --- | --- | --- |
    | bools, or only 0 and 1 | `"bernoulli"` | 0 and 1 |
    | categories | `Categorical` | `column.cat.codes`, also of categories not seen |
    | words | `Categorical` | numbers of the words, sorted |
    | named in `counts` | `Binomial` up to the largest | as they are |
    | other numbers | `"gaussian"` | as they are |

    For tables that are numbered alike, such as parts of one, give columns of words the
    same categories first: `column.astype(pandas.CategoricalDtype(words))`.

    Args:
        frame: `pandas.DataFrame` without missing values.
        counts: list of names, of columns of counts.

    Returns:
        `(rows, visible)`: float32 array (N, columns); `keras_rbm.units.Joined`, whose
        states all rows are.

    Raises:
        TypeError: if it is no frame, or a column holds neither words nor numbers.
        ValueError: if the frame is empty, has missing or infinite values, or counts
            that are none: the error names the column.

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
    if not hasattr(frame, "columns") or not hasattr(frame, "iloc"):
        raise TypeError(
            f"Expected a pandas.DataFrame. Received: {type(frame).__name__}."
        )
    if 0 in frame.shape:
        raise ValueError(f"Expected rows and columns. Received: shape {frame.shape}.")
    counts = [counts] if isinstance(counts, str) else list(counts)
    unknown = [name for name in counts if name not in frame.columns]
    if unknown or not frame.columns.is_unique:
        raise ValueError(
            "Expected columns of different names, and counts that are some of them. "
            f"Received: columns {list(frame.columns)!r:.200}, counts={counts!r:.200}."
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


def to_dataframe(rows, frame):
    """Returns rows of numbers as a table like another one: the way back.

    Args:
        rows: array (n, columns), such as `rbm.sample` returns.
        frame: the `pandas.DataFrame` that `from_dataframe` was given.

    Returns:
        `pandas.DataFrame`, with words and categories in the place of their numbers.

    Raises:
        ValueError: if the rows do not have the frame's columns.

    Example:

    >>> import pandas
    >>> frame = pandas.DataFrame({"class": ["3rd", "1st"], "age": [22.0, 38.0]})
    >>> rows, _ = keras_rbm.units.from_dataframe(frame)
    >>> keras_rbm.units.to_dataframe(rows, frame).equals(frame)
    True
    """
    rows = np.asarray(rows)
    if rows.ndim != 2 or rows.shape[1] != frame.shape[1]:
        raise ValueError(
            f"Expected rows of {frame.shape[1]} columns, as the frame has. Received: "
            f"shape {rows.shape}."
        )
    made = {}
    for name, numbers in zip(frame.columns, rows.T, strict=True):
        column = frame[name]
        words = _words(column)
        if words is not None:
            own = np.asarray(words, object)[numbers.astype(int)]
        else:
            own = numbers.round() if column.dtype.kind in "biu" else numbers
        made[name] = type(column)(own).astype(column.dtype)
    return type(frame)(made)


def _column(column, name, is_count):
    """Returns a column's numbers and its unit."""
    if column.isna().any():
        row = int(np.argmax(column.isna().to_numpy()))
        raise ValueError(
            f"Expected no missing values. Received: one in row {row} of column "
            f"{name!r}. Fill them or drop the rows: frame.dropna()."
        )
    words = _words(column)
    if words is not None and not is_count:
        if len(words) < 2:
            raise ValueError(
                f"Expected at least two categories. Received: column {name!r} with "
                f"{words!r} only. Drop the column."
            )
        number = {word: index for index, word in enumerate(words)}
        return np.array([number[word] for word in column]), Categorical(len(words))
    if column.dtype.kind not in "biuf":
        raise TypeError(
            "Expected columns of bools, numbers, words or categories. Received: "
            f"column {name!r} of dtype {column.dtype}."
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
        return numbers, Binomial(int(numbers.max()))
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
