"""Maximum likelihood with inference that is exact, against enumeration."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from brute_force import binary_states, random_potentials, rbm_like
from steps import evaluated_losses, gradients_of, step_of

import keras_rbm
from keras_rbm import inference, rules

SEED = tf.constant([0, 1])
#: Stops at no tolerance: a star needs two sweeps.
PATIENT = {"max_iterations": 20, "tolerance": 0.0}

CASES = pytest.mark.parametrize(
    ("sizes", "infer"),
    [
        ((5, 4), "exact"),
        ((5, 1), inference.BeliefPropagation(**PATIENT)),
        ((1, 4), inference.BeliefPropagation(**PATIENT)),
    ],
    ids=["exact", "one hidden unit", "one visible unit"],
)


def make(sizes, infer="mean_field"):
    """Returns a CRBM of three features with random parameters, not compiled."""
    crbm = keras_rbm.CRBM(
        sizes[1], inference=infer, num_visible=sizes[0], num_features=3, seed=0
    )
    rng = np.random.default_rng(0)
    for variable in crbm.trainable_variables:
        variable.assign(rng.normal(0, 1, variable.shape))
    return crbm


def pairs(num_visible, targets="states"):
    """Returns seven examples with unequal weights, normalized."""
    rng = np.random.default_rng(1)
    x = rng.normal(0, 1, (7, 3))
    v = rng.random((7, num_visible))
    weights = rng.random(7)
    weights /= weights.sum()
    v = v if targets == "probabilities" else v > 0.5
    return tuple(tf.constant(a, tf.float32) for a in (x, v, weights))


def parameters(model):
    return {v.name: tf.cast(v.value, tf.float64) for v in model.trainable_variables}


def log_likelihoods(p, x, v):
    """Returns log p(v | x) in float64, every visible state enumerated."""
    x, v = tf.cast(x, tf.float64), tf.cast(v, tf.float64)
    b = p["visible_bias"] + x @ p["visible_kernel"]
    c = p["hidden_bias"] + x @ p["hidden_kernel"]

    def minus_free_energy(states):
        """Returns -F for states (B or 1, S, V), shape (B, S)."""
        hidden = tf.math.softplus(c[:, None] + states @ p["kernel"])
        return tf.reduce_sum(states * b[:, None], -1) + tf.reduce_sum(hidden, -1)

    states = tf.constant(binary_states(v.shape[1]))[None]
    log_partition = tf.reduce_logsumexp(minus_free_energy(states), 1)
    return minus_free_energy(v[:, None])[:, 0] - log_partition


def exact_gradients(model, x, v, weights):
    """Returns the gradients of minus the mean log-likelihood, by name."""
    p = parameters(model)
    weights = tf.cast(weights, tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(p)
        loss = -tf.reduce_sum(weights * log_likelihoods(p, x, v))
    return tape.gradient(loss, p)


def of_rbm(rbm):
    """Returns the CRBM that ignores its one feature and is otherwise `rbm`."""
    crbm = keras_rbm.CRBM(
        rbm.hidden_units, num_visible=rbm.num_visible, num_features=1, seed=0
    )
    for name in ("kernel", "visible_bias", "hidden_bias"):
        getattr(crbm, name).assign(getattr(rbm, name))
    return crbm


def gradients(model, x, v, weights):
    """Returns the rule's gradients and phases."""
    phases = model.rule.phases(
        step_of(model.potentials(x), v, weights, SEED, model=model)
    )
    return gradients_of(model, phases.positive, phases.negative, x), phases


def assert_equal(got, want):
    assert set(got) == set(want)
    for name in want:
        np.testing.assert_allclose(got[name], want[name], atol=1e-5, err_msg=name)


@CASES
@pytest.mark.parametrize("targets", ["states", "probabilities"])
def test_gradient_and_loss_are_exact(sizes, infer, targets):
    crbm = make(sizes, infer)
    crbm.compile("sgd", rule="maximum_likelihood")
    x, v, weights = pairs(sizes[0], targets)
    got, phases = gradients(crbm, x, v, weights)
    assert len(got) == 5
    assert_equal(got, exact_gradients(crbm, x, v, weights))
    losses = -log_likelihoods(parameters(crbm), x, v)
    np.testing.assert_allclose(phases.losses, losses, rtol=1e-5, atol=1e-5)


@CASES
def test_evaluation_and_prediction_are_those_of_the_step(sizes, infer):
    crbm = make(sizes, infer)
    crbm.compile("sgd", rule="maximum_likelihood")
    x, v, weights = pairs(sizes[0])
    _, phases = gradients(crbm, x, v, weights)
    losses, prediction = evaluated_losses(crbm, crbm.potentials(x), v, SEED)
    np.testing.assert_allclose(losses, phases.losses, rtol=1e-6)
    states = binary_states(sizes[0])
    p = parameters(crbm)
    log_p = [log_likelihoods(p, x, np.tile(state, (7, 1))) for state in states]
    marginals = np.exp(log_p).T @ states
    for got in (prediction, phases.prediction):
        np.testing.assert_allclose(got, marginals, atol=1e-5)


def test_a_step_descends_along_the_weighted_gradient():
    crbm = make((5, 4), "exact")
    rate = 0.5
    crbm.compile(keras.optimizers.SGD(rate), rule="maximum_likelihood")
    x, v, weights = pairs(5)
    before, want = parameters(crbm), exact_gradients(crbm, x, v, weights)
    loss = crbm.train_on_batch(x, v, sample_weight=3.0 * weights)
    after = parameters(crbm)
    assert_equal({name: (before[name] - after[name]) / rate for name in after}, want)
    exact = -tf.reduce_sum(tf.cast(weights, tf.float64) * log_likelihoods(before, x, v))
    np.testing.assert_allclose(loss, exact, rtol=1e-5)


def test_an_inference_of_its_own_is_what_the_rule_uses():
    x, v, weights = pairs(5)
    crbm = make((5, 4), "mean_field")
    want = exact_gradients(crbm, x, v, weights)
    crbm.compile("sgd", rule=rules.MaximumLikelihood("exact"))
    assert_equal(gradients(crbm, x, v, weights)[0], want)
    crbm.compile("sgd", rule=rules.MaximumLikelihood())
    with pytest.raises(AssertionError):
        assert_equal(gradients(crbm, x, v, weights)[0], want)


@pytest.mark.parametrize(
    ("sizes", "infer"),
    [
        ((5, 4), "exact"),
        ((5, 1), None),
        ((1, 4), None),
        ((5, 1), inference.BeliefPropagation(**PATIENT)),
    ],
)
def test_rbm(sizes, infer):
    """Beliefs of one model and weights of many examples used not to fit together."""
    rbm = rbm_like(random_potentials(*sizes))
    rbm.compile("sgd", rule=rules.MaximumLikelihood(infer))
    _, v, weights = pairs(sizes[0])
    same = of_rbm(rbm)
    nothing = tf.zeros((7, 1))
    want = exact_gradients(same, nothing, v, weights)
    got, phases = gradients(rbm, None, v, weights)
    assert_equal(got, {name: want[name] for name in got})
    losses = -log_likelihoods(parameters(same), nothing, v)
    np.testing.assert_allclose(phases.losses, losses, rtol=1e-5, atol=1e-5)
    assert phases.prediction is None


def test_rbm_under_replicas_adds_up():
    """A replica's weights sum to its share, and count once."""
    rbm = rbm_like(random_potentials(5, 4))
    rbm.compile("sgd", rule=rules.MaximumLikelihood("exact"))
    _, v, weights = pairs(5)
    whole, _ = gradients(rbm, None, v, weights)
    shares = [
        gradients(rbm, None, v[part], weights[part])[0]
        for part in (slice(2), slice(2, None))
    ]
    assert_equal({name: shares[0][name] + shares[1][name] for name in whole}, whole)


@pytest.mark.parametrize(
    ("infer", "jit_compile"),
    [
        ("mean_field", False),
        pytest.param("exact", True, marks=pytest.mark.slow),
        pytest.param(None, False, marks=pytest.mark.slow),
        pytest.param(None, True, marks=pytest.mark.slow),
        pytest.param("exact", False, marks=pytest.mark.slow),
        pytest.param("mean_field", True, marks=pytest.mark.slow),
    ],
)
def test_rbm_fits(infer, jit_compile):
    rbm = keras_rbm.RBM(1, num_visible=3, visible_bias_initializer="zeros", seed=0)
    data = np.repeat([[1.0, 0.0, 1.0]], 20, 0)
    rbm.compile(
        keras.optimizers.SGD(1.0),
        rule=rules.MaximumLikelihood(infer),
        jit_compile=jit_compile,
    )
    losses = rbm.fit(data, batch_size=5, epochs=5, verbose=0).history["loss"]
    assert losses[-1] < 1.0 < losses[0]
    exact = -rbm.log_likelihood(data, log_partition=rbm.log_partition("exact"))
    evaluated = rbm.evaluate(data, verbose=0)
    # Mean field's log Z is a lower bound.
    assert evaluated <= float(exact[0]) + 1e-5
    if infer != "mean_field":
        assert evaluated == pytest.approx(float(exact[0]), abs=1e-5)


@pytest.mark.parametrize(
    "infer",
    [
        None,
        "exact",
        inference.MeanField(max_iterations=3, tolerance=0.01),
        inference.BeliefPropagation(max_iterations=7, damping=0.1),
    ],
    ids=repr,
)
def test_config_round_trip(infer):
    rule = rules.MaximumLikelihood(infer, sparsity_target=0.1, sparsity_cost=0.2)
    again = rules.deserialize(rules.serialize(rule))
    assert again.get_config() == rule.get_config()
    assert type(again.inference) is type(rule.inference)
    assert repr(again.inference) == repr(rule.inference)


@pytest.mark.parametrize("infer", ["magic", 7, inference.Exact, "pcd"])
def test_unknown_inference(infer):
    with pytest.raises(ValueError, match="an inference method.*Received"):
        rules.MaximumLikelihood(infer)


@pytest.mark.parametrize("method", ["max_product", "mixed_product"])
def test_inference_must_yield_marginals(method):
    message = f"yields marginals.*Received.*{method}"
    wrong = rules.MaximumLikelihood(method)
    for model in (keras_rbm.RBM(4), keras_rbm.CRBM(4)):
        with pytest.raises(ValueError, match=message):
            model.compile("sgd", rule=wrong)
    crbm = keras_rbm.CRBM(4, inference=method)
    with pytest.raises(ValueError, match=message):
        crbm.compile("sgd", rule=rules.MaximumLikelihood())
    # What the rule learns by counts, not what the model predicts by.
    crbm.compile("sgd", rule=rules.MaximumLikelihood("sum_product"))
