"""The density-estimation benchmarks: files, baselines, and the recipe."""

import json

import numpy as np
import pytest

STATES = np.array(list(np.ndindex((2,) * 6)), "uint8")


@pytest.fixture
def density(import_example):
    """Returns a function that imports a module of the experiment."""
    return lambda name: import_example(f"papers.density.{name}")


def chain(count, seed):
    """Returns rows of a Markov chain of six columns, the last constant."""
    rng = np.random.default_rng(seed)
    rows = rng.random((count, 6)) < 0.4
    for column in range(1, 5):
        same = rng.random(count) < 0.9
        rows[:, column] = np.where(same, rows[:, column - 1], rows[:, column])
    rows[:, 5] = False
    return rows.astype("uint8")


@pytest.fixture
def folder(tmp_path):
    """Returns a folder with one set, as it is published."""
    for seed, part in enumerate(("train", "valid", "test")):
        path = tmp_path / f"chain.{part}.data"
        np.savetxt(path, chain(400, seed), fmt="%d", delimiter=",")
    return tmp_path


def test_files(density, folder):
    """Packed rows are the same as published ones."""
    load, names = density("data").load, density("data").names
    parts = {
        part: np.packbits(chain(400, seed), axis=1)
        for seed, part in enumerate(("train", "valid", "test"))
    }
    np.savez(folder / "packed.npz", columns=6, **parts)
    assert names(folder) == ["chain", "packed"]
    for one, two in zip(load(folder, "chain"), load(folder, "packed"), strict=True):
        np.testing.assert_array_equal(one, two)


def test_baselines_are_distributions(density):
    baselines = density("baselines")
    train, valid, test = (chain(2000, seed) for seed in range(3))
    found = {}
    for method, fit in baselines.METHODS.items():
        score, _ = fit(train, valid)
        assert np.exp(score(STATES)).sum() == pytest.approx(1.0, abs=1e-6)
        found[method] = np.mean(score(test))
    assert found["tree"] > found["independent"] + 0.5
    assert found["tree"] > found["mixture"] - 0.02


@pytest.mark.slow
def test_the_recipe(density, folder, call_main, monkeypatch):
    """It goes on after a cut; tempering agrees with enumeration."""
    experiment, records = density("experiment"), folder / "density"
    for name, value in (("UNITS", (4, 6)), ("EPOCHS", 2), ("UPDATES", 20)):
        monkeypatch.setattr(experiment, name, value)
    monkeypatch.setattr(experiment, "SIZES", (2, 3))
    options = "--data", folder, "--records", records, "--models", folder / "models"
    call_main(density("baselines").main, *options[:4])
    call_main(experiment.main, "chain", *options)
    call_main(experiment.main, "chain", *options, "--sizes")
    times = {path: path.stat().st_mtime_ns for path in records.glob("*.json")}
    assert call_main(experiment.main, "chain", *options) == ""
    assert times == {path: path.stat().st_mtime_ns for path in records.glob("*.json")}
    chosen = json.loads((records / "chain.chosen.json").read_text())
    assert np.ptp([chosen[z][0] for z in ("log_z", "tempering", "bidirectional")]) < 0.1
    tuned = [json.loads(path.read_text()) for path in records.glob("*.tuned.*.json")]
    best = max(record["valid"] for record in tuned)
    assert best - experiment.GAIN < chosen["valid"] <= best
    assert len(times) == 3 + 2 + len(tuned) + 1 + 2
