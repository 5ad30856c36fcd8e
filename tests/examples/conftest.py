"""Example scripts run in the test's own process: TensorFlow is imported once."""

import pathlib
import runpy
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


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
