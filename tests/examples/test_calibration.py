"""Intervals of log Z hold the truth: a few models here, 200 of them by hand."""

import importlib
import json
import pathlib
import sys

import numpy as np
import pytest

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


@pytest.fixture
def script(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(EXAMPLES)
    monkeypatch.chdir(tmp_path)
    return importlib.import_module("calibration")


def run(script, monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["calibration.py", *map(str, arguments)])
    script.main()
    return json.loads(pathlib.Path("calibration.json").read_text())


@pytest.mark.slow
def test_resumes_and_prints_a_table(script, monkeypatch, capsys):
    options = ["--sets", "random", "--methods", "ais"]
    run(script, monkeypatch, "--models", 1, *options)
    records = run(script, monkeypatch, "--models", 2, *options)
    assert [record["seed"] for record in records] == [0, 1]
    for record in records:
        ais = record["ais"]
        assert ais["lower"] <= 0.0 <= ais["upper"]
        assert abs(ais["error"]) <= 5.0 * ais["stderr"]
    assert "| `ais` | 100.0% |" in capsys.readouterr().out


@pytest.mark.slow
def test_intervals_hold_the_truth(script, monkeypatch, real_data):
    """Takes two hours. The table is the guide's."""
    options = ["--sets", *script.SETS, "--manual-dir"]
    options.append(real_data / "caltech101_silhouettes")
    monkeypatch.setenv("TFDS_DATA_DIR", str(real_data / "tfds"))
    records = run(script, monkeypatch, "--models", 200, *options)
    print(script.table(records, script.METHODS))
    for method in script.METHODS:
        found = [record[method] for record in records]
        holds = [r["lower"] <= 0.0 <= r["upper"] for r in found]
        z = np.array(
            [r["error"] / r["stderr"] for r in found if np.isfinite(r["stderr"])]
        )
        assert np.mean(holds) >= 0.93, method
        assert 0.7 <= np.sqrt(np.mean(z**2)) <= 1.3, method
        assert np.abs(z).max() <= 5.0, method
    for method in ("ais", "bidirectional"):
        widths = [r[method]["upper"] - r[method]["lower"] for r in records]
        assert np.mean(np.less(widths, 1.0)) >= 0.95, method
