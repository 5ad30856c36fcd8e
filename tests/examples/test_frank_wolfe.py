"""The experiments with Frank-Wolfe run, go on after a cut, and are reported."""

import functools
import json
import shutil
from types import SimpleNamespace

import numpy as np
import pytest

import keras_rbm as kr


@pytest.fixture
def script(import_example, monkeypatch):
    script = import_example("papers.frank_wolfe.experiment")

    def load(name):
        """Returns 12 pixels that four hidden causes switch on."""
        rng = np.random.default_rng(0)
        splits = {}
        for split, rows in (("train", 300), ("validation", 100), ("test", 100)):
            labels = rng.integers(0, 4, rows)
            pixels = np.repeat(np.eye(4)[labels], 3, axis=1)
            noise = rng.random(pixels.shape) < 0.05
            splits[split] = np.abs(pixels - noise).astype("float32"), labels
        return splits

    monkeypatch.setattr(script, "load", load)
    monkeypatch.setattr(script, "STRIDE", 2)
    monkeypatch.setattr(script.scores, "CLASSIFIED", 2)
    eagerly = functools.partialmethod(kr.InfiniteRBM.compile, run_eagerly=True)
    monkeypatch.setattr(kr.InfiniteRBM, "compile", eagerly)
    return script


def arguments(**kwargs):
    given = {
        "set": "mnist",
        "rule": "cd",
        "temperatures": 20,
        "max_units": 5,
        "batch_size": 300,
    }
    given |= {"samples": 100, "l2": 0.02, "halving": 20, "epochs": 2, "rate": 0.05}
    given |= {"begin": 0, "until": 10**9, "cd_batch_size": 50, "last_rate": 0.0}
    given |= {"rows": None, "starts": ["fw", "0"], "turns": 2}
    return SimpleNamespace(**given | kwargs)


@pytest.mark.slow
def test_runs_are_kept_over_a_cut_and_reported(script, page_of, tmp_path, monkeypatch):
    records = tmp_path / "frank_wolfe"
    records.mkdir()
    script.grow(arguments(until=3, rows=200), tmp_path, records)
    grown = json.loads((records / "mnist.grow.0.json").read_text())
    assert [point["size"] for point in grown["points"]] == [2]
    assert "error" in grown["points"][0] and len(grown["seconds"]) >= 3
    script.grow(arguments(begin=2, samples=200), tmp_path, records)
    later = json.loads((records / "mnist.grow.2.json").read_text())
    assert [point["size"] for point in later["points"]] == [4]
    assert "error" not in later["points"][0]

    whole = script.scores.score
    monkeypatch.setattr(script.scores, "score", cut)
    with pytest.raises(KeyboardInterrupt):
        script.train(arguments(), 2, "0", tmp_path, records)
    monkeypatch.setattr(script.scores, "score", whole)
    clock = json.loads((tmp_path / "mnist.cd.0.2.0.05.2.json").read_text())
    with pytest.raises(ValueError, match="Give the same, or another folder"):
        script.train(arguments(cd_batch_size=60), 2, "0", tmp_path, records)
    script.train(arguments(), 2, "0", tmp_path, records)
    script.train(arguments(), 2, "fw", tmp_path, records)
    script.train(arguments(rule="pt"), 2, "fw", tmp_path, records)
    record = json.loads((records / "mnist.cd.0.2.0.05.2.json").read_text())
    assert record["seconds"] == pytest.approx(sum(clock["seconds"]), abs=0.06)
    assert record["epochs"] == 2 and record["units"] == 2
    assert [chains["sweeps"] for chains in record["chains"]] == [10, 1000]
    assert all(0.0 < chains["pixels"] < 12.0 for chains in record["chains"])
    for kind in ("pixels", "grown", "sparse", "network"):
        script.classify(arguments(), kind, 2, tmp_path, records)
    features = json.loads((records / "mnist.features.grown.2.json").read_text())
    assert features["error"] == pytest.approx(grown["points"][0]["error"])
    monkeypatch.setattr(script.features, "COMPONENTS", (3, 12))
    with pytest.raises(SystemExit, match="`train` it first"):
        script.project(arguments(rate=0.1), 2, tmp_path, records)
    script.project(arguments(), 2, tmp_path, records)
    projected = json.loads((records / "mnist.components.2.json").read_text())["errors"]
    assert projected["grown"]["12"] == pytest.approx(features["error"])  # all of 12
    assert projected["0"]["all"] == pytest.approx(record["error"])
    script.clock(arguments(), 2, tmp_path, records)
    timed = json.loads((records / "mnist.time.2.json").read_text())
    assert len(timed["growing"]) == len(timed["training"]) == 2

    text = page_of("frank_wolfe", records)
    assert f"| 2 | {grown['points'][0]['validation_running']:.2f} | " in text
    for start in ("grown", "random, best of 1"):
        assert f"| 2 | 2 | 0.05 to 0 | {start} | " in text
    assert "| of the grown model | 2 | " in text
    assert (
        f" | {record['test']:.2f} | [" in text
        and f" | {record['error']:.2f} | " in text
    )
    assert "The paper's gap chose 460 units." in text
    tables = text[text.index("* From 0 to ") : text.index("| rule |")].strip()
    assert text.count(tables) == 1
    shutil.copytree(records, records / "earlier")
    assert page_of("frank_wolfe", records).count(tables) == 2


def cut(*args):
    raise KeyboardInterrupt


def test_what_is_done_and_what_is_missing(script, tmp_path, capsys):
    settings = {"set": "mnist", "start": "fw", "size": 2, "rate": 0.05, "epochs": 2}
    settings |= {"last_rate": 0.0, "batch_size": 50, "temperatures": 20}
    (tmp_path / "mnist.cd.fw.2.0.05.2.json").write_text(json.dumps(settings))
    script.train(arguments(), 2, "fw", tmp_path, tmp_path)
    assert "Skipped" in capsys.readouterr().out
    with pytest.raises(SystemExit, match=r"is there, with \{'batch_size': 50\}"):
        script.train(arguments(cd_batch_size=60), 2, "fw", tmp_path, tmp_path)
    with pytest.raises(SystemExit, match="grow to it first"):
        script.train(arguments(), 4, "fw", tmp_path, tmp_path)


def test_a_stage_ends_where_the_next_begins(script):
    """The first went on to 60, from where the second did not begin."""
    first, second = (
        {"start": "grow", "begin": begin, "points": [{"size": s} for s in sizes]}
        for begin, sizes in ((0, (20, 40, 60)), (40, (60, 80)))
    )
    stages = script.results.stages([second, {"start": "fw"}, first])
    sizes = [[point["size"] for point in stage["points"]] for stage in stages]
    assert sizes == [[20, 40], [60, 80]]
