"""A synthetic table beside a real one: `table_report`, its formulas and its picture."""

import datetime
import decimal
import sys

import numpy as np
import pandas
import pytest
from scipy.stats.contingency import association
from sklearn.metrics import roc_auc_score

from keras_rbm import plots
from keras_rbm.tables import neighbors, trees
from keras_rbm.tables.frames import as_numbers
from keras_rbm.tables.report import table_report
from keras_rbm.tables.similarity import _contingency, similarity

NAN = np.nan


def table(seed, count):
    """Numbers, words, categories, bools, dates and gaps, which go together."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, count))
    days = pandas.to_timedelta((300 + 60 * (x + y)).astype(int), unit="D")
    return pandas.DataFrame(
        {
            "number": x,
            "skewed": np.exp(y),
            "gap": np.where(y > 0.5, NAN, x),
            "count": rng.poisson(np.exp(0.5 * x)),
            "word": np.where(x + y > 0.0, "much", "little"),
            "level": pandas.Categorical(np.digitize(x - y, [-1.0, 1.0])),
            "flag": x + 0.5 * y > 0.5,
            "date": pandas.Timestamp("2020-01-01") + days,
        }
    )


def shuffled(frame, seed=0):
    """Returns a frame with the same columns, which do not go together."""
    rng = np.random.default_rng(seed)
    return frame.apply(lambda column: column.sample(frac=1.0, random_state=rng).array)


def pair(one, two, other_one, other_two, discrete):
    """Returns the score of a pair of columns, and whether it is related."""
    real, synthetic = np.array([one, two]).T, np.array([other_one, other_two]).T
    found = similarity(real, synthetic, np.array(discrete))
    return float(found.trends[0]), bool(found.related[0])


def test_shapes_by_hand():
    real = np.array([[0, 0, 1.0], [0, 1, 2], [1, 5, NAN], [1, NAN, NAN]])
    other = np.array([[0, 1, NAN], [0, 2, NAN], [2, NAN, NAN]])
    found = similarity(real, other, np.array([True, False, False]))
    # Shares 1/2, 1/2 and 0 beside 2/3, 0 and 1/3; steps of 1/3 and 1/2; no value.
    np.testing.assert_allclose(found.shapes, [0.5, 2 / 3, NAN], atol=1e-6)
    assert found.shapes[0] != 0.5  # of a level that only the other has SDMetrics adds
    np.testing.assert_allclose(found.means()[0], 7 / 12, atol=1e-6)


def test_trends_by_hand():
    a, b = [0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, NAN]
    # Cells (0, 0), (1, 1), (1, gap) of 2, 1, 1 rows beside 2 of (0, 0) and 2 of (0, 1).
    score, related = pair(a, b, [0.0] * 4, [0.0, 0.0, 1.0, 1.0], [True, True])
    assert score == 0.5 and related
    # Correlations of rows that know both: 1 and -1.
    score, related = pair(a, b, a, [1.0, 1.0, 0.0, NAN], [False, False])
    assert score == pytest.approx(0.0) and related
    # Each table has bins of its own: 0, 5, 10 and 0, 50, 100 are alike, and a gap is in
    # the bin of the largest.
    a, b, words = [0.0, 5.0, 10.0, 10.0], [0.0, 50.0, 100.0, NAN], [0.0, 1.0, 2.0, 2.0]
    score, related = pair(a, words, b, words, [False, True])
    assert score == 1.0 and related
    # A constant number has no correlation: no score.
    score, related = pair(a, words, [1.0] * 4, words, [False, False])
    assert np.isnan(score) and not related


@pytest.mark.parametrize("noise", [0.2, 0.5, 0.8])
def test_association_is_cramers(noise):
    rng = np.random.default_rng(0)
    one = rng.integers(0, 4, 300)
    two = np.where(rng.random(300) < noise, rng.integers(0, 3, 300), one % 3)
    counts = pandas.crosstab(one, two).to_numpy()
    _, found = _contingency((one, one), (two, two))
    assert found == pytest.approx(association(counts, "cramer"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("thresholds", [(0.5, 0.3), (0, 0)])
def test_equal_to_sdmetrics(thresholds):
    reports = pytest.importorskip("sdmetrics.reports.single_table")
    real, synthetic = table(0, 400), shuffled(table(1, 300))
    synthetic.loc[::9, "word"] = "new"
    (own, other), columns = as_numbers({"real": real, "synthetic": synthetic})
    kinds = np.where(columns.discrete, "categorical", "numerical").tolist()
    kinds = {name: {"sdtype": kind} for name, kind in zip(real, kinds, strict=True)}
    kinds["date"] = {"sdtype": "datetime", "datetime_format": "%Y-%m-%d"}
    report = reports.QualityReport()
    report.real_correlation_threshold, report.real_association_threshold = thresholds
    report.generate(real, synthetic, {"columns": kinds}, verbose=False)
    expected = report.get_properties().set_index("Property")["Score"]
    found = similarity(own, other, columns.discrete).means()
    expected = expected[["Column Shapes", "Column Pair Trends"]]
    np.testing.assert_allclose(found[[0, 2 - any(thresholds)]], expected, atol=1e-9)
    details = report.get_details("Column Shapes").set_index("Column")["Score"]
    shapes = similarity(own, other, columns.discrete).shapes
    np.testing.assert_allclose(shapes, details[list(real)], atol=1e-9)


@pytest.mark.parametrize(
    ("values", "numbers", "discrete"),
    [
        ([3, 1, None], [3, 1, NAN], True),
        (list(range(21)), list(range(21)), False),
        ([0.5, 1.0], [0.5, 1.0], False),
        (pandas.array([3, None], dtype="Int64"), [3, NAN], True),
        ([decimal.Decimal("1.5"), None], [1.5, NAN], False),
        (["b", "a", None, "b"], [0, 1, NAN, 0], True),
        (pandas.Categorical([7, 5, None]), [0, 1, NAN], True),
        ([True, None, False], [0, NAN, 1], True),
        (pandas.to_datetime(["1970-01-02", None]), [86400, NAN], False),
        (pandas.to_datetime(["1970-01-02"], utc=True), [86400], False),
        ([datetime.date(1970, 1, 2), None], [86400, NAN], False),
        (np.array(["9999-12-31"], "datetime64[s]"), [253402214400], False),
        (pandas.to_timedelta([1, None], unit="min"), [60, NAN], False),
        ([1, "a"], [0, 1], True),
    ],
)
def test_kinds_of_columns(values, numbers, discrete):
    (found,), columns = as_numbers({"real": pandas.DataFrame({"a": values})})
    np.testing.assert_array_equal(found[:, 0], numbers)
    assert columns.discrete.tolist() == [discrete]


def test_words_are_the_same_in_tables_of_other_types():
    frames = {
        "real": pandas.DataFrame({"a": [True, False, None], "b": ["x", "y", None]}),
        "other": pandas.DataFrame(
            {"a": [0, 1, 1], "b": pandas.Categorical(["y", "x", "z"])}
        ),
        "empty": pandas.DataFrame({"a": [None], "b": [NAN]}),
    }
    (real, other, empty), _ = as_numbers(frames)
    np.testing.assert_array_equal(real, [[0, 0], [1, 1], [NAN, NAN]])
    np.testing.assert_array_equal(other, [[1, 1], [0, 0], [0, 2]])
    assert np.isnan(empty).all()


def test_auc_and_its_error():
    rng = np.random.default_rng(0)

    def draw():
        positive = rng.random(120) < 0.4
        return np.round(rng.normal(size=120) + positive, 1), positive

    found = [trees._auc(*draw()) for _ in range(300)]
    values, variances = np.transpose(found)
    assert np.sqrt(variances.mean()) == pytest.approx(values.std(), rel=0.2)
    scores, positive = draw()
    expected = roc_auc_score(positive, scores)
    assert trees._auc(scores, positive)[0] == pytest.approx(expected)


def test_trees_tell_tables_apart():
    frames = {"real": table(0, 300), "fresh": table(1, 300)}
    frames["unlike"] = shuffled(table(2, 300))
    (real, fresh, unlike), columns = as_numbers(frames)
    value, error = trees.told_apart(real, fresh, columns.words, 0)
    assert abs(value - 0.5) < 4 * error and 0.01 < error < 0.05
    value, error = trees.told_apart(real, unlike, columns.words, 0)
    assert value > 0.95 and 0.0 < error < 0.02
    value, error = trees.told_apart(real, real[::-1], columns.words, 0)
    assert value < 0.5 - 4 * error  # copies


def test_distances_by_hand():
    real = np.array([[0.0, 10.0], [1.0, 20.0], [0.0, NAN]])
    moved = neighbors.quantiles(real, np.array([True, False]))
    rows = np.array([[0.0, 15.0], [2.0, NAN], [1.0, 99.0]])
    # Quantiles of 10 and 20 are 1/4 and 3/4, between them 15, and 99 is as 20.
    expected = [[0.25, 2.0, 1.5], [1.25, 2.0, 0.0], [1.0, 1.0, 2.0]]
    np.testing.assert_allclose(neighbors.distances(moved(real), moved(rows)), expected)
    own = neighbors.distances(moved(real))
    np.testing.assert_allclose(own, own.T)
    assert np.isinf(own.diagonal()).all() and own[0, 1] == 1.5


def test_adversarial_accuracy():
    def accuracy(one, two):
        between = neighbors.distances(one, two)
        own = neighbors.distances(one), neighbors.distances(two)
        return neighbors.adversarial_accuracy(*own, between, len(one))

    rng = np.random.default_rng(0)
    one, two = rng.uniform(size=(2, 400, 3))
    value, error = accuracy(one, two)
    assert abs(value - 0.5) < 4 * error and 0.01 < error < 0.04
    assert accuracy(one, one)[0] == 0.0  # copies
    assert accuracy(one, two + 5.0)[0] == 1.0  # unlike
    assert accuracy(np.ones((9, 2)), np.ones((9, 2)))[0] == 0.5  # ties
    # On a line: 0 and 0.75 of the one; of the other 0.25, and 9, 1 away from all.
    value, _ = accuracy(np.array([[0.0], [0.75]]), np.array([[0.25], [9.0]]))
    assert value == (0.0 + 0.25) / 2


@pytest.mark.parametrize(
    ("name", "kind"), [("word", "AUC"), ("level", "accuracy"), ("number", "R²")]
)
def test_target(name, kind):
    frames = {"a": table(0, 300), "b": shuffled(table(1, 300)), "c": table(2, 300)}
    (real, unlike, test), columns = as_numbers(frames)
    place = columns.names.index(name)
    rng = np.random.default_rng(0)
    found, (bad, good), error = trees.predicted(
        [unlike, real], test, place, columns, rng
    )
    assert found == kind and 0.0 < error < 0.2
    chance = {"AUC": 0.5, "accuracy": 0.45, "R²": 0.0}[kind]
    assert bad < chance + 0.15 and good > bad + 4 * error and good > 0.8


def test_target_of_one_class_only_is_guessing():
    frames = {"a": table(0, 100), "b": table(1, 100), "c": table(2, 100)}
    (real, synthetic, test), columns = as_numbers(frames)
    place = columns.names.index("word")
    for only in np.unique(real[:, place]):
        synthetic[:, place] = only
        tables, rng = [synthetic, real], np.random.default_rng(0)
        _, scores, _ = trees.predicted(tables, test, place, columns, rng)
        assert scores[0] == 0.5 < scores[1]


def test_more_words_than_trees_take():
    rng = np.random.default_rng(0)
    real = rng.integers(0, 400, (500, 1)).astype(float)
    value, error = trees.told_apart(real[:250], real[250:], np.array([True]), 0)
    assert abs(value - 0.5) < 4 * error


def test_report_of_rows_of_the_same_kind():
    report = table_report(table(0, 400), table(1, 400), test=table(2, 300))
    assert report.target is None and "target" not in report.measures
    for name, measure in report.measures.items():
        assert abs(measure.value - measure.real) < 4 * measure.error, name
    assert report.copies.value == report.copies.real == 0.0
    assert "tell 300 rows from test ones" in report.classifier.sentence
    assert report.classifier.sentence.endswith("not told apart.")


def test_report_of_copies():
    real = table(0, 250)
    report = table_report(real, real.sample(frac=1.0, random_state=0))
    assert report.copies.value == 1.0 and report.copies.real == 0.0
    assert report.closest_record.value == 0.0
    assert report.closest_record.sentence.endswith("nearer.")
    for measure in (report.classifier, report.neighbors):
        assert measure.value < 0.5 and measure.sentence.endswith(
            "closer than other real rows."
        )
    assert report.neighbors.value == 0.0 and report.privacy_loss is None
    assert report.column_shapes.value == report.all_pair_trends.value == 1.0
    report = table_report(real, real, test=table(1, 100))
    assert report.privacy_loss.value > 4 * report.privacy_loss.error
    assert report.privacy_loss.sentence.endswith("they were.")


def test_report_of_rows_whose_columns_do_not_go_together():
    real, synthetic = table(0, 300), shuffled(table(1, 300))
    report = table_report(real, synthetic, test=table(2, 300), target="word")
    assert report.column_shapes.value > 0.9
    assert report.pair_trends.value < report.pair_trends.real - 0.1
    worst = report.pairs[report.pairs["related"]].sort_values("score").iloc[0]
    assert f"{worst['first']}–{worst['second']}" in report.pair_trends.sentence
    assert report.classifier.value > 0.95
    assert report.target.real > 0.9 and report.target.value < 0.75
    assert report.target.sentence.endswith("worse.")
    assert report.neighbors.value > 0.6 and report.closest_record.value > 1.3
    assert len(report.columns) == 8 and len(report.pairs) == 28
    np.testing.assert_allclose(report.columns["score"].mean(), report.column_shapes[0])
    np.testing.assert_allclose(report.pairs["score"].mean(), report.all_pair_trends[0])
    frame = report.frame()
    assert list(frame.columns) == ["value", "error", "real", "sentence"]
    assert list(frame.index) == list(report.measures)
    lines = str(report).splitlines()
    assert len(lines) == 9 and lines[0].startswith("column shapes    0.9")


def test_the_seed_decides():
    one, two = table(0, 40)[["number", "word"]], table(1, 40)[["number", "word"]]
    first, again, other = (
        table_report(one, two, test=two[:30], target="word", seed=seed)
        for seed in (0, 0, 1)
    )
    assert str(first) == str(again) != str(other)


def test_hostile_tables():
    """Constants, gaps only, words never seen, one column, many words, other indices."""
    more = {"constant": 3.5, "word only": "x", 3: range(60), None: 1, ("a", 1): 2}
    real, synthetic = (
        table(seed, 60).assign(text=[f"text {k}" for k in range(60)]).set_axis([7] * 60)
        for seed in (0, 1)
    )
    synthetic = synthetic[:40].copy()
    for name, values in more.items():
        real[name] = values
        synthetic[name] = values if np.isscalar(values) else range(40)
    synthetic["gap"], synthetic["flag"], synthetic["word"] = NAN, True, "never seen"
    synthetic["level"], synthetic["date"] = None, pandas.NaT
    report = table_report(real, synthetic[synthetic.columns[::-1]])
    assert np.isnan(report.columns["score"].loc[["gap", "level", "date"]]).all()
    assert report.columns.loc["word", "score"] < 1e-6
    assert "gap –" in report.column_shapes.sentence
    np.testing.assert_allclose(report.classifier.value, 1.0, atol=0.05)
    plots.table_report(report)
    alone = [frame[["word only"]] for frame in (real, synthetic)]
    report = table_report(*alone)
    assert np.isnan(report.pair_trends.value) and np.isnan(report.closest_record.value)
    assert report.classifier.value == report.neighbors.value == 0.5
    assert report.copies.value == report.copies.real == 1.0
    assert "–" in str(report) and "nan" not in str(report)
    plots.table_report(report)


FRAME = pandas.DataFrame({"a": range(40), "b": ["x", "y"] * 20})


@pytest.mark.parametrize(
    ("error", "match", "args", "kwargs"),
    [
        (TypeError, "real of type ndarray", (np.zeros((40, 2)), FRAME), {}),
        (TypeError, "test of type list", (FRAME, FRAME), {"test": [1]}),
        (ValueError, "'a'.*Rename", (FRAME, FRAME.rename(columns={"a": "c"})), {}),
        (ValueError, "different names", (FRAME[["a", "a"]], FRAME), {}),
        (ValueError, "20 rows of synthetic.*: 19", (FRAME, FRAME[:19]), {}),
        (ValueError, "only gaps in .'b'", (FRAME.assign(b=None), FRAME), {}),
        (ValueError, "no columns", (FRAME[[]], FRAME[[]]), {}),
        (ValueError, "numbers in column 'a' of syn", (FRAME, FRAME.assign(a="1")), {}),
        (
            ValueError,
            "infinite ones in column 'a'",
            (FRAME, FRAME.assign(a=np.inf)),
            {},
        ),
        (
            TypeError,
            "in column 'b'. Make them",
            (FRAME.assign(b=[[1]] * 40), FRAME),
            {},
        ),
        (ValueError, "one of .*'c'", (FRAME, FRAME), {"target": "c", "test": FRAME}),
        (ValueError, "no test", (FRAME, FRAME), {"target": "b"}),
        (ValueError, "array", (FRAME, FRAME), {"target": np.ones(2), "test": FRAME}),
        (ValueError, "seed=-1", (FRAME, FRAME), {"seed": -1}),
        (
            ValueError,
            "a target that varies",
            (FRAME, FRAME),
            {"target": "b", "test": FRAME.assign(b="x")},
        ),
        (
            ValueError,
            r"known in \[40, 10, 40\]",
            (FRAME, FRAME.mask(FRAME["a"] >= 10).assign(a=1)),
            {"target": "b", "test": FRAME},
        ),
    ],
)
def test_bad_input(error, match, args, kwargs):
    with pytest.raises(error, match=f"(?s)Expected.*Received.*{match}|{match}"):
        table_report(*args, **kwargs)


def test_without_scikit_learn(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    with pytest.raises(ImportError, match=r"pip install keras-rbm\[sklearn\]"):
        table_report(FRAME, FRAME)


def test_picture():
    real, synthetic, test = table(0, 60), table(1, 60), table(2, 60)
    report = table_report(real, synthetic, test=test, target="number")
    low = report.target._replace(value=-3.0)
    shapes, pairs, summary, _ = plots.table_report(report._replace(target=low)).axes
    dots = shapes.lines[0].get_xydata()
    np.testing.assert_allclose(dots[:, 0], report.columns["score"])
    np.testing.assert_allclose(dots[:, 1], range(8))  # from top to bottom
    assert [label.get_text() for label in shapes.get_yticklabels()] == list(real)
    matrix = np.ma.filled(pairs.images[0].get_array(), NAN)
    assert np.isnan(matrix.diagonal()).all()
    one = report.pairs.iloc[3]
    places = [list(real).index(one[name]) for name in ("first", "second")]
    assert matrix[places[1], places[0]] == one["score"]
    assert matrix[places[0], places[1]] == one["real"]
    labels = [label.get_text() for label in summary.get_yticklabels()]
    assert labels[3] == "target  -3.00" and summary.lines[0].get_xdata()[3] == 0.0


def test_picture_of_many_columns_shows_the_worst():
    rows = np.random.default_rng(0).normal(size=(40, 30))
    names = [f"a name of some length {number}" for number in range(30)]
    real = pandas.DataFrame(rows, columns=names)
    report = table_report(real[:20], real[20:])
    axes = plots.table_report(report).axes
    labels = [label.get_text() for label in axes[0].get_yticklabels()]
    assert len(labels) == 24 == len(set(labels)) and max(map(len, labels)) == 16
    shown = axes[0].lines[0].get_xdata()
    assert sorted(shown) == sorted(report.columns["score"])[:24]
