"""Rows in any form give the same numbers."""

import keras
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import tensorflow as tf
from same import assert_same, refused
from small_models import Loader, batches, binary, compiled, fitted, generator

import keras_rbm
from keras_rbm.sklearn import RBMEstimator

DATA = binary(34)
FORMS = {
    "int": (DATA.astype("uint8"), {"batch_size": 10, "shuffle": False}),
    "tensor": (tf.constant(DATA), {"batch_size": 10, "shuffle": False}),
    "loader": (Loader(DATA), {"shuffle": False}),
    "dataset": (batches(DATA), {}),
    "generator": (generator(DATA), {"steps_per_epoch": 4}),
}


def rbm(**options):
    # The prior of a pipeline counts its last batch as full.
    model = keras_rbm.RBM(4, num_visible=6, kernel_regularizer=None, seed=0, **options)
    return compiled(model, keras.optimizers.SGD(0.1))


@pytest.mark.parametrize("name", FORMS)
def test_the_same_training(name):
    data, options = FORMS[name]
    want = fitted(rbm(), DATA, batch_size=10, shuffle=False).kernel
    np.testing.assert_allclose(fitted(rbm(), data, **options).kernel, want, rtol=1e-6)


@pytest.mark.usefixtures("traced")
def test_the_same_training_of_pairs():
    def crbm():
        model = keras_rbm.CRBM(4, seed=0, kernel_regularizer=None)
        return compiled(model, "sgd", rule="maximum_likelihood")

    x = binary(34, 5, seed=1)
    want = fitted(crbm(), x, DATA, batch_size=10, shuffle=False).kernel
    found = fitted(crbm(), batches(x, DATA)).kernel
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-7)
    types = (tf.float32, tf.float32)
    data = tf.data.Dataset.from_generator(lambda: iter([(x, DATA)]), output_types=types)
    data = data.apply(tf.data.experimental.assert_cardinality(1))
    for rule in ("maximum_likelihood", "cd"):
        model = compiled(crbm(), "sgd", rule=rule)
        assert np.isfinite(model.fit(data, verbose=0).history["loss"]).all()


WEIGHTS = np.random.default_rng(1).random(34).astype("float32") * (DATA[:, 0] > 0)


@pytest.mark.parametrize(
    ("data", "weights"),
    [
        ([DATA], None),
        ([tf.constant(DATA)], None),
        ([DATA.tolist()], None),
        ([batches(DATA, np.arange(34))], None),
        ([tf.data.Dataset.from_tensor_slices((DATA, np.arange(34)))], None),
        ([DATA, WEIGHTS], WEIGHTS),
        ([scipy.sparse.csr_array(DATA), WEIGHTS], WEIGHTS),
        ([tf.data.Dataset.from_tensor_slices((DATA, (), WEIGHTS)).batch(7)], WEIGHTS),
    ],
)
def test_adapt(data, weights):
    """Weights that a dataset has were ignored."""
    rbm = keras_rbm.RBM(4)
    rbm.adapt(*data)
    mean = np.average(DATA, 0, weights)
    np.testing.assert_allclose(rbm.base_rate, mean, rtol=1e-5)


def test_lists_and_variables_are_data():
    model = rbm()
    predicted = [model.predict(x, verbose=0) for x in (DATA.tolist(), DATA)]
    np.testing.assert_array_equal(*predicted)
    for variable in (tf.Variable(DATA), keras.Variable(DATA)):
        assert_same([model.free_energy(variable)], [model.free_energy(DATA)])


def test_rounded_values_of_a_scaler_are_states():
    """`MinMaxScaler` gives 1 + 2e-16, `predict` took it, and `fit` did not."""
    data = DATA.astype("float64")
    data[0, 0], data[1, 0] = 1.0 + 2e-16, -1e-7
    model = fitted(compiled(keras_rbm.RBM(3, seed=0)), data)
    model.evaluate(data, verbose=0)
    assert np.all(np.isfinite(model.free_energy(data)))
    assert model.predict(data, verbose=0).shape == (34, 3)


BEYOND = DATA * 1.02  # of a scaler that was fitted to other rows
CALLS = "fit evaluate predict predict_on_batch free_energy log_likelihood".split()


@pytest.mark.parametrize("call", CALLS)
def test_rows_beyond_a_scaler_are_refused(call):
    """`predict` warned of an array, and took a pipeline without a word."""
    model = compiled(keras_rbm.RBM(3, num_visible=6, seed=0))
    with refused(r"1.02 in row .*MinMaxScaler\(clip=True\)", model):
        getattr(model, call)(BEYOND)
    if call != "predict_on_batch":
        with refused(r"to 1.02.*MinMaxScaler\(clip=True\)", model):
            getattr(model, call)(batches(BEYOND))


def test_targets_beyond_a_scaler_are_refused():
    model = compiled(keras_rbm.CRBM(3, num_visible=6, num_features=6, seed=0))
    for call in (model.fit, model.evaluate, model.free_energy, model.log_likelihood):
        with refused(r"1.02 in row .*MinMaxScaler\(clip=True\)", model):
            call(BEYOND, BEYOND)
    assert model.predict(BEYOND, verbose=0).shape == DATA.shape


SIGNS = np.random.default_rng(2).integers(-1, 2, (20, 4)).astype("float32")
BYTES = np.array([[b"yes", b"no"]] * 20)
RECORDS = np.array([(1.0, b"yes")] * 20, [("a", float), ("b", "S3")])
ROWS = tf.data.Dataset.from_tensor_slices({"x": DATA}).batch(10)
WEIGHTED = tf.data.Dataset.from_tensor_slices((DATA, DATA[:, 0])).batch(10)
UNREADABLE = {
    "ratings": (SIGNS, ValueError, "visible='spin'.*missing='absent'"),
    "bytes": (BYTES, TypeError, "column.str.decode"),
    "bytes as objects": (BYTES.astype(object), TypeError, "column.str.decode"),
    "frame of bytes": (pd.DataFrame(BYTES), TypeError, "column.str.decode"),
    "ARFF": (pd.DataFrame(RECORDS), TypeError, "column.str.decode"),
    "records": (RECORDS, TypeError, r"pandas.DataFrame\(records\)"),
    "dicts": (ROWS, TypeError, r"dataset.map\(lambda row: row\['x'\]\)"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_files_as_people_have_them(name):
    data, error, words = UNREADABLE[name]
    width = getattr(data, "shape", DATA.shape)[-1]
    model = compiled(keras_rbm.RBM(3, num_visible=width, seed=0))
    for call in (model.fit, model.predict, model.evaluate, model.free_energy):
        with refused(words, model, error=error):
            call(data)
    if "decode" in words:
        with refused(words, error=error):
            RBMEstimator(3).fit(data)


def test_signs_with_gaps_are_ratings():
    rows = np.where(SIGNS == 0, np.nan, SIGNS)
    model = keras_rbm.RBM(3, visible="spin", missing="absent", seed=0)
    compiled(model).fit(rows, verbose=0)
    assert model.marginals(rows, steps=2).shape == rows.shape


def test_pairs_of_rows_and_weights():
    """The second part of a batch is y, as for any Keras model."""
    model = rbm()
    for call in (model.fit, model.evaluate):
        with refused(
            r"Weights are .*dataset.map\(lambda x, w: \(x, \(\), w\)\)", model
        ):
            call(WEIGHTED)
    data = WEIGHTED.map(lambda x, w: (x, (), w))
    want = fitted(rbm(), DATA, sample_weight=DATA[:, 0], batch_size=10, shuffle=False)
    np.testing.assert_allclose(fitted(rbm(), data).kernel, want.kernel, rtol=1e-6)


def test_evaluate_is_unbiased_whatever_the_batch_size():
    """A fixed seed for every batch used to probe the same units again and again."""
    rng = np.random.default_rng(0)
    model = compiled(keras_rbm.RBM(4, num_visible=30, seed=0))
    model.visible_bias.assign(rng.normal(0, 3, 30))
    data = (rng.random((3000, 30)) < 0.5).astype("float32")
    loss = -keras_rbm.inference.pseudo_log_likelihood(model.potentials(), data)
    spread = 30 * 3.0 / np.sqrt(3000)
    for batch_size in (10, 100, 1000):
        found = model.evaluate(data, batch_size=batch_size, verbose=0)
        assert abs(found - np.mean(loss)) < 4 * spread
