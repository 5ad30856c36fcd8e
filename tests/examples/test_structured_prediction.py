"""The experiment with conditional RBMs runs from end to end on a tiny task."""

import importlib
import json
import pathlib

import pytest

PAPERS = pathlib.Path(__file__).parents[2] / "examples" / "papers"


@pytest.mark.slow
@pytest.mark.parametrize("learner", ["CD-1", "MLE-BP"])
def test_a_run_is_recorded(monkeypatch, tmp_path, learner):
    monkeypatch.syspath_prepend(PAPERS)
    script = importlib.import_module("structured_prediction")
    monkeypatch.setitem(script.ALL_TASKS, "tiny", ("digits", "noisy", 10, "tiny"))
    settings = {
        "task": "tiny",
        "corruption": "fresh",
        "learner": learner,
        "optimizer": "momentum",
        "rate": 0.01,
        "epochs": 2,
        "batch_size": 100,
        "hidden_units": 4,
    }
    records = tmp_path / "records"
    records.mkdir()
    script.run(settings, tmp_path, records, patience=1)
    (path,) = records.glob("*.json")
    record = json.loads(path.read_text())
    errors = record["test"].values()
    assert all(0.0 < error < 100.0 for error in errors), record
