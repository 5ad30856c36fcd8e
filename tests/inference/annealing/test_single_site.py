import numpy as np
import pytest
import tensorflow as tf
from brute_force import (
    Enumerated,
    assert_visible_means,
    random_gaussian_potentials,
    random_potentials,
)

from keras_rbm import inference
from keras_rbm.inference import Potentials
from keras_rbm.inference.annealing.single_site import single_site_sweeps


@pytest.mark.parametrize("sizes", [(4, 3), (3, 5)], ids=str)
def test_leaves_the_model_as_it_is(sizes):
    truth = Enumerated(potentials := random_potentials(*sizes, seed=1, scale=2.0))
    chains = 20_000
    start = tf.constant(truth.sample(chains, np.random.default_rng(0)))
    end = single_site_sweeps(potentials, start, seed=1)
    difference = chains * (truth.frequencies(end) - truth.p_visible) ** 2
    chi_square = np.sum(difference / truth.p_visible)
    freedom = len(truth.p_visible) - 1
    assert chi_square < freedom + 5 * np.sqrt(2 * freedom)


def test_leaves_a_mode_that_block_gibbs_does_not():
    """The two modes differ in one hidden unit, and in all 200 visible ones."""
    kernel = np.zeros((200, 2), np.float32)
    kernel[:, 0] = 2.0
    potentials = Potentials(kernel, [-1.0] * 200, [-200.0, 0.0])
    start = tf.zeros((100, 200))
    stuck = inference.gibbs_chain(potentials, start, 0, num_sweeps=20)
    assert np.mean(stuck) < 0.3
    free = single_site_sweeps(potentials, start, 0)
    assert abs(np.mean(free) - 0.5) < 0.1


def test_other_units():
    potentials = random_gaussian_potentials(3, 4)
    states = single_site_sweeps(potentials, tf.zeros((4000, 3)), seed=0)
    assert_visible_means(potentials, states)
    units = potentials.visible
    gaussian = Potentials(0.1 * tf.eye(3), units, units)
    states = tf.ones((5, 3))
    assert single_site_sweeps(gaussian, states, 0) is states
