import numpy as np
import pytest
import tensorflow as tf
from brute_force import Enumerated, random_potentials, rbm_like, tempered_sweep
from model_test_case import run_rule_test
from steps import step_of

import keras_rbm
from keras_rbm import inference, rules
from keras_rbm.rules import ParallelTempering

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
        pytest.param({"num_replicas": 2}, marks=pytest.mark.slow),
        {"num_replicas": 4, "gibbs_steps": 3},
        {"num_replicas": 4, "betas": "adaptive"},
        pytest.param(
            {"num_replicas": 3, "betas": [0.0, 0.3, 1.0]}, marks=pytest.mark.slow
        ),
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
    np.testing.assert_array_equal(rule.chains[-1], v)


def test_each_replica_has_its_temperature():
    potentials, chains = random_potentials(5, 3, scale=1.5), 4000
    base_rate = np.array([0.1, 0.5, 0.2, 0.9, 0.7])
    rule = ParallelTempering(num_replicas=4, num_chains=chains)
    compiled(potentials, rule, base_rate)
    start = rule.chains.numpy()
    error = np.sqrt(base_rate * (1 - base_rate) / chains)
    assert (abs(start.mean(1) - base_rate) < 5 * error).all()
    moved(rule, potentials, 40)
    states = Enumerated(potentials).v
    base = np.log(base_rate / (1 - base_rate))
    for beta, visible in zip(np.linspace(0, 1, 4), rule.chains.numpy(), strict=True):
        law, _ = tempered_sweep(potentials, base, beta)
        error = visible.std(0) / np.sqrt(chains)
        assert (abs(visible.mean(0) - law @ states) < 5 * error).all()


def test_chains_visit_modes_that_persistent_ones_do_not():
    potentials = inference.Potentials(tf.fill((8, 8), 2.0), [-8.0] * 8, [-7.9] * 8)
    truth, batch = Enumerated(potentials), (tf.zeros((2, 8)), BATCH[1])
    shares = {}
    for rule in (
        ParallelTempering(num_replicas=9, num_chains=1000),
        rules.PersistentContrastiveDivergence(num_chains=1000),
    ):
        compiled(potentials, rule)
        rule.chains.assign(tf.zeros_like(rule.chains))
        visible = moved(rule, potentials, 150, batch).visible.bias
        shares[type(rule)] = np.mean(np.sum(visible, 1) > 4)
    likely = truth.p_visible[truth.v.sum(1) > 4].sum()
    error = np.sqrt(likely * (1 - likely) / 1000)
    assert abs(shares[ParallelTempering] - likely) < 5 * error
    assert shares[rules.PersistentContrastiveDivergence] < 0.02


def test_swap_rates_are_running_averages():
    """Without coupling every swap is accepted: 1 - 0.5 · 0.99^sweeps."""
    potentials = inference.Potentials(tf.zeros((5, 3)), [0.0] * 5, [0.0] * 3)
    rule = ParallelTempering(num_replicas=4, num_chains=6, gibbs_steps=3)
    compiled(potentials, rule)
    np.testing.assert_array_equal(rule.swap_rates, np.full(3, 0.5))
    moved(rule, potentials, 7)
    np.testing.assert_allclose(rule.swap_rates, 1 - 0.5 * np.full(3, 0.99**21), 1e-5)


def test_each_sweep_has_noise_of_its_own():
    """Without coupling a sweep forgets all but its noise."""
    potentials = inference.Potentials(tf.zeros((5, 3)), [0.0] * 5, [0.0] * 3)
    ends = []
    for gibbs_steps in (1, 2):
        rule = ParallelTempering(3, num_chains=20, gibbs_steps=gibbs_steps)
        compiled(potentials, rule)
        moved(rule, potentials, 1)
        ends.append(rule.chains.numpy())
    assert 0.4 < np.mean(ends[0] != ends[1]) < 0.6


def test_adaptive_temperatures_swap_more_evenly():
    potentials = random_potentials(12, 10, seed=2, scale=2.0)
    batch = tf.zeros((2, 12)), BATCH[1]
    fixed, adaptive = (
        ParallelTempering(num_replicas=5, num_chains=100, betas=betas)
        for betas in (None, "adaptive")
    )
    for rule in (fixed, adaptive):
        compiled(potentials, rule)
        np.testing.assert_allclose(rule.betas, np.linspace(0, 1, 5))
        for _ in range(4):
            moved(rule, potentials, 100, batch)
            betas = rule.betas.numpy()
            assert betas[0] == 0 and betas[-1] == 1 and (np.diff(betas) > 0).all()
    np.testing.assert_allclose(fixed.betas, np.linspace(0, 1, 5))
    assert abs(adaptive.betas - fixed.betas).numpy().max() > 0.1
    assert np.ptp(fixed.swap_rates) > 2 * np.ptp(adaptive.swap_rates)


def test_given_temperatures_are_kept():
    betas = [0.0, 0.2, 1.0]
    rule = ParallelTempering(num_replicas=3, num_chains=6, betas=betas)
    rbm = keras_rbm.RBM(4, num_visible=6, seed=1)
    rbm.compile("sgd", rule=rule)
    rbm.fit(DATA, epochs=2, verbose=0)
    np.testing.assert_allclose(rule.betas, betas)
    assert set(np.unique(rule.chains)) <= {0.0, 1.0}
    assert len(rbm.weights) == 4


@pytest.mark.slow
def test_model():
    run_rule_test(
        lambda: keras_rbm.RBM(4, num_visible=6, seed=1),
        lambda: ParallelTempering(4, num_chains=7, gibbs_steps=2, betas="adaptive"),
        DATA,
    )


def test_gaussian_units():
    data = np.random.default_rng(0).normal(1.0, 0.5, (200, 3)).astype("float32")
    visible = keras_rbm.units.Gaussian(standardize=True)
    rbm = keras_rbm.RBM(4, visible=visible, seed=1)
    rbm.adapt(data)
    rule = ParallelTempering(3, num_chains=500)
    rbm.compile("sgd", rule=rule)
    error = 0.5 / np.sqrt(500)
    assert (abs(np.mean(rule.chains, 1) - data.mean(0)) < 6 * error).all()
    history = rbm.fit(data, epochs=2, verbose=0).history
    assert np.isfinite(history["loss"]).all()


@pytest.mark.parametrize("betas", [None, "adaptive", [0.0, 0.5, 1.0]], ids=str)
def test_config_round_trip(betas):
    rule = ParallelTempering(3, 7, 2, betas, centered=True)
    again = rules.deserialize(rules.serialize(rule))
    assert again.get_config() == rule.get_config()
    assert again.get_config() == rules.LearningRule(centered=True).get_config() | {
        "num_replicas": 3,
        "num_chains": 7,
        "gibbs_steps": 2,
        "betas": betas,
    }


def test_name():
    rule = rules.get("parallel_tempering")
    assert isinstance(rule, ParallelTempering) and rule.num_replicas == 10


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_replicas": 1}, "num_replicas ≥ 2. Received: num_replicas=1"),
        ({"num_replicas": 2.5}, "int num_replicas ≥ 2"),
        ({"num_chains": 0}, "num_chains ≥ 1. Received: num_chains=0"),
        ({"gibbs_steps": 0}, "gibbs_steps ≥ 1. Received: gibbs_steps=0"),
        ({"num_replicas": 3, "betas": [0.0, 1.0]}, "or 3 values.*num_replicas=3"),
        ({"num_replicas": 2, "betas": [(0.5, 1), (1.0, 1)]}, "or 2 values"),
        ({"num_replicas": 3, "betas": "even"}, "or 3 values.*betas='even'"),
        ({"num_replicas": 4, "betas": "even"}, "or 4 values.*betas='even'"),
        ({"num_replicas": 3, "betas": 3}, "or 3 values.*betas=3"),
        ({"num_replicas": 3, "betas": [0.0, 0.0, 1.0]}, "increase strictly"),
        ({"num_replicas": 3, "betas": [0.0, 0.5, 0.9]}, "increase strictly"),
        ({"num_replicas": 2, "betas": ["a", "b"]}, "increase strictly"),
    ],
    ids=str,
)
def test_options_out_of_range(options, message):
    """A number was no length, and two segments of steps passed for two values."""
    with pytest.raises(ValueError, match=message):
        ParallelTempering(**options)


def test_betas_may_be_an_array():
    rule = ParallelTempering(num_replicas=3, num_chains=4, betas=np.array([0, 0.5, 1]))
    rbm = compiled(random_potentials(6, 3), rule)
    rbm.fit(DATA, verbose=0)
    assert rule.get_config()["betas"] == [0.0, 0.5, 1.0]


def test_models_with_input():
    crbm, rule = keras_rbm.CRBM(4, seed=0), ParallelTempering()
    crbm.compile(rule="cd")
    before = crbm.rule
    with pytest.raises(ValueError, match="without input for ParallelTempering.*CRBM"):
        crbm.compile(rule=rule)
    assert crbm.rule is before and rule.learner is None and not rule.built


def test_a_batch_without_weight_teaches_nothing():
    rbm = keras_rbm.RBM(4, num_visible=6, seed=0)
    rbm.compile("sgd", rule=ParallelTempering(3, num_chains=9))
    before = [weight.numpy() for weight in rbm.weights]
    rbm.fit(DATA, sample_weight=np.zeros(34), verbose=0)
    for a, b in zip(before, rbm.weights, strict=True):
        np.testing.assert_array_equal(a, b)
