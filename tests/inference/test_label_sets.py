"""The best sets of labels, against enumeration."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from brute_force import binary_states

from keras_rbm.inference import Potentials
from keras_rbm.inference.label_sets import best_sets, likely_sets


def models(labels, units, batch=6, scale=1.5, shift=-0.5):
    rng = np.random.default_rng(0)
    shapes = (labels, units), (batch, labels), (batch, units)
    arrays = [rng.normal(size=shape) for shape in shapes]
    arrays[0] *= scale
    arrays[1] += shift
    return Potentials(*(tf.constant(array, tf.float32) for array in arrays))


def all_sets(potentials):
    """Returns all sets (S, V), and their probabilities (S, B)."""
    states = np.float32(binary_states(potentials.num_visible))
    batch = potentials.visible_bias.shape[0]
    energies = [potentials.free_energy(np.tile(state, (batch, 1))) for state in states]
    return states, tf.nn.softmax(-np.stack(energies), axis=0).numpy()


def expected_f1(sets, states, shares):
    """Returns the expected F1 of sets, (sets, B); that of two empty sets is 1."""
    sizes = sets.sum(1)[:, np.newaxis] + states.sum(1)
    both = 2.0 * sets @ states.T
    return np.where(sizes > 0, both / np.maximum(sizes, 1), 1.0) @ shares


@pytest.mark.parametrize(
    ("labels", "units", "empty", "shift"),
    [
        *itertools.product([6], [3], [True, False], [-0.5, -2.5]),  # of all sets
        *itertools.product([11], [4], [True, False], [-0.5, -2.5]),  # of draws
        (11, 11, False, -2.5),  # of chains
    ],
)
def test_the_best_sets(labels, units, empty, shift):
    potentials = models(labels, units, shift=shift)
    states, shares = all_sets(potentials)
    if not empty:
        shares[states.sum(1) == 0] = 0.0
    mode = best_sets(potentials, "mode", empty).numpy()
    np.testing.assert_array_equal(mode, states[shares.argmax(0)])
    f1 = best_sets(potentials, "f1", empty).numpy()
    values = expected_f1(states, states, shares)
    if not empty:
        values[states.sum(1) == 0] = -1.0
    reached = np.diag(expected_f1(f1, states, shares))
    least = 1e-6 if labels <= 10 else 0.02  # of draws
    assert np.all(reached > values.max(0) * (1.0 - least))
    assert empty or f1.any(1).all()


def test_a_set_that_is_never_drawn():
    """Each label is on in one of a million rows, but a row is not to be empty."""
    potentials = models(12, 2, scale=0.0, shift=-14.0)
    for decision in ("mode", "f1"):
        found = best_sets(potentials, decision, empty=False).numpy()
        likeliest = np.argmax(potentials.visible_bias, 1)
        assert np.all(found[np.arange(len(found)), likeliest] == 1.0)
        assert decision == "f1" or np.all(found.sum(1) == 1.0)
        assert not best_sets(potentials, decision, empty=True).numpy().any()


@pytest.mark.parametrize("units", [4, 11])
def test_draws_have_the_probabilities_of_the_model(units):
    potentials = models(11, units, scale=1.0)
    states, shares = all_sets(potentials)
    drawn, log_weights = likely_sets(potentials, tf.constant([0, 1]))
    assert not np.any(log_weights)
    got = [np.mean(drawn, 0), np.einsum("sbv,sbw->bvw", drawn, drawn) / len(drawn)]
    pairs = np.einsum("sv,sw,sb->bvw", states, states, shares)
    for values, expected in zip(got, (shares.T @ states, pairs), strict=True):
        errors = (values - expected) / np.sqrt(expected * (1 - expected) / len(drawn))
        assert np.sqrt(np.mean(np.square(errors))) < 1.5


def test_a_set_depends_on_no_other_row():
    potentials = models(11, 4)
    first = potentials._replace(
        visible=potentials.visible._replace(bias=potentials.visible_bias[:2]),
        hidden=potentials.hidden._replace(bias=potentials.hidden_bias[:2]),
    )
    for decision in ("mode", "f1"):
        whole, part = (best_sets(m, decision, True) for m in (potentials, first))
        np.testing.assert_array_equal(whole[:2], part)
