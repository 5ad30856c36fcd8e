"""An RBM as a distribution of TensorFlow Probability."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from brute_force import binary_states
from small_models import randomized

import keras_rbm as kr

STATES = binary_states(5).astype("float32")


def made(visible="bernoulli", scale=1.0):
    return randomized(kr.RBM(3, visible=visible, num_visible=5, seed=0), scale)


def test_log_prob_is_the_log_likelihood():
    rbm = made()
    distribution = rbm.distribution("exact")
    assert distribution.event_shape == (5,) and distribution.batch_shape == ()
    with tf.GradientTape() as tape:
        scores = distribution.log_prob(STATES)
    # log Z is a constant here, so gradients would be half of the truth.
    assert tape.gradient(scores, rbm.trainable_variables) == [None] * 3
    np.testing.assert_allclose(scores, rbm.log_likelihood(STATES, "exact"), rtol=1e-5)
    np.testing.assert_allclose(np.sum(np.exp(scores)), 1.0, rtol=1e-5)
    shaped = distribution.log_prob(STATES.reshape(4, 8, 5))
    np.testing.assert_array_equal(shaped, np.reshape(scores, (4, 8)))
    assert distribution.log_prob(STATES[0]).shape == ()
    whole = distribution.log_prob(tf.constant(STATES, tf.int32))
    np.testing.assert_array_equal(whole, scores)
    traced = tf.function(distribution.log_prob)(STATES)
    np.testing.assert_allclose(traced, scores, rtol=1e-6)


def test_log_z_of_other_weights_is_refused():
    rbm = made()
    z, distribution = rbm.log_partition("exact"), rbm.distribution("exact")
    rbm.log_likelihood(STATES, z)
    rbm.base_rate.assign(np.full(5, 0.3))  # no part of p(v)
    before = distribution.log_prob(STATES)
    rbm.kernel.assign(1.5 * rbm.kernel)
    for score in (lambda x: rbm.log_likelihood(x, z), distribution.log_prob):
        with pytest.raises(ValueError, match="of other weights"):
            score(STATES)
    rbm.log_likelihood(STATES, float(z.value) + 9.0)  # a number is the user's
    rbm.kernel.assign(rbm.kernel / 1.5)
    np.testing.assert_array_equal(distribution.log_prob(STATES), before)
    crbm = kr.CRBM(3, num_visible=5, seed=0)
    crbm.build((None, 2))
    x = np.ones((32, 2), np.float32)
    z = crbm.log_partition(x, "exact")
    crbm.log_likelihood(x, STATES, z)
    crbm.hidden_kernel.assign_add(np.ones((2, 3)))
    with pytest.raises(ValueError, match="Call log_partition"):
        crbm.log_likelihood(x, STATES, z)


def test_log_z_of_the_same_weights_is_taken(tmp_path):
    half = kr.RBM(3, num_visible=5, dtype="mixed_bfloat16", seed=0)
    rbm = made()
    half.set_weights(rbm.get_weights())
    rbm.log_likelihood(STATES, half.log_partition("exact"))
    rbm.save(tmp_path / "rbm.keras")
    keras.saving.load_model(tmp_path / "rbm.keras").log_likelihood(
        STATES, rbm.log_partition("exact")
    )
    absent = randomized(kr.RBM(3, num_visible=5, missing="absent", seed=0))
    rows = np.where(np.arange(5) == 2, np.nan, STATES).astype("float32")
    z = absent.log_partition(observed=rows)
    absent.log_likelihood(rows, z)
    absent.hidden_bias.assign_add(np.ones(3))
    with pytest.raises(ValueError, match="of other weights"):
        absent.log_likelihood(rows, z)


def test_rows_with_gaps_and_means():
    rbm = randomized(kr.RBM(3, num_visible=5, missing="latent", seed=0))
    distribution, rows = rbm.distribution("exact"), STATES.copy()
    rows[3:, 1] = np.nan
    expected = rbm.log_likelihood(rows, "exact")
    np.testing.assert_allclose(distribution.log_prob(rows), expected, rtol=1e-5)
    lower, upper = distribution.log_prob_interval(rows)
    np.testing.assert_allclose(lower, expected, rtol=1e-5)
    with pytest.warns(UserWarning, match="states of Bernoulli"):
        distribution.log_prob(0.5 * STATES)


def test_the_interval_is_that_of_log_z():
    rbm = made()
    z = rbm.log_partition("ais")
    lower, upper = map(np.asarray, rbm.distribution(z).log_prob_interval(STATES))
    exact = np.asarray(rbm.log_likelihood(STATES, "exact"))
    assert np.all(lower <= exact) and np.all(exact <= upper)
    np.testing.assert_allclose(upper - lower, z.upper - z.lower, rtol=1e-3)


def test_samples_and_mean():
    distribution = made(scale=0.5).distribution("exact", steps=30)
    samples = distribution.sample(4000, seed=1)
    mean = np.exp(distribution.log_prob(STATES)) @ STATES
    np.testing.assert_allclose(np.mean(samples, 0), mean, atol=5 * 0.5 / np.sqrt(4000))
    np.testing.assert_allclose(distribution.mean(), mean, atol=5 * 0.5 / np.sqrt(1000))
    assert distribution.sample(seed=1).shape == (5,)
    assert distribution.sample([2, 3], seed=1).shape == (2, 3, 5)
    again = [distribution.sample(3, seed=(0, 1)) for _ in range(2)]
    np.testing.assert_array_equal(*again)


def test_real_units():
    distribution = made("gaussian", 0.3).distribution("exact", steps=30)
    samples = distribution.sample(50, seed=0)
    with tf.GradientTape() as tape:
        tape.watch(samples)
        scores = distribution.log_prob(samples)
    assert np.isfinite(tape.gradient(scores, samples)).all()
