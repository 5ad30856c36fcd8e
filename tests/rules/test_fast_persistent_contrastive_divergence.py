"""FPCD: against PCD, its recursion and exact moments."""

import contextlib

import keras
import numpy as np
import pytest
import tensorflow as tf
from brute_force import (
    Enumerated,
    random_potentials,
    rbm_like,
)
from model_test_case import assert_same_state, two_cpus
from steps import step_of, take_step

import keras_rbm
from keras_rbm import inference, random, rules
from keras_rbm._replicas import num_replicas
from keras_rbm.inference.gibbs import hidden_chain

DATA = np.random.default_rng(0).integers(0, 2, (34, 6)).astype("float32")
NAMES = ("kernel", "visible_bias", "hidden_bias")
FPCD = rules.FastPersistentContrastiveDivergence
CHAINS = 4000
SEED = tf.constant([5, 6])


def fitted(rule, epochs=3):
    rbm = keras_rbm.RBM(4, num_visible=6, seed=1)
    rbm.adapt(DATA)
    rbm.compile(keras.optimizers.SGD(0.1, momentum=0.5), rule=rule)
    rbm.fit(DATA, batch_size=10, epochs=epochs, verbose=0)
    return rbm


def even(count):
    return tf.fill([count], 1.0 / count)


def logistic(x):
    return 1.0 / (1.0 + np.exp(-x))


def numbers(potentials):
    """Returns W, b and c in float64."""
    return [
        np.asarray(t, np.float64)
        for t in (potentials.kernel, potentials.visible_bias, potentials.hidden_bias)
    ]


@pytest.mark.parametrize(
    "kwargs",
    [pytest.param({}, marks=pytest.mark.slow), {"centered": True}],
    ids=["plain", "centered"],
)
def test_fpcd_without_fast_learning_is_pcd_bit_for_bit(kwargs):
    pcd = fitted(rules.PersistentContrastiveDivergence(2, 7, **kwargs))
    fpcd = fitted(FPCD(2, 7, 0.0, **kwargs))
    for fast in fpcd.rule.fast.values():
        assert not fast.numpy().any()
    del fpcd.learner.variables[-3:]
    assert_same_state(pcd, fpcd)


def test_fpcd_with_fast_learning_is_not_pcd():
    pcd = fitted(rules.PersistentContrastiveDivergence(2, 7))
    fpcd = fitted(FPCD(2, 7, 1.0))
    assert np.max(abs(pcd.kernel - fpcd.kernel)) > 1e-3


@pytest.mark.parametrize("decay", [0.0, 0.9])
@pytest.mark.parametrize("centered", [False, True])
def test_fast_weights_follow_the_recursion(decay, centered):
    """Their gradient is the one of plain SGD's step; it used to be never centered."""
    rule = FPCD(2, 7, 0.3, decay, centered=centered)
    rbm = rbm_like(random_potentials(6, 4))
    rbm.compile(keras.optimizers.SGD(0.5), rule=rule)
    fast = {name: np.zeros(getattr(rbm, name).shape) for name in NAMES}
    for _ in range(4):
        before = {name: getattr(rbm, name).numpy() for name in NAMES}
        take_step(rbm, tf.constant(DATA), even(34))
        for name in NAMES:
            gradient = (getattr(rbm, name).numpy() - before[name]) / 0.5
            fast[name] = decay * fast[name] + 0.3 * gradient
            np.testing.assert_allclose(rule.fast[name], fast[name], atol=1e-6)
            assert np.max(abs(fast[name])) > 1e-2


class ExactFast(FPCD):
    """FPCD with the model's exact moments instead of those of its chains."""

    def negative_phase(self, step):
        exact = inference.exact_moments(step.potentials)
        share = 1.0 / num_replicas()
        exact = tf.nest.map_structure(lambda t: tf.cast(t, tf.float32)[None], exact)
        return exact._replace(
            kernel=exact.kernel[0] * share, weights=exact.weights * share
        )


@pytest.mark.slow
@pytest.mark.parametrize("centered", [False, True])
def test_fast_weights_of_replicas_are_those_of_one_device(centered):
    fast = []
    for scope in (contextlib.nullcontext(), two_cpus().scope()):
        with scope:
            rbm = rbm_like(random_potentials(6, 4))
            rule = ExactFast(1, 7, 0.3, 0.8, centered=centered)
            rbm.compile(keras.optimizers.SGD(0.5), rule=rule)
        rbm.fit(DATA[:32], batch_size=16, epochs=2, shuffle=False, verbose=0)
        fast.append({name: variable.numpy() for name, variable in rule.fast.items()})
    for name, alone in fast[0].items():
        np.testing.assert_allclose(fast[1][name], alone, rtol=1e-4, atol=1e-6)
        assert np.max(abs(alone)) > 1e-2


def with_fast_weights(potentials, gibbs_steps=2):
    """Returns an FPCD rule with large fast weights, and the potentials plus them."""
    rule = FPCD(gibbs_steps, num_chains=CHAINS)
    rbm_like(potentials).compile(rule=rule)
    fast = random_potentials(*potentials.kernel.shape, seed=7)
    total = []
    for name in NAMES:
        rule.fast[name].assign(getattr(fast, name))
        total.append(getattr(potentials, name) + getattr(fast, name))
    return rule, inference.Potentials(*total)


def test_chains_move_under_the_sum_of_the_weights():
    rule, total = with_fast_weights(random_potentials(5, 3))
    before = rule.chains.numpy()
    moments = rule.negative_phase(
        step_of(random_potentials(5, 3), tf.zeros((2, 5)), even(2), SEED)
    )
    state = hidden_chain(
        total, tf.constant(before), random.fold_in(SEED, 1), num_sweeps=2
    )
    np.testing.assert_array_equal(rule.chains, state.hidden)
    again = inference.conditional_moments(total, state.visible, even(CHAINS))
    for got, want in zip(*map(tf.nest.flatten, (moments, again)), strict=True):
        np.testing.assert_array_equal(got, want)


def test_chains_reach_the_distribution_of_the_sum():
    potentials = random_potentials(5, 3)
    rule, total = with_fast_weights(potentials, gibbs_steps=20)
    for step in range(4):
        seed = tf.constant([step, 8])
        moments = rule.negative_phase(
            step_of(potentials, tf.zeros((2, 5)), even(2), seed)
        )
    visible = moments.visible.bias.numpy()
    error = visible.std(0) / np.sqrt(CHAINS)
    want, other = (Enumerated(model).moments()[1] for model in (total, potentials))
    assert (abs(visible.mean(0) - want) < 5 * error + 1e-6).all()
    assert (abs(visible.mean(0) - other) > 20 * error).any()


@pytest.mark.parametrize("count", [0, -1, 1.5, 2.0, True, "3", None])
@pytest.mark.parametrize("name", ["gibbs_steps", "num_chains"])
def test_counts_that_are_no_positive_ints(name, count):
    with pytest.raises(ValueError, match=f"int {name} ≥ 1. Received: {name}="):
        FPCD(**{name: count})


@pytest.mark.parametrize(
    "kwargs",
    [
        {"fast_decay": 1.0},
        {"fast_decay": -0.1},
        {"fast_learning_rate": -0.01},
        {"fast_decay": float("nan")},
        {"fast_learning_rate": float("nan")},
        {"fast_learning_rate": float("inf")},
    ],
)
def test_fast_rates_out_of_range(kwargs):
    with pytest.raises(ValueError, match=r"≥ 0 and fast_decay in|finite number"):
        FPCD(**kwargs)


def test_fast_rates_of_other_types():
    with pytest.raises(TypeError, match="a number. Received: fast_learning_rate='1'"):
        FPCD(fast_learning_rate="1")
    rule = FPCD(fast_learning_rate=np.float32(0.5), fast_decay=np.float64(0.5))
    assert type(rule.fast_decay) is type(rule.fast_learning_rate) is float


def test_it_is_for_models_without_input():
    crbm = keras_rbm.CRBM(4, num_visible=6, num_features=5, seed=0)
    rule = FPCD()
    with pytest.raises(ValueError, match=f"without input for {FPCD.__name__}.*CRBM"):
        crbm.compile("sgd", rule=rule)
    assert crbm.rule is None and rule.learner is None and not rule.built


def test_config_round_trip():
    rule = FPCD(2, 7, 0.3, 0.8, centered=True)
    again = rules.deserialize(rules.serialize(rule))
    assert type(again) is type(rules.get("fpcd")) is FPCD
    assert again.get_config() == rule.get_config() != FPCD().get_config()
