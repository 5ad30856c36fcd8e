"""The denoising example runs from end to end on a tiny setting."""

import re

import keras
import pytest

import keras_rbm


@pytest.mark.slow
@pytest.mark.parametrize("task", ["flip", "occlude"])
def test_restores_and_saves(run_script, tmp_path, task):
    options = f"--task {task} --hidden 8 --epochs 3 --batch-size 100"
    shown = run_script("denoise.py", options, tmp_path / "out")
    row = r"(\d+\.\d+)% +(\d+\.\d+)%"
    for name in ("logistic regression", "conditional RBM"):
        every, changed = re.search(f"{name} +{row}", shown).groups()
        assert 0 < float(every) < 50 and 0 < float(changed) < 100
    for name in ("restored.png", "history.png"):
        assert (tmp_path / "out" / name).stat().st_size > 1000
    model = keras.saving.load_model(tmp_path / "out" / "model.keras")
    assert isinstance(model, keras_rbm.CRBM) and model.hidden_units == 8
