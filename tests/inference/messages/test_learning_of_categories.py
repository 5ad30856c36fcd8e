"""Learning with belief propagation of categories: gradients of a tree, enumerated."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf
from small_models import slow
from steps import gradients_of, step_of

import keras_rbm as kr
from keras_rbm import inference


def random_crbm(infer, rule):
    """Returns a CRBM with one hidden unit, a tree, and examples with weights."""
    options = {"num_visible": 4, "num_features": 2, "kernel_regularizer": None}
    crbm = kr.CRBM(1, visible=kr.units.Categorical(3), inference=infer, **options)
    rng = np.random.default_rng(13)
    for variable in crbm.trainable_variables:
        variable.assign(rng.normal(size=variable.shape))
    crbm.compile("sgd", rule=rule, run_eagerly=True)
    weights = rng.random(5)
    arrays = rng.normal(size=(5, 2)), rng.integers(0, 3, (5, 4)), weights / sum(weights)
    return crbm, *(tf.constant(array, tf.float32) for array in arrays)


def log_joints(crbm, x):
    """Returns log-weights of all (v, h) given each x, (B, 81, 2), and the states v."""
    potentials = crbm.potentials(x)
    states = tf.constant(list(itertools.product(range(3), repeat=4)), tf.float32)
    rows = potentials.visible.encode(states)
    own = tf.matmul(potentials.visible_bias, rows, transpose_b=True)
    on = tf.matmul(rows, potentials.kernel)[:, 0] + potentials.hidden_bias
    return own[..., tf.newaxis] + tf.stack([tf.zeros_like(on), on], -1), states


def of_likelihood(joints, wrong):
    """Returns -log p(v | x) of each example."""
    data = tf.reduce_all(~wrong, -1)
    own = tf.reduce_logsumexp(joints, 2)[data]
    return tf.reduce_logsumexp(joints, (1, 2)) - own


def of_margin(joints, wrong):
    """Returns LSSVM's loss: of wrong categories plus the score, the maximum."""
    distance = tf.reduce_sum(tf.cast(wrong, tf.float32), -1)[..., tf.newaxis]
    own = tf.reduce_max(joints, 2)[distance[..., 0] == 0]
    losses = tf.reduce_max(joints + distance, (1, 2)) - own
    assert np.all(losses > 0.5)
    return losses


@pytest.mark.parametrize(
    ("method", "rule", "loss"),
    [
        ("sum_product", "maximum_likelihood", of_likelihood),
        ("max_product", "max_margin", of_margin),
    ],
)
def test_a_tree_has_the_enumerated_loss_and_gradient(method, rule, loss):
    infer = inference.BeliefPropagation(method, tolerance=0.0, max_iterations=3)
    crbm, x, v, weights = random_crbm(infer, rule)
    step = step_of(crbm.potentials(x), v, weights, tf.constant([0, 1]), model=crbm)
    phases = crbm.rule.phases(step)
    found = gradients_of(crbm, phases.positive, phases.negative, x)
    with tf.GradientTape() as tape:
        joints, states = log_joints(crbm, x)
        losses = loss(joints, states != v[:, tf.newaxis])
        total = tf.reduce_sum(weights * losses)
    want = tape.gradient(total, crbm.trainable_variables)
    np.testing.assert_allclose(phases.losses, losses, rtol=1e-5, atol=1e-5)
    for variable, gradient in zip(crbm.trainable_variables, want, strict=True):
        np.testing.assert_allclose(found[variable.name], gradient, atol=1e-5)


@pytest.mark.parametrize(
    ("method", "rule"),
    [("mixed_product", "max_margin"), slow("sum_product", "maximum_likelihood")],
)
def test_a_conditional_model_learns(method, rule):
    """Four categories that each of five inputs determines."""
    kinds = np.arange(60) % 5
    v = np.random.default_rng(15).integers(0, 3, (5, 4)).astype("float32")[kinds]
    x = np.eye(5, dtype="float32")[kinds]
    infer = inference.BeliefPropagation(method, max_iterations=10)
    crbm = kr.CRBM(9, visible=kr.units.Categorical(3), inference=infer, seed=0)
    crbm.compile(keras.optimizers.Adam(0.3), rule=rule)
    crbm.fit(x, v, epochs=6, batch_size=60, verbose=0)
    np.testing.assert_array_equal(crbm.predict_map(x[:5]), v[:5])
    assert crbm.predict(x[:5], verbose=0).shape == (5, 12)
