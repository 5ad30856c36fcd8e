"""The example for scikit-learn runs from end to end on a tiny setting."""

import pathlib
import re
import runpy
import sys

import pytest
import sklearn.datasets

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


@pytest.fixture
def run(monkeypatch, capsys):
    def run(*options):
        monkeypatch.setattr(sys, "argv", ["sklearn_pipeline.py", *options])
        path = EXAMPLES / "sklearn_pipeline.py"
        runpy.run_path(str(path), run_name="__main__")
        shown = capsys.readouterr().out
        rows = re.findall(r"\| (\w[\w ]+) \| (0\.\d+) \| [\d.]+ \|", shown)
        return shown, {name: float(accuracy) for name, accuracy in rows}

    return run


def test_prints_three_accuracies(run, monkeypatch):
    load = sklearn.datasets.load_digits

    def few(**kwargs):
        return tuple(part[:200] for part in load(**kwargs))

    monkeypatch.setattr(sklearn.datasets, "load_digits", few)
    _, accuracies = run("--components", "8", "--epochs", "1")
    assert list(accuracies) == ["raw pixels", "BernoulliRBM", "RBMEstimator"]


@pytest.mark.slow
@pytest.mark.usefixtures("as_users_run")
def test_features_beat_raw_pixels(run):
    shown, accuracies = run("--search")
    assert shown.count("rbm__rule") == 6
    ours, theirs = accuracies["RBMEstimator"], accuracies["BernoulliRBM"]
    assert ours > accuracies["raw pixels"] + 0.1
    assert ours > theirs - 0.02  # two standard errors of 360 digits are 0.026
