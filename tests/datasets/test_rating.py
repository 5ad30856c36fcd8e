"""Tables of ratings."""

import numpy as np
import pytest

import keras_rbm as kr

USERS, ITEMS = ["bob", "ann", "ann", "bob", "cleo"], ["b", "a", "b", "c", "c"]
VALUES = [1.0, 4.5, 3.0, 4.5, 1.0]


def test_names_are_kept():
    table = kr.datasets.ratings(USERS, ITEMS, VALUES)
    assert table.user_names.tolist() == ["ann", "bob", "cleo"]
    assert table.item_names.tolist() == ["a", "b", "c"]
    assert table.values.tolist() == [1.0, 3.0, 4.5]
    nan = np.nan
    rows = [[4.5, 3, nan], [nan, 1, 4.5], [nan, nan, 1]]
    np.testing.assert_array_equal(table.rows, rows)
    states = [[2, 1, nan], [nan, 0, 2], [nan, nan, 0]]
    np.testing.assert_array_equal(table.states, states)
    row = table.row_of({"c": 4.5, "a": 1.0})
    np.testing.assert_array_equal(row, [[1.0, nan, 4.5]])


def test_baseline_is_what_regularized_means_minimize():
    """Squared errors plus 5 times the squares of all deviations are least there."""
    rng = np.random.default_rng(0)
    users, items = np.nonzero(rng.random((30, 20)) < 0.4)
    stars = rng.integers(1, 6, len(users))
    table = kr.datasets.ratings(users, items, stars)
    mean = stars.mean()
    design = np.zeros((len(stars), 50))
    design[np.arange(len(stars)), users] = design[np.arange(len(stars)), 30 + items] = 1
    both = np.linalg.solve(
        design.T @ design + 5 * np.eye(50), design.T @ (stars - mean)
    )
    expected = mean + both[:30, np.newaxis] + both[30:]
    np.testing.assert_allclose(table.baseline(), expected, atol=1e-4)
    # A new user who rated nothing, and one who rated as the first did.
    new = np.stack([np.full(20, np.nan), table.rows[0]])
    np.testing.assert_allclose(table.baseline(new)[1], expected[0], atol=1e-4)
    np.testing.assert_allclose(table.baseline(new)[0], mean + both[30:], atol=1e-4)
    with pytest.raises(ValueError, match="20 items"):
        table.baseline(new[:, 1:])


def test_a_sparse_table_has_the_same_entries():
    """Of two ratings of an item the last one counts; state 0 is stored."""
    triples = USERS + ["bob"], ITEMS + ["b"], VALUES + [0.1]
    dense = kr.datasets.ratings(*triples)
    table = kr.datasets.ratings(*triples, sparse=True)
    for name in ("rows", "states"):
        rows, entries = getattr(dense, name), getattr(table, name).tocoo()
        assert entries.nnz == np.count_nonzero(~np.isnan(rows))
        found = np.full(rows.shape, np.nan)
        found[entries.row, entries.col] = entries.data
        np.testing.assert_array_equal(found, rows)
    assert np.nanmin(dense.states) == 0
    with pytest.raises(ValueError, match="not sparse"):
        table.baseline()
    with pytest.raises(TypeError, match="bool"):
        kr.datasets.ratings(*triples, sparse="yes")


def test_expected_ratings_and_the_best():
    table = kr.datasets.ratings(USERS, ITEMS, VALUES)
    p = np.float32([[1, 0, 0, 0, 0.5, 0.5, 0, 0, 1]])
    expected = table.expected(p)
    np.testing.assert_allclose(expected, [[1.0, 3.75, 4.5]])
    found = table.best(expected[0], np.float32([np.nan, np.nan, 4.5]), 5)
    assert found == [("b", 3.75), ("a", 1.0)]
    row = table.row_of({"c": 4.5})
    assert table.best(expected, row) == found
    with pytest.raises(ValueError, match="expected of one user and 3 items"):
        table.best(expected[0, :1], row)
    with pytest.raises(ValueError, match="count=-1"):
        table.best(expected, row, count=-1)


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["categorical", "gaussian"])
def test_an_rbm_of_ratings_learns_tastes(unit):
    """Two kinds of users like other halves of the items."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, 200)
    likes = (np.arange(12) < 6) == kind[:, np.newaxis]
    stars = np.where(
        likes, rng.integers(4, 6, likes.shape), rng.integers(1, 3, likes.shape)
    )
    users, items = np.nonzero(rng.random(likes.shape) < 0.5)
    table = kr.datasets.ratings(users, items, stars[users, items])
    visible, rows = kr.units.Gaussian(standardize=False), table.rows - table.baseline()
    if unit == "categorical":
        visible, rows = kr.units.Categorical(4), table.states
    rbm = kr.RBM(4, visible=visible, seed=0, missing="absent")
    rbm.compile()
    rbm.fit(rows, epochs=30, batch_size=100, verbose=0)
    found = rbm.marginals(rows)
    if unit == "categorical":
        expected = table.expected(found)
    else:
        expected = table.baseline() + found.numpy()
    away = np.isnan(table.rows)
    right = (expected > 3) == likes
    assert right[away].mean() > 0.95


@pytest.mark.parametrize(
    "arguments, words",
    [
        ((USERS, ITEMS[1:], VALUES), "one length"),
        ((USERS, ITEMS, [np.nan, *VALUES[1:]]), "finite"),
        ((USERS, ITEMS, [3.0] * 5), "two different"),
        ((USERS, ITEMS, ["good"] * 5), "finite numbers"),
        (([None, *USERS[1:]], ITEMS, VALUES), "users without missing"),
        ((USERS, [np.nan, 1, 2, 3, 4], VALUES), "items without missing"),
    ],
)
def test_bad_triples(arguments, words):
    with pytest.raises(ValueError, match=words):
        kr.datasets.ratings(*arguments)


def test_unknown_names():
    table = kr.datasets.ratings(USERS, ITEMS, VALUES)
    with pytest.raises(ValueError, match="'z'"):
        table.row_of({"z": 3.0})
    for rating in (2.0, None):
        with pytest.raises(ValueError, match="ratings that the table has"):
            table.row_of({"a": rating})
    table.rows[0, ~np.isnan(table.rows[0])] = 2.0
    with pytest.raises(ValueError, match="ratings that the table has"):
        table.states  # noqa: B018
    with pytest.raises(ValueError, match="shrinkage=-1"):
        table.baseline(shrinkage=-1)
    with pytest.raises(ValueError, match=r"\(n, 9\)"):
        table.expected(np.zeros((2, 4)))
