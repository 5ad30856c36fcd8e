"""Different rows cannot have more than all of the probability."""

import warnings

import numpy as np
import pytest
import scipy.sparse
import tensorflow as tf
from small_models import all_states, batches

import keras_rbm
from keras_rbm.inference import LogPartition
from keras_rbm.models.scores import log_mass

BITS = all_states(*[2] * 5)
TYPES = [
    ("bernoulli", BITS),
    ("spin", 2 * BITS - 1),
    (keras_rbm.units.Categorical(3), all_states(3, 3, 3)),
]


def model_of(visible, width):
    rbm = keras_rbm.RBM(4, visible=visible, num_visible=width, seed=0)
    rbm.kernel.assign(np.random.default_rng(0).normal(size=rbm.kernel.shape))
    return rbm


def estimate(*fields):
    return LogPartition.of_error(*(tf.constant(x, tf.float64) for x in fields))


@pytest.mark.parametrize(("visible", "states"), TYPES)
def test_the_mass_of_all_states_is_z_and_none_counts_twice(visible, states):
    rbm = model_of(visible, states.shape[1])
    exact = float(rbm.log_partition("exact").value)
    of_five = np.logaddexp.reduce(-np.float64(rbm.free_energy(states[:5])))
    twice = np.concatenate([states, states[:7]])
    for rows, mass in ((states, exact), (twice, exact), (states[:5], of_five)):
        assert mass - 1e-3 < log_mass(rbm, rows, rbm.free_energy(rows)) <= mass


def test_of_other_rows_and_of_units_without_limit():
    """Also of datasets, and of what can be read only once."""
    rbm = model_of("bernoulli", 5)
    energies = rbm.free_energy(BITS)
    dense = log_mass(rbm, BITS, energies)
    assert log_mass(rbm, batches(BITS, size=7), energies) == dense
    sparse = scipy.sparse.csr_matrix(BITS)
    found = log_mass(rbm, sparse, rbm.free_energy(sparse))
    assert found == pytest.approx(dense)
    assert log_mass(rbm, iter([]), energies) == -np.inf
    gaussian = model_of("gaussian", 5)
    assert log_mass(gaussian, BITS, gaussian.free_energy(BITS)) == -np.inf


def test_likelihoods_of_more_than_all_probability_are_told():
    rbm = model_of("bernoulli", 5)
    z = rbm.log_partition("exact")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rbm.log_likelihood(BITS, z)
        rbm.log_likelihood(np.repeat(BITS, 3, 0), z)
    many = scipy.sparse.csr_matrix(np.eye(5000, 5, dtype="float32"))
    with pytest.warns(UserWarning, match="add up to more than 1"):
        own = rbm.log_likelihood(BITS, 1.0)  # a number is the user's
    np.testing.assert_allclose(own, rbm.log_likelihood(BITS, z) + z.value - 1.0)
    of_five = z._replace(value=float(z.value) - 0.1)
    for rows, low in ((BITS, of_five), (many, z._replace(value=1.0))):
        with pytest.warns(UserWarning, match="add up to more than 1"):
            scores = rbm.log_likelihood(rows, low)
        _, first = np.unique(rows.toarray() if rows is many else rows, True, axis=0)
        assert np.exp(scores.numpy()[first]).sum() == pytest.approx(1.0, rel=1e-3)


def test_an_estimate_below_the_mass_has_no_upper_end():
    z = estimate(5.0, 0.1, 9, [5.0])
    same = z.at_least(3.0)
    assert float(same.lower) == float(z.lower) and float(same.value) == 5.0
    raised = z.at_least(4.9)
    assert float(raised.lower) == 4.9 and float(raised.upper) == float(z.upper)
    assert float(z.at_least(5.1).value) == 5.1
    refuted = z.at_least(6.0)
    assert float(refuted.lower) == 6.0 and np.isinf(refuted.upper)
    assert np.isinf(refuted.stderr) and "more mass" in refuted.note


def test_the_mean_of_an_epoch_is_not_above(monkeypatch):
    rbm = model_of("bernoulli", 5)
    rbm.compile()
    exact = np.mean(rbm.log_likelihood(BITS, "exact"))
    low = estimate(1.0, 0.01, 9.0, [1.0])
    monkeypatch.setattr(rbm, "log_partition", lambda *args, **options: low)
    callback, logs = keras_rbm.callbacks.LogLikelihood(BITS), {}
    callback.set_model(rbm)
    callback.on_train_begin()
    callback.on_epoch_end(0, logs)
    ends = [logs[callback.name + end] for end in ("", "_upper", "_lower")]
    np.testing.assert_allclose(ends, [exact, exact, -np.inf], atol=1e-3)


def test_a_report_says_so(monkeypatch):
    rbm = model_of("bernoulli", 5)
    low = estimate(1.0, 0.01, 9.0, [1.0])
    of_methods = lambda methods, **_: dict.fromkeys(methods, low)  # noqa: E731
    monkeypatch.setattr(rbm, "_log_partitions", of_methods)
    report = keras_rbm.score_report(rbm, BITS, methods=["ais"], steps=5)
    assert np.isinf(report.log_partitions["ais"].upper)
    assert report.quote.startswith("Quote none")
