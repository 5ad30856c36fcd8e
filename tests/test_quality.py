"""Samples beside data: `quality_report`."""

import numpy as np
import pytest
import tensorflow as tf
from brute_force import binary_states

import keras_rbm
from keras_rbm._quality import _accuracy, _lengths, _statistics_compared, quality_report


def drawn(rbm, count, seed):
    """Returns exact samples of a small model."""
    states = binary_states(int(rbm.kernel.shape[0])).astype("float32")
    weights = np.exp(-np.asarray(rbm.free_energy(states), np.float64))
    rng = np.random.default_rng(seed)
    return states[rng.choice(len(states), count, p=weights / weights.sum())]


def model(strength=1.0, num_visible=10):
    rbm = keras_rbm.RBM(5, num_visible=num_visible, seed=0)
    kernel = strength * np.random.default_rng(1).normal(size=rbm.kernel.shape)
    rbm.kernel.assign(kernel)
    rbm.visible_bias.assign(-0.5 * kernel.sum(1))
    rbm.hidden_bias.assign(-0.5 * kernel.sum(0))
    return rbm


def test_accuracy_of_nearest_neighbors():
    rng = np.random.default_rng(0)
    one, two = rng.normal(size=(2, 800, 5))
    same = _accuracy(one, two)
    assert abs(same.value - 0.5) < 4 * same.stderr and 0.005 < same.stderr < 0.05
    assert _accuracy(one, two + 9.0).value == 1.0
    assert _accuracy(one, one + 1e-6).value == 0.0  # copies
    np.testing.assert_allclose(_accuracy(np.ones((9, 2)), np.ones((9, 2))).value, 0.5)
    scattered = _accuracy(*rng.normal(size=(2, 800, 30)) * [[[1.0]], [[2.0]]])
    assert scattered.of_data > 0.9 and scattered.of_samples < 0.2
    assert scattered.is_lopsided and not same.is_lopsided
    spread = [_accuracy(*rng.normal(size=(2, 50, 3))).value for _ in range(200)]
    stated = _accuracy(*rng.normal(size=(2, 50, 3))).stderr
    assert 0.6 < np.std(spread) / stated < 1.4


def test_correlations_are_those_of_the_statistics():
    rng = np.random.default_rng(0)
    mix = rng.normal(size=(6, 6))
    data, same = (rng.gamma(1.0, size=(4000, 6)) @ mix for _ in range(2))
    found, _ = _statistics_compared(data, same, same)
    assert all(own == most > 0.9 for own, most in found.values())
    shuffled = np.stack([rng.permutation(column) for column in data.T], 1)
    found, covariances = _statistics_compared(data, shuffled, same)
    assert found["1-point"][0] > 0.99 and found["2-point"][0] < 0.6
    expected = np.cov(data.T, bias=True)[np.triu_indices(6, 1)]
    np.testing.assert_allclose(covariances["held-out data"], expected)


@pytest.mark.parametrize(("steps", "expected"), [(1, [1]), (20, [1, 3, 10, 20])])
def test_lengths_of_chains(steps, expected):
    assert _lengths(steps).tolist() == expected


def test_the_model_that_made_the_data_has_learned_them():
    rbm = model()
    train, held_out = drawn(rbm, 600, 0), drawn(rbm, 600, 1)
    rbm.base_rate.assign(train.mean(0))
    report = quality_report(rbm, train, held_out, steps=100)
    assert report.verdict == ("Nearest neighbors do not tell samples from data.",)
    assert abs(report.held_out.value - 0.5) < 4 * report.held_out.stderr
    assert report.r_hat < 1.05 and 1.0 < report.autocorrelation < 20.0
    assert report.samples.shape == (600, 10) and len(report.from_noise) == 5
    assert str(report).endswith(report.verdict[-1]) and "R-hat" in str(report)
    figure = keras_rbm.plots.quality_report(report)
    assert len(figure.axes) == 3
    cloud = figure.axes[0].collections[0].get_offsets()
    np.testing.assert_allclose(cloud, report.components["held-out data"])
    most = np.linalg.eigvalsh(np.cov(held_out.T, bias=True))[::-1][:2]
    np.testing.assert_allclose(cloud.var(0), most, rtol=1e-4)


def test_samples_that_are_scattered_are_told():
    """The mean of both accuracies is near 0.5: they hid each other."""
    rng = np.random.default_rng(0)
    data = (0.5 * rng.normal(size=(400, 20))).astype("float32")
    rbm = keras_rbm.RBM(2, visible="gaussian", num_visible=20, seed=0)
    rbm.adapt(2.5 * data)
    report = quality_report(rbm, data[:200], data[200:], steps=3)
    assert any("more scattered than data" in each for each in report.verdict)


def test_a_model_that_has_learned_nothing():
    made_by = model(2.0)
    train, held_out = drawn(made_by, 300, 0), drawn(made_by, 300, 1)
    rbm = keras_rbm.RBM(5, num_visible=10, seed=0)
    rbm.adapt(train)
    report = quality_report(rbm, train, held_out, steps=10)
    assert "Samples differ from data" in report.verdict[0]
    assert any("covariances of samples" in each for each in report.verdict)


def test_chains_that_stay_where_they_began_are_told():
    """All units on, or all off: no sweep leads from one to the other."""
    rbm = keras_rbm.RBM(8, num_visible=12, seed=0)
    rbm.kernel.assign(np.full((12, 8), 4.0))
    rbm.visible_bias.assign(np.full(12, -16.0 + 2.0))
    rbm.hidden_bias.assign(np.full(8, -24.0))
    rng = np.random.default_rng(0)
    train = (rng.random((40, 12)) < 0.95).astype("float32")
    rbm.base_rate.assign(np.full(12, 0.02))
    report = quality_report(rbm, train, train, steps=30)
    assert report.r_hat > 1.5
    assert any("depend on where they began" in each for each in report.verdict)


@pytest.mark.parametrize(
    "visible",
    ["gaussian", keras_rbm.units.Categorical(3)],
    ids=["gaussian", "categorical"],
)
def test_other_units(visible):
    rng = np.random.default_rng(0)
    data = rng.integers(0, 3, (60, 4)).astype("float32")
    if visible == "gaussian":
        data = 10.0 * data + rng.normal(size=data.shape).astype("float32")
    rbm = keras_rbm.RBM(3, visible=visible, num_visible=4, seed=0)
    rbm.adapt(data)
    report = quality_report(rbm, tf.constant(data[:30]), data[30:], steps=5)
    assert report.samples.shape == (30, 4) and 0.0 < report.held_out.value < 1.0


def test_bad_input():
    rbm = keras_rbm.RBM(3, num_visible=4, seed=0)
    rows = np.zeros((20, 4), "float32")
    with pytest.raises(ValueError, match="at least 10 rows"):
        quality_report(rbm, rows[:5], rows)
    with pytest.raises(TypeError, match="Received: CRBM"):
        quality_report(keras_rbm.CRBM(3), rows, rows)
    gaps = keras_rbm.RBM(3, num_visible=4, missing="latent", seed=0)
    with pytest.raises(ValueError, match="without gaps"):
        quality_report(gaps, np.where(np.eye(20, 4), np.nan, rows), rows)
