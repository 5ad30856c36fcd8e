"""FPCD, pop-CD and ACD: against their relatives, recursions and exact moments."""

import contextlib

import keras
import numpy as np
import pytest
import tensorflow as tf
from brute_force import (
    Enumerated,
    random_gaussian_potentials,
    random_potentials,
    rbm_like,
)
from model_test_case import assert_same_state, two_cpus
from steps import gradients_of as phase_gradients
from steps import step_of, take_step

import keras_rbm
from keras_rbm import inference, random, rules
from keras_rbm._replicas import num_replicas
from keras_rbm.inference.gibbs import hidden_chain, visible_chain

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


# FPCD


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
    del fpcd._learner.variables[-3:]
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


# pop-CD


def importance(potentials, visible, hidden, weights):
    """Returns the normalized weights of hidden samples, literally, in float64.

    `log omega_i = c' h_i + sum sp(b + W h_i) - log sum_j w_j p(h_i | v_j)`, and the
    sample of example i counts w_i times.
    """
    w, b, c = numbers(potentials)
    visible, hidden, weights = (
        np.asarray(a, np.float64) for a in (visible, hidden, weights)
    )
    up = logistic(visible @ w + c)
    target = np.exp(hidden @ c) * np.prod(1 + np.exp(b + hidden @ w.T), 1)
    p_h = np.prod(np.where(hidden[:, None] == 1, up[None], 1 - up[None]), 2)
    omega = weights * target / (p_h @ weights)
    return omega / omega.sum()


@pytest.mark.parametrize("gibbs_steps", [1, 3])
@pytest.mark.parametrize("share", [1.0, 0.4], ids=["all", "a replica's share"])
@pytest.mark.parametrize("weighted", [False, True])
def test_pop_cd_is_the_formula(gibbs_steps, share, weighted):
    potentials = random_potentials(6, 4)
    visible, weights = tf.constant(DATA), even(34)
    if weighted:
        weights = np.random.default_rng(1).random(34) * (np.arange(34) % 3 > 0)
        weights = tf.constant(weights / weights.sum(), tf.float32)
    rule = rules.PopulationContrastiveDivergence(gibbs_steps)
    moments = rule.negative_phase(step_of(potentials, visible, share * weights, SEED))
    hidden = moments.hidden.bias.numpy()
    assert set(np.unique(hidden)) == {0.0, 1.0}
    if gibbs_steps > 1:
        first = random.fold_in(random.fold_in(SEED, 1), 0)
        visible = visible_chain(
            potentials, visible, first, num_sweeps=gibbs_steps - 1
        ).visible
    omega = share * importance(potentials, visible, hidden, weights)
    w, b, _ = numbers(potentials)
    mean_visible = logistic(b + hidden @ w.T)
    np.testing.assert_allclose(moments.weights, omega, rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(moments.visible.bias, mean_visible, atol=1e-6)
    kernel = (omega[:, None] * mean_visible).T @ hidden
    np.testing.assert_allclose(moments.kernel, kernel, atol=1e-6)
    mean = moments.mean()
    np.testing.assert_allclose(mean.visible.bias, omega @ mean_visible, atol=1e-6)
    np.testing.assert_allclose(mean.hidden.bias, omega @ hidden, atol=1e-6)
    np.testing.assert_allclose(mean.weights, share, atol=1e-6)


def test_hidden_samples_are_those_of_the_examples():
    """Deterministic units: sample i is the code of example i, not a mixture."""
    kernel = 100.0 * tf.eye(6)[:, :4]
    potentials = inference.Potentials(kernel, tf.zeros(6), tf.fill([4], -50.0))
    rule = rules.PopulationContrastiveDivergence()
    moments = rule.negative_phase(
        step_of(potentials, tf.constant(DATA), even(34), SEED)
    )
    np.testing.assert_array_equal(moments.hidden.bias, DATA[:, :4])


def z_scores(moments, truth):
    """Returns deviations from exact moments in standard errors, flat."""
    v, h = moments.visible.bias.numpy(), moments.hidden.bias.numpy()
    omega = moments.weights.numpy()[:, None]
    scores = []
    rows = ((v[:, :, None] * h[:, None]).reshape(len(v), -1), v, h)
    for row, exact in zip(rows, truth.moments(), strict=True):
        difference = (omega * (row - exact.reshape(-1))).sum(0)
        spread = np.sqrt((omega**2 * (row - exact.reshape(-1)) ** 2).sum(0))
        scores.append(abs(difference) / spread)
    return np.concatenate(scores)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("weighted", [False, True])
def test_pop_cd_is_consistent(seed, weighted):
    """A large population has the exact moments, whatever the data and weights."""
    rng = np.random.default_rng(seed)
    potentials = random_potentials(5, 3, seed, scale=1.5)
    visible = tf.constant(rng.random((CHAINS, 5)) < rng.random(5), tf.float32)
    each = even(CHAINS)
    if weighted:  # large where unit 0 is off, three in ten are zero
        each = rng.random(CHAINS) * np.where(visible[:, 0] == 1, 0.1, 1.0)
        each *= rng.random(CHAINS) < 0.7
        each = tf.constant(each / each.sum(), tf.float32)
    truth = Enumerated(potentials)

    def largest(rule):
        moments = rule.negative_phase(step_of(potentials, visible, each, SEED))
        return z_scores(moments, truth).max()

    assert largest(rules.PopulationContrastiveDivergence()) < 5
    assert largest(rules.PopulationContrastiveDivergence(2)) < 5
    assert largest(rules.ContrastiveDivergence()) > 8


def test_examples_of_weight_zero_are_not_there():
    """Their samples used to count, and far from the others more than all of them."""
    potentials = random_potentials(6, 4)
    weights = tf.constant(np.where(np.arange(34) < 20, 1 / 20, 0.0), tf.float32)
    moments = []
    for others in (DATA[20:], 1.0 - DATA[20:]):
        visible = tf.constant(np.concatenate([DATA[:20], others]))
        rule = rules.PopulationContrastiveDivergence()
        moments.append(rule.negative_phase(step_of(potentials, visible, weights, SEED)))
    assert not moments[0].weights[20:].numpy().any()
    for a, b in zip(*(tf.nest.flatten(m.mean()) for m in moments), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


@pytest.mark.parametrize("gaussian", ["visible", "hidden"])
def test_pop_cd_with_gaussian_units_is_consistent(gaussian):
    rng = np.random.default_rng(0)
    potentials = random_gaussian_potentials(3, 4)
    visible = rng.normal(0, 1.5, (CHAINS, 3))
    if gaussian == "hidden":
        potentials, visible = potentials.transpose(), rng.integers(0, 2, (CHAINS, 4))
    rule = rules.PopulationContrastiveDivergence()
    moments = rule.negative_phase(
        step_of(potentials, tf.constant(visible, tf.float32), even(CHAINS), SEED)
    )
    exact = inference.exact_moments(potentials)
    omega = moments.weights.numpy()[:, None]
    for rows, want in zip(
        tf.nest.flatten((moments.visible, moments.hidden)),
        tf.nest.flatten((exact.visible, exact.hidden)),
        strict=True,
    ):
        deviation = omega * (rows.numpy() - want.numpy())
        assert (abs(deviation.sum(0)) < 5 * np.sqrt((deviation**2).sum(0))).all()


def test_pop_cd_far_from_the_model_stays_finite():
    """Parameters whose weights differ by more than float32 holds."""
    potentials = random_potentials(6, 4, scale=200.0)
    rule = rules.PopulationContrastiveDivergence()
    for weights in (even(34), tf.one_hot(3, 34), tf.zeros(34)):
        moments = rule.negative_phase(
            step_of(potentials, tf.constant(DATA), weights, SEED)
        )
        assert all(np.isfinite(t).all() for t in tf.nest.flatten(moments))
        total = float(tf.reduce_sum(weights))
        np.testing.assert_allclose(tf.reduce_sum(moments.weights), total, atol=1e-6)


# ACD


@pytest.mark.parametrize(
    ("gibbs_steps", "kwargs"),
    [pytest.param(1, {}, marks=pytest.mark.slow), (3, {"centered": True})],
    ids=["plain", "centered"],
)
def test_acd_with_one_chain_is_cd_bit_for_bit(gibbs_steps, kwargs):
    cd = fitted(rules.ContrastiveDivergence(gibbs_steps, **kwargs))
    acd = fitted(rules.AverageContrastiveDivergence(gibbs_steps, 1, **kwargs))
    assert_same_state(cd, acd)


def test_acd_averages_each_examples_own_chains():
    """Units that copy their input: every chain of an example stays where it began."""
    kernel = 100.0 * tf.eye(6)
    potentials = inference.Potentials(kernel, tf.fill([6], -50.0), tf.fill([6], -50.0))
    rule = rules.AverageContrastiveDivergence(2, 5)
    weights = np.random.default_rng(0).dirichlet(np.ones(34)).astype("float32")
    moments = rule.negative_phase(step_of(potentials, tf.constant(DATA), weights, SEED))
    np.testing.assert_allclose(moments.visible.bias, DATA, atol=1e-6)
    np.testing.assert_allclose(moments.hidden.bias, DATA, atol=1e-6)
    np.testing.assert_array_equal(moments.weights, weights)
    kernel = (weights[:, None] * DATA).T @ DATA
    np.testing.assert_allclose(moments.kernel, kernel, atol=1e-6)


def draws(rule, function, count=500):
    """Returns what a function of the negative phase's seed is for many seeds."""
    function = tf.function(function, autograph=False)
    return np.array([function(rule, tf.constant([i, 9])) for i in range(count)])


def test_the_variance_of_acd_is_that_of_cd_over_the_number_of_chains():
    potentials = random_potentials(6, 4)
    weights = tf.constant(np.random.default_rng(0).dirichlet(np.ones(34)), tf.float32)

    def flat(rule, seed):
        moments = rule.negative_phase(
            step_of(potentials, tf.constant(DATA), weights, seed)
        )
        mean = moments.mean()
        parts = (mean.kernel, mean.visible.bias, mean.hidden.bias)
        return tf.concat([tf.reshape(part, [-1]) for part in parts], 0)

    cd = draws(rules.ContrastiveDivergence(2), flat)
    acd = draws(rules.AverageContrastiveDivergence(2, 8), flat)
    error = np.sqrt((cd.var(0) + acd.var(0)) / 500)
    assert (abs(cd.mean(0) - acd.mean(0)) < 5 * error).all()
    # A variance from 500 draws is good to sqrt(2 / 500), a ratio of two to twice 2.
    error = 5 * np.sqrt(4 / 500)
    log_ratios = np.log(cd.var(0) / acd.var(0))
    assert (abs(log_ratios - np.log(8)) < error).all()
    assert abs(log_ratios.mean() - np.log(8)) < error / 3


def crbm_with(rule, scale=1.0):
    crbm = keras_rbm.CRBM(
        4, inference="mean_field", num_visible=6, num_features=5, seed=0
    )
    rng = np.random.default_rng(2)
    for variable in crbm.trainable_variables:
        variable.assign(rng.normal(0, scale, variable.shape))
    crbm.compile("sgd", rule=rule)
    return crbm


def gradients_of(crbm, x, y, weights):
    def gradients(rule, seed):
        potentials = crbm.potentials(x)
        step = step_of(potentials, y, weights, seed)
        of_names = phase_gradients(crbm, step.positive, rule.negative_phase(step), x)
        return tf.concat([tf.reshape(of_names[n], [-1]) for n in sorted(of_names)], 0)

    return gradients


def test_acd_keeps_examples_and_their_features_together():
    """With extreme weights nothing is random: the gradient is that of CD."""
    rng = np.random.default_rng(3)
    x = tf.constant(rng.normal(0, 1, (34, 5)), tf.float32)
    weights = tf.constant(rng.dirichlet(np.ones(34)), tf.float32)
    got = []
    for rule in (
        rules.ContrastiveDivergence(2),
        rules.AverageContrastiveDivergence(2, 5),
    ):
        crbm = crbm_with(rule, scale=1000.0)
        got.append(gradients_of(crbm, x, tf.constant(DATA), weights)(rule, SEED))
    np.testing.assert_allclose(*got, atol=1e-5)
    assert np.max(abs(got[0])) > 0.1


def test_acd_of_a_crbm_has_the_mean_of_cd():
    rng = np.random.default_rng(3)
    x = tf.constant(rng.normal(0, 1, (10, 5)), tf.float32)
    y, weights = tf.constant(DATA[:10]), even(10)
    cd, acd = rules.ContrastiveDivergence(), rules.AverageContrastiveDivergence(1, 8)
    a, b = (
        draws(rule, gradients_of(crbm_with(rule), x, y, weights)) for rule in (cd, acd)
    )
    error = np.sqrt((a.var(0) + b.var(0)) / 500)
    assert (abs(a.mean(0) - b.mean(0)) < 5 * error + 1e-6).all()
    assert a.var(0).sum() / b.var(0).sum() == pytest.approx(8, rel=0.2)


# Bad input and configs


@pytest.mark.parametrize("count", [0, -1, 1.5, 2.0, True, "3", None])
def test_counts_that_are_no_positive_ints(count):
    for make, names in (
        (FPCD, ("gibbs_steps", "num_chains")),
        (rules.PopulationContrastiveDivergence, ("gibbs_steps",)),
        (rules.AverageContrastiveDivergence, ("gibbs_steps", "num_chains")),
    ):
        for name in names:
            with pytest.raises(ValueError, match=f"int {name} ≥ 1. Received: {name}="):
                make(**{name: count})


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


@pytest.mark.parametrize("make", [FPCD, rules.PopulationContrastiveDivergence])
def test_rules_for_models_without_input(make):
    crbm = keras_rbm.CRBM(4, num_visible=6, num_features=5, seed=0)
    rule = make()
    with pytest.raises(ValueError, match=f"without input for {make.__name__}.*CRBM"):
        crbm.compile("sgd", rule=rule)
    assert crbm.rule is None and rule.learner is None and not rule.built


@pytest.mark.parametrize(
    "rule",
    [
        FPCD(2, 7, 0.3, 0.8, centered=True),
        rules.PopulationContrastiveDivergence(3, sliding_factor=0.2),
        rules.AverageContrastiveDivergence(
            2, 5, sparsity_target=0.1, sparsity_cost=0.2
        ),
    ],
    ids=["fpcd", "pop_cd", "acd"],
)
def test_config_round_trip(rule, request):
    again = rules.deserialize(rules.serialize(rule))
    assert type(again) is type(rule)
    assert again.get_config() == rule.get_config()
    assert again.get_config() != type(rule)().get_config()
    name = request.node.callspec.id
    assert type(rules.get(name)) is type(rule)
