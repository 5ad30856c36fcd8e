"""The main example runs from end to end on a tiny setting."""

import pathlib
import re
import subprocess
import sys

import keras
import pytest

SCRIPT = pathlib.Path(__file__).parents[2] / "examples" / "train_rbm.py"


@pytest.mark.multiprocess
def test_trains_scores_and_saves(tmp_path):
    options = "--hidden 8 --epochs 2 --batch-size 400 --gibbs-steps 1 "
    options += "--temperatures 100 --rule cd"
    result = subprocess.run(
        [sys.executable, SCRIPT, *options.split(), "--out", tmp_path / "out"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert result.returncode == 0, result.stderr
    assert "free_energy_gap" in result.stdout
    score = r"(-\d+\.\d\d)  \[(-\d+\.\d\d), (-\d+\.\d\d|inf)\]  AIS"
    value, lower, upper = map(float, re.search(score, result.stdout).groups())
    assert lower <= value <= upper
    for name in ("filters.png", "samples.png", "history.png"):
        assert (tmp_path / "out" / name).stat().st_size > 1000
    assert keras.saving.load_model(tmp_path / "out" / "model.keras").hidden_units == 8
