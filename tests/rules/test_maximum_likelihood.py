"""Maximum likelihood with inference that is exact, against enumeration."""

import numpy as np
import pytest
import tensorflow as tf
from brute_force import binary_states, random_potentials, rbm_like
from comparisons import assert_close
from random_models import random_crbm, rule_gradients, weighted_pairs

import keras_rbm
from keras_rbm import inference, rules

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


@CASES
@pytest.mark.parametrize("soft", [False, True])
def test_gradient_loss_and_prediction_are_exact(sizes, infer, soft):
    crbm = random_crbm("maximum_likelihood", infer, sizes)
    x, v, weights = weighted_pairs(sizes[0], soft=soft)
    got, phases = rule_gradients(crbm, x, v, weights)
    assert len(got) == 5
    assert_close(got, exact_gradients(crbm, x, v, weights))
    p, states = parameters(crbm), binary_states(sizes[0])
    losses = -log_likelihoods(p, x, v)
    np.testing.assert_allclose(phases.losses, losses, rtol=1e-5, atol=1e-5)
    log_p = [log_likelihoods(p, x, np.tile(state, (7, 1))) for state in states]
    marginals = np.exp(log_p).T @ states
    np.testing.assert_allclose(phases.prediction, marginals, atol=1e-5)


def test_an_inference_of_its_own_is_what_the_rule_uses():
    x, v, weights = weighted_pairs()
    crbm = random_crbm(rules.MaximumLikelihood("exact"), "mean_field")
    want = exact_gradients(crbm, x, v, weights)
    assert_close(rule_gradients(crbm, x, v, weights)[0], want)
    crbm.compile("sgd", rule=rules.MaximumLikelihood())
    with pytest.raises(AssertionError):
        assert_close(rule_gradients(crbm, x, v, weights)[0], want)


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
    """Beliefs of one model and weights of many examples used not to fit together.

    A replica's weights sum to its share, and count once.
    """
    rbm = rbm_like(random_potentials(*sizes))
    rbm.compile("sgd", rule=rules.MaximumLikelihood(infer))
    _, v, weights = weighted_pairs(sizes[0])
    same, nothing = of_rbm(rbm), tf.zeros((7, 1))
    want = exact_gradients(same, nothing, v, weights)
    got, phases = rule_gradients(rbm, None, v, weights)
    assert_close(got, {name: want[name] for name in got})
    losses = -log_likelihoods(parameters(same), nothing, v)
    np.testing.assert_allclose(phases.losses, losses, rtol=1e-5, atol=1e-5)
    assert phases.prediction is None
    one, other = (
        rule_gradients(rbm, None, v[part], weights[part])[0]
        for part in (slice(2), slice(2, None))
    )
    assert_close({name: one[name] + other[name] for name in got}, got)
