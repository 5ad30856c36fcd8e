"""The moments of contrastive divergence, against enumeration."""

import numpy as np
import pytest
import tensorflow as tf
from brute_force import Enumerated, random_potentials, rbm_like
from comparisons import assert_mean, assert_moments
from steps import gradients_of, step_of

from keras_rbm import inference, rules

CHAINS = 4000


def moments_of_cd(potentials, start, gibbs_steps, seed):
    rule = rules.ContrastiveDivergence(gibbs_steps)
    rows = np.broadcast_to(start, (CHAINS, np.shape(start)[-1]))
    weights = tf.fill([CHAINS], 1.0 / CHAINS)
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
