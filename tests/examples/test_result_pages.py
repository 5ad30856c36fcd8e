"""The result pages say what their records say."""

import importlib
import json
import math
import pathlib
import shutil

import matplotlib
import pytest

ROOT = pathlib.Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
REPORTS = [page.stem for page in RESULTS.glob("*.md")]


@pytest.mark.parametrize("name", REPORTS)
def test_page_is_what_the_records_give(name, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "examples" / "papers")
    if name == "proteins":
        pytest.importorskip("logomaker")
    report = importlib.import_module(f"{name}_report")
    records = shutil.copytree(
        RESULTS / name, tmp_path / name, ignore=shutil.ignore_patterns("*.svg")
    )
    page = tmp_path / f"{name}.md"
    with matplotlib.rc_context({"backend": "agg"}):
        report.write(records, page)
    assert page.read_text() == (RESULTS / f"{name}.md").read_text()
    figures = {path.name for path in records.glob("*.svg")}
    assert figures == {path.name for path in (RESULTS / name).glob("*.svg")}


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_first_page_quotes_the_records(page):
    text = (ROOT / page).read_text()
    runs = [
        json.loads(path.read_text())
        for path in RESULTS.glob("structured_prediction/mnist_noisy_10.fresh.MLE-BP*")
    ]
    best = min(
        (run for run in runs if run["hidden_units"] == 256),
        key=lambda run: run["validation"],
    )
    (run,) = (json.loads(path.read_text()) for path in RESULTS.glob("best_rbm/*.json"))
    assert f"| {best['test']['all']:.2f} % | 1.69 % published |" in text
    score, minutes = f"{run['log_likelihood']:.1f}", math.ceil(run["minutes"])
    assert f"| {score} in {minutes} minutes on 2 cores |" in text
