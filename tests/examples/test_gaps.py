"""The example of gaps runs on a few rows, and its page says what records say."""

import json

import numpy as np
import pytest


@pytest.fixture
def gaps(import_example):
    return import_example("gaps")


def run(run_script, folder, options):
    run_script("gaps.py", f"--rows 60 --epochs 1 --seeds 1 {options}", folder)
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]


def test_fills_a_table_and_goes_on(run_script, tmp_path):
    options = "--tasks wine --ways mean RBMImputer"
    records = run(run_script, tmp_path, options)
    assert [record["way"] for record in records] == ["RBMImputer", "mean"]
    assert all(0.5 < record["rms"] < 1.5 for record in records)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.json")}
    run(run_script, tmp_path, options)
    assert before == {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.json")}


@pytest.mark.slow
def test_all_ways(run_script, tmp_path):
    records = run(run_script, tmp_path, "--tasks digits wine")
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
