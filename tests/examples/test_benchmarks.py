"""The benchmarks run on tiny sizes; what they print of time is not looked at."""

import pathlib
import runpy
import sys

import pytest

BENCHMARKS = pathlib.Path(__file__).parents[2] / "examples" / "benchmarks"
SIZES = {
    "annealed_importance": "--temperatures 3 --repeats 1",
    "belief_propagation": "--batch-size 2 --sweeps 1 --repeats 1",
    "gibbs_training": "--steps 24 --repeats 1",
    "sparse_rows": "--rows 300 --batch-size 50 --density 0.2",
    "spectral_descent": "--batch_sizes 2 --repeats 1",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SIZES)
def test_benchmark(name, monkeypatch, capsys):
    options = f"{SIZES[name]} --visible 12 --hidden 6".split()
    monkeypatch.setattr(sys, "argv", [name, *options])
    runpy.run_path(str(BENCHMARKS / f"{name}.py"), run_name="__main__")
    assert "| --- |" in capsys.readouterr().out
