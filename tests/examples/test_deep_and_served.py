"""The examples of deep models and of serving run on tiny settings."""

import json
import pathlib
import re
import subprocess
import sys

import keras
import pytest

from keras_rbm import DBM

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


@pytest.mark.slow
def test_dbn_classifier(run_script, tmp_path):
    options = "--layers 8 6 --epochs 1 1 --tuning 2 --labels 100 --batch-size 50 "
    options += "--least-steps 10"
    shown = run_script("dbn_classifier.py", options, tmp_path / "out")
    scores = json.loads((tmp_path / "out" / "scores.json").read_text())
    errors = scores["errors"]
    error = errors["pretrained, 100 labels"]
    spread = (error * (100 - error) / 300) ** 0.5
    assert f"{error:.2f} ± {spread:.2f} % pretrained" in shown
    assert 0 < errors["random, 100 labels"] < 100 and len(errors) == 2
    assert (tmp_path / "out" / "filters.png").stat().st_size > 1000


@pytest.mark.slow
def test_dbm_generate(run_script, tmp_path):
    options = "--layers 8 6 --epochs 1 --batch-size 400 --precision 9"
    shown = run_script("dbm_generate.py", options, tmp_path / "out")
    scores = json.loads((tmp_path / "out" / "scores.json").read_text())
    assert f"{scores['bound']:.2f}  [{scores['lower']:.2f}, " in shown
    assert scores["lower"] <= scores["bound"] <= scores["upper"] < 0
    assert (tmp_path / "out" / "samples.png").stat().st_size > 1000
    loaded = keras.saving.load_model(tmp_path / "out" / "model.keras")
    assert isinstance(loaded, DBM) and list(loaded.hidden_units) == [8, 6]


@pytest.mark.slow
def test_serve(run_script, tmp_path):
    shown = run_script("serve.py", "--hidden 8 --epochs 1 --calls 2", tmp_path / "out")
    assert float(re.search(r"from predict's: (\S+)", shown).group(1)) < 1e-6
    assert "ms served" in shown


@pytest.mark.slow
@pytest.mark.multiprocess
def test_train_on_two_devices(tmp_path):
    """In a process of its own: it divides the CPU before TensorFlow starts."""
    options = "--devices 2 --hidden 8 --epochs 1"
    script = EXAMPLES / "train_distributed.py"
    run = [sys.executable, script, *options.split(), "--out", tmp_path / "out"]
    result = subprocess.run(run, capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    shown = r"2 replicas, 1 epochs: log-likelihood -\d+\.\d\d ± \d"
    assert re.search(shown, result.stdout)
