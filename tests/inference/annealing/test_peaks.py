import numpy as np
import pytest
import tensorflow as tf
from brute_force import binary_states
from message_passing import random_batch, rows

import keras_rbm
from keras_rbm import random
from keras_rbm.inference import Potentials, anneal, exact_log_partition
from keras_rbm.inference.annealing.modes import find_peaks
from keras_rbm.inference.annealing.pool import Regions

SEED = random.as_seed(0)


def anywhere(batch, width):
    """Returns `Regions` of B models, all of them at random."""
    rng = np.random.default_rng(0)
    return Regions.of(rng.random((50, batch, width)).astype("float32"), 8, SEED)


def highest(potentials, states):
    """Returns the largest log weight of all (v, h), by enumeration, of each model."""
    v, h = (np.float64(x) for x in states)
    inner = v @ np.float64(potentials.kernel) @ h.T
    b, c = (np.float64(x) for x in (potentials.visible_bias, potentials.hidden_bias))
    b, c = (x.reshape(-1, x.shape[-1]) for x in (b, c))
    return np.max(inner + (b @ v.T)[:, :, None] + (c @ h.T)[:, None], (1, 2))


@pytest.mark.parametrize("scale", [0.3, 2.0, 30.0])
def test_the_highest_state_is_found(scale):
    """Its free energy is no higher than that of the likeliest of all (v, h)."""
    joint = random_batch(10, 6, 8, scale=scale)
    alone = rows(joint)[3]
    want = highest(joint, (binary_states(10), binary_states(6)))
    first = tf.zeros(10)
    peaks, others = find_peaks(joint, anywhere(8, 10), first, 10, 3, SEED)
    assert others.shape == (2 * 10 * 8, 10)
    assert peaks.shape == (3, 8, 10)
    heights = [-joint.free_energy(states).numpy() for states in peaks]
    assert (heights[0] >= want - 1e-3 * scale).all()
    assert (heights[0] >= np.maximum(heights[1], heights[2])).all()
    one, _ = find_peaks(alone, anywhere(1, 10), first, 10, 1, SEED)
    assert one.shape == (1, 1, 10)
    assert (
        -alone.free_energy(one[0])
        >= highest(alone, (binary_states(10), binary_states(6))) - 1e-3 * scale
    )


@pytest.mark.parametrize(
    ("unit", "width"),
    [
        (keras_rbm.units.Categorical(4), 12),
        ("gaussian", 3),
        (keras_rbm.units.Joined([("bernoulli", 2), ("gaussian", 1)]), 3),
    ],
)
def test_units_that_are_not_binary(unit, width):
    rbm = keras_rbm.RBM(4, visible=unit, num_visible=3, seed=0)
    potentials, first = rbm.potentials(), tf.zeros(width)
    peaks, _ = find_peaks(potentials, anywhere(1, width), first, 1, 2, SEED)
    assert peaks.shape == (2, 1, 3) and np.isfinite(peaks).all()


def test_weights_beyond_float32_do_not_fail():
    potentials = Potentials(tf.fill([5, 4], 3e38), tf.zeros(5), tf.zeros(4))
    peaks, _ = find_peaks(potentials, anywhere(1, 5), tf.zeros(5), 1, 1, SEED)
    assert np.isin(peaks, (0, 1)).all()


def group_modes(seed=32, visible=40, hidden=10):
    """Returns a model with modes in which a few hidden units are on together."""
    rng = np.random.default_rng(seed)
    strength, groups = rng.choice([2.0, 5.0, 15.0]), rng.integers(1, 4)
    noise, density = rng.random((visible, groups + 1)), rng.choice([0.1, 0.3, 0.5])
    patterns = (noise < density).astype(float)
    group = rng.integers(0, groups + 1, hidden)
    own = patterns[:, group]
    gain = rng.uniform(-2, 60, groups + 1)[group] / np.bincount(group)[group]
    bias = rng.normal(0, 0.5, visible) - rng.choice([0.0, 2.0])
    return Potentials(strength * (2 * own - 1), bias, gain - strength * own.sum(0))


def test_a_mode_of_hidden_units_that_are_on_together_is_found():
    """Ten chains did not meet it: log Z in [27.958, 28.274]."""
    model = group_modes()
    truth = exact_log_partition(model)
    assert abs(truth - 50.31) < 0.01
    base = 0.9 * model.visible_bias
    start = anneal(model, base=base, num_chains=10, seed=32).start
    assert truth - 10.0 < start.lower_bound < truth
