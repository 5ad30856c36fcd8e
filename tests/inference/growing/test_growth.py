"""One step of a growing model: its gain and log Z, against enumeration."""

import numpy as np
import pytest
import tensorflow as tf
from brute_force import random_potentials
from growing_models import counted, drawn, log_likelihood, log_partition, means_of

from keras_rbm.inference.growing import growth
from keras_rbm.inference.growing.growth import GrowingSamples, grow
from keras_rbm.inference.growing.unit_search import HiddenUnits
from keras_rbm.rules import FrankWolfe

COUNT = 20_000
SETTINGS = FrankWolfe(num_samples=COUNT)
BEFORE = counted(random_potentials(6, 3, seed=1))
UNIT = HiddenUnits(tf.constant([[1.0, -2.0, 0.5, 1.5, -1.0, 0.0]]), tf.constant([0.3]))


def samples_of(potentials, means):
    """Returns `GrowingSamples` whose chains are samples of a model."""
    made = GrowingSamples.new(COUNT, 6, seed=0)
    chains = drawn(potentials, len(made.chains), 1)
    return made._replace(
        chains=chains,
        log_partition=tf.constant(log_partition(potentials)),
        fitted_means=means,
        started=tf.constant(True),
    )


def grown(monkeypatch, unit, data, means=None):
    """Returns the `Growth` of a step whose search finds a unit, or another's."""
    monkeypatch.setattr(growth.unit_search, "find_unit", lambda *args, **kwargs: unit)
    each = tf.fill([len(data)], 1.0 / len(data))
    means = tf.reduce_mean(data, 0) if means is None else means
    return grow(
        BEFORE,
        samples_of(BEFORE, means),
        data,
        each,
        tf.constant([0, 0]),
        settings=SETTINGS,
        l2=tf.constant(0.0),
        room=tf.constant(True),
    )


def test_gain_and_log_z_are_the_exact_ones(monkeypatch):
    extended = growth._extended(BEFORE, UNIT, 1.0)
    data = drawn(extended, 300, 0)
    result = grown(monkeypatch, UNIT, data)
    assert result.accepted
    fitted = growth._extended(counted(BEFORE, None, result.visible_bias), UNIT, 1.0)
    gain = log_likelihood(fitted, data) - log_likelihood(BEFORE, data)
    error = 4 * float(result.logs["gain_error"])
    assert 0.0 < error < 0.1
    assert float(result.logs["gain"]) == pytest.approx(gain, abs=error)
    truth = log_partition(fitted)
    assert float(result.logs["log_partition"]) == pytest.approx(truth, abs=error)
    for states in (result.samples.of_search, result.samples.held_out.visible):
        np.testing.assert_allclose(np.mean(states, 0), means_of(fitted), atol=0.02)
    np.testing.assert_allclose(result.samples.fitted_means, np.mean(data, 0), rtol=1e-5)


def test_following_the_data_is_no_gain_of_the_unit(monkeypatch):
    """A unit without weights changes nothing, but the biases that follow the data."""
    data = drawn(BEFORE, 300, 0)
    means = tf.constant(means_of(BEFORE), tf.float32)
    nothing = HiddenUnits(tf.zeros((1, 6)), tf.zeros(1))
    found = []
    candidate = growth._candidate
    monkeypatch.setattr(
        growth, "_candidate", lambda *args: found.append(candidate(*args)) or found[-1]
    )
    result = grown(monkeypatch, nothing, data, means)
    fitted = counted(BEFORE, None, found[0].visible_bias)
    gain = log_likelihood(fitted, data) - log_likelihood(BEFORE, data)
    assert gain > 0.005
    assert float(found[0].gain) == pytest.approx(0.0, abs=0.2 * gain)
    assert not result.accepted and float(result.logs["rejected"]) == 3.0
    np.testing.assert_array_equal(result.visible_bias, BEFORE.visible_bias)
