"""The growing example runs from end to end on a tiny setting."""

import re

import keras
import pytest


@pytest.mark.slow
def test_grows_scores_and_saves(run_script, tmp_path):
    options = "--units 2 --samples 100 --precision 9"
    shown = run_script("grow_rbm.py", options, tmp_path / "out")
    rows = re.findall(r"^ +([12]) +\S+ +\S+ +(-\d+\.\d\d)$", shown, re.M)
    assert [units for units, _ in rows] == ["1", "2"]
    assert "Found: 2 units, with a test log-likelihood of -" in shown
    for name in ("growth.png", "filters.png", "samples.png"):
        assert (tmp_path / "out" / name).stat().st_size > 1000
    assert keras.saving.load_model(tmp_path / "out" / "rbm.keras").hidden_units == 2
