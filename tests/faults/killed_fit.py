"""Fits with a backup, in processes of their own, that can be killed at any moment."""

import time

import keras
import numpy as np
from forked import start
from small_models import binary, compiled

import keras_rbm as kr
from keras_rbm import rules
from keras_rbm.models.files import state_of

EPOCHS = 6
DATA = binary(50)
SIZES = {"num_visible": 6, "seed": 1}


def _trained(model, optimizer, rule):
    return compiled(model, optimizer, rule=rule, jit_compile=False)


MODELS = {
    "PCD": lambda: _trained(
        kr.RBM(4, **SIZES),
        keras.optimizers.SGD(0.1, momentum=0.5),
        rules.PersistentContrastiveDivergence(num_chains=5),
    ),
    "parallel tempering": lambda: _trained(
        kr.RBM(4, **SIZES),
        keras.optimizers.Adam(0.05),
        rules.ParallelTempering(num_chains=5, num_ladders=2),
    ),
    "DBM": lambda: _trained(
        kr.DBM([4, 3], **SIZES),
        keras.optimizers.Adam(0.05),
        rules.PersistentContrastiveDivergence(num_chains=5, centered=True),
    ),
    "growing": lambda: compiled(
        kr.InfiniteRBM(2 * EPOCHS, **SIZES), rule=rules.FrankWolfe(num_samples=50)
    ),
}


def state(model):
    """Returns all that is saved with a model and its optimizer, a dict of arrays."""
    required, optional = state_of(model)
    saved = {name: np.array(value) for name, value in (required | optional).items()}
    for number, variable in enumerate(model.optimizer.variables):
        saved[f"optimizer {number}"] = np.array(variable)
    return saved


def train(pipe, name, folder):
    """Fits a model with a backup; tells when each epoch begins, and the final state."""
    model = MODELS[name]()
    backup = keras.callbacks.BackupAndRestore(folder, double_checkpoint=True)
    tell = keras.callbacks.LambdaCallback(
        on_epoch_begin=lambda epoch, logs: pipe.send(epoch)
    )
    options = {} if name == "growing" else {"batch_size": 10}
    model.fit(DATA, epochs=EPOCHS, callbacks=[backup, tell], verbose=0, **options)
    pipe.send(EPOCHS)
    pipe.send(state(model))


def finished(name, folder):
    """Runs to the end; returns the epochs begun, the final state, and how long each."""
    process, pipe = start(train, name, folder)
    begun, moments = [], []
    while not begun or begun[-1] != EPOCHS:
        begun.append(pipe.recv())
        moments.append(time.monotonic())
    final = pipe.recv()
    process.join()
    assert process.exitcode == 0
    return begun[:-1], final, np.diff(moments)


def killed(name, folder, pause, rng):
    """Runs up to a random moment of `fit`, and kills; returns whether it could.

    Args:
        pause: float, seconds that an epoch takes.
        rng: NumPy generator.
    """
    process, pipe = start(train, name, folder)
    epoch = pipe.recv()
    if epoch == EPOCHS:  # the last kill came after the last epoch
        process.join()
        return False
    chosen = int(rng.integers(epoch, EPOCHS))
    while epoch < chosen:
        epoch = pipe.recv()
    time.sleep(pause * rng.uniform(0.0, 1.5))
    process.kill()  # -9
    process.join()
    return True
