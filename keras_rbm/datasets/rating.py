"""Ratings of items by users, as rows for categorical units that may be absent."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from keras_rbm._checks import check_flags


class Ratings(NamedTuple):
    """A table of ratings: what `ratings` returns.

    Attributes:
        rows: float32 array (users, items), the number of the rating among `values`, NaN
            where a user has not rated an item; or a `scipy.sparse.csr_array` that holds
            only what has been rated.
        user_names: array (users,), the users' names, sorted.
        item_names: array (items,), the items' names, sorted.
        values: array (q,), the ratings that occur, sorted.
    """

    rows: Any
    user_names: np.ndarray
    item_names: np.ndarray
    values: np.ndarray

    def expected(self, probabilities: ArrayLike) -> np.ndarray:
        """Returns expected ratings (n, items), given those of n rows.

        Args:
            probabilities: array (n, items · q), as `RBM.marginals` returns.

        Raises:
            ValueError: if it has another width.
        """
        p, q = np.asarray(probabilities), len(self.values)
        count = len(self.item_names)
        if p.ndim != 2 or p.shape[1] != count * q:
            raise ValueError(
                f"Expected probabilities of {count} items with {q} ratings, shape "
                f"(n, {count * q}). Received: shape {p.shape}."
            )
        return p.reshape(len(p), -1, q) @ np.asarray(self.values, np.float64)

    def row_of(self, rated: dict[Any, Any]) -> np.ndarray:
        """Returns the row (1, items) of a user, a dict of item to rating.

        Raises:
            ValueError: if an item or a rating is not known.
        """
        row = np.full((1, len(self.item_names)), np.nan, np.float32)
        names, values = list(rated), list(rated.values())
        row[0, _places(names, self.item_names, "items")] = _places(
            values, self.values, "ratings"
        )
        return row

    def best(
        self, expected: ArrayLike, row: ArrayLike, count: int = 10
    ) -> list[tuple[Any, float]]:
        """Returns the items of highest expected rating among those not yet rated.

        Args:
            expected: array (items,), of one user.
            row: array (items,), NaN where not rated.
            count: int, how many at most.

        Returns:
            list of `(item, expected rating)`, the best first.
        """
        expected = np.where(np.isnan(row), expected, -np.inf)
        order = [i for i in np.argsort(-expected)[:count] if expected[i] > -np.inf]
        return [(self.item_names[i], float(expected[i])) for i in order]


def ratings(
    users: Sequence[Any] | np.ndarray,
    items: Sequence[Any] | np.ndarray,
    values: Sequence[float] | np.ndarray,
    *,
    sparse: bool = False,
) -> Ratings:
    """Makes a table of triples (user, item, rating).

    The table is for `RBM(H, visible=units.Categorical(q), missing="absent")` with q the
    number of different ratings. Of several ratings of an item by a user the last one
    counts.

    Args:
        users: sequence (n,) of names or numbers, such as a column of a frame.
        items: likewise.
        values: sequence (n,) of numbers.
        sparse: bool, whether `rows` is a sparse array, for large tables. The lowest
            rating is a stored 0; entries that are not stored are unknown to a model
            with `missing`. Do not call `eliminate_zeros` on it.

    Returns:
        `Ratings`.

    Raises:
        ValueError: if lengths differ, there is no triple or only one rating, or a value
            is missing.

    Example:

    >>> users, items = ["ann", "ann", "bob"], ["Alien", "Brazil", "Alien"]
    >>> table = keras_rbm.datasets.ratings(users, items, [5, 1, 4])
    >>> table.rows.tolist()
    [[2.0, 0.0], [1.0, nan]]
    >>> table.values.tolist()
    [1, 4, 5]
    """
    check_flags(sparse=sparse)
    columns = {"users": users, "items": items, "values": values}
    arrays = {name: np.asarray(column) for name, column in columns.items()}
    lengths = {name: array.shape for name, array in arrays.items()}
    if len(set(lengths.values())) > 1 or arrays["users"].ndim != 1:
        raise ValueError(
            f"Expected three sequences of one length. Received: shapes {lengths}."
        )
    numbers = arrays["values"]
    if numbers.dtype.kind not in "biuf" or not np.isfinite(numbers).all():
        raise ValueError(
            "Expected values, the ratings, as finite numbers. Received: dtype "
            f"{numbers.dtype}, or missing values. Leave such triples out."
        )
    made = {
        name: np.unique(array, return_inverse=True) for name, array in arrays.items()
    }
    if len(made["values"][0]) < 2:
        raise ValueError(
            "Expected at least two different ratings. Received: values "
            f"{made['values'][0].tolist()}."
        )
    names, places = zip(*made.values(), strict=True)
    shape = len(names[0]), len(names[1])
    if sparse:
        return Ratings(_sparse(places, shape), *names)
    rows = np.full(shape, np.nan, np.float32)
    rows[places[0], places[1]] = places[2]
    return Ratings(rows, *names)


def _sparse(places, shape):
    """Returns a sparse array of triples (row, column, number), the last of each two."""
    rows, columns, numbers = places
    order = np.lexsort((columns, rows))  # stable
    rows, columns, numbers = rows[order], columns[order], numbers[order]
    last = np.append((np.diff(rows) != 0) | (np.diff(columns) != 0), True)
    entries = np.float32(numbers[last]), (rows[last], columns[last])
    return scipy.sparse.csr_array(entries, shape)


def _places(wanted, known, what):
    """Returns the indices of names in a sorted array."""
    wanted = np.asarray(wanted)
    places = np.searchsorted(known, wanted)
    places = np.minimum(places, len(known) - 1)
    unknown = wanted[known[places] != wanted]
    if len(unknown):
        raise ValueError(
            f"Expected {what} that the table has. Received: {unknown.tolist()!r:.200}."
        )
    return places
