"""The free-energy gap: its value, where Keras shows it, and what it leaves alone."""

import csv

import keras
import numpy as np
import pytest
import tensorflow as tf
from watched_training import assert_training_unchanged

import keras_rbm
from keras_rbm.callbacks import FreeEnergyGap


@pytest.fixture
def data():
    return np.random.default_rng(0).integers(0, 2, (40, 9)).astype("float32")


def compiled(seed=0, **kwargs):
    rbm = keras_rbm.RBM(5, num_visible=9, seed=seed, **kwargs)
    rbm.compile(keras.optimizers.SGD(0.1), rule="pcd")
    return rbm


def gap_by_hand(rbm, train, validation):
    """F by its formula, in float64."""
    kernel, visible, hidden = (
        np.asarray(variable, np.float64)
        for variable in (rbm.kernel, rbm.visible_bias, rbm.hidden_bias)
    )

    def free_energy(v):
        return -v @ visible - np.logaddexp(0.0, v @ kernel + hidden).sum(-1)

    return free_energy(validation).mean() - free_energy(train).mean()


def test_is_the_difference_of_mean_free_energies(data):
    rbm = compiled()
    callback = FreeEnergyGap(data[:25], data[25:])
    history = rbm.fit(data[:25], epochs=3, callbacks=[callback], verbose=0).history
    assert len(history["free_energy_gap"]) == 3
    expected = gap_by_hand(rbm, data[:25], data[25:])
    np.testing.assert_allclose(history["free_energy_gap"][-1], expected, atol=1e-5)


def test_is_the_difference_of_mean_log_likelihoods(data):
    rbm = compiled()
    callback = FreeEnergyGap(data[:25], data[25:])
    history = rbm.fit(data[:25], epochs=3, callbacks=[callback], verbose=0).history
    z = rbm.log_partition("exact")
    train, validation = (
        np.mean(rbm.log_likelihood(part, z)) for part in (data[:25], data[25:])
    )
    np.testing.assert_allclose(
        history["free_energy_gap"][-1], train - validation, atol=1e-5
    )


@pytest.mark.parametrize("batched", [True, False])
def test_accepts_datasets(data, batched):
    rbm = compiled()
    parts = [tf.data.Dataset.from_tensor_slices(p) for p in (data[:25], data[25:])]
    if batched:
        parts = [part.batch(10) for part in parts]
    history = rbm.fit(data, callbacks=[FreeEnergyGap(*parts)], verbose=0).history
    expected = gap_by_hand(rbm, data[:25], data[25:])
    np.testing.assert_allclose(history["free_energy_gap"][0], expected, atol=1e-5)


def test_later_callbacks_and_the_progress_bar_see_it(data, tmp_path, capsys):
    path = tmp_path / "log.csv"
    callbacks = [FreeEnergyGap(data[:25], data[25:]), keras.callbacks.CSVLogger(path)]
    history = compiled().fit(data, epochs=2, callbacks=callbacks, verbose=2).history
    assert capsys.readouterr().out.count("free_energy_gap: ") == 2
    with open(path) as file:
        logged = [float(row["free_energy_gap"]) for row in csv.DictReader(file)]
    assert logged == history["free_energy_gap"]


def test_early_stopping_acts_on_it(data):
    callbacks = [
        FreeEnergyGap(data[:25], data[25:]),
        keras.callbacks.EarlyStopping("free_energy_gap", mode="min", baseline=-1e3),
    ]
    history = compiled().fit(data, epochs=9, callbacks=callbacks, verbose=0)
    assert len(history.epoch) == 2  # Keras never stops after the first epoch


def test_a_deep_model_has_the_gap_of_its_bound(data):
    dbm = keras_rbm.DBM([4, 3], seed=0)
    dbm.compile(keras.optimizers.SGD(0.01), rule="pcd")
    callback = FreeEnergyGap(data[:25], data[25:], every=2)
    history = dbm.fit(data, epochs=3, callbacks=[callback], verbose=0).history
    assert len(history["free_energy_gap"]) == 1
    dbm = keras_rbm.DBM([4, 3], seed=0)
    dbm.compile(keras.optimizers.SGD(0.01), rule="pcd")
    dbm.fit(data, epochs=2, verbose=0)
    energies = dbm.variational_free_energy(data).numpy()
    expected = energies[25:].mean() - energies[:25].mean()
    np.testing.assert_allclose(history["free_energy_gap"][0], expected, atol=1e-5)


def test_training_goes_on_as_without_it(data):
    assert_training_unchanged(compiled, data, FreeEnergyGap(data[:25], data[25:]))


@pytest.mark.parametrize(
    ("train", "validation", "message"),
    [
        (np.zeros((4, 8)), np.zeros((4, 9)), r"train of shape \(examples, 9\)"),
        (np.zeros((4, 9)), np.full((4, 9), 2.0), "validation, states of Ber"),
        (np.full((4, 9), np.nan), np.zeros((4, 9)), "finite train"),
        (np.zeros((4, 9)), np.zeros((0, 9)), "at least one example"),
    ],
)
def test_bad_data_stop_before_the_first_step(data, train, validation, message):
    rbm = compiled()
    before = rbm.kernel.numpy()
    with pytest.raises(ValueError, match=message):
        rbm.fit(data, callbacks=[FreeEnergyGap(train, validation)], verbose=0)
    np.testing.assert_array_equal(rbm.kernel, before)


def test_another_model_is_refused():
    model = keras.Sequential([keras.Input((9,)), keras.layers.Dense(1)])
    model.compile(loss="mse")
    callback = FreeEnergyGap(np.zeros((4, 9)), np.zeros((4, 9)))
    with pytest.raises(TypeError, match="a model of p"):
        model.fit(np.zeros((4, 9)), np.zeros((4, 1)), callbacks=[callback], verbose=0)


def test_what_is_no_data_is_refused():
    with pytest.raises(TypeError, match="Expected an array of numbers"):
        FreeEnergyGap("train", np.zeros((4, 9)))


def test_models_with_input_are_refused(data):
    crbm = keras_rbm.CRBM(4, seed=0)
    crbm.compile("sgd", rule="maximum_likelihood")
    with pytest.raises(TypeError, match="a model of p"):
        crbm.fit(data, data, callbacks=[FreeEnergyGap(data, data)], verbose=0)
