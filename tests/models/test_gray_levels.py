"""Data between 0 and 1: states are drawn from them in training."""

import numpy as np
import pytest

import keras_rbm as kr

GRAY = np.tile(np.array([[0.0, 0.25, 0.5, 0.9, 1.0]], "float32"), (2000, 1))


class Watch(kr.rules.ContrastiveDivergence):
    """Keeps the training states of each step."""

    seen: list = []

    def negative_phase(self, step):
        self.seen.append(step.visible.numpy())
        return super().negative_phase(step)


def states_of_fit(model, *data, epochs=1):
    rule = Watch(1)
    rule.seen = []
    model.compile(rule=rule, run_eagerly=True)
    model.fit(*data, batch_size=2000, epochs=epochs, verbose=0)
    return rule.seen


def test_training_draws_states_with_the_gray_levels_as_probabilities():
    first, second = states_of_fit(kr.RBM(3, seed=0), GRAY, epochs=2)
    assert set(np.unique(first)) == {0.0, 1.0}
    error = np.sqrt(GRAY[0] * (1.0 - GRAY[0]) / len(GRAY))
    assert (abs(first.mean(0) - GRAY[0]) <= 4.0 * error).all()
    assert (first != second).any()  # drawn again


def test_states_are_not_drawn():
    bits = np.random.default_rng(0).integers(0, 2, (50, 5)).astype("float32")
    model = kr.RBM(3, seed=0)
    model.compile(rule=(rule := Watch(1)), run_eagerly=True)
    rule.seen = []
    model.fit(bits, batch_size=50, verbose=0, shuffle=False)
    np.testing.assert_array_equal(rule.seen[0], bits)


def test_only_gray_columns_of_a_table_are_drawn():
    table = kr.units.Joined([("gaussian", 1), ("bernoulli", 5)])
    x = np.concatenate([np.full((2000, 1), 0.3, "float32"), GRAY], 1)
    (states,) = states_of_fit(kr.RBM(3, visible=table, seed=0), x)
    np.testing.assert_array_equal(states[:, 0], x[:, 0])
    assert set(np.unique(states[:, 1:])) == {0.0, 1.0}


def test_targets_of_a_conditional_model_enter_as_they_are():
    model = kr.CRBM(3, seed=0)
    model.compile(run_eagerly=True)
    step = []
    phases = model.rule.phases
    model.rule.phases = lambda each: step.append(each) or phases(each)
    model.fit(GRAY[:50], GRAY[:50], batch_size=50, verbose=0, shuffle=False)
    np.testing.assert_array_equal(step[0].visible, GRAY[:50])


@pytest.mark.slow
@pytest.mark.parametrize("binary", [False, True])
def test_a_pair_of_pixels_is_learned_from_gray_levels(binary, as_users_run):
    """With means as states the pair came out less dependent: 0.35 instead of 0.41."""
    rng = np.random.default_rng(0)
    level = rng.choice([0.1, 0.9], (2000, 1)).astype("float32")
    x = np.tile(level, (1, 2))
    if binary:
        x = (rng.random(x.shape) < x).astype("float32")
    model = kr.RBM(2, kernel_regularizer=None, seed=0)
    model.compile()
    model.fit(x, epochs=30, verbose=0)
    states = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], "float32")
    p = np.exp(model.log_likelihood(states, "exact"))
    truth = np.array([0.41, 0.09, 0.09, 0.41])
    np.testing.assert_allclose(p, truth, atol=0.04)


def test_independent_gray_pixels_are_not_called_worse_than_independent(recwarn):
    """Before, 5 of 12 such fits were."""
    rng = np.random.default_rng(0)
    for seed in range(6):
        x = np.clip(rng.normal(0.1, 0.02, (300, 20)), 0, 1).astype("float32")
        model = kr.RBM(2, seed=seed)
        model.compile()
        model.fit(x, batch_size=100, epochs=2, verbose=0)
    assert not [each for each in recwarn if "independent" in str(each.message)]
