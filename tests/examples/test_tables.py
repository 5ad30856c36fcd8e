"""The experiment on synthetic tables: rows that others made are judged as ours are."""

import json

import numpy as np
import pandas as pd


def test_ways_are_compared(import_example, call_main, monkeypatch, tmp_path):
    experiment = import_example("papers.tables.experiment")
    results = import_example("papers.tables.results")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(0, 90, 120), "status": ["a", "b"] * 60})
    frame["time"] = frame["age"] + rng.normal(size=120)
    monkeypatch.setattr(experiment, "parts", lambda name: (frame[:90], frame[90:]))
    records, others = tmp_path / "records", tmp_path / "others"
    others.mkdir()
    options = ["pbc", "--records", records]
    call_main(experiment.main, *options, "--save", others)
    learned = pd.read_csv(others / "pbc.train.csv")
    assert len(learned) == 90
    made = learned.assign(age=learned["age"] + 0.3)
    made.to_csv(others / "pbc.tvae.csv", index=False)
    (others / "pbc.tvae.json").write_text(json.dumps({"fit_cpu_seconds": 7.0}))
    options += ["--ways", "rbm", "tvae", "ctgan", "--read", others, "--epochs", "2"]
    call_main(experiment.main, *options)
    found = results.read(records)["pbc"]
    assert set(found) == {"rbm", "tvae"} and found["tvae"]["seconds"] == 7.0
    assert found["tvae"]["copies"]["value"] == 1.0  # whole numbers are rounded
    assert found["rbm"]["column_shapes"]["value"] > 0.8
    texts = [claim for claim, *_ in results.claims(results.read(records))]
    assert len(texts) == 6
