import numpy as np
import pytest
import scipy.optimize
import tensorflow as tf
from brute_force import random_gaussian_potentials, random_potentials, rbm_like
from scipy.special import expit

from keras_rbm import inference, random
from keras_rbm.inference import Potentials
from keras_rbm.inference.annealing import tempered_partition
from keras_rbm.inference.annealing.bridge_sampling import bridge

SEEDS = range(20)


def base_of(potentials, seed=5):
    rng = np.random.default_rng(seed)
    return tf.constant(rng.normal(size=potentials.num_visible), tf.float32)


@pytest.mark.parametrize(
    "potentials",
    [
        random_potentials(10, 6, seed=1),
        pytest.param(
            random_potentials(6, 10, seed=2, scale=2.0), marks=pytest.mark.slow
        ),
        pytest.param(random_potentials(1, 3, seed=3), marks=pytest.mark.slow),
        pytest.param(random_gaussian_potentials(3, 4), marks=pytest.mark.slow),
        pytest.param(
            random_gaussian_potentials(4, 3, seed=1).transpose(),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["wide", "high", "one unit", "gaussian", "gaussian hidden"],
)
def test_estimates_are_within_their_error_and_the_error_is_honest(potentials):
    truth = float(inference.exact_log_partition(potentials))
    results = [
        inference.tempered_log_partition(
            potentials,
            base=base_of(potentials),
            betas=4,
            num_chains=50,
            steps=100,
            seed=seed,
        )
        for seed in SEEDS
    ]
    for result in results:
        assert abs(result.value - truth) < 4 * result.stderr
        np.testing.assert_allclose(result.lower, result.value - 3 * result.stderr)
        np.testing.assert_allclose(result.upper, result.value + 3 * result.stderr)
        assert result.log_weights.shape == (50,)
    values = np.array([result.value for result in results])
    spread = np.sqrt(np.mean((values - truth) ** 2))
    reported = np.sqrt(np.mean([result.stderr**2 for result in results]))
    assert 0.5 < spread / reported < 2


def test_slow_chains_have_a_larger_error():
    """States of one chain are not independent: the error is that between chains."""
    potentials = Potentials(tf.fill((8, 8), 1.6), [-6.4] * 8, [-6.4] * 8)
    truth = float(inference.exact_log_partition(potentials))
    results = [
        inference.tempered_log_partition(
            potentials, betas=3, num_chains=40, steps=100, seed=seed
        )
        for seed in SEEDS
    ]
    values = np.array([result.value for result in results])
    reported = np.sqrt(np.mean([result.stderr**2 for result in results]))
    assert 0.5 < values.std(ddof=1) / reported < 2
    assert abs(values.mean() - truth) < 4 * reported / np.sqrt(len(SEEDS))


def balance(delta, low, high, weights):
    """The published equation, left minus right, for weighted chains."""
    up, down = expit(low - delta).mean(0), expit(delta - high).mean(0)
    return np.sum(weights * (up - down))


def solved(low, high, weights):
    ends = min(low.min(), high.min()) - 1, max(low.max(), high.max()) + 1
    return scipy.optimize.brentq(balance, *ends, (low, high, weights), xtol=1e-13)


@pytest.mark.parametrize("spread", [0.1, 1.0, 10.0, 100.0])
@pytest.mark.parametrize("gap", [0.0, 1.0, 20.0, 150.0])
def test_bridge_solves_the_published_equation(spread, gap):
    """Newton's step for sides that are tiny was too short to arrive."""
    rng = np.random.default_rng(0)
    center = rng.normal(0, 50, (1, 3, 1))
    low = center - gap + spread * rng.normal(size=(7, 3, 5))
    high = center + 2 * gap + spread * rng.normal(size=(7, 3, 5))
    ratios, parts = (x.numpy() for x in bridge(low, high))
    assert ratios.shape == (3,) and parts.shape == (3, 5)
    for pair in range(3):
        sides = low[:, pair], high[:, pair]
        want = solved(*sides, np.ones(5))
        np.testing.assert_allclose(ratios[pair], want, atol=1e-7)


def test_parts_are_what_each_chain_adds_to_first_order():
    rng = np.random.default_rng(1)
    low = rng.normal(-1, 1, (6, 2, 4)) + rng.normal(size=(1, 2, 4))
    high = rng.normal(1, 1, (6, 2, 4)) + rng.normal(size=(1, 2, 4))
    parts = bridge(low, high)[1].numpy()
    np.testing.assert_allclose(parts.mean(1), 0, atol=1e-8)
    step = 1e-5
    for pair, chain in np.ndindex(2, 4):
        sides = low[:, pair], high[:, pair]
        more, less = (0.25 + sign * step * np.eye(4)[chain] for sign in (1, -1))
        slope = (solved(*sides, more) - solved(*sides, less)) / (2 * step)
        np.testing.assert_allclose(parts[pair, chain], slope, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("distance", [0.0, 10.0, 1e3, 1e5])
def test_extreme_states_are_finite(distance):
    """Far apart, both sides of the equation were 0 in float64, and any Delta right."""
    rng = np.random.default_rng(2)
    for noise in (np.zeros((2, 5, 1, 3)), rng.normal(size=(2, 5, 1, 3))):
        for low, high in ([-distance, distance], [distance, -distance]):
            ratio, parts = bridge(7 + low + noise[0], 7 + high + noise[1])
            assert abs(ratio[0] - 7) < 4 and np.isfinite(parts).all()
            if not noise.any():
                np.testing.assert_allclose(ratio, 7)
                np.testing.assert_allclose(parts, 0)


def test_agrees_with_thermodynamic_integration():
    """log Z = log Z_0 + integral of E[(b - a)'v + sum_j (v'W + c)_j sigma(beta …)]."""
    potentials = random_potentials(30, 28, seed=4, scale=0.4)  # too large to enumerate
    base, chains = base_of(potentials), 1000
    nodes, weights = np.polynomial.legendre.leggauss(10)
    betas = np.concatenate([[0], (nodes + 1) / 2, [1]])
    replicas = inference.parallel_tempering(
        potentials, num_samples=chains, steps=60, betas=betas, base=base
    )
    natural = replicas.hidden_natural.numpy().astype(float)
    change = replicas.visible.numpy() @ (potentials.visible_bias - base).numpy()
    change += np.sum(natural * expit(betas[:, None, None] * natural), 2)
    integral = weights / 2 @ change[1:-1]
    log_z = np.logaddexp(0, base).sum() + 28 * np.log(2) + integral.mean()
    result = inference.tempered_log_partition(
        potentials, base=base, betas=8, num_chains=50, steps=200
    )
    error = np.hypot(integral.std() / np.sqrt(chains), result.stderr)
    assert error < 0.1
    assert abs(result.value - log_z) < 4 * error


def test_a_base_that_is_the_model_leaves_no_error():
    bias = [1.0, -2.0, 0.5]
    potentials = Potentials(tf.zeros((3, 2)), bias, [0.0] * 2)
    options = {"betas": 4, "num_chains": 20, "steps": 20}
    result = inference.tempered_log_partition(potentials, base=bias, **options)
    np.testing.assert_allclose(
        result.value, inference.exact_log_partition(potentials), rtol=1e-6
    )
    assert result.stderr < 1e-5
    assert inference.tempered_log_partition(potentials, **options).stderr > 1e-3


@pytest.mark.slow
def test_of_a_model():
    potentials = random_potentials(6, 4)
    truth = float(inference.exact_log_partition(potentials))
    rbm = rbm_like(potentials)
    options = {"num_chains": 20, "steps": 100, "seed": 3}
    z = rbm.log_partition("tempering", betas=4, **options)
    assert abs(z.value - truth) < 4 * z.stderr
    start = inference.find_starting_point(
        potentials, num_chains=20, seed=random.fold_in(3, 0)
    )
    same = inference.tempered_log_partition(
        potentials,
        betas=4,
        num_chains=20,
        steps=100,
        base=start.base,
        initial_visible=start.visible,
        ancestors=start.ancestors[:, 0],
        seed=random.fold_in(3, 3),
    )
    assert z.value == same.value and z.ess == same.ess
    default = rbm.log_partition("tempering", **options)
    explicit = rbm.log_partition("tempering", betas=20, **options)
    assert default.value == explicit.value != z.value


def two_modes(weight, size=12):
    """Returns two modes of equal mass, all units on or off, and log Z."""
    kernel = np.full((size, size), weight, np.float32)
    bias = [-0.5 * weight * size] * size
    potentials = Potentials(kernel, bias, bias)
    return potentials, float(inference.exact_log_partition(potentials))


def test_replicas_that_do_not_travel_have_no_error():
    """It said ess 100 and an error of 2 nats where it was off by 77."""
    potentials, truth = two_modes(3.0)
    z = inference.tempered_log_partition(potentials, betas=1, steps=50, num_chains=30)
    assert z.stderr == z.upper == -z.lower == np.inf
    z = inference.tempered_log_partition(potentials, betas=10, steps=500, num_chains=30)
    assert abs(z.value - truth) < 4 * z.stderr < 1


def test_replicas_that_stay_where_they_started_have_no_error():
    """Two modes at a first-order transition: it was 15 of its errors off."""
    rng = np.random.default_rng(5)
    first, second = (rng.choice([-1.0, 1.0], size) for size in (16, 200))
    kernel = 0.5 * np.outer(first, second)
    potentials = Potentials(kernel, -kernel.sum(1) / 2, -kernel.sum(0) / 2)
    start = np.where(np.arange(30)[:, np.newaxis] < 9, first < 0, first > 0)
    z = inference.tempered_log_partition(
        potentials,
        betas=10,
        steps=200,
        num_chains=30,
        base=first.astype("float32"),
        initial_visible=start.astype("float32"),
    )
    assert z.stderr == np.inf and z.ess < 100


def test_ess_is_what_was_measured():
    quick, slow = (two_modes(weight)[0] for weight in (0.1, 1.2))
    options = {"betas": 4, "steps": 200, "num_chains": 10}
    sizes = [
        inference.tempered_log_partition(model, **options).ess
        for model in (quick, slow)
    ]
    assert 10 < sizes[1] < 0.5 * sizes[0] < 160 * 10


def test_chains_of_one_family_count_as_one():
    parts = tf.constant(np.repeat([1.0, -1.0], 10), tf.float64)
    alone = tempered_partition._between_families(parts, None)
    joined = tempered_partition._between_families(parts, np.arange(20) // 2)
    want = [np.sqrt(20 / 19 / 20), np.sqrt(10 / 9 * 10 * 4) / 20]
    np.testing.assert_allclose([alone, joined], want)
    for few in (np.zeros(20), np.arange(20) // 4):
        assert tempered_partition._between_families(parts, few) == np.inf


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"num_chains": 1}, "num_chains ≥ 2. Received: num_chains=1"),
        ({"steps": 4}, "steps ≥ 5. Received: steps=4"),
        ({"betas": [0.0, 0.5]}, "increase strictly from 0 to 1"),
    ],
    ids=str,
)
def test_options_out_of_range(option, message):
    with pytest.raises(ValueError, match=message):
        inference.tempered_log_partition(random_potentials(3, 2), **option)


def test_models_that_have_no_estimate():
    several = Potentials(tf.zeros((3, 2)), tf.zeros((4, 3)), tf.zeros(2))
    with pytest.raises(ValueError, match="single model for tempering"):
        inference.tempered_log_partition(several)
    units = random_gaussian_potentials(3, 3).visible
    unbounded = Potentials(tf.fill((3, 3), 9.0), units, units)
    with pytest.raises(ValueError, match="positive definite"):
        inference.tempered_log_partition(unbounded)
