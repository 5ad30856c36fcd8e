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


def test_structured_head(run_script, tmp_path, real_data, monkeypatch):
    """Goes on from its record: a second call adds a method."""
    monkeypatch.setenv("TFDS_DATA_DIR", str(real_data / "tfds"))
    record = tmp_path / "record.json"
    options = "--images 100 --epochs 1 --validation 20 --likelihoods 2 --record "
    for methods in ("independent", "independent likelihood"):
        run_script("structured_head.py", f"{options}{record} --methods {methods}")
    runs = json.loads(record.read_text())["runs"]
    assert set(runs) == {"occluded_independent", "occluded_likelihood"}
    low, high = runs["occluded_likelihood"]["test"]["interval"]
    assert low <= runs["occluded_likelihood"]["test"]["log_likelihood"][0] <= high
    assert "pixel_error" in runs["occluded_likelihood"]["difference"]
