"""Enumeration of one model's states, against the sum over all of both layers."""

import numpy as np
import pytest
import tensorflow as tf
from brute_force import (
    Enumerated,
    binary_states,
    random_gaussian_potentials,
    random_potentials,
)
from comparisons import assert_equal
from message_passing import arrays, random_batch, rows

from keras_rbm import inference
from keras_rbm.inference import Potentials, mean_field
from keras_rbm.units.bernoulli import BernoulliParameters


@pytest.mark.parametrize("sizes", [(10, 6), (4, 9), (1, 1), (7, 1), (1, 5)])
def test_equals_enumeration(sizes):
    potentials = random_potentials(*sizes, seed=sum(sizes))
    truth = Enumerated(potentials)
    log_z = inference.exact_log_partition(potentials)
    np.testing.assert_allclose(log_z, truth.log_partition, rtol=1e-5)
    moments = inference.exact_moments(potentials)
    got = moments.kernel, moments.visible.bias, moments.hidden.bias
    assert_equal(got, truth.moments(), rtol=1e-5, atol=1e-6)
    log_p = -potentials.free_energy(tf.constant(truth.v, tf.float32)) - float(log_z)
    np.testing.assert_allclose(log_p, np.log(truth.p_visible), rtol=1e-5, atol=1e-5)


def test_more_states_than_one_chunk():
    potentials = random_potentials(14, 13, scale=0.3)
    kernel, b, c = arrays(potentials)
    states = binary_states(14)
    natural = states @ kernel + c
    log_weight = states @ b + np.logaddexp(0, natural).sum(1)
    truth = np.logaddexp.reduce(log_weight)
    p = np.exp(log_weight - truth)[:, None]
    expected = (p * states).T @ (1 / (1 + np.exp(-natural)))
    both = (potentials, expected), (potentials.transpose(), expected.T)
    for model, products in both:
        value = inference.exact_log_partition(model)
        np.testing.assert_allclose(value, truth, rtol=1e-5)
        moments = inference.exact_moments(model)
        np.testing.assert_allclose(moments.kernel, products, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("batched", ["visible", "hidden", "both"])
def test_biases_with_a_batch_dimension(batched):
    kernel, visible, hidden = random_batch(5, 4, 3)
    if batched == "visible":
        hidden = hidden._replace(bias=hidden.bias[0])
    if batched == "hidden":
        visible = visible._replace(bias=visible.bias[0])
    joint = Potentials(kernel, visible, hidden)
    values, moments = (
        inference.exact_log_partition(joint),
        inference.exact_moments(joint),
    )
    for i, row in enumerate(rows(joint)):
        truth = Enumerated(row)
        np.testing.assert_allclose(values[i], truth.log_partition, rtol=1e-5)
        np.testing.assert_allclose(moments.kernel[i], truth.moments()[0], atol=1e-5)


def test_moments_are_the_gradient_of_log_partition():
    potentials = random_gaussian_potentials(3, 4)
    kernel, bias = potentials.kernel, potentials.visible.bias
    log_precision = potentials.visible.log_precision
    with tf.GradientTape() as tape:
        tape.watch((kernel, bias, log_precision))
        visible = potentials.visible._replace(bias=bias, log_precision=log_precision)
        value = inference.exact_log_partition(
            Potentials(kernel, visible, potentials.hidden)
        )
    gradients = tape.gradient(value, (kernel, bias, log_precision))
    moments = inference.exact_moments(potentials)
    expected = (moments.kernel, moments.visible.bias, moments.visible.log_precision)
    assert_equal(expected, gradients, rtol=1e-4, atol=1e-5)


def test_extreme_weights_are_finite():
    kernel = tf.constant(50.0 * np.sign(np.random.default_rng(0).normal(size=(9, 4))))
    potentials = Potentials(
        tf.cast(kernel, tf.float32), tf.fill([9], 50.0), tf.zeros(4)
    )
    value = inference.exact_log_partition(potentials)
    np.testing.assert_allclose(value, Enumerated(potentials).log_partition, rtol=1e-5)
    states = tf.constant([[0.0] * 9, [1.0] * 9])
    assert np.isfinite(potentials.free_energy(states)).all()
    leaves = tf.nest.flatten(inference.exact_moments(potentials))
    assert all(np.isfinite(leaf).all() for leaf in leaves)


def test_classes_of_one_name_are_told_apart():
    """As when a notebook's cell runs again: TensorFlow goes by the names."""

    def made(factor):
        class Own(BernoulliParameters):
            __slots__ = ()

            def log_partition(self, natural):
                return factor * super().log_partition(natural)

        return Potentials(tf.zeros((3, 2)), Own(tf.zeros(3)), tf.zeros(2))

    found = [mean_field(made(factor)).log_partition for factor in (1.0, 2.0)]
    assert found[1] - found[0] > 1.0
