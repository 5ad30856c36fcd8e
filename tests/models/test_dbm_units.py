"""Deep Boltzmann machines of units that are not binary."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from model_test_case import run_file_test
from same import assert_same
from small_models import compiled, fitted, quick
from steps import gradients_of

from keras_rbm import DBM, inference, units
from keras_rbm.models.layer_variables import visible_parameters

RNG = np.random.default_rng(0)
_KIND = RNG.integers(0, 2, 80)
CATEGORIES = np.where(RNG.random((80, 3)) < 0.8, _KIND[:, None], 2)
NUMBERS = RNG.normal(3.0 * _KIND[:, None], 1.0, (80, 2))
#: Visible and hidden types of three layers or more, and data.
MODELS = {
    "categories": (units.Categorical(3), ["spin", "gaussian"], CATEGORIES),
    "numbers": ("gaussian", ["bernoulli", "bernoulli", "spin"], NUMBERS),
    "rectified": (units.Categorical(3), ["bernoulli", "double_rectified"], CATEGORIES),
    "counts": (units.Binomial(2), [units.Categorical(3), "spin"], CATEGORIES),
}


def made(name):
    visible, hidden, data = MODELS[name]
    dbm = DBM([2] * len(hidden), visible=visible, hidden=hidden, seed=0)
    return dbm, data.astype("float32")


def random_model(name):
    dbm, data = made(name)
    dbm.adapt(data)
    rng = np.random.default_rng(1)
    for variable in dbm.trainable_variables:
        size = 0.1 if "precision" in variable.name else 0.3
        variable.assign_add(rng.normal(0.0, size, variable.shape))
    return dbm, data


@pytest.mark.parametrize("name", quick(MODELS, "categories", "numbers", "counts"))
def test_gradients_are_those_of_the_exact_likelihood(name):
    """Of all variables of all layers, given states of the even ones."""
    dbm, data = random_model(name)
    states = dbm._complete(tf.constant(data), 0)
    weights = tf.fill([len(data)], 1.0 / len(data))
    potentials = dbm.potentials()
    positive = inference.conditional_moments(potentials, states, weights)
    exact = inference.exact_moments(potentials)
    exact = tf.nest.map_structure(lambda leaf: tf.cast(leaf, tf.float32), exact)
    visible, hidden = tf.nest.map_structure(
        lambda leaf: leaf[tf.newaxis], (exact.visible, exact.hidden)
    )
    negative = inference.Moments(exact.kernel, visible, hidden, tf.ones(1))
    with tf.GradientTape() as tape:
        potentials = dbm.potentials()
        loss = tf.reduce_mean(potentials.free_energy(states))
        loss += tf.cast(inference.exact_log_partition(potentials), tf.float32)
    want = tape.gradient(loss, [v.value for v in dbm.trainable_variables])
    compiled(dbm, keras.optimizers.SGD(1.0), rule="cd")
    got = gradients_of(dbm, positive, negative)
    assert_same([got[v.name] for v in dbm.trainable_variables], want, atol=3e-4)


@pytest.mark.parametrize("name", MODELS)
def test_bound_is_below_the_exact_likelihood(name):
    """Of a few rows, by log Z with the data's layer clamped."""
    dbm, data = random_model(name)
    z = dbm.log_partition("exact")
    bound = dbm.log_likelihood_bound(data[:5], z).numpy()
    posterior = inference.exact_log_partition(dbm.posterior(data[:5]))
    visible = visible_parameters(dbm)
    exact = inference.potentials.own_log_weight(visible, data[:5])
    exact = tf.cast(exact, tf.float64) + posterior - z.value
    assert np.all(exact - 0.3 < bound) and np.all(bound < exact + 1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["numbers", "rectified", "counts"])
def test_training_improves_the_bound(name, tmp_path):
    dbm, data = made(name)
    fitted(compiled(dbm, keras.optimizers.Adam(0.03), rule="pcd"), data)
    before = np.mean(dbm.log_likelihood_bound(data, "exact"))
    history = dbm.fit(data, epochs=40, batch_size=20, verbose=0).history
    assert np.isfinite(history["loss"]).all()
    assert np.mean(dbm.log_likelihood_bound(data, "exact")) > before + 0.05
    samples = dbm.sample(7, steps=20, seed=1)
    assert dbm.visible.is_state(samples.numpy()).all()
    features = dbm.predict(data, verbose=0)
    assert features.shape == dbm.compute_output_shape(data.shape)
    assert dbm.reconstruct(data).shape == (80, dbm.kernel.shape[0])
    run_file_test(dbm, data, folder=tmp_path)


@pytest.mark.slow
def test_annealing_is_within_its_error():
    dbm, _ = random_model("rectified")
    z = dbm.log_partition("ais")
    assert abs(z.value - dbm.log_partition("exact").value) < 4 * z.stderr
