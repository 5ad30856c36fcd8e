import numpy as np
import tensorflow as tf
from brute_force import (
    Enumerated,
    binary_states,
    random_gaussian_potentials,
    random_potentials,
)

from keras_rbm import inference
from keras_rbm.inference import Potentials
from keras_rbm.inference.annealing.pool import log_mass_of_visited


def test_what_was_visited_bounds_log_z():
    potentials = random_potentials(6, 4, seed=2, scale=1.5)
    truth = Enumerated(potentials)
    every = tf.constant(binary_states(6), tf.float32)
    mass = log_mass_of_visited(potentials, every)
    assert log_mass_of_visited(potentials, every[:5]) < mass <= truth.log_partition
    hidden = potentials.hidden_natural(every).numpy() > 0.0
    index = np.unique(hidden.astype(int) @ [8, 4, 2, 1])
    assert len(index) < 16
    want = truth.log_partition + np.log(truth.p_hidden[index].sum())
    np.testing.assert_allclose(mass, want, rtol=1e-6)


def test_visible_states_are_listed_where_hidden_units_are_not_binary():
    potentials = random_gaussian_potentials(3, 4).transpose()
    states = tf.constant(np.repeat(binary_states(4), 2, 0), tf.float32)
    truth = inference.exact_log_partition(potentials)
    mass = log_mass_of_visited(potentials, states)
    np.testing.assert_allclose(mass, [truth], rtol=1e-5)


def test_no_bound_without_a_finite_layer():
    units = random_gaussian_potentials(3, 4).visible
    potentials = Potentials(0.1 * tf.eye(3), units, units)
    assert log_mass_of_visited(potentials, tf.zeros((5, 3))) == -np.inf


def test_each_of_several_models_has_its_own_states():
    kernel = random_potentials(6, 4, scale=1.5).kernel
    biases = tf.random.stateless_normal((3, 4), (0, 1))
    models = Potentials(kernel, tf.zeros(6), biases)
    states = tf.constant(np.repeat(binary_states(6), 3, 0)[:60], tf.float32)
    mass = log_mass_of_visited(models, states)
    for model in range(3):
        alone = Potentials(kernel, tf.zeros(6), biases[model])
        own = log_mass_of_visited(alone, states[model::3])
        np.testing.assert_allclose(mass[model], own[0])
