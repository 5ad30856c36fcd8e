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
def call_main(tmp_path, monkeypatch, capsys):
    """Returns a function that calls `main` of a module with the script's arguments."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(EXAMPLES)  # as the script's own folder is

    def call(main, *arguments):
        monkeypatch.setattr(sys, "argv", ["script.py", *map(str, arguments)])
        main()
        return capsys.readouterr().out

    return call


@pytest.fixture
def run_script(call_main):
    """Returns a function that runs an example as `python examples/script.py` does."""

    def run(script, options, out=None):
        out = [] if out is None else ["--out", out]
        path = str(EXAMPLES / script)
        return call_main(
            lambda: runpy.run_path(path, run_name="__main__"), *options.split(), *out
        )

    return run


@pytest.fixture
def import_example(monkeypatch):
    """Returns a function that imports a module of `examples`."""
    monkeypatch.syspath_prepend(ROOT)
    return lambda name: importlib.import_module(f"examples.{name}")


@pytest.fixture
def page_of(import_example):
    """Returns a function of a page of results and records to what the page shows."""

    def fill(name, records):
        text = (ROOT / "docs" / "results" / f"{name}.md").read_text()
        with matplotlib.rc_context({"backend": "agg"}):
            filled = outputs.filled(text, f"{name}.md", records)
        return re.sub(r"<!--.*?-->\n", "", filled, flags=re.DOTALL)

    return fill
