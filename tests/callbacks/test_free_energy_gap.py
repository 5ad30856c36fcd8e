"""The free-energy gap: its value, where Keras shows it, and what it leaves alone."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from random_models import parameters

import keras_rbm
from keras_rbm.callbacks import FreeEnergyGap

DATA = np.random.default_rng(0).integers(0, 2, (40, 9)).astype("float32")
PARTS = TRAIN, VALIDATION = DATA[:25], DATA[25:]


def compiled(seed=0):
    rbm = keras_rbm.RBM(5, num_visible=9, seed=seed)
    rbm.compile(keras.optimizers.SGD(0.1), rule="pcd")
    return rbm


def gaps(model, *parts, epochs=3, **kwargs):
    callback = FreeEnergyGap(*parts, **kwargs)
    history = model.fit(DATA, epochs=epochs, callbacks=[callback], verbose=0).history
    return history["free_energy_gap"]


def test_is_the_difference_of_mean_free_energies():
    """By their formula, in float64, and that of the mean log-likelihoods."""
    rbm = compiled()
    logged = gaps(rbm, *PARTS)
    assert len(logged) == 3
    kernel, b, c = parameters(rbm).values()
    validation, train = (
        np.mean(-v @ b - np.logaddexp(0.0, v @ kernel + c).sum(-1))
        for v in (VALIDATION, TRAIN)
    )
    np.testing.assert_allclose(logged[-1], validation - train, atol=1e-5)
    z = rbm.log_partition("exact")
    train, validation = (np.mean(rbm.log_likelihood(part, z)) for part in PARTS)
    np.testing.assert_allclose(logged[-1], train - validation, atol=1e-5)


@pytest.mark.parametrize("batched", [True, False])
def test_accepts_datasets(batched):
    parts = [tf.data.Dataset.from_tensor_slices(part) for part in PARTS]
    if batched:
        parts = [part.batch(10) for part in parts]
    assert gaps(compiled(), *parts) == gaps(compiled(), *PARTS)


def test_the_progress_bar_shows_it(capsys):
    compiled().fit(DATA, epochs=2, callbacks=[FreeEnergyGap(*PARTS)], verbose=2)
    assert capsys.readouterr().out.count("free_energy_gap: ") == 2


def test_early_stopping_acts_on_it():
    stop = keras.callbacks.EarlyStopping("free_energy_gap", mode="min", baseline=-1e3)
    callbacks = [FreeEnergyGap(*PARTS), stop]
    history = compiled().fit(DATA, epochs=9, callbacks=callbacks, verbose=0)
    assert len(history.epoch) == 2  # Keras never stops after the first epoch


def test_a_deep_model_has_the_gap_of_its_bound():
    watched, alone = (keras_rbm.DBM([4, 3], seed=0) for _ in range(2))
    for dbm in (watched, alone):
        dbm.compile(keras.optimizers.SGD(0.01), rule="pcd")
    (logged,) = gaps(watched, *PARTS, every=2)
    alone.fit(DATA, epochs=2, verbose=0)
    energies = alone.variational_free_energy(DATA).numpy()
    expected = energies[25:].mean() - energies[:25].mean()
    np.testing.assert_allclose(logged, expected, atol=1e-5)
