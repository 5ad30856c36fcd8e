"""CD and FPCD: against PCD, a recursion and exact moments."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from brute_force import Enumerated, random_potentials, rbm_like
from comparisons import assert_equal, assert_mean, assert_moments
from model_test_case import assert_same_state
from steps import fitted_by, gradients_of, step_of, take_step

from keras_rbm import inference, random, rules
from keras_rbm.inference.gibbs import hidden_chain

MANY = 4000


def moments_of_cd(potentials, start, gibbs_steps, seed):
    rule = rules.ContrastiveDivergence(gibbs_steps)
    rows = np.broadcast_to(start, (MANY, np.shape(start)[-1]))
    weights = tf.fill([MANY], 1.0 / MANY)
    step = step_of(potentials, tf.constant(rows, tf.float32), weights, seed)
    return rule.negative_phase(step)


def test_cd_has_the_exact_moments_after_many_steps():
    potentials = random_potentials(5, 3)
    moments = moments_of_cd(potentials, np.zeros(5), 60, tf.constant([1, 2]))
    assert_moments(moments, Enumerated(potentials).moments())
    potentials = random_potentials(5, 3, scale=2.0)
    moments = moments_of_cd(potentials, np.zeros(5), 1, tf.constant([1, 2]))
    with pytest.raises(AssertionError):
        assert_moments(moments, Enumerated(potentials).moments())


def test_cd_1_is_one_sweep_from_the_data():
    potentials = random_potentials(4, 3)
    truth = Enumerated(potentials)
    start = tf.constant(truth.v[[5]], tf.float32)
    up = np.asarray(tf.sigmoid(potentials.hidden_natural(start)))[0]
    p_h = np.prod(np.where(truth.h == 1, up, 1 - up), 1)
    hidden = tf.constant(truth.h, tf.float32)
    expected = p_h @ tf.sigmoid(potentials.visible_natural(hidden)).numpy()
    moments = moments_of_cd(potentials, start, 1, tf.constant([3, 4]))
    assert_mean(moments.visible.bias, expected)


def test_phases_are_averaged_separately():
    potentials = random_potentials(5, 3)
    short, many = (
        inference.conditional_moments(potentials, tf.ones((n, 5)), tf.fill([n], 1 / n))
        for n in (1, 70)
    )
    for gradient in gradients_of(rbm_like(potentials), short, many).values():
        np.testing.assert_allclose(gradient, 0, atol=1e-6)


DATA = np.random.default_rng(0).integers(0, 2, (34, 6)).astype("float32")
NAMES = ("kernel", "visible_bias", "hidden_bias")
FPCD = rules.FastPersistentContrastiveDivergence
CHAINS = 400
SEED = tf.constant([5, 6])
SLOW = pytest.mark.slow


def even(count):
    return tf.fill([count], 1.0 / count)


@pytest.mark.parametrize("centered", [pytest.param(None, marks=SLOW), True])
def test_fpcd_without_fast_learning_is_pcd_bit_for_bit(centered):
    pcd = fitted_by(
        rules.PersistentContrastiveDivergence(2, 7, centered=centered), DATA
    )
    fpcd = fitted_by(FPCD(2, 7, 0.0, centered=centered), DATA)
    assert not any(fast.numpy().any() for fast in fpcd.rule.fast.values())
    del fpcd.learner.variables[-3:]
    assert_same_state(pcd, fpcd)
    fpcd = fitted_by(FPCD(2, 7, 1.0, centered=centered), DATA)
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


def test_chains_move_under_the_sum_of_the_weights():
    potentials, fast = random_potentials(5, 3), random_potentials(5, 3, seed=7)
    rule = FPCD(2, num_chains=CHAINS)
    rbm_like(potentials).compile(rule=rule)
    for name in NAMES:
        rule.fast[name].assign(getattr(fast, name))
    total = inference.Potentials(
        *(getattr(potentials, name) + getattr(fast, name) for name in NAMES)
    )
    before = tf.constant(rule.chains.numpy())
    moments = rule.negative_phase(step_of(potentials, tf.zeros((2, 5)), even(2), SEED))
    state = hidden_chain(total, before, random.fold_in(SEED, 1), num_sweeps=2)
    np.testing.assert_array_equal(rule.chains, state.hidden)
    again = inference.conditional_moments(total, state.visible, even(CHAINS))
    assert_equal(tf.nest.flatten(moments), tf.nest.flatten(again))
