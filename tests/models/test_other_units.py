"""Conditional and deep models of units that are not binary."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf
from model_test_case import run_file_test
from same import assert_same
from small_models import compiled, fitted, quick
from steps import gradients_of

from keras_rbm import CRBM, DBM, RBM, inference, units
from keras_rbm.models.layer_variables import visible_parameters

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4)).astype("float32")
_SCORE = X @ RNG.normal(size=(4, 3))
JOINED = units.Joined([("bernoulli", 1), (units.Categorical(3), 1), ("gaussian", 1)])
_YES = (_SCORE[:, 0] > 0).astype(float)
#: Visible units, and targets that depend on X.
VISIBLE = {
    "spin": ("spin", np.sign(_SCORE)),
    "binomial": (units.Binomial(3), RNG.binomial(3, 1 / (1 + np.exp(-_SCORE)))),
    "categorical": (units.Categorical(3), _SCORE.argmax(1)[:, None] * [1, 0] % 3),
    "gaussian": ("gaussian", 50.0 + 3.0 * _SCORE + RNG.normal(size=(60, 3))),
    "joined": (JOINED, np.stack([_YES, _SCORE.argmax(1), _SCORE[:, 1]], 1)),
}
_KIND = RNG.integers(0, 2, 80)
CATEGORIES = np.where(RNG.random((80, 3)) < 0.8, _KIND[:, None], 2)
NUMBERS = RNG.normal(3.0 * _KIND[:, None], 1.0, (80, 2))
#: Visible and hidden types of deep models, and data.
DEEP = {
    "categories": (units.Categorical(3), ["spin", "gaussian"], CATEGORIES),
    "numbers": ("gaussian", ["bernoulli", "bernoulli", "spin"], NUMBERS),
    "rectified": (units.Categorical(3), ["bernoulli", "double_rectified"], CATEGORIES),
    "counts": (units.Binomial(2), [units.Categorical(3), "spin"], CATEGORIES),
}


def made(name, hidden="bernoulli", **kwargs):
    visible, targets = VISIBLE[name]
    return CRBM(2, visible=visible, hidden=hidden, seed=0, **kwargs), targets


def deep(name):
    visible, hidden, data = DEEP[name]
    dbm = DBM([2] * len(hidden), visible=visible, hidden=hidden, seed=0)
    return dbm, data.astype("float32")


def randomized(model):
    rng = np.random.default_rng(1)
    for variable in model.trainable_variables:
        size = 0.1 if "precision" in variable.name else 0.3
        variable.assign_add(rng.normal(0.0, size, variable.shape))
    return model


def random_crbm(name, hidden="spin"):
    """Returns a built model with random parameters, and its targets."""
    crbm, targets = made(name, hidden, inference="mean_field")
    fitted(compiled(crbm, keras.optimizers.SGD(0.0), rule="cd"), X, targets)
    return randomized(crbm), targets.astype("float32")


def random_dbm(name):
    dbm, data = deep(name)
    dbm.adapt(data)
    return randomized(dbm), data


def scaled():
    """Returns an RBM of standardized units, and its data."""
    rbm = RBM(3, visible=units.Gaussian(standardize=True), seed=0)
    data = RNG.normal(3, 2, (40, 2)).astype("float32")
    rbm.adapt(data)
    return randomized(rbm), data


#: Functions that return a model, and states of its visible layer.
EXACT = {"standardized": scaled}
EXACT |= {name: lambda name=name: random_crbm(name) for name in VISIBLE}
EXACT |= {name: lambda name=name: random_dbm(name) for name in DEEP}
QUICK = "standardized", "gaussian", "joined", "categories", "numbers", "counts"


@pytest.mark.parametrize("name", quick(EXACT, *QUICK))
def test_gradients_are_those_of_the_exact_likelihood(name):
    """Of all variables, by the moments of each example's model."""
    model, states = EXACT[name]()
    features = tf.constant(X) if isinstance(model, CRBM) else None
    states = tf.constant(states)
    if isinstance(model, DBM):
        states = model._complete(states, 0)
    potentials = model.potentials(features)
    weights = tf.fill([len(states)], 1.0 / len(states))
    positive = inference.conditional_moments(potentials, states, weights)
    exact = inference.exact_moments(potentials)
    exact = tf.nest.map_structure(lambda leaf: tf.cast(leaf, tf.float32), exact)
    if features is None:
        exact = tf.nest.map_structure(lambda leaf: leaf[tf.newaxis], exact)
        weights = tf.ones(1)
    kernel = tf.einsum("n,nvh->vh", weights, exact.kernel)
    negative = inference.Moments(kernel, exact.visible, exact.hidden, weights)
    with tf.GradientTape() as tape:
        potentials = model.potentials(features)
        log_z = tf.cast(inference.exact_log_partition(potentials), tf.float32)
        loss = tf.reduce_mean(potentials.free_energy(states) + log_z)
    variables = model.trainable_variables
    want = tape.gradient(loss, [variable.value for variable in variables])
    compiled(model, keras.optimizers.SGD(1.0), rule="cd")
    got = gradients_of(model, positive, negative, features)
    assert_same([got[v.name] for v in variables], want, atol=3e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gaussian", "joined"])
def test_likelihood_by_default_is_annealed(name):
    crbm, targets = random_crbm(name)
    z = crbm.log_partition(X[:5])
    exact = crbm.log_partition(X[:5], "exact").value
    assert np.all(abs(z.value - exact) < 4.0 * z.stderr + 0.01)
    scores = crbm.log_likelihood(X[:5], targets[:5])
    want = crbm.log_likelihood(X[:5], targets[:5], "exact")
    np.testing.assert_allclose(scores, want, atol=0.2)


RULES = itertools.product(VISIBLE, ["cd", "maximum_likelihood", "cd_perceptron"])
QUICK_RULES = [("joined", "maximum_likelihood"), ("spin", "cd_perceptron")]


@pytest.mark.parametrize("pair", quick(RULES, *QUICK_RULES), ids=str)
def test_training_learns_the_targets(pair):
    name, rule = pair
    crbm, targets = made(name)
    compiled(crbm, keras.optimizers.Adam(0.05), rule=rule, metrics=["mae"])
    before = _error(fitted(crbm, X, targets), targets)
    history = crbm.fit(X, targets, epochs=60, batch_size=20, verbose=0).history
    assert np.isfinite(history["loss"]).all()
    assert _error(crbm, targets) < 0.8 * before


def _error(crbm, targets):
    return abs(crbm.predict_map(X) - targets).numpy().mean()


@pytest.mark.slow
@pytest.mark.parametrize("name", VISIBLE)
def test_predictions_samples_files(name, tmp_path):
    crbm, targets = random_crbm(name)
    means = crbm.predict(X, verbose=0)
    beliefs = inference.mean_field(crbm.potentials(X), max_iterations=50)
    np.testing.assert_allclose(means, beliefs.visible, atol=1e-4)
    assert crbm.visible.is_state(crbm.predict_map(X).numpy()).all()
    gaps = np.where(np.arange(targets.shape[1]) < 1, targets, np.nan)
    states = crbm.sample(X, initial_visible=gaps, steps=5, seed=0)
    assert crbm.visible.is_state(states.numpy()).all()
    np.testing.assert_array_equal(states[:, 0], targets[:, 0])
    run_file_test(crbm, X, targets, folder=tmp_path)


def test_inference_by_default():
    assert isinstance(made("spin")[0].inference, inference.MeanField)
    crbm, targets = made("categorical")
    assert isinstance(crbm.inference, inference.BeliefPropagation)
    fitted(compiled(crbm), X, targets)
    assert isinstance(crbm.inference, inference.Exact)  # of nine states
    bethe = crbm.log_partition(X, "bethe").value
    np.testing.assert_allclose(bethe, crbm.log_partition(X, "exact").value, atol=0.01)


def test_the_likeliest_count_of_many():
    """It was the mode of a mean that had been cut at 0.999."""
    counts = units.Binomial(5000)
    crbm = CRBM(2, visible=counts, num_visible=1, num_features=4, seed=0)
    crbm.visible_bias.assign([30.0])
    assert (crbm.predict_map(X) == 5000.0).numpy().all()


def test_metrics_of_several_kinds_of_columns():
    """Means stay means beside a category: they were all taken for modes."""
    crbm, targets = random_crbm("joined")
    means = crbm.predict(X, verbose=0)
    predicted = crbm._prediction(tf.constant(X), None).numpy()
    np.testing.assert_allclose(predicted[:, [0, 2]], means[:, [0, 4]], rtol=1e-5)
    np.testing.assert_array_equal(predicted[:, 1], means[:, 1:4].argmax(1))


@pytest.mark.parametrize("name", DEEP)
def test_bound_of_a_deep_model_is_below_the_exact_likelihood(name):
    """Of a few rows, by log Z with the data's layer clamped."""
    dbm, data = random_dbm(name)
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
    dbm, data = deep(name)
    fitted(compiled(dbm, keras.optimizers.Adam(0.03), rule="pcd"), data)
    before = np.mean(dbm.log_likelihood_bound(data, "exact"))
    fitted(dbm, data, epochs=40, batch_size=20)
    assert np.mean(dbm.log_likelihood_bound(data, "exact")) > before + 0.05
    assert dbm.visible.is_state(dbm.sample(7, steps=20, seed=1).numpy()).all()
    features = dbm.predict(data, verbose=0)
    assert features.shape == dbm.compute_output_shape(data.shape)
    run_file_test(dbm, data, folder=tmp_path)
