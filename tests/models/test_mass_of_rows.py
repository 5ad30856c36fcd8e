"""Different rows cannot have more than all of the probability."""

import warnings

import numpy as np
import pytest
import scipy.sparse
import tensorflow as tf

import keras_rbm
from keras_rbm.inference import LogPartition
from keras_rbm.models.mass_of_rows import log_mass

TYPES = [
    ("bernoulli", np.array(list(np.ndindex(*[2] * 5)))),
    ("spin", 2 * np.array(list(np.ndindex(*[2] * 5))) - 1),
    (keras_rbm.units.Categorical(3), np.array(list(np.ndindex(*[3] * 3)))),
]


def model_of(visible, width):
    rbm = keras_rbm.RBM(4, visible=visible, num_visible=width, seed=0)
    kernel = np.random.default_rng(0).normal(size=rbm.kernel.shape)
    rbm.kernel.assign(kernel)
    return rbm


@pytest.mark.parametrize(("visible", "states"), TYPES)
def test_the_mass_of_all_states_is_z_and_none_counts_twice(visible, states):
    states = states.astype("float32")
    rbm = model_of(visible, states.shape[1])
    exact = float(rbm.log_partition("exact").value)
    for rows in (states, np.concatenate([states, states[:7]])):
        found = log_mass(rbm, rows, rbm.free_energy(rows))
        assert exact - 1e-3 < found <= exact
    some = states[:5]
    energies = np.asarray(rbm.free_energy(some), np.float64)
    expected = np.logaddexp.reduce(-energies)
    assert expected - 1e-3 < log_mass(rbm, some, energies) <= expected


def test_of_sparse_rows_and_of_units_without_limit():
    states = np.eye(6, dtype="float32")
    rbm = model_of("bernoulli", 6)
    dense = log_mass(rbm, states, rbm.free_energy(states))
    sparse = scipy.sparse.csr_matrix(states)
    assert log_mass(rbm, sparse, rbm.free_energy(sparse)) == pytest.approx(dense)
    gaussian = model_of("gaussian", 6)
    assert log_mass(gaussian, states, gaussian.free_energy(states)) == -np.inf


def test_likelihoods_of_more_than_all_probability_are_told():
    states = TYPES[0][1].astype("float32")
    rbm = model_of("bernoulli", 5)
    z = rbm.log_partition("exact")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rbm.log_likelihood(states, z)
        rbm.log_likelihood(np.repeat(states, 3, 0), z)
    with pytest.warns(UserWarning, match="add up to more than 1"):
        rbm.log_likelihood(states, float(z.value) - 0.1)


def test_an_estimate_below_the_mass_has_no_upper_end():
    z = LogPartition.of_error(
        *(tf.constant(x, tf.float64) for x in (5.0, 0.1, 9, [5.0]))
    )
    same = z.at_least(3.0)
    assert float(same.lower) == float(z.lower) and float(same.value) == 5.0
    raised = z.at_least(4.9)
    assert float(raised.lower) == 4.9 and float(raised.upper) == float(z.upper)
    assert float(z.at_least(5.1).value) == 5.1
    refuted = z.at_least(6.0)
    assert float(refuted.lower) == 6.0 and np.isinf(refuted.upper)
    assert np.isinf(refuted.stderr) and "more mass" in refuted.note


def test_a_report_says_so(monkeypatch):
    rbm = model_of("bernoulli", 5)
    low = LogPartition.of_error(
        *(tf.constant(x, tf.float64) for x in (1.0, 0.01, 9.0, [1.0]))
    )
    monkeypatch.setattr(
        rbm, "_log_partitions", lambda methods, **_: dict.fromkeys(methods, low)
    )
    states = TYPES[0][1].astype("float32")
    report = keras_rbm.score_report(rbm, states, methods=["ais"], steps=5)
    assert np.isinf(report.log_partitions["ais"].upper)
    assert report.quote.startswith("Quote none")


def test_of_datasets_and_of_what_can_be_read_only_once():
    states = TYPES[0][1].astype("float32")
    rbm = model_of("bernoulli", 5)
    energies = rbm.free_energy(states)
    dataset = tf.data.Dataset.from_tensor_slices(states).batch(7)
    assert log_mass(rbm, dataset, energies) == log_mass(rbm, states, energies)
    used_up = iter([])
    assert log_mass(rbm, used_up, energies) == -np.inf
    sparse = scipy.sparse.csr_matrix(np.eye(5000, 5, dtype="float32"))
    with pytest.warns(UserWarning, match="add up to more than 1"):
        rbm.log_likelihood(sparse, 1.0)  # not dense at once
