"""Example scripts run in the test's own process: TensorFlow is imported once."""

import importlib
import pathlib
import re
import runpy
import sys

import matplotlib
import outputs
import pytest

ROOT = pathlib.Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


@pytest.fixture
def run_script(tmp_path, monkeypatch, capsys):
    """Returns a function that runs an example as `python examples/script.py` does."""

    def run(script, options, out=None):
        arguments = [script, *options.split()]
        if out is not None:
            arguments += ["--out", str(out)]
        monkeypatch.setattr(sys, "argv", arguments)
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(EXAMPLES)  # as the script's own folder is
        runpy.run_path(str(EXAMPLES / script), run_name="__main__")
        return capsys.readouterr().out

    return run


@pytest.fixture
def import_paper(monkeypatch):
    """Returns a function that imports a module of `examples/papers`."""
    monkeypatch.syspath_prepend(ROOT)
    return lambda name: importlib.import_module(f"examples.papers.{name}")


@pytest.fixture
def page_of(import_paper):
    """Returns a function of a page of results and records to what the page shows."""

    def fill(name, records):
        text = (ROOT / "docs" / "results" / f"{name}.md").read_text()
        with matplotlib.rc_context({"backend": "agg"}):
            filled = outputs.filled(text, f"{name}.md", records)
        return re.sub(r"<!--.*?-->\n", "", filled, flags=re.DOTALL)

    return fill
