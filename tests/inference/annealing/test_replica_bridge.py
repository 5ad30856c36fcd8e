import numpy as np
import pytest
import tensorflow as tf
from brute_force import random_gaussian_potentials, random_potentials, rbm_like
from scipy.special import expit
from small_models import slow

from keras_rbm import inference, random
from keras_rbm.inference import Potentials
from keras_rbm.inference.annealing import replica_bridge
from keras_rbm.inference.annealing.options import Options
from keras_rbm.inference.annealing.path import TemperedPath, temperatures
from keras_rbm.inference.annealing.replicas import moved_replicas, start_replicas

SEEDS = range(20)


def base_of(potentials, seed=5):
    rng = np.random.default_rng(seed)
    return tf.constant(rng.normal(size=potentials.num_visible), tf.float32)


def bridged(
    potentials, betas, chains, steps, base=None, visible=None, ancestors=None, seed=0
):
    """Returns the estimate of replicas whose temperatures are a fifth's swap rates."""
    if base is None:
        base = tf.zeros(potentials.visible.num_rows)
    path = TemperedPath(potentials, tf.cast(base, "float32"))
    seed = random.as_seed(seed)
    if visible is None:
        visible = path.sample_base(chains, random.fold_in(seed, 7))
    replicas = start_replicas(path, temperatures(betas), tf.constant(visible))
    for part in range(3):
        fresh = random.fold_in(seed, 8 + part)
        replicas = moved_replicas(path, replicas, fresh, max(1, steps // 15))
        rates = replicas.betas, replicas.swap_rates
        replicas = replicas._replace(betas=replica_bridge.equalized_betas(*rates))
    counts, options = [steps - steps // 5] * 3, Options(chains)
    return replica_bridge.bridged(path, replicas, counts, options, seed, ancestors)


@pytest.mark.parametrize(
    "potentials",
    [
        random_potentials(10, 6, seed=1),
        slow(random_gaussian_potentials(3, 4)),
        slow(random_gaussian_potentials(4, 3, seed=1).transpose()),
    ],
    ids=["binary", "gaussian", "gaussian hidden"],
)
def test_estimates_are_within_their_error_and_the_error_is_honest(potentials):
    truth = float(inference.exact_log_partition(potentials))
    results = [
        bridged(potentials, 4, 50, 100, base_of(potentials), seed=seed)
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
    results = [bridged(potentials, 3, 40, 100, seed=seed) for seed in SEEDS]
    values = np.array([result.value for result in results])
    reported = np.sqrt(np.mean([result.stderr**2 for result in results]))
    assert 0.5 < values.std(ddof=1) / reported < 2
    assert abs(values.mean() - truth) < 4 * reported / np.sqrt(len(SEEDS))


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
    result = bridged(potentials, 8, 50, 200, base)
    error = np.hypot(integral.std() / np.sqrt(chains), result.stderr)
    assert error < 0.1
    assert abs(result.value - log_z) < 4 * error


def test_a_base_that_is_the_model_leaves_no_error():
    bias = [1.0, -2.0, 0.5]
    potentials = Potentials(tf.zeros((3, 2)), bias, [0.0] * 2)
    result = bridged(potentials, 4, 20, 20, bias)
    np.testing.assert_allclose(
        result.value, inference.exact_log_partition(potentials), rtol=1e-6
    )
    assert result.stderr < 1e-5
    assert bridged(potentials, 4, 20, 20).stderr > 1e-3


@pytest.mark.slow
def test_of_a_model():
    potentials = random_potentials(6, 4)
    truth = float(inference.exact_log_partition(potentials))
    z = rbm_like(potentials).log_partition("tempering", num_chains=20, seed=3)
    assert abs(z.value - truth) < 4 * z.stderr
    same = inference.temper(potentials, num_chains=20, seed=3)
    assert z.value == same.value and z.ess == same.ess


def two_modes(weight, size=12):
    """Returns two modes of equal mass, all units on or off, and log Z."""
    kernel = np.full((size, size), weight, np.float32)
    bias = [-0.5 * weight * size] * size
    potentials = Potentials(kernel, bias, bias)
    return potentials, float(inference.exact_log_partition(potentials))


def test_replicas_that_do_not_travel_have_no_error():
    """It said ess 100 and an error of 2 nats where it was off by 77."""
    potentials, truth = two_modes(3.0)
    z = bridged(potentials, 1, 30, 50)
    assert z.stderr == z.upper == -z.lower == np.inf
    z = bridged(potentials, 10, 30, 500)
    assert abs(z.value - truth) < 4 * z.stderr < 1


def test_replicas_that_stay_where_they_started_have_no_error():
    """Two modes at a first-order transition: it was 15 of its errors off."""
    rng = np.random.default_rng(5)
    first, second = (rng.choice([-1.0, 1.0], size) for size in (16, 200))
    kernel = 0.5 * np.outer(first, second)
    potentials = Potentials(kernel, -kernel.sum(1) / 2, -kernel.sum(0) / 2)
    start = np.where(np.arange(30)[:, np.newaxis] < 9, first < 0, first > 0)
    z = bridged(
        potentials,
        *(10, 30, 200),
        base=first.astype("float32"),
        visible=start.astype("float32"),
    )
    assert z.stderr == np.inf and z.ess < 100


def test_ess_is_what_was_measured():
    quick, slow = (two_modes(weight)[0] for weight in (0.1, 1.2))
    sizes = [bridged(model, 4, 40, 200).ess for model in (quick, slow)]
    assert 40 < sizes[1] < 0.8 * sizes[0] < 160 * 40


def test_chains_of_one_family_count_as_one():
    parts = tf.constant(np.repeat([1.0, -1.0], 10), tf.float64)
    alone = replica_bridge._between_families(parts, None)
    joined = replica_bridge._between_families(parts, np.arange(20) // 2)
    want = [np.sqrt(20 / 19 / 20), np.sqrt(10 / 9 * 10 * 4) / 20]
    np.testing.assert_allclose([alone, joined], want)
    for few in (np.zeros(20), np.arange(20) // 4):
        assert replica_bridge._between_families(parts, few) == np.inf
