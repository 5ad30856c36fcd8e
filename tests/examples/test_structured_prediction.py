"""The experiment with conditional RBMs runs from end to end on a tiny task."""

import json

import pytest


@pytest.mark.slow
@pytest.mark.parametrize(
    ("learner", "extra"),
    [
        ("CD-1", {"start": "input", "sweeps": 3}),
        ("MLE-BP", {"optimizer": "decay", "weight_decay": 0.1}),
    ],
)
def test_a_run_is_recorded(import_example, monkeypatch, tmp_path, learner, extra):
    script = import_example("papers.structured_prediction.experiment")
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
    script.run(settings | extra, tmp_path, records, patience=1)
    (path,) = records.glob("*.json")
    record = json.loads(path.read_text())
    errors = record["test"].values()
    assert all(0.0 < error < 100.0 for error in errors), record
    if learner == "CD-1":
        by_start = record["by_start"]
        assert by_start.keys() == script.STARTS.keys()
        assert by_start["x"] == record["test"]["all"]
