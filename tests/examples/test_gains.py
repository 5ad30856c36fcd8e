"""Logged gains of grown units are as large as enumeration says."""

import importlib
import json
import pathlib
import sys

import numpy as np
import pytest

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


@pytest.mark.slow
def test_gains_are_within_their_errors(monkeypatch, tmp_path, real_data):
    """Takes six minutes. The table is the guide's."""
    monkeypatch.syspath_prepend(EXAMPLES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TFDS_DATA_DIR", str(real_data / "tfds"))
    sets = ["mnist", "caltech101_silhouettes", "mnist_sampled", "digits", "bars"]
    manual = str(real_data / "caltech101_silhouettes")
    options = ["--seeds", "0", "1", "2", "--manual-dir", manual]
    monkeypatch.setattr(sys, "argv", ["gains.py", "--sets", *sets, *options])
    importlib.import_module("gains").main()
    records = json.loads(pathlib.Path("gains.json").read_text())
    assert len(records) >= 200
    scores = np.array([(r["gain"] - r["exact"]) / r["gain_error"] for r in records])
    assert np.abs(scores).max() < 4.5
    assert 0.7 < np.sqrt(np.mean(scores**2)) < 1.3
