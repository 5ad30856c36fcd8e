"""The experiments with conditional RBMs and with DC programming on tiny settings."""

import json

import numpy as np
import pytest
import tensorflow as tf

import keras_rbm as kr


@pytest.fixture
def script(import_example):
    return import_example("papers.dc_programming.experiment")


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["PCD", "CS-DCP"])
def test_small_trials_go_on_where_they_were_cut(script, tmp_path, rule):
    settings = {"set": "shifting_bar", "rule": rule, "rate": 0.3}
    script.small.run(settings, 1, 20, tmp_path)
    path = tmp_path / f"shifting_bar.{rule}.0.3.json"
    (first,) = json.loads(path.read_text())["log_likelihood"]
    script.small.run(settings, 2, 20, tmp_path)
    record = json.loads(path.read_text())
    again, second = record["log_likelihood"]
    assert record["epochs"] == [0, 10, 20]
    assert first == again != second
    assert len(first) == 3
    with pytest.raises(ValueError, match="same --epochs"):
        script.small.run(settings, 2, 50, tmp_path)


@pytest.mark.slow
def test_trial_is_what_fit_gives(script, tmp_path):
    rows = kr.datasets.load("shifting_bar", "train").batch(9).get_single_element()
    settings = {"set": "shifting_bar", "rule": "CD", "rate": 0.3}
    train, score, model = script.small._compiled(settings, rows.numpy())
    train(tf.constant(10))
    fitted = script.small._new(settings, rows.numpy(), 0)
    fitted.fit(rows, batch_size=9, epochs=10, shuffle=False, verbose=0)
    expected = np.mean(fitted.log_likelihood(rows, "exact"))
    assert float(score()) == pytest.approx(expected, abs=1e-5)


@pytest.mark.slow
def test_large_runs_are_scored_and_reported(script, page_of, tmp_path):
    settings = {"set": "digits", "rule": "S-DCP", "rate": 0.3, "gibbs_steps": 4}
    settings |= {"inner_steps": 2, "batch_size": 100, "hidden_units": 5}
    settings |= {"start": "base", "epochs": 6, "seed": 0}
    records = tmp_path / "dc_programming"
    records.mkdir()
    script.large.run(settings, 4, 50, tmp_path, records)
    (path,) = records.glob("*.json")
    record = json.loads(path.read_text())
    assert record["epochs"] == [0, 4, 6] and record["temperatures"] == 50
    start, _, end = record["log_likelihood"]
    assert start + 0.1 < end < 0.0
    assert len(record["seconds"]) == 6
    changed = path.stat().st_mtime_ns
    script.large.run(settings, 4, 50, tmp_path, records)
    assert path.stat().st_mtime_ns == changed
    # A setting that only DCP was run with has no section.
    (records / "other.json").write_text(json.dumps(record | {"rule": "CD"}))
    text = page_of("dc_programming", records)
    assert f"| S-DCP | 1 | {end:.2f} | {max(start, end):.2f} |" in text


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
