"""Belief propagation with weights whose exponentials overflow."""

import message_passing as reference
import numpy as np
import pytest
from brute_force import Enumerated

from keras_rbm import inference
from keras_rbm.inference import Potentials


def test_one_strong_edge():
    """The belief was 0, and the Bethe likelihood of a CRBM of it +5 nats."""
    potentials = Potentials([[200.0]], [-100.0], [-95.0])
    beliefs = inference.sum_product(potentials)
    np.testing.assert_allclose(beliefs.visible, [0.99331], atol=1e-5)
    truth = inference.exact_log_partition(potentials)
    np.testing.assert_allclose(beliefs.log_partition, truth, rtol=1e-6)
    assert beliefs.converged


def balanced(potentials):
    """Returns a tree with biases against its weights: beliefs are not 0 or 1."""
    kernel = potentials.kernel.numpy()
    bias = -0.5 * kernel.sum(1) + potentials.visible_bias.numpy()[0]
    hidden_bias = -0.5 * kernel.sum(0) + potentials.hidden_bias.numpy()[0]
    return Potentials(kernel, bias.astype("float32"), hidden_bias.astype("float32"))


@pytest.mark.parametrize("scale", [30.0, 100.0, 1e3, 1e4])
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(s, marks=pytest.mark.slow) for s in (1, 2))]
)
def test_exact_on_trees(scale, seed):
    tree = balanced(reference.random_trees(5, 4, 1, seed=seed, scale=scale))
    beliefs = inference.sum_product(tree, max_iterations=20, tolerance=0.0)
    moments = inference.exact_moments(tree)
    np.testing.assert_allclose(beliefs.visible, moments.visible.bias, atol=1e-5)
    np.testing.assert_allclose(beliefs.hidden, moments.hidden.bias, atol=1e-5)
    edges = tree.kernel.numpy() != 0
    pairs = np.where(edges, beliefs.pairwise - np.float32(moments.kernel), 0)
    np.testing.assert_allclose(pairs, 0, atol=1e-5)
    truth = inference.exact_log_partition(tree)
    np.testing.assert_allclose(beliefs.log_partition, truth, rtol=1e-6)
    best = inference.max_product(tree, max_iterations=20, tolerance=0.0)
    most = Enumerated(tree).log_joint.max()
    np.testing.assert_allclose(best.log_partition, most, rtol=1e-6)


@pytest.mark.parametrize("damping", [pytest.param(0.0, marks=pytest.mark.slow), 0.4])
def test_agrees_with_ratios_where_both_work(damping):
    potentials = reference.random_batch(6, 5, 4, scale=2.0)
    options = {"max_iterations": 7, "tolerance": 0.0, "damping": damping}
    usual = inference.sum_product(potentials, **options, pairwise="each")
    # One strong edge to a unit that is off has all go by logarithms.
    kernel = np.pad(potentials.kernel, [[0, 0], [0, 1]])
    kernel[5, 5] = 50.0
    bias = np.pad(potentials.hidden_bias, [[0, 0], [0, 1]], constant_values=-200.0)
    wide = Potentials(kernel, potentials.visible_bias, bias)
    logs = inference.sum_product(wide, **options, pairwise="each")
    np.testing.assert_allclose(logs.visible, usual.visible, atol=2e-5)
    np.testing.assert_allclose(logs.pairwise[:, :, :5], usual.pairwise, atol=2e-5)
    np.testing.assert_allclose(logs.log_partition, usual.log_partition, rtol=1e-5)


@pytest.mark.parametrize("scale", [100.0, 1e4])
def test_mixed_product_of_strong_weights(scale):
    potentials = reference.random_batch(6, 5, 8, scale=scale)
    got = inference.mixed_product(potentials, max_iterations=20)
    for index, model in enumerate(reference.rows(potentials)):
        want = reference.mixed_product(model, 20)
        np.testing.assert_array_equal(got.visible[index], want.visible)
