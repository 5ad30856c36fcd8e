"""A sampler of another library, of whatever temperature."""

import numpy as np
import pytest

import keras_rbm as kr

ROWS = (np.random.default_rng(0).random((200, 6)) < 0.3).astype("float32")
ROWS[:, 1] = ROWS[:, 0]


class Gibbs:
    """Chains at an inverse temperature of their own."""

    def __init__(self, beta):
        self.beta, self.rng, self.states = beta, np.random.default_rng(0), None

    def __call__(self, kernel, visible_bias, hidden_bias, number):
        if self.states is None:
            self.states = self.rng.integers(0, 2, (number, len(kernel)))
        for _ in range(5):
            hidden = self._draw(self.states @ kernel + hidden_bias)
            self.states = self._draw(hidden @ kernel.T + visible_bias)
        return self.states

    def _draw(self, natural):
        share = 1.0 / (1.0 + np.exp(-self.beta * natural))
        return (self.rng.random(natural.shape) < share).astype(float)


def fitted(rule):
    rbm = kr.RBM(3, seed=0)
    rbm.compile(rule=rule)
    history = rbm.fit(ROWS, epochs=20, batch_size=50, verbose=0).history
    return np.mean(rbm.log_likelihood(ROWS, "exact")), history


def test_a_wrong_temperature_is_found_and_undone():
    """Each model has its own function, though programs of equal models are shared."""
    expected, _ = fitted(kr.rules.PersistentContrastiveDivergence())
    for beta in (1.0, 2.5):
        rule = kr.rules.OutsideSampler(Gibbs(beta), num_chains=200)
        score, history = fitted(rule)
        assert history["beta"][-1] == pytest.approx(beta, rel=0.1)
        assert abs(score - expected) < 0.05
        assert not rule.learner.model.jit_compile


@pytest.mark.parametrize(
    ("states", "word"),
    [
        (np.zeros((9, 6)), r"\(10, 6\) states"),
        (np.full((10, 6), 2.0), "values .2."),
    ],
)
def test_other_states_are_refused(states, word):
    rbm = kr.RBM(3, seed=0)
    rule = kr.rules.OutsideSampler(lambda *_: states, num_chains=10)
    rbm.compile("sgd", rule=rule)
    with pytest.raises(Exception, match=word):
        rbm.fit(ROWS, verbose=0)


def test_states_that_depend_on_nothing_are_said():
    rng = np.random.default_rng(0)
    rbm = kr.RBM(3, seed=0)
    rule = kr.rules.OutsideSampler(lambda *_: rng.integers(0, 2, (20, 6)), 20)
    rbm.compile("sgd", rule=rule)
    rbm.build((None, 6))
    rule.beta.assign(2.0**-12)
    with pytest.warns(UserWarning, match="do not depend on the arrays"):
        rbm.fit(ROWS, batch_size=200, verbose=0)


def test_models_and_functions_that_do_not_fit():
    with pytest.raises(TypeError, match="sample as a function"):
        kr.rules.OutsideSampler("annealer")
    rbm = kr.RBM(3, num_visible=6, visible="gaussian")
    with pytest.raises(ValueError, match="jit_compile='auto'"):
        kr.RBM(3, num_visible=6).compile(
            rule=kr.rules.OutsideSampler(Gibbs(1.0)), jit_compile=True
        )
    with pytest.raises(ValueError, match="binary units or spins"):
        rbm.compile("sgd", rule=kr.rules.OutsideSampler(Gibbs(1.0)))
