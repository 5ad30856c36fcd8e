"""Scripts that measure go on from their records; by hand they say what guides quote."""

import json
import pathlib
from types import SimpleNamespace

import numpy as np
import pytest


def records_of(script):
    return json.loads(pathlib.Path(f"{script}.json").read_text())


@pytest.mark.slow
def test_calibration_resumes_and_prints_a_table(import_example, call_main):
    main = import_example("calibration").main
    options = ["--sets", "random", "--methods", "ais", "--models"]
    call_main(main, *options, 1)
    shown = call_main(main, *options, 2)
    records = records_of("calibration")
    assert [record["seed"] for record in records] == [0, 1]
    for record in records:
        ais = record["ais"]
        assert ais["lower"] <= 0.0 <= ais["upper"]
        assert abs(ais["error"]) <= 5.0 * ais["stderr"]
    assert "| `ais` | 100.0% |" in shown


@pytest.mark.slow
def test_intervals_hold_the_truth(import_example, call_main, monkeypatch, real_data):
    """Takes two hours. The table is the guide's."""
    script = import_example("calibration")
    monkeypatch.setenv("TFDS_DATA_DIR", str(real_data / "tfds"))
    manual = real_data / "caltech101_silhouettes"
    options = ["--models", 200, "--sets", *script.SETS, "--manual-dir", manual]
    call_main(script.main, *options)
    records = records_of("calibration")
    print(script.table(records, script.METHODS))
    for method in script.METHODS:
        found = [record[method] for record in records]
        holds = [r["lower"] <= 0.0 <= r["upper"] for r in found]
        z = [r["error"] / r["stderr"] for r in found if np.isfinite(r["stderr"])]
        assert np.mean(holds) >= 0.93, method
        assert 0.7 <= np.sqrt(np.mean(np.square(z))) <= 1.3, method
        assert np.abs(z).max() <= 5.0, method
        if method in ("ais", "bidirectional"):
            widths = [r["upper"] - r["lower"] for r in found]
            assert np.mean(np.less(widths, 1.0)) >= 0.95, method


@pytest.mark.slow
def test_gains_are_within_their_errors(
    import_example, call_main, monkeypatch, real_data
):
    """Takes six minutes. The table is the guide's."""
    monkeypatch.setenv("TFDS_DATA_DIR", str(real_data / "tfds"))
    sets = ["mnist", "caltech101_silhouettes", "mnist_sampled", "digits", "bars"]
    manual = real_data / "caltech101_silhouettes"
    options = ["--sets", *sets, "--seeds", 0, 1, 2, "--manual-dir", manual]
    call_main(import_example("gains").main, *options)
    records = records_of("gains")
    assert len(records) >= 200
    scores = np.array([(r["gain"] - r["exact"]) / r["gain_error"] for r in records])
    assert np.abs(scores).max() < 4.5
    assert 0.7 < np.sqrt(np.mean(scores**2)) < 1.3


@pytest.mark.slow
def test_mixing_in_equal_time(import_example, call_main):
    mixing = import_example("mixing")
    options = "--sets two_kinds --seconds 0.1 --seeds 0 --out mixing.json".split()
    shown = call_main(mixing.main, *options)
    records = records_of("mixing")
    assert len(records) == len(mixing.RULES) * len(mixing.RATES)
    assert all(np.isfinite(record["test"]) for record in records.values())
    assert all(record["epochs"] > 0 for record in records.values())
    row = shown.splitlines()[-1]
    assert row.startswith("| two_kinds |") and row.count("|") == 6


def test_the_rate_is_chosen_on_validation_data_of_the_first_seed(import_example):
    results = {
        "rna | PCD-3 | 0.3 | 0": {"validation": -3.0, "test": -1.0},
        "rna | PCD-3 | 1.0 | 0": {"validation": -2.0, "test": -5.0},
        "rna | PCD-3 | 1.0 | 1": {"validation": -9.0, "test": -7.0},
    }
    rows = import_example("mixing").rows(results)
    assert rows == [["rna", "", "", "-6.00 ± 1.41", ""]]


def test_searches_agree(import_example, call_main):
    script = import_example("searches")
    shown = call_main(script.main, "--models", "digits:3:1", "--seeds", 2)
    row = shown.splitlines()[-1]
    assert row.startswith("digits:3:1 | ") and row.endswith(" | 0")
    ends = [(0.0, 1.0), (1.5, 2.0), (0.9, float("inf"))]
    found = [SimpleNamespace(lower=low, upper=high) for low, high in ends]
    assert script.too_low(found) == 1
