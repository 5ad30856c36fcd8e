"""The restoring example runs from end to end on a tiny setting."""

import re

import keras
import pytest

import keras_rbm


@pytest.mark.slow
@pytest.mark.parametrize("task", ["complete", "flip", "occlude"])
def test_restores_and_saves(run_script, tmp_path, task):
    options = f"--task {task} --hidden 8 --epochs 3 --batch-size 100"
    shown = run_script("restore.py", options, tmp_path / "out")
    row = r"(\d+\.\d+)% +(\d+\.\d+)% +-(\d+\.\d+)"
    for name in ("pixels on their own", "conditional RBM"):
        every, changed, nats = re.search(f"{name} +{row}", shown).groups()
        assert 0 < float(every) < 50 and 0 < float(changed) < 100 and float(nats) > 0
    for name in ("restored.png", "history.png"):
        assert (tmp_path / "out" / name).stat().st_size > 1000
    model = keras.saving.load_model(tmp_path / "out" / "model.keras")
    assert isinstance(model, keras_rbm.CRBM) and model.hidden_units == 8
