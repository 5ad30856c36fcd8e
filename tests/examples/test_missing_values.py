"""The examples of missing values: a table's gaps, and a recommender."""

import json
import re

import numpy as np
import pytest


@pytest.fixture
def gaps(import_example):
    return import_example("gaps")


def records_of(run_script, folder, options):
    run_script("gaps.py", f"--rows 60 --epochs 1 --seeds 1 {options}", folder)
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]


def test_fills_a_table_and_goes_on(run_script, tmp_path):
    options = "--tasks wine --ways mean RBMImputer"
    records = records_of(run_script, tmp_path, options)
    assert [record["way"] for record in records] == ["RBMImputer", "mean"]
    assert all(0.5 < record["rms"] < 1.5 for record in records)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.json")}
    records_of(run_script, tmp_path, options)
    assert before == {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.json")}


@pytest.mark.slow
def test_all_ways(run_script, tmp_path):
    records = records_of(run_script, tmp_path, "--tasks digits wine")
    assert len(records) == 1 + 3 * 7 + 6
    for record in records:
        if record["do"] == "table":
            assert 0.5 < record["rms"] < 1.5
        else:
            assert set(record["filled"]) <= {"0.3", "0.5", "0.8"}


def test_categories_are_scored_by_what_was_hidden(gaps):
    """Certain and right, certain and wrong; the column's shares are mixed in."""
    values = np.array([[0.0], [0.0], [1.0], [1.0]])
    hidden = np.array([[True], [False], [True], [False]])
    given = np.where(hidden, np.nan, values)
    sure = [np.array([[1.0, 0.0]] * 4)]
    found = gaps.scores(sure, values, given, hidden, [2], "KNNImputer")
    assert found["cells"] == 2 and found["accuracy"] == 0.5
    assert found["mixed"] == 1.0  # the shares alone, half and half
    assert found["log_loss"] == pytest.approx(np.log(2.0))
    half = [np.full((4, 2), 0.5)]
    found = gaps.scores(half, values, given, hidden, [2], "RBM-16")
    assert found["mixed"] == 0.0 and found["log_loss"] == pytest.approx(np.log(2.0))
    assert found["points"] == 0.5


def test_a_value_between_two_answers_is_shared(gaps):
    found = gaps.between(np.array([-1.0, 0.25, 2.0]), 3)
    np.testing.assert_allclose(found, [[1, 0, 0], [0.75, 0.25, 0], [0, 0, 1]])


@pytest.fixture
def ratings(tmp_path):
    """A folder like MovieLens 100K: 60 users, of whom each likes half of 20 films."""
    rng = np.random.default_rng(0)
    users, films = np.nonzero(rng.random((60, 20)) < 0.6)
    likes = (users % 2) == (films % 2)
    stars = np.where(
        likes, rng.integers(4, 6, len(users)), rng.integers(1, 3, len(users))
    )
    triples = np.stack([users + 1, films + 1, stars, stars], 1)
    np.savetxt(tmp_path / "u.data", triples, "%d", "\t")
    np.savetxt(tmp_path / "u1.test", triples[::5], "%d", "\t")
    lines = (f"{film}|Film {film}|1999" for film in range(1, 21))
    (tmp_path / "u.item").write_text("\n".join(lines), encoding="latin-1")
    return tmp_path


@pytest.mark.parametrize("unit", ["gaussian", "categorical"])
def test_tastes_beat_means(run_script, ratings, unit):
    options = f"--files {ratings} --unit {unit} --hidden 4 --epochs 60 --user 2"
    shown = run_script("recommender.py", options)
    errors = dict(re.findall(r"\| (\w+)[^|]* \| (\d\.\d+) \|", shown))
    assert float(errors["RBM"]) < 0.8 * float(errors["means"])
    recommended = re.findall(r"\d\.\d\d  Film (\d+)", shown)
    assert [int(film) % 2 for film in recommended[:2]] == [1, 1]


def test_means_are_what_minimizes_regularized_errors(import_example):
    """Squared errors plus 5 times the squares of all deviations are least there."""
    rng = np.random.default_rng(0)
    users, items = np.nonzero(rng.random((30, 20)) < 0.4)
    stars = rng.integers(1, 6, len(users))
    rows = np.full((30, 20), np.nan)
    rows[users, items] = stars
    mean = stars.mean()
    design = np.zeros((len(stars), 50))
    design[np.arange(len(stars)), users] = design[np.arange(len(stars)), 30 + items] = 1
    both = np.linalg.solve(
        design.T @ design + 5 * np.eye(50), design.T @ (stars - mean)
    )
    expected = mean + both[:30, np.newaxis] + both[30:]
    means = import_example("recommender").Means(rows)
    np.testing.assert_allclose(means(rows), expected, atol=1e-4)
    # A new user who rated nothing, and one who rated as the first did.
    new = means(np.stack([np.full(20, np.nan), rows[0]]))
    np.testing.assert_allclose(new, [mean + both[30:], expected[0]], atol=1e-4)
