"""Windows of a series."""

import numpy as np
import pandas as pd
import pytest

from keras_rbm.datasets import windows

SERIES = np.arange(12.0).reshape(6, 2)


def test_pairs_of_the_last_values_and_the_next():
    x, y = windows(SERIES, past=3, future=2)
    np.testing.assert_array_equal(x, [range(6), range(2, 8)])
    np.testing.assert_array_equal(y, [range(6, 10), range(8, 12)])


def test_one_column_and_the_shortest_series():
    x, y = windows(SERIES[:, 0], past=5)
    assert x.shape == (1, 5) and y.tolist() == [[10.0]]


def test_gaps_stay():
    series = np.array([0.0, np.nan, 2.0, 3.0])
    x, y = windows(series, past=2)
    np.testing.assert_array_equal(x, [[0.0, np.nan], [np.nan, 2.0]])
    assert not np.isnan(y).any()


def test_a_frame_says_what_is_where_and_when():
    days = pd.date_range("2026-01-01", periods=6)
    frame = pd.DataFrame(SERIES, index=days, columns=["rain", "wind"])
    x, y = windows(frame, past=2)
    assert list(x) == ["rain -2", "wind -2", "rain -1", "wind -1"]
    assert list(y) == ["rain +0", "wind +0"]
    assert (y.index == x.index).all() and x.index[0] == days[1]
    last = frame.loc[x.index]
    np.testing.assert_array_equal(x[["rain -1", "wind -1"]], last)


def test_a_series_with_a_name_and_columns_of_several_types():
    x, y = windows(pd.Series([0, 1, 2], name="rain"), past=1)
    assert list(x) == ["rain -1"] and list(y) == ["rain +0"]
    x, _ = windows(pd.DataFrame({"rain": [0.5, 1.5], "sun": [True, False]}), past=1)
    assert x.to_numpy().dtype == float


def test_pairs_are_copies_and_masks_are_gaps():
    series = np.ma.masked_array([0, 1, 2, 3], [False, True, False, False])
    x, y = windows(series, past=1)
    assert np.isnan(x[1, 0]) and np.isnan(y[0, 0])
    x, _ = windows(SERIES[:, 0], past=2)
    x -= 1.0
    assert SERIES[0, 0] == 0.0


def test_words_are_refused():
    with pytest.raises(TypeError, match="series of numbers"):
        windows(["dry", "wet", "dry"], past=1)


@pytest.mark.parametrize(
    ("values", "sizes", "expected"),
    [
        (SERIES, (0, 1), "past=0"),
        (SERIES, (1, 1.5), "future=1.5"),
        (SERIES, (4, 3), "at least 7 times"),
        (np.zeros((4, 2, 2)), (1, 1), r"shape \(4, 2, 2\)"),
        (3.0, (1, 1), r"shape \(\)"),
    ],
)
def test_refusals(values, sizes, expected):
    with pytest.raises(ValueError, match=expected):
        windows(values, *sizes)
