import numpy as np
import pytest
import tensorflow as tf
from brute_force import (
    Enumerated,
    binary_states,
    random_gaussian_potentials,
    random_potentials,
)

from keras_rbm import inference
from keras_rbm.inference import Potentials
from keras_rbm.inference.annealing.regions import Regions
from keras_rbm.inference.annealing.single_site import Visited, single_site_sweeps

SEED = tf.constant([0, 3])


def whole(size, batch=1):
    """Returns regions without borders, as all centers are the same."""
    shape = batch, size
    return Regions(np.zeros((8, *shape), "float32"), np.ones(shape, "float32"))


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
    moments = inference.exact_moments(potentials)
    states = single_site_sweeps(potentials, tf.zeros((4000, 3)), seed=0)
    first = potentials.visible.statistics(states).bias.numpy()
    error = first.std(0) / np.sqrt(len(first))
    assert (abs(first.mean(0) - moments.visible.bias.numpy()) < 5 * error).all()
    units = potentials.visible
    gaussian = Potentials(0.1 * tf.eye(3), units, units)
    states = tf.ones((5, 3))
    assert single_site_sweeps(gaussian, states, 0) is states


def test_what_was_visited_bounds_log_z():
    potentials = random_potentials(6, 4, seed=2, scale=1.5)
    truth = Enumerated(potentials)
    every = tf.constant(binary_states(6), tf.float32)
    visited = Visited.by(potentials, every)
    assert visited.log_mass <= truth.log_partition
    some = Visited.by(potentials, every[:5])
    assert some.log_mass < visited.log_mass
    new = np.isfinite(visited.log_weights[:, 0])
    hidden = visited.states.numpy()[new, 0]
    assert len(np.unique(hidden, axis=0)) == len(hidden) < 64
    index = hidden.astype(int) @ [8, 4, 2, 1]
    mass = truth.p_hidden[index]
    np.testing.assert_allclose(
        visited.log_mass, truth.log_partition + np.log(mass.sum()), rtol=1e-6
    )
    shares = np.exp(visited.log_weights[new, 0] - visited.log_mass)
    np.testing.assert_allclose(shares, mass / mass.sum(), rtol=1e-4)
    draws = visited.draw(potentials, whole(6), 20_000, SEED)[0].numpy()
    weights = (mass / mass.sum()) @ (
        1
        / (
            1
            + np.exp(-(potentials.visible_bias + hidden @ potentials.kernel.numpy().T))
        )
    )
    error = np.sqrt(weights * (1 - weights) / 20_000)
    assert (abs(draws.mean(0) - weights) < 5 * error).all()


def test_visible_states_are_listed_where_hidden_units_are_not_binary():
    potentials = random_gaussian_potentials(3, 4).transpose()
    states = tf.constant(np.repeat(binary_states(4), 2, 0), tf.float32)
    visited = Visited.by(potentials, states)
    truth = inference.exact_log_partition(potentials)
    np.testing.assert_allclose(visited.log_mass, [truth], rtol=1e-5)
    assert np.isfinite(visited.log_weights).sum() == 16 and not visited.of_hidden
    draws, absent = visited.draw(potentials, whole(4), 20_000, SEED)
    means = inference.exact_moments(potentials).visible.bias
    error = np.sqrt(means * (1 - means) / 20_000)
    assert (abs(draws.numpy().mean(0) - means) < 5 * error).numpy().all()
    assert absent == 0.0


def test_no_list_of_states_without_a_binary_layer():
    units = random_gaussian_potentials(3, 4).visible
    potentials = Potentials(0.1 * tf.eye(3), units, units)
    assert Visited.by(potentials, tf.zeros((5, 3))) is None


def test_each_of_several_models_has_its_own_list():
    kernel = random_potentials(6, 4, scale=1.5).kernel
    biases = tf.random.stateless_normal((3, 4), (0, 1))
    models = Potentials(kernel, tf.zeros(6), biases)
    states = tf.constant(np.repeat(binary_states(6), 3, 0), tf.float32)
    visited = Visited.by(models, states)
    draws = visited.draw(models, whole(6, 3), 20_000, SEED)[0].numpy().reshape(-1, 3, 6)
    for model in range(3):
        alone = Potentials(kernel, tf.zeros(6), biases[model])
        own = Visited.by(alone, states[model::3])
        np.testing.assert_allclose(visited.log_mass[model], own.log_mass[0])
        means = own.draw(alone, whole(6), 20_000, SEED)[0].numpy().mean(0)
        error = 5 * np.sqrt(2 * means * (1 - means) / 20_000) + 1e-3
        assert (abs(draws[:, model].mean(0) - means) < error).all()
