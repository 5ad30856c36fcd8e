"""Deep Boltzmann machines of units that are not binary."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from steps import gradients_of

from keras_rbm import DBM, inference, units

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
ALL = pytest.mark.parametrize("name", MODELS)


def made(name, **kwargs):
    visible, hidden, data = MODELS[name]
    dbm = DBM([2] * len(hidden), visible=visible, hidden=hidden, seed=0, **kwargs)
    return dbm, data.astype("float32")


def random_model(name):
    dbm, data = made(name)
    dbm.adapt(data)
    rng = np.random.default_rng(1)
    for variable in dbm.trainable_variables:
        size = 0.1 if "precision" in variable.name else 0.3
        variable.assign_add(rng.normal(0.0, size, variable.shape))
    return dbm, data


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=pytest.mark.slow if n == "rectified" else [])
        for n in MODELS
    ],
)
def test_gradients_are_those_of_the_exact_likelihood(name):
    """Of all variables of all layers, given states of the even ones."""
    dbm, data = random_model(name)
    states = dbm._complete(tf.constant(data), 0)
    weights = tf.fill([len(data)], 1.0 / len(data))
    potentials = dbm.potentials()
    positive = inference.conditional_moments(potentials, states, weights)
    exact = inference.exact_moments(potentials)
    visible, hidden = tf.nest.map_structure(
        lambda leaf: tf.cast(leaf, tf.float32)[tf.newaxis],
        (exact.visible, exact.hidden),
    )
    kernel = tf.cast(exact.kernel, tf.float32)
    negative = inference.Moments(kernel, visible, hidden, tf.ones(1))
    with tf.GradientTape() as tape:
        potentials = dbm.potentials()
        loss = tf.reduce_mean(potentials.free_energy(states))
        loss += tf.cast(inference.exact_log_partition(potentials), tf.float32)
    variables = dbm.trainable_variables
    want = tape.gradient(loss, [variable.value for variable in variables])
    dbm.compile(keras.optimizers.SGD(1.0), rule="cd")
    dbm._build_training()
    before = [variable.numpy() for variable in variables]
    dbm.learner.descend([*gradients_of(dbm, positive, negative).values()])
    for variable, old, gradient in zip(variables, before, want, strict=True):
        np.testing.assert_allclose(old - variable, gradient, atol=3e-4)


@ALL
def test_bound_is_below_the_exact_likelihood(name):
    """Of a few rows, by log Z with the data's layer clamped."""
    dbm, data = random_model(name)
    z = dbm.log_partition("exact")
    bound = dbm.log_likelihood_bound(data[:5], z).numpy()
    for row, low in zip(data[:5], bound, strict=True):
        own = dbm._visible_parameters()
        posterior = dbm.posterior(row[np.newaxis])
        exact = inference.exact_log_partition(posterior)[0]
        exact += tf.cast(
            inference.potentials.own_log_weight(own, row[np.newaxis])[0], tf.float64
        )
        exact -= z.value
        assert exact - 0.3 < low < exact + 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("name", ["numbers", "rectified", "counts"])
def test_training_improves_the_bound(name, tmp_path):
    dbm, data = made(name)
    dbm.compile(keras.optimizers.Adam(0.03), rule="pcd")
    dbm.fit(data, verbose=0)
    before = np.mean(dbm.log_likelihood_bound(data, "exact"))
    history = dbm.fit(data, epochs=40, batch_size=20, verbose=0).history
    assert np.isfinite(history["loss"]).all()
    assert np.mean(dbm.log_likelihood_bound(data, "exact")) > before + 0.05
    samples = dbm.sample(7, steps=20, seed=1)
    assert dbm.visible.is_state(samples.numpy()).all()
    features = dbm.predict(data, verbose=0)
    assert features.shape == dbm.compute_output_shape(data.shape)
    assert dbm.reconstruct(data).shape == (80, dbm.kernel.shape[0])
    dbm.save(tmp_path / "dbm.keras")
    again = keras.saving.load_model(tmp_path / "dbm.keras")
    np.testing.assert_array_equal(again.predict(data, verbose=0), features)
    np.testing.assert_array_equal(again.sample(7, steps=20, seed=1), samples)


@pytest.mark.slow
def test_annealing_is_within_its_error():
    dbm, _ = random_model("rectified")
    z = dbm.log_partition("ais")
    assert abs(z.value - dbm.log_partition("exact").value) < 4 * z.stderr


def test_what_does_not_fit():
    with pytest.raises(ValueError, match="Expected inference='mean_field' for units"):
        DBM([2, 2], hidden="spin", inference="sum_product")
    with pytest.raises(ValueError, match="one hidden, or a list of 2"):
        DBM([2, 2], hidden=["spin"])
    dbm, data = random_model("categories")
    with pytest.raises(ValueError, match="binary units in pretrain"):
        dbm.pretrain(data)
    with pytest.raises(ValueError, match="binary units in to_classifier"):
        dbm.to_classifier(3)
    with pytest.raises(ValueError, match="units: whole numbers from 0 to 2"):
        dbm.reconstruct(data + 1)
