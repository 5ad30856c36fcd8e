"""Fits with a backup, in processes of their own, that can be killed at any moment."""

import time

import keras
import numpy as np
from forked import start

import keras_rbm as kr
from keras_rbm import rules
from keras_rbm.models.files.saving import state_of

EPOCHS = 6
DATA = np.random.default_rng(0).integers(0, 2, (50, 6)).astype("float32")


def _pcd():
    rbm = kr.RBM(4, num_visible=6, seed=1)
    rule = rules.PersistentContrastiveDivergence(num_chains=5)
    rbm.compile(keras.optimizers.SGD(0.1, momentum=0.5), rule=rule, jit_compile=False)
    return rbm


def _tempering():
    rbm = kr.RBM(4, num_visible=6, seed=1)
    rule = rules.ParallelTempering(num_chains=5, num_ladders=2)
    rbm.compile(keras.optimizers.Adam(0.05), rule=rule, jit_compile=False)
    return rbm


def _dbm():
    dbm = kr.DBM([4, 3], num_visible=6, seed=1)
    rule = rules.PersistentContrastiveDivergence(num_chains=5, centered=True)
    dbm.compile(keras.optimizers.Adam(0.05), rule=rule, jit_compile=False)
    return dbm


def _growing():
    model = kr.InfiniteRBM(2 * EPOCHS, num_visible=6, seed=1)
    model.compile(rule=rules.FrankWolfe(num_samples=50))
    return model


MODELS = {
    "PCD": _pcd,
    "parallel tempering": _tempering,
    "DBM": _dbm,
    "growing": _growing,
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
