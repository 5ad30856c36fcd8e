import itertools

import numpy as np
import pytest
import tensorflow as tf
from brute_force import (
    Enumerated,
    binary_states,
    random_gaussian_potentials,
    random_potentials,
)
from scipy import integrate

from keras_rbm import inference
from keras_rbm.inference import Potentials, mean_field
from keras_rbm.units.bernoulli import BernoulliParameters


@pytest.mark.parametrize("sizes", [(10, 6), (4, 9), (1, 1), (7, 1), (1, 5)])
def test_log_partition_and_moments_equal_enumeration(sizes):
    potentials = random_potentials(*sizes, seed=sum(sizes))
    truth = Enumerated(potentials)
    np.testing.assert_allclose(
        inference.exact_log_partition(potentials), truth.log_partition, rtol=1e-5
    )
    moments = inference.exact_moments(potentials)
    kernel, visible, hidden = truth.moments()
    np.testing.assert_allclose(moments.kernel, kernel, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(moments.visible.bias, visible, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(moments.hidden.bias, hidden, rtol=1e-5, atol=1e-6)


def test_free_energy_and_likelihood_equal_enumeration():
    potentials = random_potentials(8, 5)
    truth = Enumerated(potentials)
    states = tf.constant(truth.v, tf.float32)
    log_p = -potentials.free_energy(states).numpy() - inference.exact_log_partition(
        potentials
    )
    np.testing.assert_allclose(log_p, np.log(truth.p_visible), rtol=1e-5, atol=1e-5)


def test_more_states_than_one_chunk():
    potentials = random_potentials(14, 13, scale=0.3)
    kernel, b, c = (
        np.asarray(a, np.float64)
        for a in (potentials.kernel, potentials.visible_bias, potentials.hidden_bias)
    )
    states = binary_states(14)
    natural = states @ kernel + c
    log_weight = states @ b + np.logaddexp(0, natural).sum(1)
    truth = np.logaddexp.reduce(log_weight)
    for model in (potentials, potentials.transpose()):
        value = inference.exact_log_partition(model)
        np.testing.assert_allclose(value, truth, rtol=1e-5)
    p = np.exp(log_weight - truth)[:, None]
    expected = (p * states).T @ (1 / (1 + np.exp(-natural)))
    moments = inference.exact_moments(potentials)
    np.testing.assert_allclose(moments.kernel, expected, rtol=1e-4, atol=1e-5)
    moments = inference.exact_moments(potentials.transpose())
    np.testing.assert_allclose(moments.kernel, expected.T, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("batched", ["visible", "hidden", "both"])
def test_biases_with_a_batch_dimension(batched):
    models = [random_potentials(5, 4, seed=s) for s in range(3)]
    kernel = models[0].kernel
    visible = tf.stack([m.visible_bias for m in models])
    hidden = tf.stack([m.hidden_bias for m in models])
    if batched == "visible":
        hidden = hidden[0]
    if batched == "hidden":
        visible = visible[0]
    joint = Potentials(kernel, visible, hidden)
    values = inference.exact_log_partition(joint)
    moments = inference.exact_moments(joint)
    for i in range(3):
        row_visible = visible[i] if batched != "hidden" else visible
        row_hidden = hidden[i] if batched != "visible" else hidden
        truth = Enumerated(Potentials(kernel, row_visible, row_hidden))
        np.testing.assert_allclose(values[i], truth.log_partition, rtol=1e-5)
        np.testing.assert_allclose(moments.kernel[i], truth.moments()[0], atol=1e-5)


def test_gaussian_visible_units_equal_numerical_integration():
    potentials = random_gaussian_potentials(2, 3)

    def density(*visible):
        free_energy = potentials.free_energy(tf.constant([visible], tf.float32))
        return float(tf.exp(-free_energy)[0])

    axis = np.linspace(-12, 12, 241)
    grid = np.array(list(itertools.product(axis, axis)), np.float32)
    weights = np.exp(-potentials.free_energy(grid).numpy().astype(np.float64))
    area = (axis[1] - axis[0]) ** 2
    total = integrate.trapezoid(
        integrate.trapezoid(weights.reshape(241, 241), axis), axis
    )
    log_partition = inference.exact_log_partition(potentials)
    np.testing.assert_allclose(log_partition, np.log(total), rtol=1e-5)

    moments = inference.exact_moments(potentials)
    p = weights * area / total
    statistics = potentials.visible.statistics(tf.constant(grid))
    hidden = tf.sigmoid(potentials.hidden_natural(tf.constant(grid))).numpy()
    np.testing.assert_allclose(
        moments.visible.bias, p @ statistics.bias.numpy(), rtol=1e-4
    )
    np.testing.assert_allclose(
        moments.visible.log_precision, p @ statistics.log_precision.numpy(), rtol=1e-4
    )
    kernel = np.einsum("n,ni,nj->ij", p, statistics.bias, hidden)
    np.testing.assert_allclose(moments.kernel, kernel, rtol=1e-3, atol=1e-4)


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
    for got, want in zip(expected, gradients, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


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


def test_too_large_to_enumerate():
    with pytest.raises(ValueError, match="at most 25 binary units.*num_visible=30"):
        inference.exact_log_partition(random_potentials(30, 31))


def test_nothing_to_enumerate():
    gaussian = random_gaussian_potentials(2, 2).visible
    potentials = Potentials(tf.zeros((2, 2)), gaussian, gaussian)
    with pytest.raises(ValueError, match="at least one layer of units with finitely"):
        inference.exact_log_partition(potentials)


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
