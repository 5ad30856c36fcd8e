"""A first fit starts at the forest of the strongest pairs, which is enumerated here."""

import keras
import numpy as np
import pytest

import keras_rbm as kr
from keras_rbm.models.training import pair_start

STATES = np.array(list(np.ndindex((2,) * 6)), "float32")


def chain(count=2000, seed=0):
    """Returns rows of a Markov chain of six columns, the fourth inverted."""
    rng = np.random.default_rng(seed)
    rows = rng.random((count, 6)) < 0.4
    for column in range(1, 6):
        same = rng.random(count) < 0.8
        rows[:, column] = np.where(same, rows[:, column - 1], rows[:, column])
    rows[:, 3] = ~rows[:, 3]
    return rows.astype("float32")


def started(rows, units=8, rate=0.0, rule="parallel_tempering", **kwargs):
    """Returns an RBM after a fit that changes nothing but the start."""
    rbm = kr.RBM(units, seed=0, kernel_regularizer=None, **kwargs)
    rbm.compile(keras.optimizers.SGD(rate), rule=rule)
    rbm.fit(rows, batch_size=len(rows), verbose=0)
    return rbm


def tree(rows):
    """Returns log p of `STATES` by the Chow-Liu tree of a chain of columns."""
    total = np.zeros(len(STATES))
    for column in range(6):
        parent = max(0, column - 1)
        fits = rows[:, parent] == STATES[:, [parent]]
        both = fits & (rows[:, column] == STATES[:, [column]])
        total += np.log(both.sum(1) / (fits.sum(1) if column else len(rows)))
    return total


@pytest.mark.parametrize("visible", ["bernoulli", "spin"])
@pytest.mark.parametrize("hidden", ["bernoulli", "spin"])
def test_the_start_is_the_tree(visible, hidden):
    rows = chain()
    spins = 2.0 if visible == "spin" else 1.0
    rbm = started(spins * rows + 1.0 - spins, 5, visible=visible, hidden=hidden)
    states = spins * STATES + 1.0 - spins
    likelihoods = rbm.log_likelihood(states, rbm.log_partition("exact"))
    np.testing.assert_allclose(likelihoods, tree(rows), atol=0.04)


def test_gaps_and_weights_count():
    """Rows of another kind have no weight; a third of the entries is unknown."""
    rows = chain(6000)
    gaps = np.where(np.random.default_rng(1).random(rows.shape) < 0.3, np.nan, rows)
    pairs = pair_start.strongest_pairs(
        np.concatenate([gaps, 1.0 - rows[::-1]]), np.repeat([0.001, 0.0], 6000)
    )
    assert {tuple(sorted(ends)) for ends in pairs.ends} == {
        (column, column + 1) for column in range(5)
    }
    rbm = started(gaps, missing="latent")
    likelihoods = rbm.log_likelihood(STATES, rbm.log_partition("exact"))
    np.testing.assert_allclose(likelihoods, tree(rows), atol=0.25)
    assert np.isfinite(rbm.rule.chains).all()


def test_a_pair_that_never_differs_is_blunted():
    """Its chains could never change it; the shares of its states stay."""
    rows = np.repeat(np.random.default_rng(0).integers(0, 2, (4000, 2)), 2, axis=1)
    rows = rows.astype("float32")
    rbm = started(rows, 2)
    assert np.abs(rbm.kernel).max() < 10.0
    mean = kr.inference.exact_moments(rbm.potentials()).visible.bias
    np.testing.assert_allclose(mean, rows.mean(0), atol=0.001)


def test_only_what_chance_would_not_give():
    """Columns that hardly vary, or are constant, are no pairs either."""
    rng = np.random.default_rng(0)
    rows = (rng.random((1000, 30)) < np.linspace(0.0, 0.5, 30)).astype("float32")
    pairs = pair_start.strongest_pairs(rows, np.ones(1000))
    assert len(pairs.ends) <= 2


def test_states_of_the_forest():
    """In any order of the columns, with one that hangs on none."""
    rows = chain(5000)[:, [3, 0, 5, 1, 4, 2]]
    rows[:, 2] = np.random.default_rng(1).random(5000) < 0.2
    pairs = pair_start.strongest_pairs(rows, np.ones(5000))
    assert len(pairs.ends) == 4
    noise = np.random.default_rng(2).random((20_000, 6))
    states = pair_start.forest_sample(pairs, noise)
    np.testing.assert_allclose(states.mean(0), rows.mean(0), atol=0.02)
    correlations = [np.corrcoef(part.T) for part in (states, rows)]
    np.testing.assert_allclose(*correlations, atol=0.04)


@pytest.mark.parametrize("visible", ["bernoulli", "spin"])
def test_chains_begin_in_equilibrium(visible):
    """At states of the forest, of which those of 0.3 hardly come to the others."""
    rows = np.random.default_rng(0).random((1000, 1)) < 0.3
    rows = np.repeat(rows, 3, axis=1).astype("float32")
    data = rows if visible == "bernoulli" else 2.0 * rows - 1.0
    rbm = started(data, visible=visible)
    chains = np.asarray(rbm.rule.visible_chains(rbm.potentials())) > 0.5
    assert 0.15 < chains.mean() < 0.45
    assert (chains == chains[:, :1]).mean() > 0.95


@pytest.mark.parametrize(
    ("units", "kwargs"),
    [
        (2, {}),  # for less than half of the pairs
        (8, {"kernel_initializer": "zeros"}),
        (8, {"visible_bias_initializer": "zeros"}),
        (8, {"visible": "gaussian"}),
        (8, {"hidden": "rectified"}),
        (8, {"rule": "pcd"}),
    ],
    ids=str,
)
def test_what_keeps_its_own_start(units, kwargs):
    rbm = started(chain(500), units, **kwargs)
    assert np.abs(rbm.kernel).max() < 0.1


def test_the_start_is_once():
    """A model that goes on keeps its weights; one made from its config starts anew."""
    rbm = started(chain(500))
    before = np.array(rbm.kernel)
    rbm.fit(1.0 - chain(500, seed=1), verbose=0)
    np.testing.assert_array_equal(rbm.kernel, before)
    again = kr.RBM.from_config(rbm.get_config())
    again.compile(keras.optimizers.SGD(0.0))
    again.fit(chain(500), verbose=0)
    assert np.abs(again.kernel).max() > 1.0
