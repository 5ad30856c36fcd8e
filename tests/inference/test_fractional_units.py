"""Hidden units that count fractionally: FW16, section 3.3 and proposition 3.2."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from brute_force import binary_states

from keras_rbm import inference, random
from keras_rbm.inference import Potentials, TemperedPath
from keras_rbm.inference.gibbs import ChainState, sweep_noise
from keras_rbm.units import BernoulliParameters, FractionalParameters

COEFFICIENTS = {
    "below 1": [0.3, 0.7, 0.5, 0.9],
    "above 1": [1.4, 2.5, 3.2, 1.0],
    "whole": [2.0, 1.0, 3.0, 0.0],
    "ones": [1.0, 1.0, 1.0, 1.0],
}
CHAINS = 50_000


def model(coefficients, num_visible=5, seed=0):
    rng = np.random.default_rng(seed)
    hidden = FractionalParameters(
        tf.constant(rng.normal(size=4), tf.float32),
        tf.constant(coefficients, tf.float32),
    )
    kernel = rng.normal(size=(num_visible, 4)).astype("float32")
    visible = rng.normal(size=num_visible).astype("float32")
    return Potentials(kernel, visible, hidden)


def log_weights(potentials, beta=1.0, base=0.0):
    """Returns log p* of all visible states, written out."""
    v = binary_states(potentials.num_visible)
    kernel, b, c = (
        np.asarray(part, np.float64)
        for part in (
            potentials.kernel, potentials.visible_bias, potentials.hidden_bias
        )
    )  # fmt: skip
    softplus = np.logaddexp(0.0, beta * (v @ kernel + c))
    own = v @ ((1.0 - beta) * base + beta * b)
    return own + softplus @ np.asarray(potentials.hidden.coefficients, np.float64)


def law_of(potentials, **kwargs):
    weights = log_weights(potentials, **kwargs)
    return np.exp(weights - np.logaddexp.reduce(weights))


def drawn(law, num_visible, seed=0):
    rows = np.random.default_rng(seed).choice(len(law), CHAINS, p=law)
    return tf.constant(binary_states(num_visible)[rows], tf.float32)


def assert_follows(law, states):
    powers = 2 ** np.arange(states.shape[1])[::-1]
    counts = np.bincount(states.numpy().astype(int) @ powers, minlength=len(law))
    chi_square = np.sum((counts - CHAINS * law) ** 2 / (CHAINS * law))
    assert chi_square < len(law) - 1 + 5 * np.sqrt(2 * (len(law) - 1))


@pytest.mark.parametrize("coefficients", COEFFICIENTS.values(), ids=COEFFICIENTS)
def test_chains_do_not_drift(coefficients):
    potentials = model(coefficients)
    law = law_of(potentials)
    states = drawn(law, 5)
    moved = inference.gibbs_chain(potentials, states, seed=3, num_sweeps=3)
    assert (moved != states).numpy().mean() > 0.1
    assert_follows(law, moved)


@pytest.mark.parametrize("name", ["below 1", "above 1"])
def test_without_metropolis_chains_would_drift(name, monkeypatch):
    potentials = model(np.array(COEFFICIENTS[name]) * 1.3)
    law = law_of(potentials)
    monkeypatch.setattr(
        FractionalParameters, "log_correction", lambda *_: tf.zeros(CHAINS)
    )
    states = drawn(law, 5)
    for seed in range(5):  # not gibbs_chain: it may have been traced before
        states = inference.gibbs_sweep(potentials, states, seed).visible
    with pytest.raises(AssertionError):
        assert_follows(law, states)


@pytest.mark.parametrize("coefficients", COEFFICIENTS.values(), ids=COEFFICIENTS)
def test_tfp_metropolis_hastings_does_not_drift(coefficients):
    potentials = model(coefficients)
    law = law_of(potentials)
    kernel = tfp.mcmc.MetropolisHastings(inference.GibbsProposal(potentials))
    states, accepted = tfp.mcmc.sample_chain(
        3,
        drawn(law, 5),
        kernel=kernel,
        trace_fn=lambda _, results: results.is_accepted,
        seed=[1, 2],
    )
    assert_follows(law, states[-1])
    rate = accepted.numpy().mean()
    whole = not np.any(np.mod(coefficients, 1.0))
    assert rate == 1.0 if whole else 0.5 < rate < 1.0


@pytest.mark.parametrize("beta", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("name", ["below 1", "above 1"])
def test_tempered_sweeps_do_not_drift(name, beta):
    potentials = model(COEFFICIENTS[name])
    base = np.linspace(-1, 1, 5).astype("float32")
    path = TemperedPath(potentials, tf.constant(base))
    law = law_of(potentials, beta=beta, base=base)
    state = drawn(law, 5)
    state = ChainState(state, potentials.hidden_natural(state))
    noise = sweep_noise(potentials, CHAINS, 7, num_sweeps=3)
    for step in range(3):
        now = type(noise)(*(layer[step] for layer in noise))
        state = path.sweep(state, beta, now)
    assert_follows(law, state.visible)


def test_clamped_units_keep_their_value_and_the_others_follow():
    potentials = model(COEFFICIENTS["above 1"])
    law = law_of(potentials)
    states = drawn(law, 5)
    clamp = tf.constant([True, False, False, True, False])
    moved = inference.gibbs_chain(potentials, states, 1, num_sweeps=3, clamp=clamp)
    np.testing.assert_array_equal(moved.numpy()[:, [0, 3]], states.numpy()[:, [0, 3]])
    assert_follows(law, moved)


@pytest.mark.parametrize("coefficients", COEFFICIENTS.values(), ids=COEFFICIENTS)
def test_log_partition(coefficients):
    potentials = model(coefficients)
    exact = np.logaddexp.reduce(log_weights(potentials))
    np.testing.assert_allclose(
        inference.exact_log_partition(potentials), exact, rtol=1e-6
    )
    ais = inference.annealed_importance_sampling(potentials, betas=200, num_chains=2000)
    assert abs(ais.value - exact) < 5 * ais.stderr
    tempered = inference.tempered_log_partition(potentials, steps=400, betas=5)
    assert abs(tempered.value - exact) < 5 * tempered.stderr


def test_whole_coefficients_are_copies():
    """Proposition 3.1: free energies, log Z and mean hidden states of an RBM."""
    potentials = model(COEFFICIENTS["whole"])
    copies = np.repeat(np.arange(4), np.array(COEFFICIENTS["whole"], int))
    plain = Potentials(
        tf.gather(potentials.kernel, copies, axis=1),
        potentials.visible,
        BernoulliParameters(tf.gather(potentials.hidden_bias, copies)),
    )
    states = tf.constant(binary_states(5), tf.float32)
    np.testing.assert_allclose(
        potentials.free_energy(states), plain.free_energy(states), rtol=1e-5, atol=1e-5
    )
    np.testing.assert_allclose(
        inference.exact_log_partition(potentials),
        inference.exact_log_partition(plain),
        rtol=1e-6,
    )
    moments = inference.exact_moments(potentials)
    np.testing.assert_allclose(
        np.bincount(copies, inference.exact_moments(plain).hidden.bias, 4),
        moments.hidden.bias,
        rtol=1e-5,
    )


def test_whole_coefficients_are_sampled_as_copies():
    natural = tf.constant(np.tile([-1.0, 0.5, 2.0, 0.0], (CHAINS, 1)), tf.float32)
    units = FractionalParameters(tf.zeros(4), tf.constant([3.0, 1.0, 2.0, 0.0]))
    states = units.sample(natural, random.uniform((CHAINS, 4), 5)).numpy()
    for unit, (count, logit) in enumerate(
        zip([3, 1, 2, 0], [-1.0, 0.5, 2.0, 0.0], strict=True)
    ):
        p = 1.0 / (1.0 + np.exp(-logit))
        law = [
            tfp.distributions.Binomial(count, probs=p).prob(k).numpy()
            for k in range(count + 1)
        ]
        got = np.bincount(states[:, unit].astype(int), minlength=count + 1) / CHAINS
        np.testing.assert_allclose(got, law, atol=5 * 0.5 / np.sqrt(CHAINS))


def test_many_copies():
    """One uniform number, shared out among the copies, was used up after 23."""
    units = FractionalParameters(tf.zeros(2), tf.constant([40.0, 200.0]))
    natural = tf.constant(np.tile([0.0, -1.0], (CHAINS, 1)), tf.float32)
    states = units.sample(natural, random.uniform((CHAINS, 2), 5)).numpy()
    p = np.array([0.5, 1.0 / (1.0 + np.exp(1.0))])
    mean = np.array([40.0, 200.0]) * p
    variance = mean * (1.0 - p)
    error = np.sqrt(variance / CHAINS)
    assert (np.abs(states.mean(0) - mean) < 5 * error).all()
    np.testing.assert_allclose(states.var(0), variance, rtol=5 * np.sqrt(2 / CHAINS))


def test_fractional_units_lie_between_two_rbms():
    """Proposition 3.2."""
    a, c = np.meshgrid(np.linspace(-30, 30, 121), np.linspace(0.05, 1.0, 20))
    value = FractionalParameters(tf.zeros(()), tf.constant(c, tf.float64))
    value = value.log_partition(tf.constant(a)).numpy()
    upper = np.logaddexp(0.0, c * a)
    assert (value <= upper + 1e-12).all()
    assert (value >= upper + (c - 1) * np.log(2) - 1e-12).all()
