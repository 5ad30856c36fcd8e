import numpy as np
import pytest
import tensorflow as tf
from brute_force import (
    Enumerated,
    assert_follows,
    assert_visible_means,
    random_gaussian_potentials,
    random_potentials,
)

from keras_rbm import inference, random
from keras_rbm.inference import Potentials
from keras_rbm.inference.annealing.chains import anneal_forward
from keras_rbm.inference.annealing.jumps import Groups, Jumps, jumped
from keras_rbm.inference.annealing.path import temperatures

SEED = random.as_seed(0)
KNOWN = tf.constant(np.random.default_rng(1).integers(0, 2, (6, 5)), tf.float32)
BOTH = tf.constant([[0.0] * 20, [1.0] * 20])  # two modes


def ends_of(potentials, start, known, *sizes, seed=SEED):
    """Returns the last states of chains that jump between known ones."""
    return jumped(potentials, start, Jumps.between(potentials, known), *sizes, seed)[-1]


@pytest.mark.parametrize("sizes", [(4, 3), (3, 5)], ids=str)
@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_leaves_the_model_as_it_is(sizes, scale):
    truth = Enumerated(potentials := random_potentials(*sizes, seed=1, scale=scale))
    chains = 20_000
    start = tf.constant(truth.sample(chains, np.random.default_rng(0)))
    end = ends_of(potentials, start, KNOWN[:, : sizes[0]], 2, 5)
    assert_follows(truth.p_visible, end)


def parts_with_two_modes(count):
    """Returns a model whose parts are each in one of two modes, by chance alone.

    A mode is all of a part's five visible units, and one hidden unit of three.
    """
    kernel = np.zeros((5 * count, 3 * count), np.float32)
    hidden_bias = np.zeros(3 * count, np.float32)
    for part in range(count):
        kernel[5 * part : 5 * part + 5, 3 * part] = 12.0
        hidden_bias[3 * part] = -30.0
    return Potentials(kernel, [-6.0] * 5 * count, hidden_bias)


def test_finds_all_combinations_of_modes():
    """Chains that begin in two of 16 combinations end in each with its probability."""
    potentials = parts_with_two_modes(4)
    start = np.zeros((400, 20), np.float32)
    start[:40] = 1.0  # a tenth has all parts in the other mode
    stuck = inference.gibbs_chain(potentials, start, 0, num_sweeps=50).numpy()
    end = ends_of(potentials, tf.constant(start), BOTH[:, :20], 50, 3)
    modes = [rows.reshape(400, 4, 5).mean(2) > 0.5 for rows in (stuck, end.numpy())]
    combinations = [np.unique(rows, axis=0, return_counts=True)[1] for rows in modes]
    assert sorted(combinations[0]) == [40, 360]
    assert len(combinations[1]) == 16
    assert combinations[1].min() > 5 and combinations[1].max() < 50  # 25 each


@pytest.mark.parametrize("chains", [10, 100])
def test_a_small_mode_keeps_its_mass(chains):
    """If chains knew only of modes they are in, 3 % became 0.7 % with 10 chains."""
    potentials = Potentials(np.full((12, 1), 6.0), [-3.0] * 12, [-39.5])
    truth = Enumerated(potentials)
    on = (truth.v.mean(1) > 0.5) @ truth.p_visible
    assert 0.01 < on < 0.05
    rng, shares = np.random.default_rng(0), []
    for number in range(2000 // chains):
        start = tf.constant(truth.sample(chains, rng))
        seed = random.as_seed(number)
        end = ends_of(potentials, start, BOTH[:, :12], 10, 2, seed=seed)
        shares.append(np.mean(end.numpy().mean(1) > 0.5))
    assert abs(np.mean(shares) - on) < 4 * np.sqrt(on / 2000)


def test_each_model_of_a_batch():
    """Jumps of one model are not to modes that only another has."""
    one = parts_with_two_modes(2)
    other = tf.constant([[-60.0, 0, 0, -60.0, 0, 0]])  # the second mode is rare
    biases = tf.concat([one.hidden_bias[tf.newaxis], other], 0)
    both = Potentials(one.kernel, one.visible_bias, biases)
    start = np.zeros((200, 2, 10), np.float32)
    start[:20] = 1.0
    known = tf.repeat(BOTH[:, :10], 2, 0)
    end = ends_of(both, tf.reshape(start, (400, 10)), known, 50, 2)
    means = np.reshape(end, (200, 2, 10)).mean((0, 2))
    np.testing.assert_allclose(means, [0.5, 0.0], atol=0.1)


def test_other_units():
    potentials = random_gaussian_potentials(3, 4)
    start = inference.gibbs_chain(potentials, tf.zeros((4000, 3)), 1, num_sweeps=50)
    states = ends_of(potentials, start, start[:50], 5, 2)
    assert_visible_means(potentials, states)
    units = potentials.visible
    gaussian = Potentials(0.1 * tf.eye(3), units, units)
    assert Jumps.between(gaussian, tf.ones((5, 3))) is None


def groups_of(kernel):
    """Returns 999 groups of hidden units, a bool array."""
    model = Potentials(kernel, *(np.zeros(size) for size in kernel.shape))
    return Groups.of(model).drawn(tf.linspace(0.0, 1.0, 999)).numpy()


def test_groups_are_parts():
    """Three parts whose units share their columns, and all units."""
    kernel = np.kron(np.eye(3), np.ones((6, 4)))
    kernel *= np.random.default_rng(0).choice([-2.0, 1.5], kernel.shape)
    groups = groups_of(kernel)
    sizes = groups.sum(1)
    parts = groups.reshape(-1, 3, 4).all(2)[sizes == 4]
    assert (parts.sum(1) == 1).all() and (parts.mean(0) > 0.2).all()
    assert len(parts) > 0.4 * len(groups)
    assert 0.05 < np.mean(sizes == 12) < 0.2
    np.testing.assert_array_equal(groups_of(kernel[:, :1]), True)


@pytest.mark.parametrize("betas", [3, 20])
def test_weights_of_chains_that_jump_are_unbiased(betas):
    potentials = random_potentials(4, 3, seed=1, scale=2.0)
    truth = Enumerated(potentials).log_partition
    jumps = Jumps.between(potentials, KNOWN[:, :4])
    way = tf.zeros(4), temperatures(betas), 20_000, 0
    chains = anneal_forward(potentials, *way, jumps)
    weights = np.exp(chains.log_weights - truth)
    assert abs(weights.mean() - 1.0) < 4 * weights.std() / np.sqrt(len(weights))
    plain = anneal_forward(potentials, *way).log_weights
    assert np.std(chains.log_weights) < np.std(plain)  # they forget where they were
