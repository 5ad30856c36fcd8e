"""Biases that give a model its means, by samples, against its exact ones."""

import numpy as np
import pytest
import tensorflow as tf
from brute_force import random_potentials
from growing_models import counted, drawn, means_of, two_modes

from keras_rbm.inference.growing.unit_search import match_means

COUNT = 20_000


def matched(potentials, target, visible, log_weights, seed, max_sweeps):
    """Returns what has been fitted, and the model's exact means then."""
    options = {"max_sweeps": max_sweeps, "drift": tf.zeros(6)}
    model = counted(potentials)
    result = match_means(model, target, visible, log_weights, seed, **options)
    return result, means_of(counted(potentials, visible_bias=result.bias))


@pytest.mark.parametrize("seed", range(3))
def test_means_become_the_target(seed):
    potentials = random_potentials(6, 4, seed=seed)
    target = np.random.default_rng(seed).uniform(0.2, 0.8, 6).astype("float32")
    visible = drawn(potentials, COUNT)
    result, means = matched(potentials, target, visible, tf.zeros(COUNT), seed, 20)
    np.testing.assert_allclose(means, target, atol=0.02)
    np.testing.assert_allclose(result.visible.numpy().mean(0), target, atol=0.02)


def test_mass_moves_between_modes_that_sweeps_do_not_leave():
    """Chains that have yet to move would lead the biases on and on."""
    visible, target = drawn(two_modes(), COUNT), tf.fill([6], 0.7)
    assert 0.4 < float(tf.reduce_mean(visible)) < 0.6
    result, means = matched(two_modes(), target, visible, tf.zeros(COUNT), 0, 10)
    np.testing.assert_allclose(means, 0.7, atol=0.03)
    np.testing.assert_allclose(result.visible.numpy().mean(0), 0.7, atol=0.03)


def test_weights_make_samples_of_another_model_its_own():
    before, potentials = two_modes(), two_modes(-6.2)
    visible = drawn(before, COUNT)
    change = before.free_energy(visible) - potentials.free_energy(visible)
    target = tf.constant(means_of(potentials), tf.float32)
    assert float(tf.reduce_mean(target)) < 0.4
    result, _ = matched(potentials, target, visible, change, 0, 10)
    total = tf.reduce_sum(result.bias - potentials.visible_bias)  # what moves the mass
    assert abs(float(total)) < 0.1
    np.testing.assert_allclose(result.visible.numpy().mean(0), target, atol=0.02)
