"""A table of columns of several kinds as states of categories, and back."""

import itertools
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_rbm._checks import is_int
from keras_rbm.tables.columns import column_of
from keras_rbm.tables.frames import check_frame
from keras_rbm.units.categorical import Categorical
from keras_rbm.units.joined_units import Joined

if TYPE_CHECKING:
    import pandas


class Table:
    """What a data frame's columns are: turns rows into states of units, and back.

    | column | states |
    | --- | --- |
    | words, categories, bools | each level |
    | up to 20 different numbers | each number |
    | other numbers, dates, durations | bins of about as many rows |
    | gaps, where `fit` has seen any | one more |

    Numbers of any scale and skew are put into √(N / 5) bins of N rows (4 to 150), and
    into up to three times as many where that gives other rows clearly higher
    likelihoods, as round amounts do. A number that is frequent, as zero often is, has a
    bin of its own. A state becomes a number of the rows of its bin, drawn at random:
    whole numbers stay whole, money keeps its cents, and dates are days that occurred.
    So every cell of a sampled row is that of some row of `fit`.

    A gap is a state: whether a cell is empty may go with all others. Columns with one
    state only have no unit.

    Args:
        kinds: dict from column names to `"category"` (numbers that are codes, such as
            those of regions) or an int ≥ 2, the number of bins.

    Attributes:
        columns_: dict from names to columns, in their order.
        visible: `keras_rbm.units.Joined`, the units whose states rows are.

    Raises:
        TypeError: from `fit`, if it is not given a `pandas.DataFrame`, or a column has
            values of several types.
        ValueError: from `fit`, if the frame has no rows, a column has infinite numbers
            or looks like names, or no column varies.

    Example:

    >>> import pandas
    >>> frame = pandas.DataFrame({"class": ["3rd", "1st"] * 30, "age": range(60)})
    >>> table = keras_rbm.tables.Table().fit(frame)
    >>> print(table)
      column     kind  states  gaps
    0  class category       2   0.0
    1    age     bins       4   0.0
    >>> rows = table.transform(frame)
    >>> rows[:2].tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    >>> table.visible
    Joined([(Categorical(num_states=2), 1), (Categorical(num_states=4), 1)])
    >>> table.inverse_transform(rows, seed=0)["class"].equals(frame["class"])
    True
    """

    def __init__(self, kinds: Mapping[Hashable, str | int] | None = None) -> None:
        if not isinstance(kinds, Mapping | None):
            raise TypeError(f"Expected kinds as a dict. Received: {kinds!r:.200}.")
        kinds = dict(kinds or {})
        for name, kind in kinds.items():
            if kind != "category" and not (is_int(kind) and kind >= 2):
                raise ValueError(
                    "Expected kinds of columns as 'category' or an int ≥ 2, a number "
                    f"of bins. Received: {name!r}: {kind!r}."
                )
        self.kinds = kinds

    def fit(self, frame: "pandas.DataFrame") -> "Table":
        """Looks at the columns of a `pandas.DataFrame`."""
        check_frame(frame)
        unknown = [name for name in self.kinds if name not in frame.columns]
        if unknown:
            raise ValueError(
                "Expected kinds of columns of the frame, "
                f"{list(frame.columns)!r:.200}. Received: {unknown!r:.200}."
            )
        if len(frame) == 0:
            raise ValueError("Expected a frame with rows. Received: none.")
        columns = {name: column_of(frame[name], self.kinds.get(name)) for name in frame}
        # Units of the same number of states are one part, and fewer parts are faster.
        widths = sorted(column.width for column in columns.values() if column.width > 1)
        parts = [(Categorical(w), len([*own])) for w, own in itertools.groupby(widths)]
        if not parts:
            raise ValueError(
                "Expected a column that varies. Received: only constant ones, in "
                f"{len(frame)} rows."
            )
        self.columns_, self._names = columns, frame.columns
        self._gaps = {name: float(frame[name].isna().mean()) for name in frame}
        self.visible = Joined(parts)
        return self

    @property
    def varying(self):
        """List of the columns that have units, by the number of their states."""
        columns = [column for column in self.columns_.values() if column.width > 1]
        return sorted(columns, key=lambda column: column.width)

    def transform(self, frame: "pandas.DataFrame", gaps: bool = True) -> np.ndarray:
        """Returns rows as states.

        Args:
            frame: `pandas.DataFrame` with the columns of `fit`, in any order.
            gaps: bool. If `False`, missing values are not known (NaN) also in columns
                that had gaps in `fit`. In others they always are.

        Returns:
            float32 array (N, V), V columns that vary.

        Raises:
            ValueError: if the columns are others, or a level is new.
        """
        self._check(frame)
        states = {  # those of constant columns are checked, too
            name: column.states(frame[name], gaps)
            for name, column in self.columns_.items()
        }
        varying = [states[column.name] for column in self.varying]
        return np.stack(varying, 1).astype(np.float32)

    def inverse_transform(
        self,
        rows: np.ndarray,
        *,
        seed: int | np.random.Generator = 0,
        given: Mapping[Hashable, Any] | None = None,
    ) -> "pandas.DataFrame":
        """Returns states as a frame with the columns and types of `fit`.

        Args:
            rows: array (N, V), states; NaN is missing.
            seed: int or `numpy.random.Generator`, draws numbers within bins.
            given: dict, conditions that they keep, see `log_weights`.
        """
        given, rows = given or {}, np.asarray(rows)
        states = dict(zip((c.name for c in self.varying), rows.T, strict=True))
        generator = np.random.default_rng(seed)
        constant = np.zeros(len(rows))
        return self._frame(
            lambda name, column: column.draw(
                states.get(name, constant), generator, given.get(name)
            )
        )

    def expected(
        self, probabilities: np.ndarray, method: str = "mean"
    ) -> "pandas.DataFrame":
        """Returns the values that are expected, given probabilities of states.

        Args:
            probabilities: array (N, rows of the kernel), of each unit's states.
            method: `"mean"`, of words the likeliest level; or `"mode"`, of numbers that
                of the middle row of the likeliest bin.
        """
        ends = np.cumsum([column.width for column in self.varying])
        parts = np.split(probabilities, ends[:-1], 1)
        own = dict(zip((column.name for column in self.varying), parts, strict=True))
        constant = np.ones((len(probabilities), 1))

        def value(name, column):
            shares = own.get(name, constant)[:, : column.num_states]
            if not column.num_states:  # only gaps
                return column.draw(constant[:, 0], None)
            return column.mean(shares) if method == "mean" else column.mode(shares)

        return self._frame(value)

    def log_density(self, frame: "pandas.DataFrame") -> np.ndarray:
        """Returns log p(value | state) of each cell, (N, columns), nats.

        Its sum, added to log p of the states, is log p of a row in its own units:
        densities of numbers and dates (per day), probabilities of all else.
        """
        self._check(frame)
        columns = self.columns_.values()
        return np.stack([c.log_density(frame[c.name]) for c in columns], 1)

    def log_weights(self, given: Mapping[Hashable, Any] | None = None) -> np.ndarray:
        """Returns what conditions add to the visible bias, (rows of the kernel,).

        Args:
            given: dict from column names to what their values must be. Of words and of
                few numbers: a level, or a list of them. Of numbers and dates: one that
                is in the range of `fit`, or (low, high), where `None` is no end.
                `None`: missing. Or no dict but `None`: no value is missing.

        Raises:
            TypeError, ValueError: if a column is unknown, a condition is none of these,
                or no row of `fit` meets it.
        """
        if given is None:
            return np.concatenate([c.log_weights_known for c in self.varying])
        if not isinstance(given, Mapping):
            raise TypeError(f"Expected given as a dict. Received: {given!r:.200}.")
        unknown = [name for name in given if name not in self.columns_]
        if unknown:
            raise ValueError(
                f"Expected conditions on columns {list(self.columns_)!r:.200}. "
                f"Received: {unknown!r:.200}."
            )
        weights = {name: self.columns_[name].log_weights(given[name]) for name in given}
        return np.concatenate(
            [weights.get(c.name, np.zeros(c.width)) for c in self.varying]
        )

    def describe(self) -> "pandas.DataFrame":
        """Returns what was found: a row for each column, with its share of gaps."""
        import pandas

        return pandas.DataFrame(
            {
                "column": list(self.columns_),
                "kind": [column.kind for column in self.columns_.values()],
                "states": [column.num_states for column in self.columns_.values()],
                "gaps": np.round([*self._gaps.values()], 3),
            }
        )

    def __repr__(self):
        kinds = f"kinds={self.kinds!r}" if self.kinds else ""
        return str(self.describe()) if hasattr(self, "columns_") else f"Table({kinds})"

    def _frame(self, values):
        """Returns a frame of `values(name, column)` for each column."""
        import pandas

        found = {n: values(n, column) for n, column in self.columns_.items()}
        return pandas.DataFrame(found).set_axis(self._names, axis=1)

    def _check(self, frame):
        check_frame(frame)
        if not hasattr(self, "columns_"):
            raise ValueError("Expected a table that is fitted. Call fit(frame) first.")
        if set(frame.columns) != set(self.columns_):
            missing = [name for name in self.columns_ if name not in frame.columns]
            others = [name for name in frame.columns if name not in self.columns_]
            said = [f"without {missing!r:.200}"] * bool(missing)
            said += [f"with {others!r:.200}"] * bool(others)
            raise ValueError(
                f"Expected the columns of fit. Received: a frame {' and '.join(said)}."
            )


def filled(frame, found):
    """Returns a frame whose missing values are those of another.

    A column keeps its type if that holds them, and has that of the other if not.
    """
    result = frame.copy()
    for name in frame:
        own, other = frame[name], found[name].set_axis(frame.index)
        known = own.notna()
        if known.all():
            continue
        if getattr(own.dtype, "kind", "O") in "iu":
            other = other.round()
        levels = getattr(own.dtype, "categories", None)
        try:
            if levels is not None and not other.dropna().isin(levels).all():
                raise TypeError("levels that the column does not declare")
            result[name] = own.where(known, other.astype(own.dtype))
            is_held = (result[name].isna() == (~known & other.isna())).all()
        except (TypeError, ValueError):
            is_held = False
        if not is_held:
            both = own.astype(object).where(known, other.astype(object))
            result[name] = both.astype(other.dtype)
    return result
