"""Averaged weights are seen by the callbacks that follow."""

import pytest


@pytest.mark.slow
def test_prints_both_curves(run_script):
    shown = run_script("averaged_weights.py", "--hidden 8 --epochs 4")
    rows = [line.split() for line in shown.splitlines()[-4:]]
    assert [row[0] for row in rows] == ["1", "2", "3", "4"]
    weights, averages = ([float(row[column]) for row in rows] for column in (1, 2))
    assert all(-64 * 0.7 < value < 0 for value in weights + averages)
    assert weights[:2] != averages[:2]
