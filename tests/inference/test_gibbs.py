"""Gibbs sweeps: the law they leave alone, their noise, and units that are held."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from brute_force import (
    Enumerated,
    assert_follows,
    random_gaussian_potentials,
    random_potentials,
)
from comparisons import assert_equal, assert_mean

import keras_rbm
from keras_rbm import inference
from keras_rbm.inference import gibbs
from keras_rbm.inference.gibbs import (
    ChainNoise,
    hidden_chain,
    noisy_chain,
    visible_chain,
)

CHAINS = 20_000


@pytest.mark.parametrize("jit_compile", [False, True])
def test_sweeps_leave_the_exact_distribution_invariant(jit_compile):
    """Of a model that is a little another one it would be seen."""
    potentials = random_potentials(6, 4, scale=1.5)
    truth = Enumerated(potentials)
    start = truth.sample(CHAINS, np.random.default_rng(0))

    @tf.function(jit_compile=jit_compile)
    def sweeps(visible, factor):
        model = potentials._replace(kernel=factor * potentials.kernel)
        return inference.gibbs_chain(model, visible, 3, num_sweeps=5)

    assert_follows(truth.p_visible, sweeps(start, 1.0))
    with pytest.raises(AssertionError):
        assert_follows(truth.p_visible, sweeps(start, 0.9))


def test_chain_from_hidden_states_has_the_model_for_its_limit():
    potentials = random_potentials(5, 4)
    truth = Enumerated(potentials)
    hidden = tf.zeros((CHAINS, 4))
    visible = hidden_chain(potentials, hidden, 7, num_sweeps=60).visible
    assert_follows(truth.p_visible, visible)


def test_gaussian_sweeps_keep_the_mean_and_variance():
    potentials = random_gaussian_potentials(2, 3)
    moments = inference.exact_moments(potentials)
    visible = inference.gibbs_chain(potentials, tf.zeros((CHAINS, 2)), 5, num_sweeps=50)
    statistics = potentials.visible.statistics(visible)
    for got, want in zip(statistics, moments.visible, strict=True):
        assert_mean(got, want)


def test_same_draws_with_and_without_xla():
    potentials = random_potentials(30, 20)
    plain = tf.function(inference.gibbs_sweep)
    compiled = tf.function(inference.gibbs_sweep, jit_compile=True)
    start = tf.zeros((50, 30))
    a, b = plain(potentials, start, 11), compiled(potentials, start, 11)
    np.testing.assert_array_equal(a.hidden, b.hidden)
    np.testing.assert_array_equal(a.visible, b.visible)


def test_the_number_of_rows_stays_known_after_a_trace_for_any():
    """`tf.function` takes the trace that fits; growing failed after other work."""
    p = random_potentials(5, 3)
    for rows in (None, 7):
        chain = tf.function(lambda v: inference.gibbs_chain(p, v, 0, num_sweeps=1))
        concrete = chain.get_concrete_function(tf.TensorSpec((rows, 5)))
        assert concrete.output_shapes.as_list() == [rows, 5]


def test_clamped_chain_samples_the_conditional():
    potentials = random_potentials(5, 3)
    truth = Enumerated(potentials)
    clamp = np.array([True, False, True, False, False])
    start = np.tile(np.float32([1, 0, 0, 0, 0]), (CHAINS, 1))
    end = inference.gibbs_chain(
        potentials, tf.constant(start), 0, num_sweeps=50, clamp=tf.constant(clamp)
    )
    np.testing.assert_array_equal(end.numpy()[:, clamp], start[:, clamp])
    allowed = (truth.v[:, clamp] == start[0, clamp]).all(1)
    expected = np.where(allowed, truth.p_visible, 0) / truth.p_visible[allowed].sum()
    got = truth.frequencies(end)
    error = np.sqrt(expected * (1 - expected) / CHAINS)
    assert (abs(got - expected) <= 5 * error).all()


def test_works_with_tfp_sample_chain_and_diagnostics():
    potentials = random_potentials(5, 4)
    truth = Enumerated(potentials)
    kernel = inference.BlockGibbs(potentials)
    options = {"num_burnin_steps": 50, "trace_fn": None, "seed": 3}
    states = tfp.mcmc.sample_chain(200, tf.zeros((500, 5)), kernel=kernel, **options)
    assert states.shape == (200, 500, 5)
    ess = tfp.mcmc.effective_sample_size(states, cross_chain_dims=1)
    mean, error = np.mean(states, (0, 1)), np.sqrt(0.25 / ess.numpy())
    assert (abs(mean - truth.moments()[1]) < 5 * error).all()
    rhat = tfp.mcmc.potential_scale_reduction(states)
    assert (rhat.numpy() < 1.05).all()


def test_tfp_results_report_the_target():
    potentials = random_potentials(5, 4)
    kernel = inference.BlockGibbs(potentials)
    state = tf.zeros((3, 5))
    results = kernel.bootstrap_results(state)
    moved = kernel.one_step(state, results, seed=1)
    for rows, own in ((state, results), moved):
        log_p = -potentials.free_energy(rows)
        np.testing.assert_allclose(own.target_log_prob, log_p, rtol=1e-6)
    assert kernel.is_calibrated


@pytest.mark.parametrize(
    ("chains", "num_hidden", "drawn", "jit_compile"),
    # Philox makes four numbers at once: blocks are of whole fours.
    [
        (8, 4, {1, 2}, None),
        (3, 4, {2}, None),
        (3, 5, {4}, None),
        (3, 5, {4}, True),
    ],
)
def test_noise_in_blocks_has_the_same_numbers(
    chains, num_hidden, drawn, jit_compile, monkeypatch
):
    """All at once took 1 GB for 100 sweeps of 2,000 chains of 1,284 units."""
    potentials = random_potentials(6, num_hidden, seed=0)
    visible, hidden = (tf.ones((chains, size)) for size in (6, num_hidden))

    def run():
        def both():
            above = hidden_chain(potentials, hidden, 1, num_sweeps=7)
            below = visible_chain(potentials, visible, 2, num_sweeps=7)
            noise = ChainNoise(potentials, chains, 3, 7)
            return above, below, noisy_chain(potentials, below, noise, 3, 3)

        return tf.nest.flatten(tf.function(both, jit_compile=jit_compile)())

    at_once, sizes = run(), []
    monkeypatch.setattr(gibbs, "_MOST_BYTES", 4 * 10 * chains * 2)
    draw = gibbs.sweep_noise
    monkeypatch.setattr(
        gibbs,
        "sweep_noise",
        lambda *args, num_sweeps, **kwargs: (
            sizes.append(num_sweeps) or draw(*args, num_sweeps=num_sweeps, **kwargs)
        ),
    )
    assert_equal(at_once, run())
    assert set(sizes) == drawn


def test_many_chains_run_in_parts(monkeypatch):
    """`sample(100000)` took 3.3 GB beside its result."""
    rbm = keras_rbm.RBM(4, num_visible=6, seed=0)
    rbm.build((None, 6))
    start = (np.random.default_rng(0).random((41, 6)) < 0.5).astype("float32")
    clamp = np.random.default_rng(1).random((41, 6)) < 0.3

    def run():
        given = {"initial_visible": start, "steps": 5, "seed": 0}
        drawn = rbm.sample(41, steps=5, seed=0), rbm.sample(41, steps=0, seed=0)
        held = [
            inference.gibbs_chain(rbm.potentials(), start, 0, num_sweeps=5, clamp=c)
            for c in (clamp, clamp[0])
        ]
        return [*drawn, rbm.sample(41, **given), *held]

    whole, calls = run(), []
    monkeypatch.setattr(gibbs, "_MOST_BYTES", 16 * 10 * 8)
    chain = gibbs._gibbs_chain
    monkeypatch.setattr(
        gibbs, "_gibbs_chain", lambda *args: calls.append(len(args[1])) or chain(*args)
    )
    assert_equal(whole, run())
    assert calls == 5 * [8, 8, 8, 8, 8, 1]
