"""The experiments with DC programming run from end to end on tiny settings."""

import importlib
import json
import pathlib

import numpy as np
import pytest
import tensorflow as tf

import keras_rbm as kr

PAPERS = pathlib.Path(__file__).parents[2] / "examples" / "papers"


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(PAPERS)
    return importlib.import_module("dc_programming")


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


def test_trial_is_what_fit_gives(script, tmp_path):
    rows = kr.datasets.load("shifting_bar", "train").batch(9).get_single_element()
    settings = {"set": "shifting_bar", "rule": "CD", "rate": 0.3}
    train, score, model = script.small._compiled(settings, rows.numpy())
    train(tf.constant(10))
    fitted = script.small._new(settings, rows.numpy(), 0)
    fitted.fit(rows, batch_size=9, epochs=10, shuffle=False, verbose=0)
    expected = np.mean(fitted.log_likelihood(rows, "exact"))
    assert float(score()) == pytest.approx(expected, abs=1e-5)


def test_large_runs_are_scored_and_reported(script, tmp_path):
    settings = {
        "set": "digits",
        "rule": "S-DCP",
        "rate": 0.3,
        "gibbs_steps": 4,
        "inner_steps": 2,
        "batch_size": 100,
        "hidden_units": 5,
        "start": "base",
        "epochs": 15,
        "seed": 0,
    }
    records = tmp_path / "dc_programming"
    records.mkdir()
    script.large.run(settings, 10, 50, tmp_path, records)
    (path,) = records.glob("*.json")
    record = json.loads(path.read_text())
    assert record["epochs"] == [0, 10]
    start, end = record["log_likelihood"]
    assert start + 0.3 < end < 0.0
    assert len(record["seconds"]) == 15
    changed = path.stat().st_mtime_ns
    script.large.run(settings, 10, 50, tmp_path, records)
    assert path.stat().st_mtime_ns == changed
