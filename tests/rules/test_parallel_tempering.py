"""Parallel tempering: moments, modes and temperatures of its chains and replicas."""

import functools
import itertools

import numpy as np
import pytest
import tensorflow as tf
from brute_force import Enumerated, random_potentials, rbm_like, tempered_sweep
from comparisons import assert_mean, assert_moments
from steps import step_of

import keras_rbm
from keras_rbm import inference, rules
from keras_rbm.inference.annealing import path
from keras_rbm.inference.annealing.path import TemperedPath
from keras_rbm.rules import ParallelTempering, parallel_tempering

DATA = np.random.default_rng(0).integers(0, 2, (34, 6)).astype("float32")
BATCH = tf.zeros((2, 5)), tf.fill([2], 0.5)
#: Five visible units, coupled to three hidden ones, and not.
COUPLED = random_potentials(5, 3, scale=1.5)
ALONE = inference.Potentials(tf.zeros((5, 3)), [0.0] * 5, [0.0] * 3)
BASE_RATE = np.array([0.1, 0.5, 0.2, 0.9, 0.7])


def ruled(potentials, rule, base_rate=0.5):
    """Returns a rule that a model of these potentials was compiled with."""
    rbm = rbm_like(potentials)
    rbm.base_rate.assign(np.broadcast_to(base_rate, potentials.num_visible))
    rbm.compile(rule=rule)
    return rule


def moved(rule, potentials, count, batch=BATCH):
    """Returns the moments of the last of several steps at fixed parameters."""
    model = rule.learner.model

    @tf.function
    def phase(seed):
        return rule.negative_phase(step_of(potentials, *batch, seed, model))

    for number in range(count):
        moments = phase(tf.constant([number, 8]))
    return moments


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (ParallelTempering, {"num_replicas": 4, "num_ladders": 4000, "gibbs_steps": 3}),
        (ParallelTempering, {"num_replicas": 4, "num_ladders": 300, "gibbs_steps": 1}),
        (rules.PersistentContrastiveDivergence, {"gibbs_steps": 1}),
        (rules.PersistentContrastiveDivergence, {"gibbs_steps": 3}),
    ],
)
def test_at_fixed_parameters_the_moments_are_exact(kind, options):
    rule = kind(num_chains=4000, **options)
    moments = moved(ruled(COUPLED, rule, BASE_RATE), COUPLED, 60 // rule.gibbs_steps)
    assert_moments(moments, Enumerated(COUPLED).moments(), 0.0)
    np.testing.assert_allclose(moments.weights, np.full(4000, 1 / 4000))
    if kind is ParallelTempering:
        np.testing.assert_array_equal(rule.chains, moments.visible.bias)


def test_each_replica_has_its_temperature_and_base():
    chains = 4000
    rule = ParallelTempering(1, num_replicas=4, num_chains=chains, num_ladders=chains)
    ruled(COUPLED, rule, BASE_RATE)
    start = rule.ladders.numpy()
    error = np.sqrt(BASE_RATE * (1 - BASE_RATE) / chains)
    assert (abs(start.mean(1) - BASE_RATE) < 5 * error).all()
    moved(rule, COUPLED, 40)
    for learned in (rule.shifts.numpy(), rule.hidden_bases.numpy()):
        assert np.ptp(learned[1:-1]) > 0.1 and not np.any(learned[-1])
    states = Enumerated(COUPLED).v
    replicas = zip(
        rule.betas.numpy(),
        np.log(BASE_RATE / (1 - BASE_RATE)) + rule.shifts.numpy(),
        rule.hidden_bases.numpy(),
        [*rule.ladders.numpy(), rule.chains.numpy()],
        strict=True,
    )
    for beta, base, hidden_base, visible in replicas:
        law, _ = tempered_sweep(COUPLED, base, beta, hidden_base)
        assert_mean(visible, law @ states)


def quicker(monkeypatch, factor):
    """Lets replicas learn their bases faster; many ladders bear that."""
    for name in ("_VISIBLE_STEP", "_HIDDEN_STEP"):
        monkeypatch.setattr(path, name, factor * getattr(path, name))


@pytest.mark.parametrize("factor", [3.0, 0.0])
def test_a_mode_that_is_small_has_its_share_at_all_temperatures(factor, monkeypatch):
    """Of the base rate's own path, middle temperatures lose it, and so do chains."""
    quicker(monkeypatch, factor)
    sign = np.repeat([1.0, -1.0], 14).astype("float32")
    share, rate = 0.3, 1 / (1 + np.exp(3.0))
    potentials = inference.Potentials(
        6.0 * sign[:, None], -3.0 * sign, [np.log(share / (1 - share))]
    )
    base_rate = np.where(sign > 0, 0, 1) + sign * (rate + share * (1 - 2 * rate))
    rule = ParallelTempering(1, num_chains=500, num_replicas=6, num_ladders=500)
    ruled(potentials, rule, base_rate)
    rule.chains.assign(np.broadcast_to(sign < 0, rule.chains.shape))
    batch = tf.zeros((2, 28)), BATCH[1]
    moved(rule, potentials, 300, batch)
    replicas = np.concatenate([rule.ladders, rule.chains[tf.newaxis]])
    shares = np.mean(replicas @ sign > 0, -1)
    error = np.sqrt(share * (1 - share) / 500)
    if factor:
        assert abs(shares[-1] - share) < 5 * error and shares[1:].min() > 0.03
    else:
        assert shares[1:].min() < 0.01 and abs(shares[-1] - share) > 5 * error


@pytest.mark.filterwarnings("ignore:Expected chains that have forgotten")
def test_samples_go_on_from_the_ladder():
    rule = ParallelTempering(num_chains=70, num_replicas=4, num_ladders=20)
    moved(ruled(COUPLED, rule, BASE_RATE), COUPLED, 30)
    draw = functools.partial(rule.learner.model.sample, method="tempering", seed=3)
    start = rule.chains.numpy()[np.arange(100) % 70]
    np.testing.assert_array_equal(draw(100, steps=0), start)
    exact = Enumerated(COUPLED).moments()[1]
    error = np.sqrt(exact * (1 - exact) / 4000)
    assert (abs(np.mean(draw(4000, steps=30), 0) - exact) < 5 * error).all()
    traced = tf.function(draw)(tf.constant(9), steps=2)
    np.testing.assert_array_equal(traced, draw(9, steps=2))
    betas = [0.0, *rule.betas.numpy()[1:].astype(float)]
    assert (draw(100, steps=0, betas=betas) != start).numpy().any()
    kept = draw(2, steps=4, initial_visible=np.float32([[1, 1, 1, 1, np.nan]] * 2))
    np.testing.assert_array_equal(kept[:, :4], np.ones((2, 4)))


def test_chains_take_turns_on_the_ladders(monkeypatch):
    monkeypatch.setattr(TemperedPath, "sweep", lambda self, rows, *_: rows)
    monkeypatch.setattr(
        parallel_tempering, "swap_neighbors", lambda path, rows, *_: (rows, tf.ones(2))
    )
    potentials = random_potentials(6, 3)
    rule = ParallelTempering(1, num_chains=7, num_replicas=3, num_ladders=3)
    states = np.eye(7, 6, dtype="float32")
    ruled(potentials, rule).chains.assign(states)
    ladders = rule.ladders.numpy()
    moved(rule, potentials, 1, (tf.zeros((2, 6)), BATCH[1]))
    np.testing.assert_array_equal(rule.chains, np.roll(states, -3, axis=0))
    np.testing.assert_array_equal(rule.ladders, ladders)


def test_swap_rates_are_running_averages(monkeypatch):
    """Without coupling every swap is accepted: 1 - 0.5 · 0.99^steps."""
    quicker(monkeypatch, 0.0)
    rule = ParallelTempering(num_replicas=4, num_chains=6, num_ladders=6)
    ruled(ALONE, rule)
    np.testing.assert_array_equal(rule.swap_rates, np.full(3, 0.5))
    moved(rule, ALONE, 1)
    np.testing.assert_allclose(rule.swap_rates, 1 - 0.5 * np.full(3, 0.99), 1e-5)


def test_each_sweep_has_noise_of_its_own(monkeypatch):
    """Without coupling a sweep forgets all but its noise."""
    rule = ruled(ALONE, ParallelTempering(num_chains=60, num_ladders=60))
    ends, chain = [], parallel_tempering.visible_chain
    monkeypatch.setattr(
        parallel_tempering,
        "visible_chain",
        lambda *args, **options: ends.append(chain(*args, **options)) or ends[-1],
    )
    rule.negative_phase(step_of(ALONE, *BATCH, 1, rule.learner.model))
    states = [*rule.ladders.numpy(), rule.chains.numpy(), ends[0].visible.numpy()]
    for one, other in itertools.combinations(states, 2):
        assert 0.3 < np.mean(one != other) < 0.7


def test_temperatures_come_to_swap_evenly(monkeypatch):
    quicker(monkeypatch, 0.0)
    potentials = random_potentials(12, 10, seed=2, scale=2.0)
    batch = tf.zeros((2, 12)), BATCH[1]
    rule = ParallelTempering(num_replicas=5, num_chains=100, num_ladders=100)
    ruled(potentials, rule)
    np.testing.assert_allclose(rule.betas, np.linspace(0, 1, 5))
    spread = []
    for _ in range(4):
        moved(rule, potentials, 100, batch)
        betas = rule.betas.numpy()
        assert betas[0] == 0 and betas[-1] == 1 and (np.diff(betas) > 0).all()
        spread.append(np.ptp(rule.swap_rates))
    assert abs(betas - np.linspace(0, 1, 5)).max() > 0.02
    assert spread[-1] < 0.7 * spread[0]


@pytest.mark.parametrize("share", [0.3, pytest.param(0.1, marks=pytest.mark.slow)])
def test_modes_far_apart_get_their_shares_by_default(share):
    """By PCD the larger kind took all: -46 nats a row, and worse with more epochs.

    Of a smaller kind, replicas that knew the visible means only had a wrong share.
    """
    rng = np.random.default_rng(0)
    left = np.tile(np.repeat([1.0, 0.0], 4), 8)
    rows = np.where(rng.random((1000, 1)) < share, 1 - left, left)
    rows = np.where(rng.random(rows.shape) < 0.05, 1 - rows, rows).astype("float32")
    rbm = keras_rbm.RBM(8, seed=0)
    rbm.compile()
    assert isinstance(rbm.rule, ParallelTempering)
    rbm.fit(rows, epochs=50, verbose=0)
    likelihood = np.mean(rbm.log_likelihood(rows, rbm.log_partition("exact")))
    entropy = -64 * (0.05 * np.log(0.05) + 0.95 * np.log(0.95))
    entropy -= share * np.log(share) + (1 - share) * np.log(1 - share)
    assert likelihood > -entropy - 1.5


@pytest.mark.slow
def test_few_chains_do_not_draw_the_replicas_to_where_they_are():
    """A single chain was in the larger of two modes 0.89 of the time, not 0.75."""
    potentials = inference.Potentials(tf.fill((6, 4), 1.6), [-3.2] * 6, [-4.5] * 4)
    truth = Enumerated(potentials)
    likely = truth.p_visible[truth.v.sum(1) > 3].sum()
    rule = ParallelTempering(1, num_chains=1, num_replicas=6)
    model = ruled(potentials, rule).learner.model
    batch = tf.zeros((2, 6)), BATCH[1]

    @tf.function
    def share(count):
        def step(number, total):
            moments = rule.negative_phase(
                step_of(potentials, *batch, tf.stack([number, 8]), model)
            )
            on = tf.reduce_sum(moments.visible.bias) > 3.0
            return number + 1, total + tf.cast(on, tf.float32)

        end = tf.while_loop(lambda n, *_: n < count, step, (0, 0.0))
        return end[1] / tf.cast(count, tf.float32)

    assert abs(share(tf.constant(20_000)) - likely) < 0.04


@pytest.mark.parametrize("hidden", [keras_rbm.units.Categorical(3), "rectified"])
def test_hidden_units_of_several_columns_or_none_to_enumerate(hidden):
    rbm = keras_rbm.RBM(2, hidden=hidden, seed=0)
    rbm.compile(rule=ParallelTempering(num_chains=9, num_replicas=3))
    rbm.fit(DATA, epochs=2, verbose=0)
    assert rbm.rule.hidden_bases.shape[1] == rbm.kernel.shape[1]
    assert np.isfinite(rbm.rule.hidden_bases).all()


@pytest.mark.filterwarnings("ignore:.*hidden units are always")
def test_the_hot_end_follows_data_that_change():
    """It stayed at the base rate of the first ones, and half of the ladder with it."""
    rng = np.random.default_rng(0)
    rows = (rng.random((300, 16)) < 0.1).astype("float32")
    rbm = keras_rbm.RBM(4, seed=0)
    rbm.compile()
    rbm.fit(rows, epochs=20, verbose=0)
    rbm.fit(1.0 - rows, epochs=40, verbose=0)
    assert rbm.rule.betas[1] > 0.05 and np.min(rbm.rule.swap_rates) > 0.3


def test_gaussian_units():
    data = np.random.default_rng(0).normal(1.0, 0.5, (200, 3)).astype("float32")
    visible = keras_rbm.units.Gaussian(standardize=True)
    rbm = keras_rbm.RBM(4, visible=visible, seed=1)
    rbm.adapt(data)
    rule = ParallelTempering(num_chains=500, num_replicas=3)
    rbm.compile("sgd", rule=rule)
    error = 0.5 / np.sqrt(500)
    assert (abs(np.mean(rule.chains, 0) - data.mean(0)) < 6 * error).all()
    history = rbm.fit(data, epochs=2, verbose=0).history
    assert np.isfinite(history["loss"]).all()


def test_there_are_no_more_ladders_than_chains():
    rbm = keras_rbm.RBM(4, num_visible=6, seed=0)
    rbm.compile(rule=ParallelTempering(num_chains=1))
    rbm.fit(DATA, verbose=0)
    assert rbm.rule.ladders.shape == (9, 1, 6)
