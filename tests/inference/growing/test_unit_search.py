"""Adding units with exact expectations instead of samples."""

import numpy as np
import pytest
import tensorflow as tf
from brute_force import random_potentials
from growing_models import counted, law_of, log_likelihood, states_of

from keras_rbm.inference import Potentials
from keras_rbm.inference.growing.resample_move import FractionalParameters
from keras_rbm.inference.growing.unit_search import (
    DataAndSamples,
    HiddenUnits,
    minimize,
    penalized_loss,
)


def model(num_visible, coefficients, seed=0):
    return counted(
        random_potentials(num_visible, len(coefficients), seed), coefficients
    )


def data_of(num_visible, seed=1, rows=40):
    rng = np.random.default_rng(seed)
    data = (rng.random((rows, num_visible)) < rng.random(num_visible)).astype("float32")
    weights = rng.random(rows).astype("float32")
    return data, weights / weights.sum()


def exact_phases(potentials, data, weights):
    states, law = states_of(potentials), law_of(potentials).astype("float32")
    return DataAndSamples(*map(tf.constant, (data, weights, states, law)))


def with_unit(potentials, unit, coefficient=1.0):
    hidden = FractionalParameters(
        tf.concat([potentials.hidden_bias, unit.bias], 0),
        tf.concat([potentials.hidden.coefficients, [coefficient]], 0),
    )
    kernel = tf.concat([potentials.kernel, tf.transpose(unit.weights)], 1)
    return Potentials(kernel, potentials.visible, hidden)


def random_units(count, num_visible, seed=2, scale=1.0):
    rng = np.random.default_rng(seed)
    return HiddenUnits(
        tf.constant(scale * rng.normal(size=(count, num_visible)), tf.float32),
        tf.constant(scale * rng.normal(size=count), tf.float32),
    )


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("coefficients", [[1.0, 1.0], [0.4, 0.7, 1.0]])
def test_loss_is_the_exact_change_of_log_likelihood(seed, coefficients):
    potentials = model(6, coefficients, seed)
    data, weights = data_of(6)
    phases = exact_phases(potentials, data, weights)
    units = random_units(4, 6, seed)
    got = -penalized_loss(units, phases, l2=0.0).numpy()
    before = log_likelihood(potentials, data, weights)
    for index in range(4):
        unit = HiddenUnits(*(part[index : index + 1] for part in units))
        after = log_likelihood(with_unit(potentials, unit), data, weights)
        np.testing.assert_allclose(got[index], after - before, atol=1e-5)


def test_penalty_written_out():
    potentials = model(5, [1.0, 0.5])
    data, weights = data_of(5)
    phases = exact_phases(potentials, data, weights)
    units = random_units(3, 5)
    w, d = (np.asarray(part, float) for part in units)
    square = (w**2).sum(1) + d**2
    penalized = penalized_loss(units, phases, 0.3) - penalized_loss(units, phases, 0.0)
    np.testing.assert_allclose(penalized, 0.15 * square, rtol=1e-4)


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(s, marks=pytest.mark.slow) for s in (1, 2, 3))]
)
def test_best_of_twenty_starts_is_the_grid_optimum(seed):
    """One visible unit: weight and bias span a plane."""
    potentials = model(1, [1.0], seed)
    data, weights = data_of(1, seed + 10)
    phases = exact_phases(potentials, data, weights)
    starts = random_units(20, 1, seed, scale=2.0)
    _, values = minimize(phases, starts, 0.1, 200, tolerance=1e-6)
    axis = np.linspace(-15.0, 15.0, 301, dtype="float32")
    w, d = (grid.reshape(-1) for grid in np.meshgrid(axis, axis))
    grid = penalized_loss(HiddenUnits(w[:, None], d), phases, 0.1).numpy()
    assert values.numpy().min() <= grid.min() + 1e-6
    assert values.numpy().min() >= grid.min() - 1e-3
