"""S-DCP and CS-DCP: against CD, against exact answers, and against the listings."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from brute_force import Enumerated, binary_states, random_potentials, rbm_like
from comparisons import assert_close, assert_equal
from model_test_case import assert_same_state
from random_models import parameters
from steps import fitted_by, step_of, take_step

import keras_rbm
from keras_rbm import rules
from keras_rbm.inference import conditional_moments
from keras_rbm.rules.centering import Centering

DATA = np.random.default_rng(0).integers(0, 2, (34, 6)).astype("float32")
NAMES = ("kernel", "visible_bias", "hidden_bias")
SLOW = pytest.mark.slow


class ExactSDCP(rules.SDCP):
    """S-DCP with the model's exact moments instead of its chains."""

    def inner_phase(self, potentials, chains, weights, noise, first):
        states = tf.constant(binary_states(potentials.num_visible), tf.float32)
        p = tf.nn.softmax(-potentials.free_energy(states))
        return chains, conditional_moments(potentials, states, p)


class Recorded(rules.SDCP):
    """S-DCP that remembers the noise and the states of its inner steps."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.inner = []

    def inner_phase(self, potentials, chains, weights, noise, first):
        after, moments = super().inner_phase(potentials, chains, weights, noise, first)
        sweeps = [noise.of_sweep(first + i) for i in range(self.gibbs_steps)]
        own = [np.stack(layer) for layer in zip(*sweeps, strict=True)]
        self.inner.append((own, after.visible))
        return after, moments


def every_state(num_visible):
    """Returns all visible states with unequal weights: all moments can be matched."""
    visible = tf.constant(binary_states(num_visible), tf.float32)
    weights = np.random.default_rng(1).uniform(0.2, 1.0, len(visible))
    return visible, tf.constant(weights / weights.sum(), tf.float32)


SPARSE = {"sparsity_target": 0.1, "sparsity_cost": 0.1}


@pytest.mark.parametrize(
    ("gibbs_steps", "options"),
    [(1, {}), (3, {"centered": True}), pytest.param(3, SPARSE, marks=SLOW)],
)
def test_one_inner_step_is_cd_bit_for_bit(gibbs_steps, options):
    cd = fitted_by(rules.ContrastiveDivergence(gibbs_steps, **options), DATA)
    sdcp = fitted_by(rules.SDCP(1, gibbs_steps, **options), DATA)
    assert_same_state(cd, sdcp)


def test_inner_steps_are_updates_of_the_optimizer():
    assert int(fitted_by(rules.SDCP(3, 2), DATA, 2).optimizer.iterations) == 2 * 4 * 3


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=SLOW)])
def test_a_step_solves_the_convex_problem(seed):
    """The gradient of f at the end equals that of g at the start, eq. 8."""
    rbm = rbm_like(random_potentials(3, 2, seed))
    optimizer = keras.optimizers.SGD(1.0, momentum=0.9, nesterov=True)
    rule = ExactSDCP(inner_steps=150, centered=False)
    rbm.compile(optimizer, rule=rule)
    visible, weights = every_state(3)
    positive = step_of(rbm.potentials(), visible, weights).positive.mean()
    before = Enumerated(rbm.potentials()).moments()
    take_step(rbm, visible, weights)
    after = Enumerated(rbm.potentials()).moments()
    wanted = (positive.kernel, positive.visible.bias, positive.hidden.bias)
    for begin, end, want in zip(before, after, wanted, strict=True):
        np.testing.assert_allclose(end, want, atol=1e-4)
        assert np.max(abs(begin - want)) > 1e-2


class Listing:
    """Algorithms 3 and 4 of Upadhya and Sastry line by line, in float64.

    With offsets the biases are those of the centered parameters, reparametrized
    wherever the offsets move. The noise of the chains is given. One thing differs: an
    inner step's first draw of h is by the probabilities of the last moments.
    """

    def __init__(self, model, mu=None, lam=None, sliding_factor=0.0):
        self.w, b, c = parameters(model).values()
        self.centered = mu is not None
        self.mu = mu if self.centered else np.zeros(len(b))
        self.lam = lam if self.centered else np.zeros(len(c))
        self.b, self.c = b + self.w @ self.lam, c + self.w.T @ self.mu
        self.nu = sliding_factor

    def up(self, v):
        return _logistic((v - self.mu) @ self.w + self.c)

    def down(self, h):
        return _logistic((h - self.lam) @ self.w.T + self.b)

    def update(self, data, noise, rate):
        """Makes a mini-batch's update; noise is a list of (visible, hidden)."""
        positive, chains, kernel = self.up(data), data, None
        negative = positive
        mu, lam = data.mean(0), positive.mean(0)
        for noise_v, noise_h in noise:
            for u_v, u_h in zip(noise_v, noise_h, strict=True):
                hidden = (u_h < negative).astype(float)
                chains = (u_v < self.down(hidden)).astype(float)
                negative = self.up(chains)
            if self.centered:
                self.b = self.b + self.nu * self.w @ (lam - self.lam)
                self.c = self.c + self.nu * self.w.T @ (mu - self.mu)
                self.mu = (1 - self.nu) * self.mu + self.nu * mu
                self.lam = (1 - self.nu) * self.lam + self.nu * lam
            if kernel is None:
                kernel = (data - self.mu).T @ (positive - self.lam) / len(data)
            difference = (chains - self.mu).T @ (negative - self.lam) / len(data)
            self.w = self.w + rate * (kernel - difference)
            self.b = self.b + rate * (mu - chains.mean(0))
            self.c = self.c + rate * (lam - negative.mean(0))
        return chains

    def ordinary(self):
        """Returns the parameters by the names of the model's variables."""
        b, c = self.b - self.w @ self.lam, self.c - self.w.T @ self.mu
        return dict(zip(NAMES, (self.w, b, c), strict=True))


def _logistic(x):
    return 1.0 / (1.0 + np.exp(-x))


@pytest.mark.parametrize("centered", [False, True], ids=["algorithm 3", "algorithm 4"])
def test_is_the_published_listing(centered, monkeypatch):
    monkeypatch.setattr(Centering, "sliding_factor", 0.3)
    rng = np.random.default_rng(0)
    rbm = rbm_like(random_potentials(6, 4))
    rbm.base_rate.assign(rng.random(6))
    rate = 0.2
    rule = Recorded(4, 3, centered=centered)
    rbm.compile(keras.optimizers.SGD(rate), rule=rule)
    listing = Listing(rbm)
    if centered:
        mu, lam = rbm.base_rate.numpy(), rng.random(4)
        rule.centering.hidden_offset.assign(lam)
        listing = Listing(rbm, mu.astype(float), lam, 0.3)
    for batch in range(5):
        data = DATA[6 * batch :][:10]
        rule.inner.clear()
        weights = tf.fill([len(data)], 1 / len(data))
        take_step(rbm, tf.constant(data), weights)
        noise = [own for own, _ in rule.inner]
        firsts = np.concatenate([own[0][:, 0, 0] for own in noise])
        assert len(np.unique(firsts)) == 4 * 3  # each sweep's own
        chains = listing.update(data.astype(float), noise, rate)
        np.testing.assert_array_equal(rule.inner[-1][1], chains)
        assert_close(parameters(rbm), listing.ordinary())
    if centered:
        offsets = rule.centering.visible_offset, rule.centering.hidden_offset
        assert_equal(offsets, (listing.mu, listing.lam), atol=1e-6)


def test_an_optimizer_that_accumulates_gradients_is_refused():
    """Then inner steps moved nothing, and S-DCP was CD with a long chain."""
    rbm = keras_rbm.RBM(2, num_visible=3, seed=0)
    optimizer = keras.optimizers.SGD(0.1, gradient_accumulation_steps=3)
    with pytest.raises(ValueError, match="in each inner step.*steps=3"):
        rbm.compile(optimizer, rule=rules.SDCP(2))
    assert rbm.rule is None and not rbm.compiled
    rbm.compile(optimizer, rule=rules.SDCP(1))
    rbm.fit(np.eye(3, dtype="float32"), verbose=0)
