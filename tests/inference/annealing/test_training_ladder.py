"""log Z from the chains that training by parallel tempering has left."""

import numpy as np
import pytest
import tensorflow as tf
from brute_force import binary_states, random_potentials

import keras_rbm
from keras_rbm import inference
from keras_rbm.inference import log_partition
from keras_rbm.inference.annealing import options
from keras_rbm.inference.annealing.path import Ladder
from keras_rbm.inference.exact import is_quick
from keras_rbm.units import Gaussian


@pytest.fixture
def searches(monkeypatch):
    """A list to which each search for a model's mass is added; none is enumerated."""
    monkeypatch.setattr(log_partition, "is_quick", lambda potentials: False)
    found, find = [], log_partition.find_start
    monkeypatch.setattr(
        log_partition, "find_start", lambda *args: found.append(args) or find(*args)
    )
    return found


def test_a_small_model_is_enumerated():
    rbm = keras_rbm.RBM(4, num_visible=6, seed=0)
    z, truth = rbm.log_partition(), rbm.log_partition("exact")
    assert z.value == truth.value and z.stderr == 0.0
    states = binary_states(6).astype("float32")
    for total in (rbm.log_likelihood(states), rbm.distribution().log_prob(states)):
        np.testing.assert_allclose(np.exp(total).sum(), 1.0, rtol=1e-5)
    # As long as it takes about a second.
    sizes = [
        (30, 20),
        (500, 17),
        (500, 18),
        (10_000, 13),
        (25, 25),
        (9, 300_000),
        (1, 26),
    ]
    models = [
        inference.Potentials(np.zeros(size), np.zeros(size[0]), np.zeros(size[1]))
        for size in sizes
    ]
    assert [*map(is_quick, models)] == [True, True, False, True, False, False, True]


def trained(visible="bernoulli", epochs=8):
    rng = np.random.default_rng(0)
    data = rng.integers(0, 2, (2, 8))[rng.integers(0, 2, 200)]
    data = (rng.random((200, 8)) < 0.1 + 0.8 * data).astype("float32")
    rbm = keras_rbm.RBM(5, visible=visible, num_visible=8, seed=0)
    rbm.compile()
    rbm.fit(data, epochs=epochs, verbose=0)
    return rbm


@pytest.mark.parametrize(
    "visible", ["bernoulli", pytest.param(Gaussian(), marks=pytest.mark.slow)]
)
def test_a_model_just_trained_needs_no_search(searches, visible):
    rbm = trained(visible)
    truth = rbm.log_partition("exact").value
    z = rbm.log_partition()
    assert z.lower <= truth <= z.upper and z.upper - z.lower < 0.1
    assert z.note == "" and not searches
    narrow = rbm.log_partition(precision=0.01)
    assert narrow.lower <= truth <= narrow.upper
    assert narrow.upper - narrow.lower < 0.02
    same = rbm.log_partition("tempering")
    assert same.value == z.value and not searches
    rbm.log_partition("ais")
    assert len(searches) == 1


@pytest.mark.parametrize(("share", "annealed"), [(0.25, False), (0.1, True)])
def test_a_ladder_not_quite_narrow_is_not_annealed(
    searches, monkeypatch, share, annealed
):
    """That would take ten times as long for an interval that is seldom narrower."""
    rbm = trained()
    monkeypatch.setattr(options, "_PRECISION", 1e-9)
    widest = rbm.log_partition("tempering")
    monkeypatch.setattr(options, "_PRECISION", share * (widest.upper - widest.lower))
    z = rbm.log_partition()
    assert bool(searches) == annealed
    assert z.upper - z.lower <= widest.upper - widest.lower


@pytest.mark.parametrize("scale", [0.0, 2.0])
def test_weights_that_were_set_after_training_are_searched(searches, scale):
    """The ladder is of another model."""
    rbm, other = trained(), random_potentials(8, 5, seed=1, scale=scale)
    rbm.kernel.assign(other.kernel)
    rbm.visible_bias.assign(3.0 * other.visible_bias)
    z = rbm.log_partition()
    truth = rbm.log_partition("exact").value
    assert z.lower <= truth <= z.upper and len(searches) == 1


def test_states_annealed_back_are_those_of_the_ladder(searches):
    rbm = trained()
    rbm.log_partition("bidirectional", num_chains=300)
    states, ancestors = searches[0][2]
    own = rbm.rule.ladder(rbm._base_natural(rbm.potentials())).chains
    assert states.shape == (300, 8) and len(set(ancestors)) == len(own)
    rbm.kernel.assign(2.0 * rbm.kernel)
    rbm.visible_bias.assign(3.0 * rbm.visible_bias)
    z, truth = rbm.log_partition("bidirectional"), rbm.log_partition("exact").value
    assert searches[1][2] is None and z.lower <= truth <= z.upper


def test_a_ladder_whose_replicas_do_not_travel_is_no_sample():
    """Its chains are half in either mode, of which one has a hundredth of the mass."""
    rng, gain = np.random.default_rng(0), 60 * (np.logaddexp(0, 3) - np.logaddexp(0, 0))
    kernel = rng.normal(0.0, 0.15, (60, 15))
    kernel[:, 0] = 3.0
    biases = np.zeros(60), np.append(-gain - 4.6, np.zeros(14))
    model = inference.Potentials(kernel, *biases)
    chains = (rng.random((100, 60)) < np.repeat([0.5, 0.95], 50)[:, np.newaxis]) * 1.0
    bases = [tf.zeros((2, size)) for size in kernel.shape]
    states = tf.constant(chains, tf.float32)
    ladder = Ladder(tf.constant([0.0, 1.0]), *bases, states[tf.newaxis], states)
    asked = options.Options(100, None, 0, np.zeros(60), states)
    z = log_partition.log_partitions(model, ["bidirectional"], asked, ladder)
    truth = float(inference.exact_log_partition(model))
    assert z["bidirectional"].lower <= truth <= z["bidirectional"].upper
    assert z["bidirectional"].stderr < 0.05


@pytest.mark.filterwarnings("ignore:log_partition:UserWarning")
def test_few_chains_are_searched(searches):
    z = trained().log_partition(num_chains=5)
    assert z.stderr == np.inf and len(searches) == 1


@pytest.mark.slow
def test_a_deep_model(searches):
    data = np.random.default_rng(0).integers(0, 2, (100, 8)).astype("float32")
    dbm = keras_rbm.DBM([4, 3], seed=0)
    dbm.compile()
    dbm.fit(data, epochs=5, verbose=0)
    truth, z = dbm.log_partition("exact").value, dbm.log_partition()
    assert z.lower <= truth <= z.upper and z.is_finite
