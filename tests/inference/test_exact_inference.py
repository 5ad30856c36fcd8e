"""Exact inference for many models at once, against enumeration."""

import numpy as np
import pytest
import tensorflow as tf
from brute_force import Enumerated, random_gaussian_potentials
from message_passing import random_batch, rows

from keras_rbm.inference import Exact, Potentials, exact_log_partition, exact_moments

#: Both of more units than are enumerated for many models at once.
LARGE = 13, 14


def assert_exact(beliefs, model):
    truth = Enumerated(model)
    pairs, visible, hidden = truth.moments()
    np.testing.assert_allclose(beliefs.visible, visible, atol=1e-5)
    np.testing.assert_allclose(beliefs.hidden, hidden, atol=1e-5)
    np.testing.assert_allclose(beliefs.pairwise, pairs, atol=1e-5)
    np.testing.assert_allclose(beliefs.log_partition, truth.log_partition, rtol=1e-5)
    assert beliefs.converged


@pytest.mark.parametrize(
    "sizes", [(9, 5), (4, 7), (1, 1), pytest.param(LARGE, marks=pytest.mark.slow)]
)
def test_equals_enumeration_alone_and_in_batches(sizes):
    potentials = random_batch(*sizes, batch_size=6)
    beliefs = Exact()(potentials, pairwise="each")
    for n, model in enumerate(rows(potentials)):
        row = type(beliefs)(*(np.asarray(leaf)[n] for leaf in beliefs))
        assert_exact(row, model)
    assert_exact(Exact()(model), model)


def test_many_models_are_enumerated_in_several_chunks():
    """A chunk holds 2^20 numbers: 170 models of 2^9 states by 12 units."""
    potentials = random_batch(12, 9, batch_size=200)
    whole, models = Exact()(potentials), list(rows(potentials))
    for n in (0, 169, 170, 199):
        one = Exact()(models[n])
        np.testing.assert_allclose(whole.visible[n], one.visible, atol=1e-5)
        np.testing.assert_allclose(whole.log_partition[n], one.log_partition, 1e-5)


def test_other_units_beside_a_small_layer():
    potentials = random_gaussian_potentials(3, 2)
    found = Exact()(potentials).log_partition
    np.testing.assert_allclose(found, exact_log_partition(potentials), rtol=1e-5)


def _potentials(dtype, *parts):
    return Potentials(*(tf.constant(part, dtype) for part in parts))


@pytest.mark.parametrize("sizes", [(9, 3), (3, 9), (784, 6)])
@pytest.mark.parametrize("large", [20.0, 1e4, 1e7])
def test_large_biases_spoil_nothing_else(sizes, large):
    """Sums of large softplus lost the digits that tell the states apart."""
    rng = np.random.default_rng(0)
    kernel = rng.normal(0, 0.3, sizes)
    b, c = (rng.normal(0, 1, (2, size)) for size in sizes)
    b[0, 0], c[1, -1] = large, -large
    if sizes[0] > 100:
        b[1] = large
    beliefs = Exact()(_potentials(tf.float32, kernel, b, c))
    assert np.max(beliefs.visible) <= 1.0
    assert np.max(beliefs.hidden) <= 1.0
    exact = exact_moments(_potentials(tf.float64, kernel, b, c))
    np.testing.assert_allclose(beliefs.visible, exact.visible.bias, atol=3e-5)
    np.testing.assert_allclose(beliefs.hidden, exact.hidden.bias, atol=3e-5)
