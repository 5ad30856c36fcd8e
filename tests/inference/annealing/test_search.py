import numpy as np
import pytest
import tensorflow as tf
from brute_force import binary_states, random_potentials
from scipy.linalg import block_diag
from scipy.optimize import brentq
from scipy.special import logsumexp

from keras_rbm import inference
from keras_rbm.inference import Potentials
from keras_rbm.inference.annealing.options import Options
from keras_rbm.inference.annealing.path import temperatures
from keras_rbm.inference.log_partition import METHODS, log_partitions
from keras_rbm.units.gaussian import GaussianParameters


def far_mode(mass, size=60, seed=0):
    """Returns a model of two modes far apart, and the visible means in the first.

    The second, of mass `exp(mass)` times that of the first, is where no chain that
    starts at the means of the first ever goes.
    """
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, 2, (2, size)) * 2.0 - 1.0
    kernel = np.zeros((size, 2))
    kernel[:, 0] = 2 * (second - first)
    bias = 2 * first
    balance = np.logaddexp(0, bias).sum() - np.logaddexp(0, 2 * second).sum()
    potentials = Potentials(kernel, bias, [balance + mass, 0.0])
    return potentials, tf.cast(2 * first, tf.float32)


@pytest.mark.parametrize(
    ("method", "mass"), [("ais", -2.0), ("bidirectional", 0.0), ("reverse_ais", 30.0)]
)
def test_finds_a_mode_far_from_the_data(method, mass):
    """Chains from the data's mean said -34 nats with ess 97."""
    potentials, base = far_mode(mass)
    truth = float(inference.exact_log_partition(potentials))
    z = getattr(inference.anneal(potentials, base=base), method)
    assert z.lower < truth < z.upper
    assert z.is_finite or (method == "ais" and "not known" in z.note)
    if z.is_finite:
        assert abs(z.value - truth) < 4 * z.stderr < 2


def test_chains_that_were_elsewhere_show_where_to_look():
    potentials, base = far_mode(10.0)
    elsewhere = inference.gibbs_chain(potentials, tf.ones((50, 60)), 0, num_sweeps=50)
    start = inference.anneal(potentials, base=base, chains=elsewhere).start
    truth = inference.exact_log_partition(potentials)
    assert start.lower_bound <= truth and start.lower_bound > truth - 4


def test_base_has_the_models_means():
    potentials = random_potentials(12, 6, seed=3, scale=0.5)
    means = inference.exact_moments(potentials).visible.bias.numpy()
    start = inference.anneal(potentials, num_chains=400).start
    base = tf.sigmoid(start.base).numpy()
    half = np.abs(means - 0.5).max()
    assert np.abs(base - means).max() < 0.5 * half
    assert start.visible.shape == (400, 12) and start.ancestors.shape == (400, 1)
    error = np.sqrt(means * (1 - means) / 400)
    assert (abs(start.visible.numpy().mean(0) - means) < 5 * error).all()


def test_temperatures_lie_at_equal_distances():
    potentials = random_potentials(20, 10, seed=4, scale=2.0)
    start = inference.anneal(potentials, precision=9.0).start
    betas = start.temperatures(100)
    assert len(betas) == 101 and betas[0] == 0 and betas[-1] == 1
    spread = [
        np.mean(
            [
                inference.annealed_importance_sampling(
                    potentials, base=start.base, betas=chosen, seed=seed
                )
                .log_weights.numpy()
                .var()
                for seed in range(5)
            ]
        )
        for chosen in (betas, temperatures(100))
    ]
    assert spread[0] < spread[1]


@pytest.mark.parametrize("field", ["kernel", "visible_bias", "hidden_bias"])
@pytest.mark.parametrize("method", METHODS)
def test_parameters_that_are_no_numbers_are_named(method, field):
    """Enumeration said NaN ± 0."""
    parameters = {
        "kernel": np.ones((3, 2)),
        "visible_bias": np.zeros(3),
        "hidden_bias": np.zeros(2),
    }
    parameters[field][0] = np.nan
    potentials = Potentials(*parameters.values())
    with pytest.raises(ValueError, match=f"Received: NaN .* in {field}.*smaller"):
        log_partitions(potentials, [method], Options())


def test_hidden_units_that_are_not_binary():
    """Modes that the search had visited were lost: 35 nats, closed."""
    rng = np.random.default_rng(9)
    kernel = rng.normal(0, 3.0, (12, 5))
    bias = rng.normal(0, 1, 12) - 0.5 * (kernel @ kernel.T).sum(1)
    zero = tf.zeros(5)
    hidden = GaussianParameters(tf.zeros(5), zero, zero, zero + 1.0)
    potentials = Potentials(kernel, bias, hidden)
    truth = inference.exact_log_partition(potentials)
    annealing = inference.anneal(potentials)
    for z in (annealing.ais, annealing.bidirectional, annealing.reverse_ais):
        assert z.lower <= truth <= z.upper


@pytest.mark.filterwarnings("ignore:log_partition:UserWarning")
def test_few_chains_do_not_tell_their_error():
    """Of two, 4 intervals in 16 missed, by up to 38 errors."""
    potentials = random_potentials(8, 5, scale=0.5)
    methods = ["ais", "bidirectional", "reverse_ais", "tempering"]
    for z in log_partitions(potentials, methods, Options(num_chains=5)).values():
        assert z.stderr == np.inf and not z.is_finite


def test_base_of_units_that_almost_never_change():
    bias = np.array([20.0, -20.0] * 5, "float32")
    model = Potentials(np.full((10, 4), 0.1, "float32"), bias, np.zeros(4, "float32"))
    truth = inference.exact_log_partition(model)
    for seed in range(3):
        z = inference.anneal(model, num_chains=10, seed=seed).bidirectional
        assert z.lower <= truth <= z.upper
        assert abs(z.value - truth) < 2e-4


def needle(seed, visible, hidden, together, share, strength):
    """Returns a model with a mode that needs several hidden units, and its log Z.

    The mode has a known share of the mass.
    """
    rng = np.random.default_rng(seed)
    kernel = rng.normal(0, 0.3, (visible, hidden))
    b, c = rng.normal(-1, 0.5, visible), rng.normal(0, 0.5, hidden)
    kernel[:, :together] += strength / together * rng.choice([-1.0, 1.0], (visible, 1))
    h = binary_states(hidden).astype(float)
    weights = np.logaddexp(0, b + h @ kernel.T).sum(1) + h @ c
    mode = h[:, :together].all(1)

    def share_of(bias):
        moved = weights + bias / together * h[:, :together].sum(1)
        return np.exp(logsumexp(moved[mode]) - logsumexp(moved)) - share

    c[:together] += brentq(share_of, -999.0, 999.0) / together
    return kernel, b, c


@pytest.mark.parametrize(
    "together, share", [(7, 0.5), pytest.param(9, 0.3, marks=pytest.mark.slow)]
)
def test_half_the_mass_is_not_taken_for_all(together, share):
    """No run met both modes: 0.58 nats too low, closed, 19 of its errors."""
    potentials = Potentials(*needle(0, 80, 14, together, share, 12.0))
    truth = inference.exact_log_partition(potentials)
    z = inference.anneal(potentials).bidirectional
    assert z.lower < truth < z.upper and z.stderr < 0.2


def test_all_combinations_of_modes():
    """Of six parts, each with a side mode, 64: 1.4 nats too low, 31 errors."""
    shares = 0.3, 0.1, 0.03, 0.3, 0.2, 0.4
    parts = [needle(i, 40, 10, 2, share, 8.0) for i, share in enumerate(shares)]
    kernels, *biases = zip(*parts, strict=True)
    joint = Potentials(block_diag(*kernels), *map(np.concatenate, biases))
    truth = sum(inference.exact_log_partition(Potentials(*part)) for part in parts)
    z = inference.anneal(joint).bidirectional
    assert z.lower < truth < z.upper and z.stderr < 0.4
