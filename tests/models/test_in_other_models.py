"""Models as layers of other Keras models, and their scores in traced functions."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf
from small_models import binary, compiled, fitted, quick, reloaded

import keras_rbm as kr

X = binary()
Y = X.sum(1, keepdims=True)
LAYERS = {
    "RBM": lambda: kr.RBM(4, seed=0),
    "DBN": lambda: kr.DBN([kr.RBM(4, seed=0), kr.RBM(3, seed=1)]),
    "DBM": lambda: kr.DBM([4, 3], seed=0),
}


def sequential(*layers):
    dense = keras.layers.Dense(1, kernel_initializer="ones")
    return keras.Sequential([*layers, dense])


OUTER = {
    "sequential": sequential,
    "flatten": lambda layer: sequential(keras.layers.Flatten(), layer),
}
PAIRS = itertools.product(LAYERS, OUTER)


@pytest.mark.usefixtures("traced")
@pytest.mark.filterwarnings("ignore:Gradients do not exist")  # of visible biases
@pytest.mark.parametrize(
    "pair", quick(PAIRS, ("RBM", "flatten"), ("DBM", "sequential")), ids=str
)
def test_built_by_the_first_fit_of_another_model(pair, tmp_path):
    """Its record of the base rate could not be computed while `fit` was traced."""
    kind, outer = pair
    x = X.reshape(-1, 3, 2) if outer == "flatten" else X
    losses = []
    model = OUTER[outer](LAYERS[kind]())
    built_before = sequential(keras.Input((6,)), LAYERS[kind]())
    for network, rows in ((model, x), (built_before, X)):
        compiled(network, keras.optimizers.SGD(0.01), "mse")
        history = network.fit(rows, Y, epochs=2, verbose=0, shuffle=False).history
        losses.append(history["loss"])
    np.testing.assert_allclose(*losses, rtol=1e-5)
    np.testing.assert_array_equal(reloaded(model, tmp_path)(x), model(x))


def grown(units):
    model = kr.InfiniteRBM(4, num_visible=6, seed=0)
    for _ in range(units):
        model.insert_unit(np.ones(6), 0.0)
    return model


@pytest.mark.parametrize("functional", [False, True])
def test_an_infinite_rbm_has_a_width_there(functional, tmp_path):
    """Dense was built for no unit, or for one, the growing model's first."""
    model = sequential(grown(2))
    if functional:
        inputs = keras.Input((6,))
        model = keras.Model(inputs, keras.layers.Dense(1)(grown(2)(inputs)))
    fitted(compiled(model, "adam", "mse"), X, Y)
    assert model.layers[-1].kernel.shape == (2, 1)
    assert model.predict(X, verbose=0).shape == (40, 1)
    np.testing.assert_array_equal(reloaded(model, tmp_path)(X), model(X))


def scores(name):
    """Returns functions of a model of one kind."""
    if name == "CRBM":
        model = kr.CRBM(4, num_visible=6, num_features=6, seed=0)
        z = model.log_partition(X)
        return [
            lambda x: model.log_likelihood(x, x, z),
            lambda x: model.log_likelihood(x, x),
            lambda x: model.log_likelihood(x, x, "exact"),
            lambda x: model.free_energy(x, x),
            lambda x: model.sample(x, steps=2, seed=1),
        ]
    model = grown(2) if name == "InfiniteRBM" else LAYERS[name]()
    if not model.built:
        model.build((None, 6))
    samples = [lambda x: model.sample(5, steps=2, seed=1)]
    if name in ("DBN", "DBM"):
        return [*samples, lambda x: model.log_likelihood_bound(x, 30.0)]
    z = model.log_partition("exact")
    likelihood = [lambda x: model.log_likelihood(x, z)]
    return samples + likelihood + [model.free_energy, model.pseudo_log_likelihood]


@pytest.mark.parametrize("name", quick([*LAYERS, "CRBM", "InfiniteRBM"], "RBM", "DBN"))
def test_scores_and_samples_can_be_traced(name):
    for function in scores(name):
        values = tf.function(function)(tf.constant(X))
        np.testing.assert_allclose(values, function(X), rtol=1e-5)


def test_gradients_pass_through_the_layers_of_a_dbm():
    """Through mean field, to the kernels and to what comes before."""
    dbm = kr.DBM([4, 3], seed=0)
    dbm.build(X.shape)
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        total = tf.reduce_sum(dbm(x) ** 2)
    kernels = [v for v in dbm.trainable_variables if "kernel" in v.name]
    found = tape.gradient(total, [x, *(kernel.value for kernel in kernels)])
    assert len(kernels) == 2
    assert all(np.abs(part).max() > 0.0 for part in found)
    moved = x + 0.1 * np.sign(X - 0.5)
    change = tf.reduce_sum(dbm(moved) ** 2) - total
    linear = tf.reduce_sum(found[0] * (moved - x))
    np.testing.assert_allclose(change, linear, rtol=0.05)


@pytest.mark.usefixtures("compiled_inference")
@pytest.mark.filterwarnings("ignore:Gradients do not exist")
def test_a_crbm_that_finds_states_is_fixed_there():
    crbm = kr.CRBM(9, num_visible=9, inference="max_product", seed=0)
    model = sequential(keras.layers.Dense(4), crbm)
    fitted(compiled(model, "sgd", "mse", jit_compile=False), X, Y)
    before = crbm.kernel.numpy()
    np.testing.assert_array_equal(fitted(model, X, Y).layers[1].kernel, before)
