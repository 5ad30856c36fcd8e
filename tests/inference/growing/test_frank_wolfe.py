"""Adding and removing units with exact expectations instead of samples."""

import numpy as np
import pytest
import tensorflow as tf
from brute_force import binary_states

from keras_rbm import inference
from keras_rbm.inference import Potentials
from keras_rbm.inference.growing.frank_wolfe import (
    DataAndSamples,
    HiddenUnits,
    best_coefficients,
    best_removal,
    find_units,
    likelihood_objective,
    linearized_objective,
    removal_gains,
)
from keras_rbm.inference.growing.reweighting import log_mean_exp
from keras_rbm.units import FractionalParameters

OBJECTIVES = [linearized_objective, likelihood_objective]


def model(num_visible, coefficients, seed=0):
    rng = np.random.default_rng(seed)
    count = len(coefficients)
    hidden = FractionalParameters(
        tf.constant(rng.normal(size=count), tf.float32),
        tf.constant(coefficients, tf.float32),
    )
    kernel = tf.constant(rng.normal(size=(num_visible, count)), tf.float32)
    return Potentials(kernel, rng.normal(size=num_visible).astype("float32"), hidden)


def data_of(num_visible, seed=1, rows=40):
    rng = np.random.default_rng(seed)
    data = (rng.random((rows, num_visible)) < rng.random(num_visible)).astype("float32")
    weights = rng.random(rows).astype("float32")
    return data, weights / weights.sum()


def exact_phases(potentials, data, weights):
    states = tf.constant(binary_states(potentials.num_visible), tf.float32)
    probabilities = tf.nn.softmax(-potentials.free_energy(states))
    return DataAndSamples(
        tf.constant(data), tf.constant(weights), states, probabilities
    )


def log_likelihood(potentials, data, weights):
    energies = potentials.free_energy(tf.constant(data)).numpy().astype(float)
    return -energies @ weights - inference.exact_log_partition(potentials).numpy()


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
@pytest.mark.parametrize("coefficients", [[1.0, 1.0], [0.4, 1.7, 2.0]])
def test_likelihood_objective_is_the_exact_change_of_log_likelihood(seed, coefficients):
    potentials = model(6, coefficients, seed)
    data, weights = data_of(6)
    phases = exact_phases(potentials, data, weights)
    units = random_units(4, 6, seed)
    got = -likelihood_objective(units, phases, l2=0.0).numpy()
    before = log_likelihood(potentials, data, weights)
    for index in range(4):
        unit = HiddenUnits(*(part[index : index + 1] for part in units))
        after = log_likelihood(with_unit(potentials, unit), data, weights)
        np.testing.assert_allclose(got[index], after - before, atol=1e-5)


def test_penalties_and_the_linear_objective_written_out():
    potentials = model(5, [1.0, 0.5])
    data, weights = data_of(5)
    phases = exact_phases(potentials, data, weights)
    units = random_units(3, 5)
    w, d = (np.asarray(part, float) for part in units)
    square = (w**2).sum(1) + d**2
    for objective in OBJECTIVES:
        penalized = objective(units, phases, 0.3) - objective(units, phases, 0.0)
        np.testing.assert_allclose(penalized, 0.15 * square, rtol=1e-4)
    on_data = weights @ np.logaddexp(0, data @ w.T + d)
    on_model = phases.sample_weights.numpy() @ np.logaddexp(
        0, phases.samples.numpy() @ w.T + d
    )
    np.testing.assert_allclose(
        linearized_objective(units, phases, 0.0), on_model - on_data, atol=1e-5
    )
    bound = likelihood_objective(units, phases, 0.0) - linearized_objective(
        units, phases, 0.0
    )
    assert (bound.numpy() > 0.0).all()  # Jensen


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(s, marks=pytest.mark.slow) for s in (2, 3))]
)
def test_best_of_twenty_starts_is_the_grid_optimum(objective, seed):
    """One visible unit: weight and bias span a plane."""
    potentials = model(1, [1.0], seed)
    data, weights = data_of(1, seed + 10)
    phases = exact_phases(potentials, data, weights)
    starts = random_units(20, 1, seed, scale=2.0)
    _, values = find_units(phases, starts, 0.1, objective, 200, tolerance=1e-6)
    axis = np.linspace(-15.0, 15.0, 301, dtype="float32")
    w, d = (grid.reshape(-1) for grid in np.meshgrid(axis, axis))
    grid = objective(HiddenUnits(w[:, None], d), phases, 0.1).numpy()
    assert values.numpy().min() <= grid.min() + 1e-6
    assert values.numpy().min() >= grid.min() - 1e-3


@pytest.mark.parametrize(
    "objective",
    [pytest.param(OBJECTIVES[0], marks=pytest.mark.slow), OBJECTIVES[1]],
)
def test_penalized_likelihood_never_falls_with_line_search(objective):
    data, weights = data_of(6, rows=12)
    l2, potentials = 0.01, model(6, [0.0])
    penalty = 0.0
    last = log_likelihood(potentials, data, weights)
    first = last
    for number in range(12):
        phases = exact_phases(potentials, data, weights)
        starts = random_units(20, 6, number)
        units, values = find_units(phases, starts, l2, objective, 100)
        best = int(tf.argmin(values))
        unit = HiddenUnits(*(part[best : best + 1] for part in units))
        on_data = tf.linalg.matvec(
            unit.softplus(phases.visible), phases.weights, transpose_a=True
        )
        c = best_coefficients(
            on_data,
            unit.softplus(phases.samples),
            phases.sample_weights,
            0.5 * l2 * unit.square(),
            tf.ones(1),
        ).numpy()[0]
        potentials = with_unit(potentials, unit, c)
        penalty += 0.5 * l2 * c * unit.square().numpy()[0]
        now = log_likelihood(potentials, data, weights) - penalty
        assert now >= last - 1e-5
        last = now
    assert last > first + 0.1


def test_best_coefficient_is_the_best_on_a_grid():
    potentials = model(6, [1.0, 0.5])
    data, weights = data_of(6)
    phases = exact_phases(potentials, data, weights)
    units = random_units(30, 6, scale=0.7)
    data_mean = tf.linalg.matvec(
        units.softplus(phases.visible), phases.weights, transpose_a=True
    )
    samples = units.softplus(phases.samples)
    largest = tf.fill([30], 1.5)
    penalties = 0.5 * 0.02 * units.square()
    got = best_coefficients(
        data_mean, samples, phases.sample_weights, penalties, largest
    ).numpy()
    grid = np.linspace(0.0, 1.5, 1501)
    values = np.stack([
        c * (data_mean - penalties)
        - log_mean_exp(float(c) * samples, phases.sample_weights)
        for c in grid
    ])  # fmt: skip
    np.testing.assert_allclose(got, grid[values.argmax(0)], atol=0.01)
    assert (got == 0.0).any() and (got == 1.5).any()
    assert ((got > 0.0) & (got < 1.5)).any()


def test_removal_gain_is_the_exact_change():
    coefficients, l2 = [1.0, 0.4, 2.0, 1.0], 0.05
    potentials = model(6, coefficients)
    data, weights = data_of(6)
    phases = exact_phases(potentials, data, weights)

    def softplus(states):
        return tf.math.softplus(potentials.hidden_natural(states))

    square = tf.reduce_sum(potentials.kernel**2, 0) + potentials.hidden_bias**2
    gains, errors = removal_gains(
        potentials.hidden.coefficients,
        tf.linalg.matvec(softplus(data), weights, transpose_a=True),
        softplus(phases.samples),
        phases.sample_weights,
        0.5 * l2 * square,
    )
    before = log_likelihood(potentials, data, weights)
    for index, c in enumerate(coefficients):
        less = np.array(coefficients)
        less[index] = 0.0
        hidden = potentials.hidden._replace(coefficients=tf.constant(less, tf.float32))
        after = log_likelihood(potentials._replace(hidden=hidden), data, weights)
        want = after - before + 0.5 * l2 * c * square[index].numpy()
        np.testing.assert_allclose(gains[index], want, atol=2e-5)
    assert (errors.numpy() > 0.0).all()


@pytest.mark.parametrize("line_search", [False, True])
def test_best_removal_is_the_best_of_all(line_search):
    """Every unit and every coefficient on a grid, by enumeration."""
    coefficients, l2 = np.array([1.0, 0.4, 2.0, 1.0]), 0.3
    potentials = model(6, coefficients)
    data, weights = data_of(6)
    phases = exact_phases(potentials, data, weights)
    square = tf.reduce_sum(potentials.kernel**2, 0) + potentials.hidden_bias**2

    def penalized(coefficients):
        hidden = FractionalParameters(
            potentials.hidden_bias, tf.constant(coefficients, tf.float32)
        )
        value = log_likelihood(potentials._replace(hidden=hidden), data, weights)
        return value - 0.5 * l2 * coefficients @ square.numpy()

    results = {}
    for unit, c in enumerate(coefficients):
        for left in np.linspace(0.0, c, 41) if line_search else [0.0]:
            less = coefficients.copy()
            less[unit] = left
            results[unit, left] = penalized(less)
    removal = best_removal(potentials, phases, l2, line_search=line_search)
    unit, left = max(results, key=results.get)
    assert int(removal.unit) == unit
    np.testing.assert_allclose(removal.coefficient, left, atol=0.03)
    gain = results[unit, left] - penalized(coefficients)
    np.testing.assert_allclose(removal.gain, gain, atol=2e-3)


def test_standard_error_of_a_removal_gain():
    """Against the spread over many samples of 500 states."""
    potentials = model(6, [1.0, 1.0])
    data, weights = data_of(6)
    phases = exact_phases(potentials, data, weights)
    rng = np.random.default_rng(0)
    law = phases.sample_weights.numpy().astype(float)
    results = []
    for _ in range(200):
        rows = rng.choice(len(law), 500, p=law / law.sum())
        samples = tf.math.softplus(
            potentials.hidden_natural(tf.gather(phases.samples, rows))
        )
        each = tf.fill([500], 1.0 / 500)
        results.append(removal_gains(tf.ones(2), tf.zeros(2), samples, each, 0.0))
    gains, errors = (np.stack(parts) for parts in zip(*results, strict=True))
    np.testing.assert_allclose(errors.mean(0), gains.std(0), rtol=0.25)
