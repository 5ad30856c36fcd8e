"""An RBM as a distribution of TensorFlow Probability."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from brute_force import binary_states
from small_models import all_states, randomized

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


@pytest.mark.parametrize(
    ("unit", "states"),
    [
        ("bernoulli", STATES),
        ("spin", 2.0 * STATES - 1.0),
        (kr.units.Categorical(3), all_states(*[3] * 5)),
    ],
)
def test_moments_and_mode_are_enumerations(unit, states):
    distribution = made(unit).distribution("exact")
    p = np.exp(distribution.log_prob(states))
    np.testing.assert_array_equal(distribution.mode(), states[p.argmax()])
    if isinstance(unit, str):
        variance = p @ states**2 - (p @ states) ** 2
        np.testing.assert_allclose(distribution.mean(), p @ states, atol=1e-6)
        np.testing.assert_allclose(distribution.variance(), variance, atol=1e-6)
        np.testing.assert_allclose(distribution.stddev() ** 2, variance, atol=1e-6)


def test_variance_of_real_units_is_that_of_the_mixture():
    """Of a normal density for each hidden state, whose mean `scale W h` moves."""
    rbm = made("gaussian", 0.5)
    rbm.visible_scale.assign([1.0, 2.0, 0.5, 3.0, 1.0])
    rbm.visible_shift.assign([5.0, 0.0, 1.0, -9.0, 0.0])
    potentials, hidden = rbm.potentials(), binary_states(3).astype("float32")
    p = tf.nn.softmax(-potentials.transpose().free_energy(hidden)).numpy()
    means = potentials.visible.mean(potentials.visible_natural(hidden)).numpy()
    variance = np.square(rbm.visible_scale) / np.exp(rbm.visible_log_precision)
    variance = variance + p @ means**2 - (p @ means) ** 2
    distribution = rbm.distribution("exact")
    np.testing.assert_allclose(distribution.variance(), variance, rtol=1e-4)
    np.testing.assert_allclose(distribution.mean(), p @ means, rtol=1e-4)


@pytest.mark.parametrize(
    ("name", "unit", "width", "words"),
    [
        ("mode", "gaussian", 5, "2.20 visible states"),
        ("mode", "bernoulli", 21, "2.20 visible states"),
        ("variance", "bernoulli", 30, "within a second"),
        ("stddev", kr.units.Binomial(3), 5, "units of two states"),
        ("variance", kr.units.Categorical(2), 5, "units of two states"),
    ],
)
def test_what_is_not_exact_is_not_there(name, unit, width, words):
    rbm = kr.RBM(30, visible=unit, num_visible=width, seed=0)
    distribution = rbm.distribution(kr.inference.LogPartition.exact(0.0))
    with pytest.raises(NotImplementedError, match=words):
        getattr(distribution, name)()


def test_samples_and_mean():
    distribution = made(scale=0.5).distribution("exact", steps=30)
    samples = distribution.sample(4000, seed=1)
    mean = np.exp(distribution.log_prob(STATES)) @ STATES
    np.testing.assert_allclose(np.mean(samples, 0), mean, atol=5 * 0.5 / np.sqrt(4000))
    wide = kr.RBM(30, num_visible=30, seed=0)
    chains = wide.distribution(kr.inference.LogPartition.exact(0.0), steps=1).mean()
    np.testing.assert_allclose(chains, wide.base_rate, atol=0.1)
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
