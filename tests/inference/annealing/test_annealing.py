import numpy as np
import pytest
import scipy.optimize
import tensorflow as tf
from brute_force import random_potentials
from scipy.special import expit

import keras_rbm
from keras_rbm import inference, random
from keras_rbm.inference import Potentials, TemperedPath
from keras_rbm.inference.annealing import annealing, tempered_path
from keras_rbm.inference.annealing.annealing import bidirectional, checked
from keras_rbm.inference.estimates import LogPartition
from keras_rbm.inference.log_partition import estimate_by_each


def gaussian_work(chains, variance, rng, value=7.0):
    """Returns log weights both ways of Gaussian work: E e^u = e^value, E e^-r too."""
    deviation = np.sqrt(variance)
    forward = rng.normal(value - 0.5 * variance, deviation, chains)
    return forward, rng.normal(value + 0.5 * variance, deviation, chains)


@pytest.mark.parametrize(
    "variance",
    [4.0, *(pytest.param(v, marks=pytest.mark.slow) for v in (0.01, 1.0))],
)
def test_gaussian_work(variance):
    rng = np.random.default_rng(0)
    scores = []
    for _ in range(100):
        forward, backward = gaussian_work(100, variance, rng)
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


OPTIONS = {"betas": 50, "num_chains": 20, "steps": 3, "seed": 4}


def test_each_estimate_is_that_of_its_method():
    potentials = random_potentials(8, 5, seed=1, scale=1.5)
    annealing = inference.anneal(potentials, **OPTIONS)
    for method in ("ais", "reverse_ais", "bidirectional"):
        z = inference.estimate_log_partition(potentials, method, **OPTIONS)
        assert_same(getattr(annealing, method), z)
        assert "No data are known" in z.note
    assert len(annealing.betas) == 51 and annealing.base.shape == (8,)
    truth = float(inference.exact_log_partition(potentials))
    assert abs(annealing.bidirectional.value - truth) < 4 * z.stderr


def test_without_a_search_it_is_the_fields_own():
    potentials = random_potentials(8, 5, seed=1)
    base = 0.5 * potentials.visible_bias
    options = {"base": base, "num_chains": 30, "seed": 4}
    z = inference.estimate_log_partition(potentials, search=False, **options)
    seed = random.fold_in(4, 1)
    plain = inference.annealed_importance_sampling(
        potentials, **options | {"seed": seed, "betas": 1000}
    )
    assert_same(z, plain)
    z = inference.estimate_log_partition(
        potentials, "tempering", search=False, steps=50, betas=4, **options
    )
    seed = random.fold_in(4, 3)
    plain = inference.tempered_log_partition(
        potentials, steps=50, **options | {"seed": seed, "betas": 4}
    )
    assert_same(z, plain)


def test_without_a_search_of_several_models():
    bias = tf.constant([[0.0, 0.0, 0.0], [5.0, 5.0, 5.0]])
    potentials = Potentials(tf.zeros((3, 2)), bias, tf.zeros(2))
    z = inference.anneal(potentials, search=False, betas=200).ais
    truth = inference.exact_log_partition(potentials)
    assert (abs(z.value - truth) < 4 * z.stderr).numpy().all()


@pytest.mark.parametrize("method", ["reverse_ais", "bidirectional"])
def test_no_states_to_anneal_back_without_a_search(method):
    potentials = random_potentials(4, 3)
    with pytest.raises(ValueError, match="chains annealed backward. Received: .*False"):
        inference.estimate_log_partition(potentials, method, search=False, betas=5)
    annealing = inference.anneal(potentials, search=False, betas=5)
    with pytest.raises(ValueError, match="chains annealed backward. Received: .*False"):
        getattr(annealing, method)


def test_given_states_are_annealed_back_alone():
    potentials = random_potentials(4, 3)
    states = tf.zeros((20, 4))
    annealing = inference.anneal(potentials, initial_visible=states, betas=20)
    z = inference.estimate_log_partition(
        potentials, "reverse_ais", initial_visible=states, betas=20
    )
    assert_same(annealing.reverse_ais, z)
    with pytest.raises(ValueError, match="chains annealed forward"):
        _ = annealing.ais
    with pytest.raises(ValueError, match="two chains for each model.*Received: 1 init"):
        inference.anneal(potentials, initial_visible=states[:1])


@pytest.fixture
def counted(monkeypatch):
    """A list to which each annealing run of an estimate adds its temperatures."""
    counts, run = [], annealing.anneal_forward

    def counting(potentials, base, betas, *args):
        counts.append(len(betas) - 1)
        return run(potentials, base, betas, *args)

    monkeypatch.setattr(annealing, "anneal_forward", counting)
    return counts


def test_few_temperatures_if_they_are_precise(counted):
    weak = random_potentials(6, 4, seed=0, scale=0.1)
    z = inference.estimate_log_partition(weak, "bidirectional")
    assert counted == [100] and z.upper - z.lower <= 0.1
    same = inference.estimate_log_partition(weak, "bidirectional", betas=100)
    assert z.value == same.value and z.lower == same.lower


@pytest.mark.slow
def test_more_temperatures_where_the_interval_is_wide(counted):
    model = random_potentials(100, 12, seed=0, scale=0.4)
    truth = inference.exact_log_partition(model)

    def width(**options):
        method, options = "bidirectional", {"num_chains": 25, "seed": 3} | options
        z = inference.estimate_log_partition(model, method, **options)
        assert z.lower <= truth <= z.upper
        return z.upper - z.lower

    few = width(betas=100)
    assert counted == [100]
    assert width(precision=0.4 * few) <= 0.8 * few
    assert counted[1:] == [100, 1000]
    assert width(precision=0.0001) < few
    assert counted[3:] == [100, 1000, 10_000]


def test_given_temperatures_are_what_is_annealed_at(counted):
    model = random_potentials(12, 6, seed=0)
    inference.estimate_log_partition(model, "ais", betas=7)
    inference.estimate_log_partition(model, "ais", search=False)
    assert counted == [7, 1000]


@pytest.mark.slow
def test_an_estimate_does_not_depend_on_others(counted):
    model = random_potentials(100, 12, seed=0, scale=0.4)
    both = estimate_by_each(model, ["ais", "bidirectional"], precision=0.03)
    assert counted == [100, 1000]
    counted.clear()
    alone = estimate_by_each(model, ["bidirectional"], precision=0.03)
    assert counted == [100]
    assert both["bidirectional"].value == alone["bidirectional"].value


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
        annealing = rbm.anneal(betas=100, seed=0)
        for z in (annealing.ais, annealing.bidirectional):
            if known:
                assert z.is_finite and z.lower <= truth <= z.upper
            else:
                assert z.upper == np.inf and "near the limit" in z.note


def test_no_more_temperatures_where_chains_are_too_few(counted):
    model = random_potentials(6, 4, seed=0)
    with pytest.warns(UserWarning, match="fewer than 10"):
        inference.estimate_log_partition(
            model, "bidirectional", num_chains=9, precision=0.1
        )
    assert counted == [1000]


@pytest.mark.parametrize(
    "of", ["inference", pytest.param("rbm", marks=pytest.mark.slow), "crbm"]
)
def test_a_warning_is_of_the_line_that_asks(of):
    rows = np.ones((4, 3), "float32")
    rbm, crbm = keras_rbm.RBM(2, seed=0), keras_rbm.CRBM(2, num_visible=3, seed=0)
    rbm.build((None, 3))
    crbm.build((None, 3))
    with pytest.warns(UserWarning, match="log_partition") as caught:
        if of == "inference":
            inference.estimate_log_partition(random_potentials(3, 2), num_chains=5)
        elif of == "rbm":
            rbm.log_partition(num_chains=5, precision=1.0)
        else:
            crbm.log_partition(rows, "ais", num_chains=5, precision=1.0)
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"precision": 0.0}, ValueError),
        ({"precision": np.nan}, ValueError),
        ({"precision": "0.1"}, TypeError),
        ({"precision": 0.1, "betas": 100}, ValueError),
    ],
)
def test_bad_precision(options, error):
    with pytest.raises(error, match="precision"):
        inference.estimate_log_partition(random_potentials(3, 2, seed=0), **options)


def test_one_program_for_all_runs_of_a_search(monkeypatch, compiled_inference):
    """Each number of chains had its own: six programs, half a second each."""
    monkeypatch.setattr(tempered_path, "_LARGE", 1)
    model = random_potentials(7, 5, seed=0)
    program = tempered_path._block_compiled
    before = program.experimental_get_tracing_count()
    z = inference.anneal(model, num_chains=30, betas=200).bidirectional
    assert program.experimental_get_tracing_count() == before + 1
    assert z.lower <= inference.exact_log_partition(model) <= z.upper


@pytest.mark.parametrize(
    "visible",
    [
        pytest.param(keras_rbm.units.Categorical(3), marks=pytest.mark.slow),
        keras_rbm.units.Joined([("bernoulli", 3), (keras_rbm.units.Categorical(3), 4)]),
    ],
    ids=["categorical", "joined"],
)
@pytest.mark.slow
def test_compiled_runs_of_units_with_several_columns(
    visible, monkeypatch, compiled_inference
):
    """Their base has as many numbers as columns, their states as units."""
    monkeypatch.setattr(tempered_path, "_LARGE", 1)
    rbm = keras_rbm.RBM(4, num_visible=7, visible=visible, seed=0)
    rbm.build((None, 7))
    rbm.kernel.assign(np.random.default_rng(0).normal(0, 0.5, rbm.kernel.shape))
    truth = rbm.log_partition("exact").value
    z = rbm.log_partition("bidirectional", betas=100)
    assert z.lower <= truth <= z.upper
    z = rbm.log_partition("ais", betas=100, search=False)
    assert z.lower <= truth <= z.upper


def test_parts_of_a_run_are_a_run(monkeypatch, compiled_inference):
    monkeypatch.setattr(tempered_path, "_LARGE", 1)
    model = random_potentials(6, 4, seed=0)
    bases = tf.stack([tf.zeros(6), tf.ones(6)])
    betas = inference.temperatures(100)
    chains = tempered_path.anneal_forward(model, bases, betas, 90, 0, at_once=50)
    assert chains.visible.shape == (180, 6) and chains.steps.shape == (10, 180)
    weights = tf.reshape(chains.log_weights, (90, 2))
    means = tf.reduce_logsumexp(weights, 0) - np.log(90)
    np.testing.assert_allclose(means, [inference.exact_log_partition(model)] * 2, 0.02)
    path = TemperedPath.of(model, bases, 90)
    added = path.log_partition_of_base() + tf.reduce_sum(chains.steps, 0)
    np.testing.assert_allclose(chains.log_weights, added, 1e-9)
