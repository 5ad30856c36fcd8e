"""The growing example runs from end to end on a tiny setting."""

import pathlib
import re
import subprocess
import sys

import keras
import pytest

SCRIPT = pathlib.Path(__file__).parents[2] / "examples" / "grow_rbm.py"


@pytest.mark.multiprocess
def test_grows_scores_and_saves(tmp_path):
    options = "--units 2 --samples 100 --temperatures 50"
    result = subprocess.run(
        [sys.executable, SCRIPT, *options.split(), "--out", tmp_path / "out"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert result.returncode == 0, result.stderr
    rows = re.findall(r"^ +([12]) +\S+ +\S+ +(-\d+\.\d\d)$", result.stdout, re.M)
    assert [units for units, _ in rows] == ["1", "2"]
    assert "2 units, test log-likelihood -" in result.stdout
    for name in ("growth.png", "filters.png", "samples.png"):
        assert (tmp_path / "out" / name).stat().st_size > 1000
    assert keras.saving.load_model(tmp_path / "out" / "rbm.keras").hidden_units == 2
