"""A model of a frame is compared with the enumeration of all rows."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from keras_rbm.sklearn import TableModel

pandas = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def small():
    """Returns a frame of columns that depend on each other, with gaps."""
    rng = np.random.default_rng(0)
    age = rng.integers(0, 6, 300)
    word = np.where(rng.random(300) < 0.8, age // 2, rng.integers(0, 3, 300))
    seen = (age > 3) ^ (rng.random(300) < 0.1)
    frame = pandas.DataFrame({"age": age, "seen": seen})
    frame.insert(1, "word", np.array(["low", "mid", "top"])[word])
    frame.loc[(age == 0) & (rng.random(300) < 0.7), "word"] = None
    return frame


@pytest.fixture(scope="module")
def model(small):
    return TableModel(8, n_iter=150, random_state=0).fit(small)


@pytest.fixture(scope="module")
def all_rows(model):
    """Returns each row there can be, and its probability."""
    levels = [range(6), ["low", "mid", "top", None], [False, True]]
    rows = pandas.MultiIndex.from_product(levels, names=["age", "word", "seen"])
    rows = rows.to_frame(index=False)
    log_p = model.score_samples(rows)
    own = model.table_.log_density(rows).sum(1)  # some is kept for other ages
    return rows, np.exp(log_p - own)


def test_probabilities_add_up_to_one_and_follow_the_data(all_rows, small):
    rows, p = all_rows
    np.testing.assert_allclose(p.sum(), 1.0, rtol=1e-5)
    gaps = rows["word"].isna() & (rows["age"] == 0)
    share = (small["word"].isna() & (small["age"] == 0)).mean()
    np.testing.assert_allclose(p[gaps].sum(), share, atol=0.03)
    assert p[rows["word"].isna() & (rows["age"] > 0)].sum() < 0.02


@pytest.mark.parametrize(
    ("given", "holds"),
    [
        ({}, lambda rows: rows["age"] >= 0),
        ({"word": "top"}, lambda rows: rows["word"] == "top"),
        ({"age": (1, 3)}, lambda rows: rows["age"].between(1, 3)),
        (
            {"word": ["low", "mid"], "seen": True},
            lambda rows: rows["word"].isin(["low", "mid"]) & rows["seen"],
        ),
    ],
)
def test_samples_given_conditions(model, all_rows, given, holds):
    rows, p = all_rows
    p = np.where(holds(rows), p, 0.0) / p[holds(rows)].sum()
    drawn = model.sample(4000, given=given, steps=50, random_state=1)
    counts = drawn.fillna({"word": "gap"}).value_counts()
    keys = rows.fillna({"word": "gap"}).itertuples(index=False)
    found = np.array([counts.get(tuple(row), 0) for row in keys])
    assert found.sum() == 4000
    assert np.abs(found / 4000 - p).sum() < 0.1  # twice the total variation


def test_gaps_are_filled_as_enumeration_says(model, all_rows):
    """Whether something is missing says nothing of what it is."""
    rows, p = all_rows
    known = rows["word"].notna()
    holes = pandas.DataFrame(
        {"age": [4, np.nan], "word": [None, "top"], "seen": [True, np.nan]}
    )
    means = model.impute(holes)
    at = known & (rows["age"] == 4) & rows["seen"]
    likeliest = rows["word"][at].iloc[p[at].argmax()]
    assert means["word"].tolist() == [likeliest, "top"]
    at = known & (rows["word"] == "top")
    expected = np.average(rows["age"][at], weights=p[at])
    np.testing.assert_allclose(means["age"], [4, expected], rtol=1e-3)
    drawn = pandas.concat(
        [
            model.impute(pandas.concat([holes] * 500), "sample", random_state=seed)
            for seed in range(2)
        ]
    )
    np.testing.assert_allclose(drawn["age"].iloc[1::2].mean(), expected, atol=0.15)
    assert drawn["age"].iloc[::2].eq(4).all() and not drawn.isna().any(axis=None)


def test_explanations_are_conditionals(model, all_rows, small):
    rows, p = all_rows
    surprise = model.explain(rows) + model._typical
    p = p.reshape(6, 4, 2)
    for axis, name in enumerate(["age", "word", "seen"]):
        expected = -np.log(p / p.sum(axis, keepdims=True)).ravel()
        own = model.table_.log_density(rows)[:, axis]
        np.testing.assert_allclose(surprise[name] + own, expected, atol=1e-4)
    np.testing.assert_allclose(model.explain(small).mean(), 0.0, atol=1e-5)


def test_densities_of_numbers_integrate_to_one():
    """A number with fractions, a whole one and a word: quadrature of all rows."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=200)
    real = pandas.DataFrame(
        {"x": x, "count": rng.poisson(np.exp(x + 2)), "word": np.where(x > 0, "a", "b")}
    )
    model = TableModel(4, n_iter=10, random_state=0).fit(real)
    edges = model.table_.columns_["x"].histogram.edges
    tails = np.geomspace(1e-4, 40.0, 60)
    edges = np.concatenate([edges[0] - tails[::-1], edges, edges[-1] + tails])
    middle, width = 0.5 * (edges[1:] + edges[:-1]), np.diff(edges)
    counts = np.arange(0, 200)
    grid = pandas.MultiIndex.from_product(
        [middle, counts, ["a", "b"]], names=["x", "count", "word"]
    ).to_frame(index=False)
    density = np.exp(model.score_samples(grid)) * np.repeat(width, 2 * len(counts))
    np.testing.assert_allclose(density.sum(), 1.0, atol=0.01)


def test_values_beyond_the_data_are_less_likely_the_further(model):
    row = pandas.DataFrame({"age": [5, 9, 50], "word": "top", "seen": True})
    assert (np.diff(model.score_samples(row)) < 0.0).all()
    found = model.explain(row)
    assert found.iloc[2].idxmax() == "age"


def test_samples_have_the_frame_s_types_and_own_cells(model, small):
    drawn = model.sample(20, random_state=0)
    assert drawn.dtypes.equals(small.dtypes)
    pandas.testing.assert_frame_equal(drawn, model.sample(20, random_state=0))
    assert model.sample(20, given={"age": 3})["age"].eq(3).all()


def test_copies_and_files(model, small):
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_allclose(copy.score_samples(small), model.score_samples(small))
    with pytest.raises(NotFittedError):
        clone(model).sample()


def test_what_is_refused(model, small):
    with pytest.raises(TypeError, match="pandas.DataFrame.*ndarray"):
        TableModel().fit(small.to_numpy())
    with pytest.raises(ValueError, match="n_iter"):
        TableModel(n_iter=0).fit(small)
    with pytest.raises(ValueError, match="method as one of"):
        model.impute(small, "median")
    with pytest.raises(ValueError, match="columns of fit"):
        model.score_samples(small[["age"]])
    with pytest.raises(ValueError, match="condition that some row"):
        model.sample(given={"age": (10, 20)})


@pytest.mark.parametrize("method", ["mean", "mode", "sample"])
@pytest.mark.parametrize(
    ("column", "dtype"),
    [
        ({"word": pandas.Categorical(["low", None, None], ["low"])}, "str"),
        ({"word": np.nan}, "str"),
        ({"word": pandas.Categorical([None] * 3, ["low", "mid", "top"])}, "category"),
        ({"seen": [np.nan, 1.0, 0.0]}, "float64"),
        ({"seen": np.array([None, True, False], object)}, "object"),
        ({"age": np.nan}, "float64"),
        ({"age": pandas.array([None, 1, 2], "Int64")}, "Int64"),
    ],
)
def test_every_gap_is_filled_whatever_type_has_it(model, method, column, dtype):
    holes = pandas.DataFrame({"age": [5, 5, 0], "word": "top", "seen": True})
    holes = holes.assign(**column)
    full = model.impute(holes, method, steps=20)
    assert not full.isna().any(axis=None)
    (name,) = column
    assert full[name].dtype.name == dtype
    known = holes[name].notna()
    assert (full[name][known] == holes[name][known]).all()


def test_chains_take_a_step_and_gaps_can_be_asked_for(model):
    with pytest.raises(ValueError, match="steps"):
        model.sample(3, given={"age": 1}, steps=0)
    drawn = model.sample(200, given={"word": None}, random_state=0)
    assert drawn["word"].isna().all() and drawn["age"].eq(0).mean() > 0.5


def test_many_rows_are_explained_in_parts(small):
    """The baseline took memory for all rows, levels and hidden units at once."""
    many = pandas.concat([small] * 10, ignore_index=True)
    model = TableModel(4, n_iter=1, batch_size=500, random_state=0).fit(many)
    explained = model.explain(many)
    np.testing.assert_allclose(
        explained.iloc[[0, 2999]], model.explain(many.iloc[[0, 2999]]), atol=1e-4
    )
    np.testing.assert_allclose(explained.mean(), 0.0, atol=0.05)
