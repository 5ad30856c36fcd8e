import functools

import numpy as np
import pytest
import tensorflow as tf
from brute_force import (
    Enumerated,
    assert_follows,
    binary_states,
    random_gaussian_potentials,
    random_potentials,
    rbm_like,
    tempered_sweep,
)
from same import refused

from keras_rbm import inference, random
from keras_rbm.inference import Potentials
from keras_rbm.inference.annealing.path import TemperedPath
from keras_rbm.inference.annealing.replica_bridge import spaced_replicas
from keras_rbm.inference.annealing.replicas import (
    equalized_betas,
    moved_replicas,
    start_replicas,
    tempering_step,
)
from keras_rbm.inference.gibbs import ChainState

CHAINS = 20_000


def path_of(potentials, seed=5):
    rng = np.random.default_rng(seed)
    base = rng.normal(size=potentials.num_visible)
    hidden_base = rng.normal(0.0, 2.0, potentials.num_hidden)
    bases = (tf.constant(each, tf.float32) for each in (base, hidden_base))
    return TemperedPath(potentials, *bases)


def law_of(path, beta):
    """Returns p_beta(v)."""
    hidden_base = 0.0 if path.hidden_base is None else path.hidden_base
    return tempered_sweep(path.potentials, path.base, beta, hidden_base)[0]


def exact_start(path, betas, count):
    """Returns chains in equilibrium, and the law of the states at each beta."""
    laws = [law_of(path, beta) for beta in betas]
    rng = np.random.default_rng(0)
    rows = np.array([rng.choice(len(law), count, p=law) for law in laws])
    visible = binary_states(path.potentials.num_visible)[rows]
    visible = tf.constant(visible, tf.float32)
    return start_replicas(path, betas, visible), laws


def steps(path, chains, count, jit_compile=False):
    @tf.function(jit_compile=jit_compile)
    def step(chains, index):
        return tempering_step(path, chains, random.fold_in(3, index))[0]

    for index in range(count):
        chains = step(chains, tf.constant(index))
    return chains


def assert_joint_law(laws, visible):
    """Compares the states (R, C, V) of all replicas with the product of their laws."""
    joint = functools.reduce(lambda one, law: np.outer(one, law).ravel(), laws)
    assert_follows(joint, np.concatenate([*visible], 1))


def log_weight(path, visible, beta):
    """Returns f_beta(v) = ((1 - beta) a + beta b)'v + sum_j log(1 + exp(…))."""
    kernel, b, c = (
        np.asarray(field, np.float64)
        for field in (
            path.potentials.kernel,
            path.potentials.visible_bias,
            path.potentials.hidden_bias,
        )
    )
    natural = beta * (visible @ kernel + c)
    if path.hidden_base is not None:
        natural += (1 - beta) * np.asarray(path.hidden_base, np.float64)
    bias = (1 - beta) * np.asarray(path.base, np.float64) + beta * b
    return visible @ bias + np.logaddexp(0, natural).sum(-1)


def acceptance(path, low, high, visible_low, visible_high):
    """Returns the probability of a swap, literally."""
    after = log_weight(path, visible_high, low) + log_weight(path, visible_low, high)
    now = log_weight(path, visible_low, low) + log_weight(path, visible_high, high)
    return np.exp(np.minimum(after - now, 0))


@pytest.mark.parametrize(
    ("betas", "jit_compile"),
    [
        ([0.0, 0.4, 1.0], False),
        ([0.0, 0.3, 0.6, 1.0], True),
    ],
    ids=["R=3", "R=4"],
)
def test_every_temperature_keeps_its_distribution(betas, jit_compile):
    path = path_of(random_potentials(5, 4, scale=1.5))
    chains, laws = exact_start(path, betas, CHAINS)
    chains = steps(path, chains, 4, jit_compile)
    for law, visible in zip(laws, chains.visible, strict=True):
        assert_follows(law, visible)
    rates = chains.swap_rates.numpy()
    assert ((0.05 < rates) & (rates < 0.98)).all()
    for visible, natural in zip(chains.visible, chains.hidden_natural, strict=True):
        want = path.potentials.hidden_natural(visible)
        np.testing.assert_allclose(natural, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("betas", [[0, 1], [0, 0.3, 1], [0, 0.3, 0.6, 1]], ids=len)
@pytest.mark.parametrize("num_steps", [1, 3])
def test_replicas_keep_their_joint_distribution(betas, num_steps):
    path = path_of(random_potentials(2, 3, scale=1.5))
    chains, laws = exact_start(path, betas, CHAINS)
    assert_joint_law(laws, steps(path, chains, num_steps).visible)


def test_sweeps_and_swaps_have_noise_of_their_own():
    """Many seeds of a single chain: in many chains of one seed it would not show."""
    path, betas, count = path_of(random_potentials(2, 3, scale=1.5)), [0, 1], 4000
    chains, laws = exact_start(path, betas, count)

    def step(index):
        visible = chains.visible[:, index, tf.newaxis]
        chain = start_replicas(path, betas, visible)
        return tempering_step(path, chain, random.fold_in(3, index))[0].visible[:, 0]

    @tf.function
    def step_alone():
        return tf.map_fn(step, tf.range(count), fn_output_signature=tf.float32)

    assert_joint_law(laws, np.swapaxes(step_alone(), 0, 1))


def swapped(path, visible, betas, monkeypatch):
    """Returns the chains after the swaps of a step alone, from states (R, C, V)."""
    rows = tf.constant(visible.reshape(-1, visible.shape[2]))
    sweep = ChainState(rows, path.potentials.hidden_natural(rows))
    monkeypatch.setattr(TemperedPath, "sweep", lambda *_: sweep)
    chains = start_replicas(path, betas, visible)
    return tempering_step(path, chains, seed=1)[0]


@pytest.mark.parametrize("replicas", [2, 3])
def test_swaps_have_the_stated_probability(replicas, monkeypatch):
    """For random states of the last pair, 500 proposals each; the others are equal."""
    path = path_of(random_potentials(6, 5, scale=1.5))
    rng, repeats, betas = np.random.default_rng(1), 500, [0.2, 0.6, 0.9]
    betas = betas[-replicas:]
    low, high = rng.integers(0, 2, (2, 300, 6)).astype(np.float32)
    differ = (low != high).any(1)
    low, high = low[differ], high[differ]
    visible = np.repeat(np.stack([low] * (replicas - 1) + [high]), repeats, axis=1)
    chains = swapped(path, visible, betas, monkeypatch)
    moved = (chains.visible[-1] == low.repeat(repeats, 0)).numpy().all(1)
    other = np.where(moved[:, None], visible[-1], visible[-2])
    np.testing.assert_array_equal(chains.visible[-2], other)
    np.testing.assert_array_equal(chains.visible[:-2], visible[:-2])
    want = acceptance(path, *betas[-2:], low, high)
    got = moved.reshape(-1, repeats).mean(1)
    error = np.sqrt(want * (1 - want) / repeats)
    assert (abs(got - want) <= 5 * error + 1e-6).all()
    assert ((0.05 < want) & (want < 0.95)).sum() > 50
    rates = [1.0] * (replicas - 2) + [moved.mean()]
    np.testing.assert_allclose(chains.swap_rates, rates, rtol=1e-5)


@pytest.mark.parametrize("noise", [2.0**-24, 1 - 2.0**-24])
def test_certain_swaps_are_made_and_impossible_ones_never(noise, monkeypatch):
    potentials = Potentials(tf.zeros((1, 1)), [100.0], [0.0])
    path = TemperedPath(potentials, tf.constant([-100.0]))
    visible = np.float32([[[0], [1], [0]], [[1], [0], [0]]])
    monkeypatch.setattr(random, "uniform", lambda shape, *_: tf.fill(shape, noise))
    chains = swapped(path, visible, [0.0, 1.0], monkeypatch)
    want = [[0, 0, 0], [1, 1, 0]]
    np.testing.assert_array_equal(chains.visible[:, :, 0], want)
    np.testing.assert_allclose(chains.swap_rates, [2 / 3])


def test_even_pairs_swap_first_then_odd_pairs(monkeypatch):
    potentials = Potentials(tf.zeros((3, 2)), [1.0] * 3, [0.0] * 2)
    path = TemperedPath(potentials, tf.ones(3))  # one model at all temperatures
    visible = binary_states(3)[:5, None].astype(np.float32)
    chains = swapped(path, visible, [0.0, 0.1, 0.2, 0.5, 1.0], monkeypatch)
    order = np.sum(chains.visible[:, 0] * [4, 2, 1], 1)
    np.testing.assert_array_equal(order, [1, 3, 0, 4, 2])
    np.testing.assert_array_equal(chains.swap_rates, np.ones(4))


def test_swap_rates_are_averages_over_the_steps():
    path = path_of(random_potentials(5, 4, scale=1.5))._replace(hidden_base=None)
    chains = inference.parallel_tempering(
        path.potentials, num_samples=1000, steps=300, betas=3, base=path.base
    )
    betas, states = chains.betas.numpy(), binary_states(5)
    laws = [law_of(path, beta) for beta in betas]
    want = [
        laws[r]
        @ acceptance(path, betas[r], betas[r + 1], states[:, None], states)
        @ laws[r + 1]
        for r in range(3)
    ]
    np.testing.assert_allclose(chains.swap_rates, want, atol=0.01)


def test_tempering_visits_both_modes_where_gibbs_stays_in_one():
    potentials = Potentials(tf.fill((8, 8), 2.0), [-8.0] * 8, [-7.9] * 8)
    truth, start = Enumerated(potentials), tf.zeros((1000, 8))
    units_on = truth.v.sum(1)
    likely = truth.p_visible[units_on > 4].sum()
    assert 0.3 < likely < 0.7 and truth.p_visible[units_on == 4].sum() < 1e-3
    gibbs = inference.gibbs_chain(potentials, start, 0, num_sweeps=150)
    assert np.mean(np.sum(gibbs, 1) > 4) < 0.02
    chains = inference.parallel_tempering(
        potentials, num_samples=1000, steps=150, betas=8, initial_visible=start
    )
    share = np.mean(np.sum(chains.visible[-1], 1) > 4)
    assert abs(share - likely) < 5 * np.sqrt(likely * (1 - likely) / 1000)


def test_a_mode_that_middle_temperatures_lack_is_noticed():
    """There were 150 round trips, all of the larger mode, and no warning."""
    sign, share, w = np.repeat(np.float32([1, -1]), 32), 0.24, np.log(19.0)
    kernel = np.float32(2 * w * sign[:, None])
    potentials = Potentials(kernel, -w * sign, np.float32([np.log(share / 0.76)]))
    rate = np.where(sign > 0, 0, 1) + sign * (0.05 + share * 0.9)
    start = np.float32((sign > 0) ^ (np.arange(50) >= 12)[:, None])
    chains = inference.parallel_tempering(
        potentials,
        num_samples=50,
        steps=500,
        base=np.log(rate / (1 - rate)),
        initial_visible=start,
    )
    assert chains.round_trips > 50 and tf.reduce_min(chains.swap_rates) > 0.4
    assert 0.6 < chains.renewed < 0.9 and not chains.mix
    alone = inference.parallel_tempering(
        potentials, num_samples=50, steps=500, base=np.log(rate / (1 - rate))
    )
    assert alone.renewed == 1.0 and alone.mix  # no chain has met the other mode


def test_gaussian_visible_units_at_every_temperature():
    path = path_of(random_gaussian_potentials(2, 3, scale=1.0))
    potentials, count = path.potentials, 10_000
    chains = inference.parallel_tempering(
        potentials, num_samples=count, steps=40, betas=[0, 0.2, 0.7, 1], base=path.base
    )
    for beta, visible in zip(chains.betas, chains.visible, strict=True):
        bias = (1 - beta) * path.base + beta * potentials.visible_bias
        units = potentials.visible._replace(bias=bias)
        hidden_bias = beta * potentials.hidden_bias
        model = Potentials(beta * potentials.kernel, units, hidden_bias)
        want = inference.exact_moments(model).visible
        for got, exact in zip(units.statistics(visible), want, strict=True):
            error = np.std(got, 0) / np.sqrt(count)
            assert (abs(np.mean(got, 0) - exact.numpy()) < 5 * error).all()


@pytest.mark.parametrize("replicas", [2, 3, 8])
def test_equalized_betas_cut_the_barrier_into_equal_parts(replicas):
    rng = np.random.default_rng(replicas)
    betas = np.concatenate([[0], np.sort(rng.uniform(size=replicas - 2)), [1]])
    for rates in rng.uniform(size=(20, replicas - 1)):
        barrier = np.concatenate([[0], np.cumsum(1 - rates + 1e-3)])
        want = np.interp(np.linspace(0, barrier[-1], replicas), barrier, betas)
        got = equalized_betas(betas, rates)
        np.testing.assert_allclose(got, want, atol=1e-5)
        assert got[0] == 0 and got[-1] == 1 and (np.diff(got) > 0).all()


def test_adapted_temperatures_swap_more_evenly():
    potentials = random_potentials(12, 10, seed=2, scale=2.0)
    betas = [0.0, 0.02, 0.04, 0.06, 0.3, 1.0]
    plain = inference.parallel_tempering(
        potentials, num_samples=200, steps=200, betas=betas
    )
    path, seed = TemperedPath(potentials, tf.zeros(12)), random.as_seed(1)
    adapted = spaced_replicas(path, plain, seed)
    adapted = moved_replicas(path, adapted, seed, 200)
    np.testing.assert_array_equal(plain.betas, np.float32(betas))
    got = adapted.betas.numpy()
    assert got[0] == 0 and got[-1] == 1 and (np.diff(got) > 0).all()
    assert np.ptp(plain.swap_rates) > 0.5 > 0.2 > np.ptp(adapted.swap_rates)


def test_starts_from_the_base_rate_model_or_where_it_is_told():
    potentials = Potentials(tf.zeros((2, 1)), [5.0, -5.0], [0.0])
    options = {"num_samples": CHAINS, "steps": 0, "betas": 2}
    base = tf.constant([1.0, -2.0])
    chains = inference.parallel_tempering(potentials, base=base, **options)
    assert chains.visible.shape == (3, CHAINS, 2)
    want = tf.sigmoid(base).numpy()
    error = np.sqrt(want * (1 - want) / CHAINS)
    assert (abs(np.mean(chains.visible, 1) - want) < 5 * error).all()
    start = tf.cast(tf.random.stateless_uniform((CHAINS, 2), (0, 1)) < 0.5, tf.float32)
    chains = inference.parallel_tempering(potentials, initial_visible=start, **options)
    for visible in chains.visible:
        np.testing.assert_array_equal(visible, start)
    np.testing.assert_array_equal(chains.swap_rates, [0, 0])


@pytest.mark.parametrize("by_row", [False, True])
def test_clamped_units_keep_their_values_in_every_replica(by_row):
    """States of float64, NumPy's own, ended in an error of the loop's types."""
    start = np.random.default_rng(1).integers(0, 2, (40, 6))
    clamp = np.array([True, False, False, True, False, True])
    if by_row:
        clamp = np.random.default_rng(0).random((40, 6)) < 0.5
    options = {"num_samples": 40, "steps": 9, "betas": 3, "clamp": clamp}
    one, other = (
        inference.parallel_tempering(
            random_potentials(6, 4), initial_visible=start.astype(dtype), **options
        ).visible.numpy()
        for dtype in ("float64", "int64")
    )
    np.testing.assert_array_equal(one, other)
    same = one == start
    assert same[:, np.broadcast_to(clamp, (40, 6))].all() and not same.all()


def test_clamped_samples_follow_the_conditional():
    """Swaps were decided by values of the clamped units that were then undone."""
    potentials = random_potentials(5, 4, scale=1.5)
    truth, count = Enumerated(potentials), 40_000
    clamp = np.array([True, False, True, False, False])
    start = np.tile(np.float32([1, 0, 0, 0, 0]), (count, 1))
    free = np.where(clamp, start, np.nan)
    options = {"steps": 20, "initial_visible": free, "seed": 0}
    visible = rbm_like(potentials).sample(count, method="tempering", **options)
    np.testing.assert_array_equal(visible.numpy()[:, clamp], start[:, clamp])
    allowed = (truth.v[:, clamp] == start[0, clamp]).all(1)
    law = truth.p_visible[allowed] / truth.p_visible[allowed].sum()
    assert_follows(law, visible.numpy()[:, ~clamp])


@pytest.mark.filterwarnings("ignore:Expected chains that have forgotten")
def test_samples_of_a_model():
    potentials = random_potentials(5, 4, scale=1.5)
    rbm = rbm_like(potentials)
    visible = rbm.sample(CHAINS, method="tempering", steps=60, betas=4, seed=0)
    assert_follows(Enumerated(potentials).p_visible, visible)
    few = {"method": "tempering", "steps": 3}
    a, b = (rbm.sample(30, seed=4, **few) for _ in range(2))
    np.testing.assert_array_equal(a, b)
    assert (rbm.sample(30, seed=5, **few) != a).numpy().any()
    assert (rbm.sample(30, **few) != rbm.sample(30, **few)).numpy().any()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Expected chains that have forgotten")
@pytest.mark.parametrize("jit_compile", [False, True])
def test_samples_inside_a_function(jit_compile):
    """Numbers of samples and steps may be tensors, where XLA need not know them."""
    rbm = rbm_like(random_potentials(5, 4))

    @tf.function(jit_compile=jit_compile)
    def sample(count, steps):
        return rbm.sample(count, method="tempering", steps=steps, seed=4)

    given = (30, 5) if jit_compile else map(tf.constant, (30, 5))
    want = rbm.sample(30, method="tempering", steps=5, seed=4)
    np.testing.assert_array_equal(sample(*given), want)


def test_samples_say_where_replicas_do_not_travel():
    """Shares of two modes were off by 0.6 without a word."""
    potentials = Potentials(np.full((30, 2), 3.0), [-3.0] * 30, [-20.0, -20.0])
    with pytest.warns(UserWarning, match="0.00 round trips .* such as betas=20"):
        rbm_like(potentials).sample(20, method="tempering", steps=5, betas=3, seed=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "annealing"}, "'gibbs' or 'tempering'.*method='annealing'"),
        ({"betas": 5}, "betas with method='tempering' only"),
        ({"method": "tempering", "betas": [0.0, 0.5]}, "increase strictly from 0 to 1"),
    ],
)
def test_refused_samples_leave_the_generator_alone(options, message):
    rbm = rbm_like(random_potentials(5, 4))
    with refused(message, rbm):
        rbm.sample(3, **options)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"num_samples": 0}, "num_samples ≥ 1. Received: num_samples=0"),
        ({"steps": -1}, "steps ≥ 0. Received: steps=-1"),
        ({"betas": [0.0, 0.5]}, "increase strictly from 0 to 1"),
        ({"betas": 0}, "increase strictly from 0 to 1"),
        ({"base": np.zeros(2)}, r"base of shape \(3,\). Received: shape \(2,\)"),
        (
            {"num_samples": 2, "initial_visible": np.zeros((2, 2))},
            r"initial_visible of shape \(2, 3\). Received: shape \(2, 2\)",
        ),
        ({"clamp": [1, 0, 1]}, r"bool array of shape \(3,\) or \(100, 3\).*int"),
        ({"clamp": [True]}, r"bool array of shape \(3,\).*shape \(1,\)"),
    ],
    ids=str,
)
def test_options_out_of_range(option, message):
    """Negative counts used to be taken for none."""
    with pytest.raises(ValueError, match=message):
        inference.parallel_tempering(random_potentials(3, 2), **option)
