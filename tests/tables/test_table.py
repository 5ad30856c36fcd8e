"""Columns of every type become states, and states become columns of that type."""

import numpy as np
import pytest

from keras_rbm.tables import Table
from keras_rbm.tables.histogram import Histogram, chosen_bins

pandas = pytest.importorskip("pandas")
RNG = np.random.default_rng(0)
ROWS = 40

#: Columns of every type of pandas, without gaps.
COLUMNS = {
    "int8": RNG.integers(-5, 100, ROWS).astype("int8"),
    "uint64": RNG.integers(0, 10**6, ROWS).astype("uint64"),
    "float32": RNG.normal(size=ROWS).astype("float32"),
    "cents": RNG.lognormal(3.0, 1.0, ROWS).round(2),
    "few": RNG.integers(0, 4, ROWS),
    "bool": RNG.random(ROWS) < 0.3,
    "boolean": pandas.array(RNG.random(ROWS) < 0.3, "boolean"),
    "Int32": pandas.array(RNG.integers(0, 90, ROWS), "Int32"),
    "Float64": pandas.array(RNG.normal(size=ROWS), "Float64"),
    "str": pandas.array(RNG.choice(["a", "b", "c"], ROWS), "string"),
    "object": np.array(RNG.choice(["x", "y"], ROWS), object),
    "category": pandas.Categorical(RNG.choice(["low", "high"], ROWS), ["low", "high"]),
    "ordered": pandas.Categorical(RNG.integers(1, 4, ROWS), [1, 2, 3, 4], ordered=True),
    "date": pandas.Timestamp("2020-01-01")
    + pandas.to_timedelta(RNG.integers(0, 900, ROWS), unit="D"),
    "zoned": pandas.date_range("2020-01-01", periods=ROWS, freq="h", tz="UTC"),
    "duration": pandas.to_timedelta(RNG.integers(0, 10**6, ROWS), unit="s"),
    "constant": ["same"] * ROWS,
}
#: Types of NumPy that have no missing values.
WITHOUT_GAPS = ("int8", "uint64", "few", "bool")


def frame():
    return pandas.DataFrame(COLUMNS, index=RNG.permutation(ROWS))


def with_gaps():
    table = frame().drop(columns=[*WITHOUT_GAPS])
    for number in range(len(table.columns)):
        table.iloc[number :: len(table.columns), number] = None
    return table.assign(none=np.nan)


@pytest.mark.parametrize("make", [frame, with_gaps])
def test_every_type_comes_back(make):
    """Levels exactly; numbers as some row's number of their bin."""
    real = make()
    table = Table().fit(real)
    rows = table.transform(real)
    assert rows.dtype == np.float32 and table.visible.is_state(rows).all()
    back = table.inverse_transform(rows)
    assert back.dtypes.equals(real.dtypes)
    np.testing.assert_array_equal(back.isna(), real.isna())
    np.testing.assert_array_equal(table.transform(back), rows)
    for name in real:
        assert set(back[name].dropna()) <= set(real[name].dropna())
        if table.columns_[name].kind != "bins":
            assert back[name].equals(real[name].reset_index(drop=True))


def test_what_was_chosen_is_told():
    table = Table({"few": "category", "float32": 5}).fit(frame())
    told = table.describe().set_index("column")
    assert told.loc["few", "kind"] == "category"
    assert tuple(told.loc["float32", ["kind", "states"]]) == ("bins", 5)
    assert tuple(told.loc["ordered", ["kind", "states"]]) == ("category", 4)
    assert str(told.loc["constant", "states"]) == "1"
    assert "constant" not in [column.name for column in table.varying]


def test_columns_may_have_another_order_but_no_others():
    table = Table().fit(frame())
    rows = table.transform(frame())
    np.testing.assert_array_equal(table.transform(frame().iloc[:, ::-1]), rows)
    with pytest.raises(ValueError, match=r"columns of fit.*without \['few'\]"):
        table.transform(frame().drop(columns="few"))


@pytest.mark.parametrize(
    ("columns", "word"),
    [
        ({"x": [1.0, np.inf] * 20}, "finite numbers.*'x'"),
        ({"x": ["a", 1] * 20}, "column 'x' of dtype object.*int.*str"),
        ({"x": [[1], [2]] * 20}, "column 'x'.*list"),
        ({"x": [f"name {i}" for i in range(300)]}, "300 in column 'x'.*names"),
        ({"x": ["same"] * 9}, "a column that varies"),
        ({"x": [None] * 9}, "a column that varies"),
        ({"x": []}, "frame with rows"),
        ({"x": [1.0]}, "a column that varies.* 1 rows"),
    ],
)
def test_frames_that_are_refused(columns, word):
    with pytest.raises((TypeError, ValueError), match=word):
        Table().fit(pandas.DataFrame(columns))


@pytest.mark.parametrize(
    ("kinds", "word"),
    [
        ({"few": "gaussian"}, "'category' or an int"),
        ({"few": 1}, "'category' or an int"),
        (["few"], "kinds as a dict"),
        ({"fewer": 5}, r"kinds of columns.*\['fewer'\]"),
        ({"str": 5}, "numbers or dates.*'str'"),
    ],
)
def test_kinds_that_are_refused(kinds, word):
    with pytest.raises((TypeError, ValueError), match=word):
        Table(kinds).fit(frame())


def test_new_values():
    """Numbers go to the outer bins, and are less likely; words are refused."""
    real = pandas.DataFrame({"x": np.arange(100.0), "word": ["a", "b"] * 50})
    table = Table().fit(real)
    far = pandas.DataFrame({"x": [99.0, 120.0, 1e6, -50.0], "word": ["a"] * 4})
    states = table.transform(far)[:, 1]
    last = table.columns_["x"].num_states - 1
    assert states.tolist() == [last, last, last, 0]
    density = table.log_density(far)[:, 0]
    assert density[0] > density[1] > density[2]
    with pytest.raises(ValueError, match=r"levels of column 'word'.*'c'"):
        table.transform(far.assign(word="c"))
    assert np.isnan(table.transform(far.assign(word=None))[:, 0]).all()
    with pytest.raises(TypeError, match=r"column 'x'.*float64"):
        table.transform(far.assign(x="many"))


def test_gaps_are_states_or_unknown():
    table = Table().fit(with_gaps())
    rows = table.transform(with_gaps())
    unknown = table.transform(with_gaps(), gaps=False)
    assert not np.isnan(rows).any() and np.isnan(unknown).any()
    known = ~np.isnan(unknown)
    np.testing.assert_array_equal(unknown[known], rows[known])


NUMBERS = {
    "smooth": RNG.normal(size=300),
    "with zeros": np.where(RNG.random(300) < 0.4, 0.0, RNG.exponential(5.0, 300)),
    "constant": np.full(20, 3.5),
    "whole": np.round(RNG.lognormal(3.0, 1.0, 300)),
    "whole and few": RNG.poisson(3.0, 200).astype(float),
}


@pytest.mark.parametrize("bins", [5, 20, None])
@pytest.mark.parametrize("name", NUMBERS)
def test_densities_are_of_total_one(name, bins):
    """Sums over whole numbers; integrals, and the probabilities of spikes."""
    numbers = np.sort(NUMBERS[name])
    is_whole = bool((numbers % 1 == 0.0).all())
    histogram = Histogram(numbers, bins, is_whole)
    share = (histogram.last - histogram.first) / len(numbers)
    if is_whole:
        values, mass = np.arange(-20_000.0, 20_000.0), 1.0
    else:
        low, high = histogram.edges[0], histogram.edges[-1]
        inner = np.sort(np.concatenate([histogram.edges, np.linspace(low, high, 9999)]))
        reach = 30.0 * histogram.scale.max()
        tails = np.geomspace(1e-9, reach, 4000)
        edges = np.concatenate([low - tails[::-1], inner, high + tails])
        values, mass = 0.5 * (edges[1:] + edges[:-1]), np.diff(edges)
    density = share[histogram.bins_of(values)] * np.exp(histogram.log_density(values))
    total = np.sum(density * mass)
    if not is_whole:
        total += np.sum(
            share * np.where(np.isnan(histogram.spikes), 0, histogram.spike)
        )
    np.testing.assert_allclose(total, 1.0, atol=2e-3)


def test_more_bins_where_they_pay():
    """Round amounts are spikes that many bins find; smooth columns have few."""
    smooth = np.sort(RNG.normal(size=900))
    round_amounts = np.sort(100.0 * RNG.integers(1, 60, 900))
    assert chosen_bins(smooth, False) == 13
    assert chosen_bins(round_amounts, True) == 40


def test_a_frequent_number_has_a_bin_of_its_own():
    histogram = Histogram(np.sort(NUMBERS["with zeros"]), 6, False)
    assert histogram.spikes[0] == 0.0 and np.isnan(histogram.spikes[1:]).all()


def test_conditions_weigh_the_states_that_meet_them():
    real = pandas.DataFrame(
        {"x": np.arange(90.0), "word": ["a", "b", "c"] * 30, "y": [0, 1] * 45}
    )
    table = Table({"x": 3}).fit(real)
    weights = table.log_weights({"y": 1, "word": ["a", "b"], "x": (20, 59)})
    expected = [0, 1, 1 / 3, 1, 0, 1, 1, 0]
    np.testing.assert_allclose(np.exp(weights), expected)
    for given, word in [
        ({"x": (200, 300)}, "condition that some row.*'x'"),
        ({"z": 1}, r"conditions on columns.*\['z'\]"),
        ({"word": "d"}, "Its levels are"),
        ({"word": ["a", "d"]}, "Its levels are"),
        ({"x": ("a", "b")}, "a number or date, "),
        ({"x": (60, 20)}, "condition that some row.*'x'"),
    ]:
        with pytest.raises((TypeError, ValueError), match=word):
            table.log_weights(given)
    with pytest.raises(TypeError, match="given as a dict"):
        table.log_weights("x")


def test_ranges_of_dates_and_of_decimals():
    real = pandas.DataFrame(
        {
            "day": pandas.date_range("2020-01-01", periods=40),
            "part": [0.0, 0.1, 0.2, 0.3] * 10,
        }
    )
    table = Table({"day": 4}).fit(real)
    for given, expected in [
        ({"part": (0.0, 0.3)}, [1, 1, 1, 1]),
        ({"part": (0.1, None)}, [0, 1, 1, 1]),
        ({"part": (None, 0.2)}, [1, 1, 1, 0]),
    ]:
        np.testing.assert_allclose(np.exp(table.log_weights(given))[4:], expected)
    for ends in (
        ("2020-01-06", "2020-01-20"),
        (pandas.Timestamp("2020-01-06"), pandas.Timestamp("2020-01-20")),
    ):
        weights = np.exp(table.log_weights({"day": ends}))
        np.testing.assert_allclose(weights[:4], [0.5, 1, 0, 0])
    with pytest.raises(TypeError, match="column 'day'.*datetime"):
        table.transform(real.assign(day=range(40)))


def test_numbers_of_any_scale():
    """Tiny ones were taken for zeros, and large ones for one number."""
    for scale in (1e-12, 1.0, 1e12):
        real = pandas.DataFrame({"x": scale * np.arange(1, 41)})
        column = Table({"x": 4}).fit(real).columns_["x"]
        density = column.log_density(real["x"]) + np.log(scale)
        np.testing.assert_allclose(density.mean(), -np.log(10.0), atol=0.15)
    with pytest.raises(ValueError, match=r"2\*\*51.*'x'"):
        Table().fit(pandas.DataFrame({"x": 2**60 + np.arange(40)}))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"few": [1, 3]}, [0, 1, 0, 1]),
        ({"few": 2}, [0, 0, 1, 0]),
        ({"word": np.array(["a", "b"])}, [1, 1, 0, 0]),
        ({"word": None}, [0, 0, 0, 1]),
        ({"word": np.nan}, [0, 0, 0, 1]),
        ({"day": "2020-01-12"}, [0, 1, 0, 0]),
    ],
)
def test_levels_gaps_and_dates_as_conditions(given, expected):
    real = pandas.DataFrame(
        {
            "few": [0, 1, 2, 3] * 10,
            "word": ["a", "b", "c", None] * 10,
            "day": pandas.date_range("2020-01-01", periods=40),
        }
    )
    table = Table({"day": 4}).fit(real)
    weights = np.exp(table.log_weights(given)).reshape(3, 4)
    place = [column.name for column in table.varying].index(next(iter(given)))
    np.testing.assert_array_equal(weights[place], expected)


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"few": 9}, "some row.*'few': 9"),
        ({"few": 2.5}, "some row"),
        ({"few": "3"}, "column of levels.*'3'"),
        ({"few": True}, "column of levels.*True"),
        ({"few": [1, "x"]}, "column of levels"),
        ({"few": None}, "some row"),
        ({"same": 9}, "some row"),
        ({"cents": 3.14159}, "some row"),
        ({"cents": 1e6}, "some row"),
        ({"cents": [0.05, 0.1]}, "list of levels if it has such"),
        ({"cents": (1, 2, 3)}, "column of bins"),
    ],
)
def test_conditions_that_no_row_meets(given, word):
    """A single number was taken as it is: age 99 where nobody is older than 5."""
    few = np.arange(40) % 4
    real = pandas.DataFrame({"few": few, "cents": np.arange(40) * 0.05, "same": 5})
    with pytest.raises((TypeError, ValueError), match=word):
        Table().fit(real).log_weights(given)


def test_large_amounts_keep_their_cents():
    """Ranges lost their ends, and seconds with fractions had steps."""
    pay = np.round(1e7 + np.arange(30) * 0.37, 2)
    column = Table().fit(pandas.DataFrame({"pay": pay})).columns_["pay"]
    assert column.step == 0.01
    for amount in pay:
        weights = np.exp(column.log_weights((amount, amount)))
        rows = np.sum(weights * (column.histogram.last - column.histogram.first))
        np.testing.assert_allclose(rows, 1.0)
    seconds = 1.7e9 + RNG.random(200) * 100.0
    column = Table().fit(pandas.DataFrame({"at": seconds})).columns_["at"]
    assert column.step == 0.0


def test_small_floats_are_the_decimals_they_are_written_as():
    tenths = RNG.integers(0, 30, 300) / 10
    tables = [
        Table().fit(pandas.DataFrame({"x": tenths.astype(dtype)}))
        for dtype in ("float64", "float32")
    ]
    given = {"x": (0.1, 0.3)}
    for table in tables:
        expected = tables[0].log_weights(given)
        np.testing.assert_array_equal(table.log_weights(given), expected)
        assert table.columns_["x"].step == 0.1


def test_names_of_columns_are_kept():
    real = frame()[["few", "str"]].set_axis(
        pandas.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["one", "two"]),
        axis=1,
    )
    table = Table().fit(real)
    back = table.inverse_transform(table.transform(real))
    pandas.testing.assert_index_equal(back.columns, real.columns)
