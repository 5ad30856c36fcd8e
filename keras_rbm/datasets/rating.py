"""Ratings of items by users, as rows of which most entries are absent."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from keras_rbm._checks import check_counts, check_flags, check_numbers

_ROUNDS = 20  # of means of users and items, each given the other


class Ratings(NamedTuple):
    """A table of ratings: what `ratings` returns.

    Attributes:
        rows: float32 array (users, items), the ratings, NaN where a user has not rated
            an item; or a `scipy.sparse.csr_array` that stores only the ratings.
        user_names: array (users,), the users' names, sorted.
        item_names: array (items,), the items' names, sorted.
        values: array (q,), the ratings that occur, sorted.
    """

    rows: Any
    user_names: np.ndarray
    item_names: np.ndarray
    values: np.ndarray

    def baseline(
        self, rows: ArrayLike | None = None, shrinkage: float = 5.0
    ) -> np.ndarray:
        """Returns what means alone expect, `mean + of_user + of_item` [1].

        The deviations of users and items are sums of what the others leave, divided by
        their number plus `shrinkage`. An RBM with Gaussian units of what ratings differ
        from it by predicts better than one of the ratings themselves.

        Args:
            rows: array (n, items), ratings by users, also new ones; by default the
                table's. Items' deviations are always those of the table.
            shrinkage: float ≥ 0, how many ratings without a deviation are added.

        Returns:
            float32 array (n, items).

        Raises:
            ValueError: if `rows` has another width, `shrinkage` is negative, or the
                table is sparse.

        Example:

        >>> table = keras_rbm.datasets.ratings([0, 0, 1, 1], [0, 1, 0, 2], [5, 3, 4, 1])
        >>> print(table.baseline().round(1))
        [[3.8 3.4 3.1]
         [3.4 3.  2.7]]

        References:
            1. Koren, Bell, Volinsky. Matrix factorization techniques for recommender
               systems. Computer 2009.
        """
        check_numbers(shrinkage=shrinkage)
        if shrinkage < 0.0:
            raise ValueError(
                f"Expected shrinkage ≥ 0. Received: shrinkage={shrinkage}."
            )
        if scipy.sparse.issparse(self.rows):
            raise ValueError(
                "Expected a table that is not sparse: a baseline has a number for each "
                "user and item. Received: a sparse table. Learn from states instead."
            )
        mean = np.nanmean(self.rows)
        rest = self.rows - mean
        of_item = np.zeros(rest.shape[1])
        for _ in range(_ROUNDS):
            of_user = _shrunk(rest - of_item, 1, shrinkage)
            of_item = _shrunk(rest - of_user[:, np.newaxis], 0, shrinkage)
        rows = self._checked(self.rows if rows is None else rows)
        of_user = _shrunk(rows - mean - of_item, 1, shrinkage)
        return (mean + of_user[:, np.newaxis] + of_item).astype(np.float32)

    @property
    def states(self) -> Any:
        """float32 array (users, items), each rating's number among `values`, or NaN.

        It is for `RBM(H, visible=units.Categorical(q), missing="absent")`. Of a sparse
        table it is sparse, and number 0 is stored: do not call `eliminate_zeros`.

        Raises:
            ValueError: if `rows` were changed to ratings that are not among `values`.
        """
        values = self.values.astype(np.float32)  # as rows are
        if scipy.sparse.issparse(self.rows):
            states = self.rows.copy()
            states.data = np.float32(_places(states.data, values, "ratings"))
            return states
        states, known = self.rows.copy(), ~np.isnan(self.rows)
        states[known] = _places(self.rows[known], values, "ratings")
        return states

    def expected(self, probabilities: ArrayLike) -> np.ndarray:
        """Returns expected ratings (n, items), given those of n rows of `states`.

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
        places = _places(list(rated), self.item_names, "items")
        values = list(rated.values())
        row[0, places] = self.values[_places(values, self.values, "ratings")]
        return row

    def best(
        self, expected: ArrayLike, row: ArrayLike, count: int = 10
    ) -> list[tuple[Any, float]]:
        """Returns the items of highest expected rating among those not yet rated.

        Args:
            expected: array (items,) or (1, items), of one user.
            row: array of as many, NaN where not rated.
            count: int ≥ 1, how many at most.

        Returns:
            list of `(item, expected rating)`, the best first.

        Raises:
            ValueError: if an array is not of one user and all items.
        """
        check_counts(count=count)
        given = {"expected": np.asarray(expected), "row": np.asarray(row)}
        items = len(self.item_names)
        for name, array in given.items():
            if array.shape not in ((items,), (1, items)):
                raise ValueError(
                    f"Expected {name} of one user and {items} items. Received: shape "
                    f"{array.shape}."
                )
        expected, row = (array.ravel() for array in given.values())
        expected = np.where(np.isnan(row), expected, -np.inf)
        order = [i for i in np.argsort(-expected)[:count] if expected[i] > -np.inf]
        names = np.asarray(self.item_names)[order].tolist()
        return list(zip(names, expected[order].tolist(), strict=True))

    def _checked(self, rows):
        rows, count = np.asarray(rows, np.float32), len(self.item_names)
        if rows.ndim != 2 or rows.shape[1] != count:
            raise ValueError(
                f"Expected ratings of {count} items, shape (n, {count}). Received: "
                f"shape {rows.shape}."
            )
        return rows


def ratings(
    users: Sequence[Any] | np.ndarray,
    items: Sequence[Any] | np.ndarray,
    values: Sequence[float] | np.ndarray,
    *,
    sparse: bool = False,
) -> Ratings:
    """Makes a table of triples (user, item, rating).

    `rows - baseline()` is for `RBM(H, visible=units.Gaussian(standardize=False),
    missing="absent")`. Of several ratings of an item by a user the last one counts.

    Args:
        users: sequence (n,) of names or numbers, such as a column of a frame.
        items: likewise.
        values: sequence (n,) of numbers.
        sparse: bool, whether `rows` and `states` are sparse arrays, for large tables.
            What they do not store is unknown to a model with `missing`.

    Returns:
        `Ratings`.

    Raises:
        ValueError: if lengths differ, there is no triple or only one rating, or a value
            is missing.

    Example:

    >>> users, items = ["ann", "ann", "bob"], ["Alien", "Brazil", "Alien"]
    >>> table = keras_rbm.datasets.ratings(users, items, [5, 1, 4])
    >>> table.rows.tolist()
    [[5.0, 1.0], [4.0, nan]]
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
    for name in ("users", "items"):
        if any(each is None or each != each for each in arrays[name].tolist()):
            raise ValueError(
                f"Expected {name} without missing names. Received: None or NaN among "
                "them. Leave such triples out."
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
        return Ratings(_sparse(places[0], places[1], numbers, shape), *names)
    rows = np.full(shape, np.nan, np.float32)
    rows[places[0], places[1]] = numbers
    return Ratings(rows, *names)


def _sparse(rows, columns, numbers, shape):
    """Returns a sparse array of triples, the last of those for one entry."""
    order = np.lexsort((columns, rows))  # stable
    rows, columns, numbers = rows[order], columns[order], numbers[order]
    last = np.append((np.diff(rows) != 0) | (np.diff(columns) != 0), True)
    entries = np.float32(numbers[last]), (rows[last], columns[last])
    return scipy.sparse.csr_array(entries, shape)


def _places(wanted, known, what):
    """Returns the indices of names in a sorted array."""
    wanted = np.asarray(wanted)
    unknown = wanted[~np.isin(wanted, known)]
    if len(unknown):
        raise ValueError(
            f"Expected {what} that the table has. Received: {unknown.tolist()!r:.200}."
        )
    return np.searchsorted(known, wanted)


def _shrunk(rest, axis, shrinkage):
    """Returns sums along an axis divided by their count plus `shrinkage`."""
    known = (~np.isnan(rest)).sum(axis)
    return np.nansum(rest, axis) / np.maximum(known + shrinkage, 1e-9)
