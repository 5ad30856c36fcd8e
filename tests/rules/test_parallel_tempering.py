import functools
import itertools

import numpy as np
import pytest
import tensorflow as tf
from brute_force import Enumerated, random_potentials, rbm_like, tempered_sweep
from model_test_case import run_rule_test
from steps import step_of

import keras_rbm
from keras_rbm import inference, rules
from keras_rbm.inference.annealing import ladder
from keras_rbm.inference.annealing.path import TemperedPath
from keras_rbm.rules import ParallelTempering, parallel_tempering

DATA = np.random.default_rng(0).integers(0, 2, (34, 6)).astype("float32")
BATCH = tf.zeros((2, 5)), tf.fill([2], 0.5)


def compiled(potentials, rule, base_rate=0.5):
    rbm = rbm_like(potentials)
    rbm.base_rate.assign(np.broadcast_to(base_rate, potentials.num_visible))
    rbm.compile(rule=rule)
    return rbm


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
    "options",
    [
        pytest.param({"num_replicas": 2, "num_ladders": 4000}, marks=pytest.mark.slow),
        {"num_replicas": 4, "num_ladders": 4000, "gibbs_steps": 3},
        {"num_replicas": 4, "num_ladders": 300, "gibbs_steps": 1},
    ],
    ids=str,
)
def test_at_fixed_parameters_the_moments_are_exact(options):
    potentials, chains = random_potentials(5, 3, scale=1.5), 4000
    rule = ParallelTempering(num_chains=chains, **options)
    compiled(potentials, rule, base_rate=[0.1, 0.5, 0.2, 0.9, 0.7])
    moments = moved(rule, potentials, 60 // rule.gibbs_steps)
    v, h = moments.visible.bias.numpy(), moments.hidden.bias.numpy()
    products = v[:, :, None] * h[:, None, :]
    expected = Enumerated(potentials).moments()
    for rows, exact in zip((products, v, h), expected, strict=True):
        error = rows.std(0) / np.sqrt(chains)
        assert (abs(rows.mean(0) - exact) < 5 * error).all()
    np.testing.assert_allclose(moments.kernel, products.mean(0), rtol=1e-3)
    np.testing.assert_allclose(moments.weights, np.full(chains, 1 / chains))
    np.testing.assert_array_equal(rule.chains, v)


def test_each_replica_has_its_temperature_and_base():
    potentials, chains = random_potentials(5, 3, scale=1.5), 4000
    base_rate = np.array([0.1, 0.5, 0.2, 0.9, 0.7])
    rule = ParallelTempering(
        num_replicas=4, num_chains=chains, num_ladders=chains, gibbs_steps=1
    )
    compiled(potentials, rule, base_rate)
    start = rule.ladders.numpy()
    error = np.sqrt(base_rate * (1 - base_rate) / chains)
    assert (abs(start.mean(1) - base_rate) < 5 * error).all()
    moved(rule, potentials, 40)
    for learned in (rule.shifts.numpy(), rule.hidden_bases.numpy()):
        assert np.ptp(learned[1:-1]) > 0.1 and not np.any(learned[-1])
    states = Enumerated(potentials).v
    replicas = zip(
        rule.betas.numpy(),
        np.log(base_rate / (1 - base_rate)) + rule.shifts.numpy(),
        rule.hidden_bases.numpy(),
        [*rule.ladders.numpy(), rule.chains.numpy()],
        strict=True,
    )
    for beta, base, hidden_base, visible in replicas:
        law, _ = tempered_sweep(potentials, base, beta, hidden_base)
        error = visible.std(0) / np.sqrt(chains)
        assert (abs(visible.mean(0) - law @ states) < 5 * error).all()


def test_chains_visit_modes_that_persistent_ones_do_not():
    potentials = inference.Potentials(tf.fill((8, 8), 2.0), [-8.0] * 8, [-7.9] * 8)
    truth, batch = Enumerated(potentials), (tf.zeros((2, 8)), BATCH[1])
    shares = {}
    for rule in (
        ParallelTempering(num_replicas=9, num_chains=1000, num_ladders=300),
        rules.PersistentContrastiveDivergence(num_chains=1000),
    ):
        compiled(potentials, rule)
        rule.chains.assign(tf.zeros_like(rule.chains))
        if isinstance(rule, ParallelTempering):
            rule.ladders.assign(tf.zeros_like(rule.ladders))
        visible = moved(rule, potentials, 150, batch).visible.bias
        shares[type(rule)] = np.mean(np.sum(visible, 1) > 4)
    likely = truth.p_visible[truth.v.sum(1) > 4].sum()
    error = np.sqrt(likely * (1 - likely) / 1000)
    assert abs(shares[ParallelTempering] - likely) < 5 * error
    assert shares[rules.PersistentContrastiveDivergence] < 0.02


def quicker(monkeypatch, factor):
    """Lets replicas learn their bases faster; many ladders bear that."""
    for name in ("_VISIBLE_STEP", "_HIDDEN_STEP"):
        monkeypatch.setattr(ladder, name, factor * getattr(ladder, name))


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
    compiled(potentials, rule, base_rate)
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
    potentials = random_potentials(5, 3, scale=1.5)
    rule = ParallelTempering(num_chains=70, num_replicas=4, num_ladders=20)
    compiled(potentials, rule, base_rate=[0.1, 0.5, 0.2, 0.9, 0.7])
    moved(rule, potentials, 30)
    rbm, start = rule.learner.model, rule.chains.numpy()
    draw = functools.partial(rbm.sample, method="tempering", seed=3)
    np.testing.assert_array_equal(draw(100, steps=0), start[np.arange(100) % 70])
    visible = draw(4000, steps=30)
    exact = Enumerated(potentials).moments()[1]
    error = np.sqrt(exact * (1 - exact) / 4000)
    assert (abs(np.mean(visible, 0) - exact) < 5 * error).all()
    np.testing.assert_array_equal(
        tf.function(draw)(tf.constant(9), steps=2), draw(9, steps=2)
    )
    betas = [0.0, *rule.betas.numpy()[1:].astype(float)]
    assert (draw(100, steps=0, betas=betas) != start[np.arange(100) % 70]).numpy().any()
    kept = draw(2, steps=4, initial_visible=np.float32([[1, 1, 1, 1, np.nan]] * 2))
    np.testing.assert_array_equal(kept[:, :4], np.ones((2, 4)))


def test_chains_take_turns_on_the_ladders(monkeypatch):
    monkeypatch.setattr(TemperedPath, "sweep", lambda self, rows, *_: rows)
    monkeypatch.setattr(
        parallel_tempering, "swap_neighbors", lambda path, rows, *_: (rows, tf.ones(2))
    )
    rule = ParallelTempering(1, num_chains=7, num_replicas=3, num_ladders=3)
    compiled(random_potentials(6, 3), rule)
    states = np.eye(7, 6, dtype="float32")
    rule.chains.assign(states)
    ladders = rule.ladders.numpy()
    moved(rule, random_potentials(6, 3), 1, (tf.zeros((2, 6)), BATCH[1]))
    np.testing.assert_array_equal(rule.chains, np.roll(states, -3, axis=0))
    np.testing.assert_array_equal(rule.ladders, ladders)


def test_swap_rates_are_running_averages(monkeypatch):
    """Without coupling every swap is accepted: 1 - 0.5 · 0.99^steps."""
    quicker(monkeypatch, 0.0)
    potentials = inference.Potentials(tf.zeros((5, 3)), [0.0] * 5, [0.0] * 3)
    rule = ParallelTempering(num_replicas=4, num_chains=6, num_ladders=6)
    compiled(potentials, rule)
    np.testing.assert_array_equal(rule.swap_rates, np.full(3, 0.5))
    moved(rule, potentials, 1)
    np.testing.assert_allclose(rule.swap_rates, 1 - 0.5 * np.full(3, 0.99), 1e-5)


def test_each_sweep_has_noise_of_its_own(monkeypatch):
    """Without coupling a sweep forgets all but its noise."""
    potentials = inference.Potentials(tf.zeros((5, 3)), [0.0] * 5, [0.0] * 3)
    rule = ParallelTempering(num_chains=60, num_ladders=60)
    compiled(potentials, rule)
    ends, chain = [], parallel_tempering.visible_chain

    def kept(*arguments, **options):
        ends.append(chain(*arguments, **options))
        return ends[-1]

    monkeypatch.setattr(parallel_tempering, "visible_chain", kept)
    rule.negative_phase(step_of(potentials, *BATCH, 1, rule.learner.model))
    states = [*rule.ladders.numpy(), rule.chains.numpy(), ends[0].visible.numpy()]
    for one, other in itertools.combinations(states, 2):
        assert 0.3 < np.mean(one != other) < 0.7


def test_temperatures_come_to_swap_evenly(monkeypatch):
    quicker(monkeypatch, 0.0)
    potentials = random_potentials(12, 10, seed=2, scale=2.0)
    batch = tf.zeros((2, 12)), BATCH[1]
    rule = ParallelTempering(num_replicas=5, num_chains=100, num_ladders=100)
    compiled(potentials, rule)
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
def test_model():
    run_rule_test(
        lambda: keras_rbm.RBM(4, num_visible=6, seed=1),
        lambda: ParallelTempering(2, num_chains=7, num_replicas=4, num_ladders=3),
        DATA,
    )


@pytest.mark.slow
def test_few_chains_do_not_draw_the_replicas_to_where_they_are():
    """A single chain was in the larger of two modes 0.89 of the time, not 0.75."""
    potentials = inference.Potentials(tf.fill((6, 4), 1.6), [-3.2] * 6, [-4.5] * 4)
    truth = Enumerated(potentials)
    likely = truth.p_visible[truth.v.sum(1) > 3].sum()
    rule = ParallelTempering(1, num_chains=1, num_replicas=6)
    model = compiled(potentials, rule).rule.learner.model
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


def test_config_round_trip():
    rule = ParallelTempering(3, 7, 2, 4, centered=True)
    again = rules.deserialize(rules.serialize(rule))
    assert again.get_config() == rule.get_config()
    assert again.get_config() == rules.LearningRule(centered=True).get_config() | {
        "gibbs_steps": 3,
        "num_chains": 7,
        "num_replicas": 2,
        "num_ladders": 4,
    }


def test_name():
    rule = rules.get("parallel_tempering")
    assert isinstance(rule, ParallelTempering) and rule.num_replicas == 10


def test_there_are_no_more_ladders_than_chains():
    rbm = keras_rbm.RBM(4, num_visible=6, seed=0)
    rbm.compile(rule=ParallelTempering(num_chains=1))
    rbm.fit(DATA, verbose=0)
    assert rbm.rule.ladders.shape == (9, 1, 6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_replicas": 1}, "num_replicas ≥ 2. Received: num_replicas=1"),
        ({"num_replicas": 2.5}, "int num_replicas ≥ 2"),
        ({"num_chains": 0}, "num_chains ≥ 1. Received: num_chains=0"),
        ({"gibbs_steps": 0}, "gibbs_steps ≥ 1. Received: gibbs_steps=0"),
        ({"num_ladders": 0}, "num_ladders ≥ 1. Received: num_ladders=0"),
    ],
    ids=str,
)
def test_options_out_of_range(options, message):
    with pytest.raises(ValueError, match=message):
        ParallelTempering(**options)


def test_models_with_input():
    crbm, rule = keras_rbm.CRBM(4, seed=0), ParallelTempering()
    crbm.compile(rule="cd")
    before = crbm.rule
    with pytest.raises(ValueError, match="without input for ParallelTempering.*CRBM"):
        crbm.compile(rule=rule)
    assert crbm.rule is before and rule.learner is None and not rule.built


def test_a_batch_without_weight_teaches_nothing():
    rbm = keras_rbm.RBM(4, num_visible=6, seed=0)
    rbm.compile("sgd", rule=ParallelTempering(num_chains=9, num_replicas=3))
    before = [weight.numpy() for weight in rbm.weights]
    rbm.fit(DATA, sample_weight=np.zeros(34), verbose=0)
    for a, b in zip(before, rbm.weights, strict=True):
        np.testing.assert_array_equal(a, b)
