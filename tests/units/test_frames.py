"""Tables of several kinds of columns become rows of units, and again tables."""

import numpy as np
import pytest

from keras_rbm import RBM, units

pandas = pytest.importorskip("pandas")


def table():
    return pandas.DataFrame(
        {
            "alive": [True, False, True, True],
            "aboard": [0, 1, 1, 0],
            "class": pandas.Categorical(
                ["3rd", "1st", "3rd", "1st"], ["1st", "2nd", "3rd"]
            ),
            "port": ["S", "C", "S", "Q"],
            "siblings": [1, 0, 4, 0],
            "age": [22.0, 38.5, 26.0, 35.0],
        }
    )


def test_columns_become_units():
    rows, visible = units.from_dataframe(table(), counts=["siblings"])
    kinds = [visible.unit_of_column(column) for column in range(6)]
    names = "Bernoulli Bernoulli Categorical Categorical Binomial Gaussian"
    assert " ".join(type(kind).__name__ for kind in kinds) == names
    assert (kinds[2].num_states, kinds[3].num_states, kinds[4].num_trials) == (3, 3, 4)
    assert len(visible.parts) == 4  # equal neighbors are one part
    assert rows.dtype == np.float32 and visible.is_state(rows).all()
    np.testing.assert_array_equal(rows[:, 3], [2, 0, 2, 1])
    pandas.testing.assert_frame_equal(units.to_dataframe(rows, table()), table())


def table_with_gaps():
    """Returns columns of every type that has missing values, one unknown in each."""
    return pandas.DataFrame(
        {
            "alive": pandas.array([True, None, False, True], "boolean"),
            "married": np.array([True, False, np.nan, True], object),
            "aboard": [0.0, 1.0, np.nan, 0.0],
            "class": pandas.Categorical(
                ["3rd", None, "3rd", "1st"], ["1st", "2nd", "3rd"]
            ),
            "port": ["S", "C", "S", None],
            "deck": pandas.array([pandas.NA, "B", "A", "B"], "string"),
            "title": np.array(["Mr", np.nan, "Mrs", "Mr"], object),
            "siblings": pandas.array([1, 0, None, 4], "Int64"),
            "children": [1.0, 0.0, 2.0, np.nan],
            "fare": pandas.array([7.25, 71.5, None, 8.0], "Float64"),
            "age": [22.0, np.nan, 26.5, 35.0],
        },
        index=[7, 7, 3, 1],
    )


def test_what_is_missing_is_nan_and_comes_back():
    frame = table_with_gaps()
    rows, visible = units.from_dataframe(frame, counts=["siblings"])
    np.testing.assert_array_equal(np.isnan(rows), frame.isna())
    assert rows.dtype == np.float32
    kinds = [type(visible.unit_of_column(column)).__name__ for column in range(11)]
    assert kinds == 3 * ["Bernoulli"] + 4 * ["Categorical"] + ["Binomial"] + 3 * [
        "Gaussian"
    ]
    np.testing.assert_array_equal(rows[:, 3], [2, np.nan, 2, 0])
    back = units.to_dataframe(rows, frame)
    pandas.testing.assert_frame_equal(back, frame.reset_index(drop=True))


def test_imputed_rows_are_a_complete_table():
    frame = pandas.concat([table_with_gaps()] * 5, ignore_index=True)
    rows, visible = units.from_dataframe(frame)
    rbm = RBM(3, visible=visible, seed=0, missing="latent")
    rbm.compile()
    rbm.fit(rows, epochs=2, verbose=0)
    for method in ("mean", "sample"):
        full = units.to_dataframe(rbm.impute(rows, method, steps=5), frame)
        assert full.notna().all(axis=None) and full.dtypes.equals(frame.dtypes)
        known = frame.notna()
        pandas.testing.assert_frame_equal(full.where(known), frame.where(known))


#: Columns that are other ones, counts, what is said.
REFUSED = [
    ({"age": [np.nan] * 4}, "siblings", "known value.*column 'age'"),
    ({"port": [None] * 4}, "siblings", "known value.*column 'port'"),
    ({"port": ["S", None, None, "S"]}, "siblings", "two categories.*'port'"),
    ({"port": ["S"] * 4}, "siblings", "two categories.*'port'"),
    ({"age": [1.0, np.inf, np.nan, 3.0]}, "siblings", "finite.*'age'"),
    ({"age": [1.0, np.inf, 2.0, 3.0]}, "siblings", "finite.*'age'"),
    ({"port": ["S", None, 2.0, "Q"]}, "siblings", "'port' of dtype object"),
    ({"port": ["S", 1, 2.0, "Q"]}, "siblings", "'port' of dtype object"),
    ({"siblings": [1, -1, 0, 0]}, "siblings", "counts.*'siblings'.*from -1 to 1"),
    ({"age": pandas.Timestamp("2020-01-01")}, "siblings", "'age' of dtype datetime"),
    ({"day": [20240115, 20240117, 20230201, 20230202]}, None, "in column 'day'"),
    ({"day": [2**53 + 1, 0, 2**53 + 1, 0]}, None, "in column 'day'"),
    ({}, "wives", r"counts=\['wives'\]"),
    ({}, "port", "words in column 'port'"),
    ({}, 7, r"counts=\[7\]"),
]


@pytest.mark.parametrize(("columns", "counts", "word"), REFUSED)
def test_columns_that_are_no_units(columns, counts, word):
    with pytest.raises((TypeError, ValueError), match=word):
        units.from_dataframe(table().assign(**columns), counts=counts)


#: A table of four rows, rows that are none of it, what is said.
CATEGORIES = table()[["port", "age"]]
SMALL = pandas.DataFrame({"small": np.array([1, 5], "int8")})


@pytest.mark.parametrize(
    ("rows", "frame", "word"),
    [
        (np.zeros((2, 3)), table(), "zip"),
        *(([[x, 20.0]], CATEGORIES, "'port'") for x in (-1.0, 1.9, 5.0, np.inf)),
        ([[np.nan]], SMALL, "finite numbers.*int8 has no missing"),
        ([[np.inf]], SMALL, "finite numbers.*others in"),
    ],
)
def test_rows_that_are_none_of_the_table(rows, frame, word):
    """Means were cut to the category below, negative ones counted from the end."""
    with pytest.raises(ValueError, match=word):
        units.to_dataframe(np.array(rows), frame)


def test_a_table_without_rows_is_refused():
    with pytest.raises(ValueError, match="known value in each column"):
        units.from_dataframe(table().iloc[:0])


def test_other_data_give_no_warning():
    assert units.Categorical(3).data_warning(np.array([[0, 1, 0], [1, 1, 0]])) is None


def test_numbers_beyond_a_column_s_range_are_cut_off():
    back = units.to_dataframe(np.array([[300.0], [-1e30], [2.6]]), SMALL)
    assert back["small"].tolist() == [127, -128, 3]


@pytest.mark.parametrize("names", [pandas.Index, set, np.array])
def test_names_of_counts_in_any_collection(names):
    frame = pandas.DataFrame({"count": [0, 3, 1], "price": [1.5, 2.0, 3.0]})
    _, visible = units.from_dataframe(frame, counts=names(["count"]))
    assert repr(visible.parts[0][0]) == "Binomial(num_trials=3)"


def test_a_frame_with_words_is_told_where_to_go():
    rbm = RBM(2, seed=0)
    rbm.compile()
    with pytest.raises(ValueError, match="units.from_dataframe"):
        rbm.fit(table(), verbose=0)


def test_whole_numbers_from_their_least_on():
    days = pandas.DataFrame({"day": [20240115, 20240117, 20230201]})
    rows, _ = units.from_dataframe(days - days.min())
    assert units.to_dataframe(rows, days).equals(days - days.min())
