"""The result pages say what their records say."""

import importlib
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
