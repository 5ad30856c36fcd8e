"""An RBM as a distribution of TensorFlow Probability."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from brute_force import binary_states

import keras_rbm as kr

tfd = tfp.distributions
STATES = binary_states(5).astype("float32")


def made(visible="bernoulli", scale=1.0):
    rbm = kr.RBM(3, visible=visible, num_visible=5, seed=0)
    for variable in rbm.trainable_variables:
        values = np.random.default_rng(1).normal(size=variable.shape)
        variable.assign(scale * values)
    return rbm


def test_log_prob_is_the_log_likelihood():
    rbm = made()
    distribution = rbm.distribution("exact")
    assert distribution.event_shape == (5,) and distribution.batch_shape == ()
    scores = distribution.log_prob(STATES)
    np.testing.assert_allclose(scores, rbm.log_likelihood(STATES, "exact"), rtol=1e-5)
    np.testing.assert_allclose(np.sum(np.exp(scores)), 1.0, rtol=1e-5)
    shaped = distribution.log_prob(STATES.reshape(4, 8, 5))
    np.testing.assert_array_equal(shaped, np.reshape(scores, (4, 8)))
    assert distribution.log_prob(STATES[0]).shape == ()
    traced = tf.function(distribution.log_prob)(STATES)
    np.testing.assert_allclose(traced, scores, rtol=1e-6)


def test_the_interval_is_that_of_log_z():
    rbm = made()
    z = rbm.log_partition("ais")
    lower, upper = rbm.distribution(z).log_prob_interval(STATES)
    exact = rbm.log_likelihood(STATES, "exact")
    lower, upper, exact = map(np.asarray, (lower, upper, exact))
    assert np.all(lower <= exact) and np.all(exact <= upper)
    np.testing.assert_allclose(upper - lower, z.upper - z.lower, rtol=1e-3)


def test_samples_and_mean():
    rbm = made(scale=0.5)
    distribution = rbm.distribution("exact", steps=30)
    samples = distribution.sample(4000, seed=1)
    p = np.exp(distribution.log_prob(STATES))
    mean = p @ STATES
    np.testing.assert_allclose(np.mean(samples, 0), mean, atol=5 * 0.5 / np.sqrt(4000))
    np.testing.assert_allclose(distribution.mean(), mean, atol=5 * 0.5 / np.sqrt(1000))
    assert distribution.sample(seed=1).shape == (5,)
    assert distribution.sample([2, 3], seed=1).shape == (2, 3, 5)
    np.testing.assert_array_equal(
        distribution.sample(3, seed=(0, 1)), distribution.sample(3, seed=(0, 1))
    )


def test_real_units():
    distribution = made("gaussian", 0.3).distribution("exact", steps=30)
    samples = distribution.sample(50, seed=0)
    with tf.GradientTape() as tape:
        tape.watch(samples)
        scores = distribution.log_prob(samples)
    assert np.isfinite(tape.gradient(scores, samples)).all()


def test_gradients_leave_the_model_alone():
    """log Z is a constant here, so they would be half of the truth."""
    rbm = made()
    distribution = rbm.distribution("exact")
    with tf.GradientTape() as tape:
        score = tf.reduce_sum(distribution.log_prob(STATES))
    assert tape.gradient(score, rbm.trainable_variables) == [None] * 3


def test_in_other_distributions():
    distribution = made().distribution("exact", steps=5)
    scores = distribution.log_prob(STATES[:4])
    several = tfd.Independent(tfd.BatchBroadcast(distribution, [4]), 1)
    np.testing.assert_allclose(several.log_prob(STATES[:4]), np.sum(scores), rtol=1e-6)
    mixture = tfd.MixtureSameFamily(
        tfd.Categorical(probs=[0.2, 0.8]), tfd.BatchBroadcast(distribution, [2])
    )
    np.testing.assert_allclose(mixture.log_prob(STATES[:4]), scores, rtol=1e-5)
    joint = tfd.JointDistributionSequential(
        [distribution, lambda v: tfd.Normal(tf.reduce_sum(v, -1), 1.0)]
    )
    v, y = joint.sample(6, seed=0)
    assert v.shape == (6, 5) and y.shape == (6,)
    assert joint.log_prob([v, y]).shape == (6,)


def test_values_that_are_no_states():
    distribution = made().distribution("exact")
    with pytest.raises(ValueError, match="states"):
        distribution.log_prob(-3.0 * STATES)
    with pytest.raises(ValueError, match="shape"):
        distribution.log_prob(STATES[:, :4])
    whole = tf.constant(STATES, tf.int32)
    np.testing.assert_array_equal(
        distribution.log_prob(whole), distribution.log_prob(STATES)
    )


def test_bad_arguments():
    with pytest.raises(TypeError, match="LogPartition"):
        made().distribution(3.0)
    with pytest.raises(ValueError, match="steps"):
        made().distribution("exact", steps=-1)
    with pytest.raises(ValueError, match="built"):
        kr.RBM(3).distribution()
    with pytest.raises(NotImplementedError):
        made(kr.units.Categorical(2)).distribution("exact").mean()
