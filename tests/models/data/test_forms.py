"""Rows in any form give the same numbers."""

import keras
import numpy as np
import pytest
import scipy.sparse
import tensorflow as tf
from same import assert_same, refused
from small_models import Loader, batches, binary, compiled, fitted, generator

import keras_rbm

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
    with refused("Received: 1.01 in row 0", model):
        model.fit(data + 0.01 * (data > 0.5), verbose=0)


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
