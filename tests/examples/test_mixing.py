import json

import numpy as np
import pytest


@pytest.fixture
def mixing(import_paper):  # which puts the root on the path
    from examples import mixing

    return mixing


@pytest.mark.slow
def test_runs_of_equal_time(mixing, tmp_path, monkeypatch, capsys):
    out = tmp_path / "mixing.json"
    options = ["--seconds", "0.1", "--seeds", "0", "--out", str(out)]
    arguments = ["mixing", "--sets", "two_kinds", *options]
    monkeypatch.setattr("sys.argv", arguments)
    mixing.main()
    records = json.loads(out.read_text())
    assert len(records) == len(mixing.RULES) * len(mixing.RATES)
    assert all(np.isfinite(record["test"]) for record in records.values())
    assert all(record["epochs"] > 0 for record in records.values())
    printed = capsys.readouterr().out.splitlines()[-1]
    assert printed.startswith("| two_kinds |") and printed.count("|") == 6


def test_the_rate_is_chosen_on_validation_data_of_the_first_seed(mixing):
    def record(validation, test):
        return {"validation": validation, "test": test}

    results = {
        "rna | PCD-3 | 0.3 | 0": record(-3.0, -1.0),
        "rna | PCD-3 | 1.0 | 0": record(-2.0, -5.0),
        "rna | PCD-3 | 1.0 | 1": record(-9.0, -7.0),
    }
    assert mixing.rows(results) == [["rna", "", "", "-6.00 ± 1.41", ""]]
