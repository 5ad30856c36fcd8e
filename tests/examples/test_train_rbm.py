"""The main example runs from end to end on a tiny setting."""

import re

import keras


def test_trains_scores_and_saves(run_script, tmp_path):
    options = "--hidden 8 --epochs 2 --batch-size 400 --gibbs-steps 1 "
    options += "--precision 9 --rule cd"
    shown = run_script("train_rbm.py", options, tmp_path / "out")
    assert "free_energy_gap" in shown
    score = r"(-\d+\.\d\d)  \[(-\d+\.\d\d), (-\d+\.\d\d|inf)\]  AIS"
    value, lower, upper = map(float, re.search(score, shown).groups())
    assert lower <= value <= upper
    for name in ("filters.png", "samples.png", "history.png"):
        assert (tmp_path / "out" / name).stat().st_size > 1000
    assert keras.saving.load_model(tmp_path / "out" / "model.keras").hidden_units == 8
