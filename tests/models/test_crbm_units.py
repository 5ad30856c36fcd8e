"""Conditional models of units that are not binary."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf
from model_test_case import run_file_test
from same import assert_same
from small_models import compiled, fitted, quick
from steps import gradients_of

from keras_rbm import CRBM, inference, units

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


def made(name, hidden="bernoulli", **kwargs):
    visible, targets = VISIBLE[name]
    return CRBM(2, visible=visible, hidden=hidden, seed=0, **kwargs), targets


def random_model(name, hidden="spin"):
    """Returns a built model with random parameters, and its targets."""
    crbm, targets = made(name, hidden, inference="mean_field")
    fitted(compiled(crbm, keras.optimizers.SGD(0.0), rule="cd"), X, targets)
    rng = np.random.default_rng(1)
    for variable in crbm.trainable_variables:
        variable.assign_add(rng.normal(0.0, 0.3, variable.shape))
    return crbm, targets.astype("float32")


@pytest.mark.parametrize("name", quick(VISIBLE, "gaussian", "joined"))
def test_gradients_are_those_of_the_exact_likelihood(name):
    """Of all variables, by the moments of each example's model."""
    crbm, targets = random_model(name)
    weights = tf.fill([len(X)], 1.0 / len(X))
    potentials = crbm.potentials(X)
    positive = inference.conditional_moments(potentials, targets, weights)
    exact = inference.exact_moments(potentials)
    exact = tf.nest.map_structure(lambda leaf: tf.cast(leaf, tf.float32), exact)
    kernel = tf.einsum("n,nvh->vh", weights, exact.kernel)
    negative = inference.Moments(kernel, exact.visible, exact.hidden, weights)
    with tf.GradientTape() as tape:
        potentials = crbm.potentials(X)
        scores = -potentials.free_energy(tf.constant(targets))
        scores -= tf.cast(inference.exact_log_partition(potentials), tf.float32)
        loss = -tf.reduce_mean(scores)
    variables = crbm.trainable_variables
    want = tape.gradient(loss, [variable.value for variable in variables])
    got = gradients_of(crbm, positive, negative, tf.constant(X))
    assert_same([got.pop(v.name) for v in variables], want, atol=2e-4)
    assert not got


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gaussian", "joined"])
def test_likelihood_by_default_is_annealed(name):
    crbm, targets = random_model(name)
    z = crbm.log_partition(X[:5])
    exact = crbm.log_partition(X[:5], "exact").value
    assert np.all(abs(z.value - exact) < 4.0 * z.stderr + 0.01)
    scores = crbm.log_likelihood(X[:5], targets[:5])
    want = crbm.log_likelihood(X[:5], targets[:5], "exact")
    np.testing.assert_allclose(scores, want, atol=0.2)


RULES = itertools.product(VISIBLE, ["cd", "maximum_likelihood", "cd_perceptron"])
QUICK = [("joined", "maximum_likelihood"), ("spin", "cd_perceptron")]


@pytest.mark.parametrize("pair", quick(RULES, *QUICK), ids=str)
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
    crbm, targets = random_model(name)
    means = crbm.predict(X, verbose=0)
    beliefs = inference.mean_field(crbm.potentials(X), max_iterations=50)
    np.testing.assert_allclose(means, beliefs.visible, atol=1e-4)
    assert means.shape == crbm.compute_output_shape(X.shape)
    assert crbm.visible.is_state(crbm.predict_map(X).numpy()).all()
    gaps = np.where(np.arange(targets.shape[1]) < 1, targets, np.nan)
    states = crbm.sample(X, initial_visible=gaps, steps=5, seed=0)
    assert crbm.visible.is_state(states.numpy()).all()
    np.testing.assert_array_equal(states[:, 0], targets[:, 0])
    run_file_test(crbm, X, targets, folder=tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("hidden", ["gaussian", "double_rectified", "rectified"])
def test_hidden_units_without_limit(hidden):
    crbm, targets = made("gaussian", hidden)
    compiled(crbm, keras.optimizers.Adam(0.05), rule="cd")
    fitted(crbm, X, targets, epochs=60)
    assert _error(crbm, targets) < 0.5 * abs(targets - targets.mean(0)).mean()
    assert np.isfinite(crbm.log_likelihood(X[:5], targets[:5])).all()


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
    crbm, targets = random_model("joined")
    means = crbm.predict(X, verbose=0)
    predicted = crbm._prediction(tf.constant(X), None).numpy()
    np.testing.assert_allclose(predicted[:, [0, 2]], means[:, [0, 4]], rtol=1e-5)
    np.testing.assert_array_equal(predicted[:, 1], means[:, 1:4].argmax(1))
