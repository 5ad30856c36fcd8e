"""Searches of a small model agree."""

import importlib
import pathlib
import sys
from types import SimpleNamespace

import pytest

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    return importlib.import_module("searches")


def test_searches_agree(script, monkeypatch, capsys):
    arguments = ["searches.py", "--models", "digits:3:1", "--seeds", "2"]
    monkeypatch.setattr(sys, "argv", arguments)
    script.main()
    *_, row = capsys.readouterr().out.splitlines()
    assert row.startswith("digits:3:1 | ") and row.endswith(" | 0")


def test_an_interval_below_another_counts(script):
    ends = [(0.0, 1.0), (1.5, 2.0), (0.9, float("inf"))]
    found = [SimpleNamespace(lower=low, upper=high) for low, high in ends]
    assert script.too_low(found) == 1
