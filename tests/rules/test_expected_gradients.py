"""Each rule's expected gradient in its exact limit, against enumeration."""

import numpy as np
import pytest
import tensorflow as tf
from brute_force import Enumerated, random_potentials, rbm_like
from steps import gradients_of, step_of

import keras_rbm
from keras_rbm import inference, rules

CHAINS = 4000


def assert_moments_are_exact(moments, truth):
    """Compares moments of many chains with enumeration, five standard errors."""
    kernel, visible, hidden = truth.moments()
    v, h = moments.visible.bias.numpy(), moments.hidden.bias.numpy()
    products = v[:, :, None] * h[:, None, :]
    for rows, expected in ((products, kernel), (v, visible), (h, hidden)):
        error = rows.std(0) / np.sqrt(len(rows))
        assert (abs(rows.mean(0) - expected) < 5 * error + 1e-6).all()
    np.testing.assert_allclose(moments.kernel, products.mean(0), rtol=1e-3, atol=1e-5)


def test_cd_with_many_steps_has_the_exact_moments():
    potentials = random_potentials(5, 3)
    rule = rules.ContrastiveDivergence(gibbs_steps=60)
    visible = tf.zeros((CHAINS, 5))
    weights = tf.fill([CHAINS], 1.0 / CHAINS)
    moments = rule.negative_phase(
        step_of(potentials, visible, weights, tf.constant([1, 2]))
    )
    assert_moments_are_exact(moments, Enumerated(potentials))


def test_cd_with_one_step_has_not():
    potentials = random_potentials(5, 3, scale=2.0)
    rule = rules.ContrastiveDivergence(gibbs_steps=1)
    visible = tf.zeros((CHAINS, 5))
    weights = tf.fill([CHAINS], 1.0 / CHAINS)
    moments = rule.negative_phase(
        step_of(potentials, visible, weights, tf.constant([1, 2]))
    )
    with pytest.raises(AssertionError):
        assert_moments_are_exact(moments, Enumerated(potentials))


def test_cd_1_is_one_sweep_from_the_data():
    potentials = random_potentials(4, 3)
    truth = Enumerated(potentials)
    start = tf.constant(truth.v[[5]], tf.float32)
    up = np.asarray(tf.sigmoid(potentials.hidden_natural(start)))[0]
    p_h = np.prod(np.where(truth.h == 1, up, 1 - up), 1)
    hidden = tf.constant(truth.h, tf.float32)
    expected = p_h @ tf.sigmoid(potentials.visible_natural(hidden)).numpy()
    rule = rules.ContrastiveDivergence()
    weights = tf.fill([CHAINS], 1.0 / CHAINS)
    seed = tf.constant([3, 4])
    moments = rule.negative_phase(
        step_of(potentials, tf.repeat(start, CHAINS, 0), weights, seed)
    )
    v = moments.visible.bias.numpy()
    assert (abs(v.mean(0) - expected) < 5 * v.std(0) / np.sqrt(CHAINS)).all()


@pytest.mark.parametrize("gibbs_steps", [1, 3])
def test_pcd_at_fixed_parameters_has_the_exact_moments(gibbs_steps):
    potentials = random_potentials(5, 3)
    rbm = rbm_like(potentials)
    rule = rules.PersistentContrastiveDivergence(gibbs_steps, num_chains=CHAINS)
    rbm.compile(rule=rule)
    visible, weights = tf.zeros((2, 5)), tf.fill([2], 0.5)
    for step in range(60 // gibbs_steps):
        seed = tf.constant([step, 8])
        moments = rule.negative_phase(step_of(potentials, visible, weights, seed))
    assert_moments_are_exact(moments, Enumerated(potentials))


def test_gradients_are_the_derivative_of_the_log_likelihood():
    potentials = random_potentials(5, 3)
    rbm = rbm_like(potentials)
    data = tf.constant(np.eye(5)[:3], tf.float32)
    weights = tf.constant([0.5, 0.3, 0.2])
    positive = inference.conditional_moments(potentials, data, weights)
    states = tf.constant(Enumerated(potentials).v, tf.float32)
    p = tf.nn.softmax(-potentials.free_energy(states))
    negative = inference.conditional_moments(potentials, states, p)
    got = gradients_of(rbm, positive, negative)
    parameters = list(potentials[:1]) + [
        potentials.visible_bias,
        potentials.hidden_bias,
    ]
    with tf.GradientTape() as tape:
        tape.watch(parameters)
        model = inference.Potentials(*parameters)
        log_z = tf.cast(inference.exact_log_partition(model), tf.float32)
        loss = tf.reduce_sum(weights * model.free_energy(data)) + log_z
    names = ("kernel", "visible_bias", "hidden_bias")
    for name, want in zip(names, tape.gradient(loss, parameters), strict=True):
        np.testing.assert_allclose(got[name], want, rtol=1e-4, atol=1e-5)


def test_gradient_of_gaussian_units():
    unit = keras_rbm.units.Gaussian(standardize=True)
    rbm = keras_rbm.RBM(3, visible=unit, num_visible=2, seed=0)
    rng = np.random.default_rng(0)
    data = rng.normal(3, 2, (40, 2)).astype(np.float32)
    rbm.adapt(data)
    rbm.kernel.assign(rng.normal(0, 0.5, (2, 3)))
    rbm.visible_log_precision.assign([0.3, -0.2])
    potentials = rbm.potentials()
    weights = tf.fill([40], 1 / 40)
    positive = inference.conditional_moments(potentials, tf.constant(data), weights)
    moments = inference.exact_moments(potentials)
    row = tf.nest.map_structure(lambda x: tf.cast(x, tf.float32)[None], moments)
    negative = row._replace(kernel=row.kernel[0], weights=tf.ones(1))
    got = gradients_of(rbm, positive, negative)
    with tf.GradientTape() as tape:
        potentials = rbm.potentials()
        log_z = tf.cast(inference.exact_log_partition(potentials), tf.float32)
        loss = tf.reduce_mean(potentials.free_energy(data)) + log_z
    variables = {v.name: v.value for v in rbm.trainable_variables}
    for name, want in tape.gradient(loss, variables).items():
        np.testing.assert_allclose(got[name], want, rtol=1e-3, atol=1e-4)


def test_phases_are_averaged_separately():
    potentials = random_potentials(5, 3)
    rbm = rbm_like(potentials)
    short = inference.conditional_moments(potentials, tf.ones((1, 5)), tf.ones(1))
    many = inference.conditional_moments(
        potentials, tf.ones((70, 5)), tf.fill([70], 1 / 70)
    )
    for gradient in gradients_of(rbm, short, many).values():
        np.testing.assert_allclose(gradient, 0, atol=1e-6)
