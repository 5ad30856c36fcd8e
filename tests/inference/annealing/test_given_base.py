import numpy as np
import pytest
import tensorflow as tf
from brute_force import (
    Enumerated,
    assert_follows,
    binary_states,
    random_gaussian_potentials,
    random_potentials,
    tempered_sweep,
)
from message_passing import random_batch

from keras_rbm import inference, random
from keras_rbm.inference import Potentials
from keras_rbm.inference.annealing import chains as annealed_chains
from keras_rbm.inference.annealing.path import TemperedPath, temperatures
from keras_rbm.inference.gibbs import ChainState, SweepNoise
from keras_rbm.inference.traces import kind_of_models
from keras_rbm.units.gaussian import GaussianParameters

SEEDS = range(12)


def base_of(potentials, seed=5):
    rng = np.random.default_rng(seed)
    return tf.constant(rng.normal(size=potentials.num_visible), tf.float32)


@pytest.mark.parametrize(
    "potentials",
    [random_potentials(*sizes, seed=1) for sizes in ((10, 6), (6, 10), (1, 3))]
    + [random_gaussian_potentials(3, 4)],
    ids=["wide", "high", "one unit", "gaussian"],
)
def test_forward_is_within_its_error_and_not_too_high(potentials):
    truth = float(inference.exact_log_partition(potentials))
    results = [
        inference.annealed_importance_sampling(
            potentials, base=base_of(potentials), betas=200, num_chains=50, seed=seed
        )
        for seed in SEEDS
    ]
    for result in results:
        assert abs(result.value - truth) < 4 * result.stderr + 1e-4
        assert result.lower <= result.value <= result.upper
        assert 1 <= result.ess <= 50
    values = np.array([result.value for result in results])
    error = values.std(ddof=1) / np.sqrt(len(values))
    assert values.mean() <= truth + 3 * error


def test_few_temperatures_are_too_low_forwards_and_too_high_backwards():
    potentials = random_potentials(8, 6, seed=2, scale=2.0)
    truth = Enumerated(potentials)
    chains, rng = 4000, np.random.default_rng(0)
    forward = inference.annealed_importance_sampling(
        potentials, betas=3, num_chains=chains
    )
    mean = np.mean(forward.log_weights)
    error = np.std(forward.log_weights) / np.sqrt(chains)
    assert mean < truth.log_partition - 3 * error
    backward = inference.reverse_annealed_importance_sampling(
        potentials, truth.sample(chains, rng), betas=3
    )
    mean, error = np.mean(backward), np.std(backward) / np.sqrt(chains)
    assert mean > truth.log_partition + 3 * error


@pytest.mark.parametrize("betas", [2, 50])
def test_reverse_from_exact_samples_bounds_from_above(betas):
    potentials = random_potentials(9, 5, seed=3)
    truth = Enumerated(potentials)
    values = inference.reverse_annealed_importance_sampling(
        potentials,
        truth.sample(4000, np.random.default_rng(1)),
        base=base_of(potentials),
        betas=betas,
    ).numpy()
    error = values.std(ddof=1) / np.sqrt(len(values))
    assert values.mean() >= truth.log_partition - 3 * error
    weights = np.exp(truth.log_partition - values)  # mean of Z / w is 1
    assert abs(weights.mean() - 1) < 4 * weights.std() / np.sqrt(len(weights))


def annealed_law(potentials, base, betas):
    """Returns p_ann(v), enumerated: base model, then one sweep at each beta."""
    law, _ = tempered_sweep(potentials, base, 0.0)
    for beta in betas[1:]:
        law = law @ tempered_sweep(potentials, base, beta)[1]
    return law


def test_raise_estimates_the_annealed_samplers_law_from_below():
    potentials = random_potentials(6, 4, seed=4, scale=1.5)
    base, betas = base_of(potentials), temperatures(4)
    law = annealed_law(potentials, base, betas)
    states = tf.constant(binary_states(6), tf.float32)
    few = [
        inference.annealed_log_likelihood(
            potentials, states, base=base, betas=4, num_chains=10, seed=seed
        )
        for seed in SEEDS
    ]
    error = np.std(few, 0, ddof=1) / np.sqrt(len(few))
    assert (np.mean(few, 0) <= np.log(law) + 4 * error).all()
    over_states = np.mean(few, 1) - np.log(law).mean()
    assert over_states.mean() <= 3 * over_states.std() / np.sqrt(len(over_states))
    many = inference.annealed_log_likelihood(
        potentials, states[::4], base=base, betas=4, num_chains=20_000
    )
    np.testing.assert_allclose(many, np.log(law)[::4], atol=0.1)


@pytest.mark.parametrize("beta", [0.0, 0.3, 0.7, 1.0])
def test_tempered_sweep_leaves_its_distribution_invariant(beta):
    potentials = random_potentials(5, 4, seed=6)
    path = TemperedPath(potentials, base_of(potentials))
    law, transition = tempered_sweep(potentials, path.base, beta)
    np.testing.assert_allclose(law @ transition, law, atol=1e-12)
    states = binary_states(5)
    chains = 50_000
    rows = np.random.default_rng(0).choice(len(law), chains, p=law)
    visible = tf.constant(states[rows], tf.float32)
    for step in range(3):
        noise = SweepNoise(
            random.uniform((chains, 5), [step, 8]),
            random.uniform((chains, 4), [step, 9]),
        )
        state = ChainState(visible, potentials.hidden_natural(visible))
        visible = path.sweep(state, beta, noise).visible
    assert_follows(law, visible)


def test_path_runs_from_the_base_rate_model_to_the_model():
    potentials = random_potentials(5, 4)
    path = TemperedPath(potentials, base_of(potentials))
    states = tf.constant(binary_states(5), tf.float32)
    chains = ChainState(states, potentials.hidden_natural(states))
    change = path.log_weight_difference(chains, 0.0, 1.0).numpy()
    at_zero = states.numpy() @ path.base.numpy() + 4 * np.log(2)
    np.testing.assert_allclose(
        at_zero + change, -potentials.free_energy(states), rtol=1e-5
    )
    total = np.logaddexp.reduce(at_zero)
    np.testing.assert_allclose(path.log_partition_of_base(), total, rtol=1e-5)


def gaussian_layer(size, precision):
    value = tf.fill([size], np.float32(np.log(precision)))
    return GaussianParameters(
        tf.fill([size], 0.3), value, tf.zeros(size), tf.ones(size)
    )


def test_two_gaussian_layers_against_the_determinant():
    kernel = tf.constant([[0.5, -0.3], [0.2, 0.4], [0.1, 0.6]])
    potentials = Potentials(kernel, gaussian_layer(3, 1.2), gaussian_layer(2, 0.8))
    precision = np.diag([1.2] * 3 + [0.8] * 2)
    precision[:3, 3:] = -kernel.numpy()
    precision[3:, :3] = -kernel.numpy().T
    eta = np.full(5, 0.3)
    truth = 0.5 * eta @ np.linalg.solve(precision, eta) + 0.5 * (
        5 * np.log(2 * np.pi) - np.linalg.slogdet(precision)[1]
    )
    result = inference.annealed_importance_sampling(potentials, betas=400)
    assert abs(result.value - truth) < 4 * result.stderr + 1e-4


def test_each_model_of_a_batch_has_its_own_estimate():
    joint = random_batch(5, 4, 3)
    truth = inference.exact_log_partition(joint)
    result = inference.annealed_importance_sampling(joint, betas=200)
    assert result.log_weights.shape == (100, 3)
    assert (abs(result.value - truth) < 4 * result.stderr).numpy().all()
    visible = tf.constant(np.eye(5)[:3], tf.float32)
    log_p = -(tf.cast(joint.free_energy(visible), tf.float64) + truth)
    below = inference.annealed_log_likelihood(joint, visible, betas=300, num_chains=200)
    np.testing.assert_allclose(below, log_p, atol=0.15)


def test_temperatures():
    np.testing.assert_allclose(temperatures(2), [0, 0.5, 1])
    values = [0.0, 0.1, 1.0]
    assert temperatures(values).tolist() == values


@pytest.mark.parametrize(
    "betas",
    [
        *(0, -1, True, None, "adaptive", ["a"], [0.0, [1.0]]),
        *([0.0, 0.5], [0.1, 1.0], [0.0, 0.5, 0.5, 1.0], [1.0, 0.0], []),
        [0.0, 0.5, 0.5 + 1e-12, 1.0],  # the same in float32
        *([(0.5, 500), (1.0, 10_000)], 2**40),
    ],
    ids=str,
)
def test_temperatures_that_do_not_increase_from_0_to_1(betas):
    with pytest.raises(ValueError, match="increase strictly from 0 to 1.*Received"):
        temperatures(betas)


def test_reverse_annealing_of_a_batch_of_models():
    """It used to average over the models."""
    bias = tf.constant([[0.0, 0.0, 0.0], [5.0, 5.0, 5.0]])
    potentials = Potentials(tf.zeros((3, 2)), bias, tf.zeros(2))
    annealing = inference.anneal(potentials, num_chains=30)
    truth = inference.exact_log_partition(potentials)
    np.testing.assert_allclose(annealing.reverse_ais.value, truth, atol=0.1)
    start = annealing.start
    assert start.base.shape == (2, 3) and start.visible.shape == (60, 3)
    assert start.ancestors.shape == (30, 2) and start.lower_bound.shape == (2,)


def test_phases_have_one_scale_in_bfloat16():
    """1 / B was rounded to bfloat16, and to different values in the two phases."""
    potentials = random_potentials(4, 3)
    kernel = tf.cast(potentials.kernel, tf.bfloat16)
    potentials = Potentials(kernel, potentials.visible, potentials.hidden)
    moments = [
        inference.conditional_moments(
            potentials, tf.ones((rows, 4)), tf.fill([rows], 1 / rows)
        ).kernel
        for rows in (32, 64)
    ]
    for rows in (30, 86, 100):
        other = inference.conditional_moments(
            potentials, tf.ones((rows, 4)), tf.fill([rows], 1 / rows)
        ).kernel
        np.testing.assert_allclose(other, moments[0], rtol=2**-7)  # two of its steps
    np.testing.assert_array_equal(*moments)


@pytest.mark.parametrize("width", [1, 5])
def test_a_growing_model_is_not_traced_anew_for_each_size(width):
    for count in range(1, 7):
        model = Potentials(tf.zeros((width, count)), tf.zeros(width), tf.zeros(count))
        run = annealed_chains._run(annealed_chains._block, kind_of_models(model), 1)
        traces = run.experimental_get_tracing_count()
        z = inference.annealed_importance_sampling(
            model, num_chains=7, betas=20, seed=0
        )
        np.testing.assert_allclose(z.value, (width + count) * np.log(2.0), atol=1e-4)
    assert run.experimental_get_tracing_count() == traces
