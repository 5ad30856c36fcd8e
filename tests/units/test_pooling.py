"""Moments of units that few examples have."""

import keras
import numpy as np
import pytest

import keras_rbm as kr
from keras_rbm.units.unit import shrunk


@pytest.mark.parametrize("spread", [0.0, 0.5, 5.0])
def test_shrunk_means_are_nearer_to_the_truth(spread):
    """Means of 2000 units with 1 to 20 normal examples each."""
    rng = np.random.default_rng(0)
    truth = rng.normal(3.0, spread, 2000)
    counts = rng.integers(1, 21, 2000)
    rows = [rng.normal(m, 1.0, n) for m, n in zip(truth, counts, strict=True)]
    mean, variance = (
        np.array([f(row) for row in rows])[:, np.newaxis] for f in (np.mean, np.var)
    )
    count = counts[:, np.newaxis].astype(float)
    found, pooled = shrunk(mean, variance, count)
    own = counts * spread**2 / (counts * spread**2 + 1.0)
    best = own * mean[:, 0] + (1.0 - own) * 3.0
    error, least, before = (
        np.mean((each - truth) ** 2) for each in (found[:, 0], best, mean[:, 0])
    )
    assert error < before
    assert error == pytest.approx(least, rel=0.05, abs=2e-3)
    if not spread:
        np.testing.assert_allclose(pooled, 1.0, atol=0.15)


def test_units_with_many_examples_keep_their_moments():
    mean, variance = np.array([[0.1], [0.9]]), np.array([[0.09], [0.09]])
    count = np.full((2, 1), 1e6)
    found = shrunk(mean, variance, count)
    np.testing.assert_allclose(found, [mean, variance], rtol=1e-4)


def test_a_unit_alone_keeps_its_moments():
    """What units have in common is not known of one: it was 0 / 0."""
    one = np.array([[0.1]]), np.array([[0.2]])
    np.testing.assert_array_equal(shrunk(*one, np.array([[3.0]])), one)


def test_probabilities_of_categories_stay_so():
    rng = np.random.default_rng(0)
    mean = rng.dirichlet([1.0, 1.0, 1.0], 50).ravel()
    count = np.repeat(rng.integers(0, 4, 50), 3).astype(float)
    unit = kr.units.Joined([(kr.units.Categorical(3), 50), ("gaussian", 1)])
    found, _ = unit.pooled(
        np.append(mean, 7.0), np.append(mean * (1 - mean), 2.0), np.append(count, 1.0)
    )
    assert found[-1] == 7.0  # standardized: its scale is its own
    np.testing.assert_allclose(found[:-1].reshape(50, 3).sum(1), 1.0, atol=1e-6)
    empty = found[:-1][count == 0].reshape(-1, 3)
    np.testing.assert_array_equal(empty, np.broadcast_to(empty[0], empty.shape))


@pytest.mark.parametrize("fit", [True, False])
def test_an_absent_unit_starts_at_the_others(fit):
    """An item that one user rates begins near all of them, full rows as they are."""
    rng = np.random.default_rng(0)
    data = rng.integers(0, 2, (60, 8)).astype("float32")
    gaps = data.copy()
    gaps[1:, 3] = np.nan

    def biases(rows, missing):
        rbm = kr.RBM(2, num_visible=8, missing=missing, seed=0)
        if fit:
            rbm.compile(keras.optimizers.SGD(0.0))
            rbm.fit(rows, verbose=0)
        else:
            rbm.adapt(rows)
        return rbm.visible_bias.numpy()

    np.testing.assert_array_equal(biases(data, "absent"), biases(data, None))
    assert abs(biases(gaps, "absent")[3]) < 1.0  # 1 of 1 alone: log-odds beyond 5
