import numpy as np
import pytest
import scipy.optimize
from brute_force import random_potentials
from scipy.special import expit

import keras_rbm
from keras_rbm import inference
from keras_rbm.inference.annealing import both_ways, chains
from keras_rbm.inference.annealing.both_ways import bidirectional, checked
from keras_rbm.inference.annealing.options import Options
from keras_rbm.inference.estimates import LogPartition
from keras_rbm.inference.log_partition import log_partitions


def gaussian_work(chains, variance, rng, value=7.0):
    """Returns log weights both ways of Gaussian work: E e^u = e^value, E e^-r too."""
    deviation = np.sqrt(variance)
    forward = rng.normal(value - 0.5 * variance, deviation, chains)
    return forward, rng.normal(value + 0.5 * variance, deviation, chains)


def test_gaussian_work():
    rng = np.random.default_rng(0)
    scores = []
    for _ in range(100):
        forward, backward = gaussian_work(100, 4.0, rng)
        z = bidirectional(forward, backward)
        scores.append((z.value - 7) / z.stderr)
        assert z.is_finite
    scores = np.array(scores)
    assert abs(scores.mean()) < 4 / np.sqrt(100)
    assert 0.75 < scores.std() < 1.25
    want = scipy.optimize.brentq(
        lambda f: np.sum(expit(forward - f)) - np.sum(expit(f - backward)), -50, 50
    )
    np.testing.assert_allclose(z.value, want, atol=1e-6)


def test_ways_that_do_not_meet():
    z = bidirectional(*gaussian_work(100, 100.0, np.random.default_rng(0)))
    assert z.upper == z.stderr == np.inf
    assert np.isfinite(z.lower) and z.lower < 7


def test_a_mode_that_no_chain_met_forwards_is_counted():
    """All chains had one weight, ess 100, no error; log Z was log 1/0.97 more."""
    rng = np.random.default_rng(0)
    forward = rng.normal(0, 0.01, 100)
    backward = np.append(rng.normal(0, 0.01, 97), [9.0, 9.5, 10.0])
    z = bidirectional(forward, backward)
    assert abs(z.value + np.log(0.97)) < 3 * z.stderr < 0.1
    alone = LogPartition.from_log_weights(forward)
    both = checked(alone, z)
    assert both.value == alone.value and both.upper > -np.log(0.97) > alone.upper


def test_states_of_one_ancestor_count_as_one():
    forward, backward = gaussian_work(100, 1.0, np.random.default_rng(0))
    backward = np.repeat(backward[:20], 5)
    alone, family = (
        bidirectional(forward, backward, ancestors)
        for ancestors in (None, np.repeat(np.arange(20), 5)[:, np.newaxis])
    )
    assert alone.value == family.value and family.stderr > 1.3 * alone.stderr
    few = bidirectional(forward, backward, np.repeat(np.arange(5), 20)[:, np.newaxis])
    assert few.stderr == np.inf


def test_refuted_by_what_is_known_otherwise():
    forward, backward = gaussian_work(100, 1.0, np.random.default_rng(0))
    assert bidirectional(forward, backward, lower_bound=6.5).is_finite
    refuted = bidirectional(forward, backward, lower_bound=9.0)
    assert refuted.upper == np.inf and refuted.lower == 9.0


def test_many_models():
    rng = np.random.default_rng(0)
    pairs = [gaussian_work(50, 1.0, rng, value) for value in (0.0, 100.0, -5.0)]
    forward, backward = (np.stack(x, 1) for x in zip(*pairs, strict=True))
    together = bidirectional(forward, backward)
    for index, pair in enumerate(pairs):
        alone = bidirectional(*pair)
        np.testing.assert_allclose(together.value[index], alone.value)
        np.testing.assert_allclose(together.stderr[index], alone.stderr, rtol=1e-6)


def assert_same(one, other):
    for name, value in one._asdict().items():
        np.testing.assert_array_equal(value, getattr(other, name), name)


def test_each_estimate_is_that_of_its_method():
    potentials = random_potentials(8, 5, seed=1, scale=0.5)
    options = {"num_chains": 20, "precision": 2.0, "seed": 4}
    annealing = inference.anneal(potentials, **options)
    methods = ["ais", "reverse_ais", "bidirectional"]
    for method, z in log_partitions(potentials, methods, Options(**options)).items():
        assert_same(getattr(annealing, method), z)
        assert "No data are known" in z.note
    assert len(annealing.betas) == 101 and annealing.base.shape == (8,)
    truth = float(inference.exact_log_partition(potentials))
    assert abs(annealing.bidirectional.value - truth) < 4 * z.stderr


@pytest.fixture
def counted(monkeypatch):
    """A list to which each annealing run of an estimate adds its temperatures."""
    counts, run = [], both_ways.anneal_forward

    def counting(potentials, base, betas, *args):
        counts.append(len(betas) - 1)
        return run(potentials, base, betas, *args)

    monkeypatch.setattr(both_ways, "anneal_forward", counting)
    return counts


def test_few_temperatures_if_they_are_precise(counted):
    weak = random_potentials(6, 4, seed=0, scale=0.1)
    z = inference.anneal(weak).bidirectional
    assert counted == [100] and z.upper - z.lower <= 0.1


@pytest.mark.slow
def test_more_temperatures_where_the_interval_is_wide(counted):
    model = random_potentials(100, 12, seed=0, scale=0.4)
    truth = inference.exact_log_partition(model)

    def width(precision):
        z = inference.anneal(model, precision=precision, num_chains=25, seed=5)
        z = z.bidirectional
        assert z.lower <= truth <= z.upper
        return float(z.upper - z.lower)

    few = width(9.0)
    assert counted == [100]
    assert width(0.4 * few) <= 0.8 * few
    assert counted[1:] == [100, 1000]
    assert width(0.0001) < few
    assert counted[3:] == [100, 1000, 10_000]


@pytest.mark.filterwarnings("ignore:.*near the limit of normalizability")
def test_near_the_limit_of_normalizability_the_interval_is_open():
    """The truth was 7 nats above an interval of ± 0.7."""
    rng = np.random.default_rng(0)
    kernel = rng.normal(size=(10, 6)) / np.sqrt(np.arange(1, 7))
    kernel /= np.linalg.norm(kernel, 2)
    for gap, known in ((0.1, True), (0.003, False)):
        own = np.sqrt(1 - gap) * kernel
        rbm = keras_rbm.RBM(6, num_visible=10, visible="gaussian", hidden="gaussian")
        rbm.kernel.assign(own)
        rbm.visible_bias.assign(np.full(10, 0.3))
        precision, eta = np.eye(10) - own @ own.T, np.full(10, 0.3)
        truth = 0.5 * eta @ np.linalg.solve(precision, eta)
        truth += 8 * np.log(2 * np.pi) - 0.5 * np.linalg.slogdet(precision)[1]
        annealing = rbm.anneal(precision=1.0, seed=0)
        for z in (annealing.ais, annealing.bidirectional):
            if known:
                assert z.is_finite and z.lower <= truth <= z.upper
            else:
                assert z.upper == np.inf and "near the limit" in z.note


@pytest.mark.parametrize("of", ["rbm", "crbm"])
def test_a_warning_is_of_the_line_that_asks(of):
    rows = np.ones((4, 3), "float32")
    rbm, crbm = keras_rbm.RBM(2, seed=0), keras_rbm.CRBM(2, num_visible=3, seed=0)
    rbm.build((None, 3))
    crbm.build((None, 3))
    with pytest.warns(UserWarning, match="log_partition.*fewer than 10") as caught:
        if of == "rbm":
            rbm.log_partition("ais", num_chains=5, precision=1.0)
        else:
            crbm.log_partition(rows, "ais", num_chains=5, precision=1.0)
    assert caught[0].filename == __file__


def test_one_program_for_all_runs_of_a_search(monkeypatch, compiled_inference):
    """Each number of chains had its own: six programs, half a second each."""
    monkeypatch.setattr(chains, "_LARGE", 1)
    model = random_potentials(7, 5, seed=0)
    program = chains._block_compiled
    before = program.experimental_get_tracing_count()
    z = inference.anneal(model, num_chains=30).bidirectional
    assert program.experimental_get_tracing_count() == before + 1
    assert z.lower <= inference.exact_log_partition(model) <= z.upper


@pytest.mark.slow
def test_compiled_runs_of_units_with_several_columns(monkeypatch, compiled_inference):
    """Their base has as many numbers as columns, their states as units."""
    monkeypatch.setattr(chains, "_LARGE", 1)
    units = keras_rbm.units
    visible = units.Joined([("bernoulli", 3), (units.Categorical(3), 4)])
    rbm = keras_rbm.RBM(4, num_visible=7, visible=visible, seed=0)
    rbm.kernel.assign(np.random.default_rng(0).normal(0, 0.5, rbm.kernel.shape))
    truth = rbm.log_partition("exact").value
    z = rbm.log_partition("bidirectional")
    assert z.lower <= truth <= z.upper
