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
from keras_rbm.inference import Potentials, exact_log_partition
from keras_rbm.inference.annealing.regions import (
    Pool,
    Regions,
    Visited,
    missed_mass,
    rows_by_weight,
)
from keras_rbm.inference.annealing.search import Search
from keras_rbm.inference.annealing.tempered_path import Annealed

SEED, OTHER = tf.constant([0, 1]), tf.constant([0, 3])


def pool_of(*runs):
    """Returns a pool of runs of a single model: states (M, 3), log weights (M,)."""
    pool = Pool(1)
    means = np.repeat(np.eye(3, dtype="float32"), 20, 0)
    pool.regions = Regions.of(means[:, np.newaxis], 8, SEED)
    for states, log_weights in runs:
        weights = tf.constant(log_weights, tf.float64)
        steps = tf.zeros((1, len(log_weights)))
        pool.add(Annealed(tf.constant(states, tf.float32), weights, steps), 1)
    return pool


def at(place, count):
    return np.tile(np.eye(3)[place], (count, 1))


def test_an_estimate_by_chance_does_not_refute_what_was_visited():
    """One lucky chain said half a nat too much, and states were drawn by its weight.

    Hidden states that held all but 1e-5 of the mass were left for it: annealing back
    then started in one of two modes in 80 instead of 64 % of the cases.
    """
    lucky, sure = np.zeros(100), np.zeros(100)
    lucky[0] = 5.0
    pool = pool_of((at(0, 100), lucky), (at(0, 100), sure))
    assert pool.values[0] > 0.9 and pool.lows[0] < 0.0
    assert pool.lows[1] == pytest.approx(0.0, abs=1e-6)


def test_the_largest_of_many_estimates_is_no_bound():
    """Of 14 one was 4 nats too high, as one in 50 may be, and refuted the truth."""
    pool = pool_of(*[(at(0, 40), np.zeros(40))] * 13, (at(0, 40), 4.0 * np.ones(40)))
    assert pool.lower_bound(16)[0] < 0.0
    pool = pool_of(*[(at(0, 40), np.full(40, 7.0))] * 16)
    assert pool.lower_bound(16)[0] == pytest.approx(7.0 - np.log(40.0))


def test_a_region_is_weighed_by_the_runs_that_were_there():
    """Five runs of one mode and one of another say what each holds, not how often."""
    first, second = (at(0, 40), np.zeros(40)), (at(1, 40), np.log(3.0) * np.ones(40))
    both = np.repeat([0.0, np.log(3.0)], 20) + np.log(2.0)
    for runs in ([first] * 5 + [second], [(np.r_[at(0, 20), at(1, 20)], both), first]):
        pool = pool_of(*runs)
        states, rows = pool.draw(400, SEED)
        assert states.numpy().sum(0) == pytest.approx([100, 300, 0], abs=1)
        assert rows.shape == (400, 1) and pool.missed_mass(states) == 0.0
        one = tf.boolean_mask(states, states[:, 1] > 0.5)
        assert pool.missed_mass(one) == pytest.approx([0.25])


def test_chains_of_one_mode_have_a_center_of_their_own():
    """One chain in ten met a mode of 470 nats; the mean of all led to 465 only.

    (500 units, MNIST, PCD at a constant rate: two of three seeds said 465.4 ± 0.1.)
    """
    rng = np.random.default_rng(0)
    elsewhere = rng.beta(0.3, 1.2, (450, 300))
    mode = np.clip(rng.beta(0.3, 1.2, 300) + rng.normal(0, 0.05, (50, 300)), 0, 1)
    means = np.concatenate([elsewhere, mode]).astype("float32")
    for seed in range(5):
        regions = Regions.of(means[:, np.newaxis], 8, tf.constant([seed, 1]))
        centers = regions.centers[:, 0]
        distances = np.square(centers - mode.mean(0)).mean(1)
        assert distances.min() < 0.02 < np.square(elsewhere - mode.mean(0)).mean()
        labels = regions.labels(means[:, np.newaxis])[:, 0]
        assert (labels[450:] == distances.argmin()).all()


def test_each_label_is_drawn_as_often_as_its_weights_say():
    """A mode of 5 % was drawn once in 100 instead of five times, by chance."""
    rng = np.random.default_rng(1)
    log_weights = rng.normal(size=(300, 2))
    labels = rng.integers(0, 10, (300, 2))
    weights = np.exp(log_weights) / np.exp(log_weights).sum(0)
    for seed in range(5):
        rows = rows_by_weight(log_weights, labels, 100, tf.constant([seed, 0]))
        absent = missed_mass(log_weights, labels, np.take_along_axis(labels, rows, 0))
        for model in range(2):
            drawn = labels[rows[:, model], model]
            lacking = ~np.isin(labels[:, model], drawn)
            assert absent[model] == pytest.approx(weights[lacking, model].sum())
            for label in range(10):
                share = weights[labels[:, model] == label, model].sum()
                assert abs((drawn == label).sum() - 100 * share) < 2


def test_heaviest_states_of_several_regions():
    """Of the last run only: one of each region, the heaviest region first."""
    log_weights = np.r_[np.arange(4.0), 9.0, 7.0]
    pool = pool_of(
        (at(2, 6), np.full(6, 99.0)), (at([0] * 4 + [1] * 2, 1), log_weights)
    )
    states = pool.heaviest(3).numpy()
    np.testing.assert_array_equal(states[:, 0], np.eye(3)[[1, 0, 1]])


def test_a_mode_that_one_chain_has_found_is_weighed():
    """A state of a mode of 22 nats, by a chain whose weight says 5."""
    kernel = tf.fill([40, 1], 6.0)
    model = Potentials(kernel, tf.fill([40], -3.0), [-100.0])
    search = Search(model, 20, SEED)
    nowhere = np.zeros((20, 40), "float32")
    found = np.concatenate([nowhere, np.ones((20, 40), "float32")])
    search.pool.regions = Regions.of(found[:, np.newaxis], 8, SEED)
    states = tf.constant(found[:21])
    log_weights = tf.constant(np.r_[np.ones(20), 5.0])
    search.pool.add(Annealed(states, log_weights, tf.zeros((1, 21))), 1)
    search._follow(search.pool.heaviest(1), tf.zeros(40))
    truth = exact_log_partition(model).numpy()
    assert truth > 21.0
    assert max(np.ravel(search.pool.values)) == pytest.approx(truth, abs=0.1)


def whole(size, batch=1):
    """Returns regions without borders, as all centers are the same."""
    shape = batch, size
    return Regions(np.zeros((8, *shape), "float32"), np.ones(shape, "float32"))


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
    draws = visited.draw(potentials, whole(6), 20_000, OTHER)[0].numpy()
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
    draws, absent = visited.draw(potentials, whole(4), 20_000, OTHER)
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
    draws = (
        visited.draw(models, whole(6, 3), 20_000, OTHER)[0].numpy().reshape(-1, 3, 6)
    )
    for model in range(3):
        alone = Potentials(kernel, tf.zeros(6), biases[model])
        own = Visited.by(alone, states[model::3])
        np.testing.assert_allclose(visited.log_mass[model], own.log_mass[0])
        means = own.draw(alone, whole(6), 20_000, OTHER)[0].numpy().mean(0)
        error = 5 * np.sqrt(2 * means * (1 - means) / 20_000) + 1e-3
        assert (abs(draws[:, model].mean(0) - means) < error).all()
