"""A run killed at any moment and started again ends as one that was never stopped."""

import json

import keras
import numpy as np
import pytest
from killed_fit import DATA, MODELS, finished, killed
from same import assert_same
from small_models import fitted, quick

pytestmark = pytest.mark.faults

#: Of each model, between a run's first epoch and its last.
KILLS = 20


@pytest.mark.multiprocess
@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_kill_9_and_resume(name, tmp_path):
    rng = np.random.default_rng(KILLS)
    _, whole, seconds = finished(name, tmp_path / "whole")
    pause = float(np.median(seconds))
    count = run = 0
    while count < KILLS:
        folder = tmp_path / f"part {run}"
        for _ in range(min(5, KILLS - count)):
            if not killed(name, folder, pause, rng):
                break
            count += 1
        _, final, _ = finished(name, folder)
        for key, value in whole.items():
            np.testing.assert_array_equal(final[key], value, err_msg=f"{name}: {key}")
        run += 1


@pytest.fixture(scope="module")
def whole():
    """Returns the state of a run that was never stopped."""
    model = fitted(MODELS["PCD"](), DATA, batch_size=10, epochs=4)
    return [variable.numpy() for variable in model.weights]


def backed_up(folder, epochs):
    """Runs with a backup that stays; returns the model and the epochs begun."""
    model, begun = MODELS["PCD"](), []
    backup = keras.callbacks.BackupAndRestore(
        folder, double_checkpoint=True, delete_checkpoint=False
    )
    spy = keras.callbacks.LambdaCallback(
        on_epoch_begin=lambda epoch, logs: begun.append(epoch)
    )
    options = {"epochs": epochs, "callbacks": [backup, spy]}
    return fitted(model, DATA, batch_size=10, **options), begun


#: What a kill in the middle of writing, or of removing, leaves of a backup of two
#: epochs, and the epochs that are still to come.
LEFT = {
    "weights of the next epoch": (lambda record, _: _write(record, 1), [2, 3]),
    "an empty record": (lambda record, _: record.write_text(""), [2, 3]),
    "half a record": (lambda record, _: record.write_text('{"epoch"'), [2, 3]),
    "no record": (lambda record, _: record.unlink(), [2, 3]),
    "no weights": (lambda _, weights: weights.unlink(), [0, 1, 2, 3]),
}


def _write(record, epoch):
    record.write_text(json.dumps({"epoch": epoch, "batch": 0}))


#: The others are read, or not, as these are.
QUICK = "weights of the next epoch", "half a record", "no weights"


@pytest.mark.parametrize("left", quick(LEFT, *QUICK))
def test_what_a_kill_leaves_of_a_backup(left, whole, tmp_path):
    """An empty record ended in an error of JSON; without weights nothing was trained.

    A record alone told Keras that all epochs were done.
    """
    spoil, to_come = LEFT[left]
    backed_up(tmp_path, epochs=2)
    spoil(tmp_path / "training_metadata.json", tmp_path / "latest.weights.h5")
    with pytest.warns(UserWarning, match="backup's weights are of epoch"):
        model, begun = backed_up(tmp_path, epochs=4)
    assert begun == to_come
    assert_same(model.weights, whole)


def test_a_finished_run_is_not_repeated(tmp_path):
    """The last thing that a run removes is its backup: here the record went first."""
    backed_up(tmp_path, epochs=4)
    (tmp_path / "training_metadata.json").unlink()
    with pytest.warns(UserWarning, match="weights are of epoch 4"):
        model, begun = backed_up(tmp_path, epochs=4)
    assert not begun and int(model.optimizer.iterations) == 20
