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
    np.testing.assert_array_equal(table.rows, [[2, 1, nan], [nan, 0, 2], [nan, nan, 0]])
    np.testing.assert_array_equal(table.row_of({"c": 4.5, "a": 1.0}), [[0, nan, 2]])


def test_a_sparse_table_has_the_same_entries():
    """Of two ratings of an item the last one counts; the lowest one is a stored 0."""
    triples = USERS + ["bob"], ITEMS + ["b"], VALUES + [4.5]
    dense = kr.datasets.ratings(*triples).rows
    rows = kr.datasets.ratings(*triples, sparse=True).rows
    assert rows.nnz == np.count_nonzero(~np.isnan(dense))
    found = np.full(dense.shape, np.nan)
    entries = rows.tocoo()
    found[entries.row, entries.col] = entries.data
    np.testing.assert_array_equal(found, dense)
    with pytest.raises(TypeError, match="bool"):
        kr.datasets.ratings(*triples, sparse="yes")


def test_expected_ratings_and_the_best():
    table = kr.datasets.ratings(USERS, ITEMS, VALUES)
    p = np.float32([[1, 0, 0, 0, 0.5, 0.5, 0, 0, 1]])
    expected = table.expected(p)
    np.testing.assert_allclose(expected, [[1.0, 3.75, 4.5]])
    found = table.best(expected[0], np.float32([np.nan, np.nan, 2]), 5)
    assert found == [("b", 3.75), ("a", 1.0)]


def test_an_rbm_of_ratings_learns_tastes():
    """Two kinds of users like other halves of the items."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, 200)
    likes = (np.arange(12) < 6) == kind[:, np.newaxis]
    stars = np.where(
        likes, rng.integers(4, 6, likes.shape), rng.integers(1, 3, likes.shape)
    )
    users, items = np.nonzero(rng.random(likes.shape) < 0.5)
    table = kr.datasets.ratings(users, items, stars[users, items])
    rbm = kr.RBM(4, visible=kr.units.Categorical(4), seed=0, missing="absent")
    rbm.compile()
    rbm.fit(table.rows, epochs=30, batch_size=100, verbose=0)
    expected = table.expected(rbm.marginals(table.rows))
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
    ],
)
def test_bad_triples(arguments, words):
    with pytest.raises(ValueError, match=words):
        kr.datasets.ratings(*arguments)


def test_unknown_names():
    table = kr.datasets.ratings(USERS, ITEMS, VALUES)
    with pytest.raises(ValueError, match="'z'"):
        table.row_of({"z": 3.0})
    with pytest.raises(ValueError, match="ratings that the table has"):
        table.row_of({"a": 2.0})
    with pytest.raises(ValueError, match=r"\(n, 9\)"):
        table.expected(np.zeros((2, 4)))
