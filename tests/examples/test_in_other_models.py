"""Examples of Boltzmann machines in other models run on a tiny setting."""

import json

import pytest

pytestmark = pytest.mark.slow


def test_discrete_vae(run_script, tmp_path):
    options = "--dataset digits --epochs 3 --rates 0.003"
    shown = run_script("discrete_vae.py", options, tmp_path / "out")
    assert "independent" in shown
    record = json.loads((tmp_path / "out" / "scores.json").read_text())
    assert len(record["runs"]) == 2
    for run in record["runs"].values():
        assert run["elbo"] <= run["importance"] < 0.0
    assert (tmp_path / "out" / "digits.png").stat().st_size > 1000


def test_multi_label(run_script):
    shown = run_script("multi_label.py", "--epochs 1 --seeds 0")
    rows = [row for row in shown.splitlines() if row.startswith("| network, ")]
    assert len(rows) == 3
