"""Data between 0 and 1: states are drawn from them in training."""

import numpy as np
import pytest
from small_models import all_states, binary, compiled, fitted

import keras_rbm as kr

GRAY = np.tile(np.array([[0.0, 0.25, 0.5, 0.9, 1.0]], "float32"), (2000, 1))


def states_of_fit(model, *data, epochs=1):
    """Returns the training states of each step."""
    seen = []
    compiled(model, rule=kr.rules.ContrastiveDivergence(1), run_eagerly=True)
    phases = model.rule.phases
    model.rule.phases = lambda step: seen.append(step.visible.numpy()) or phases(step)
    fitted(model, *data, batch_size=2000, epochs=epochs, shuffle=False)
    return seen


def test_training_draws_states_with_the_gray_levels_as_probabilities():
    first, second = states_of_fit(kr.RBM(3, seed=0), GRAY, epochs=2)
    assert set(np.unique(first)) == {0.0, 1.0}
    error = np.sqrt(GRAY[0] * (1.0 - GRAY[0]) / len(GRAY))
    assert (abs(first.mean(0) - GRAY[0]) <= 4.0 * error).all()
    assert (first != second).any()  # drawn again


def test_states_and_targets_of_a_conditional_model_enter_as_they_are():
    bits = binary(50, 5)
    np.testing.assert_array_equal(*states_of_fit(kr.RBM(3, seed=0), bits), bits)
    (targets,) = states_of_fit(kr.CRBM(3, seed=0), GRAY[:50], GRAY[:50])
    np.testing.assert_array_equal(targets, GRAY[:50])


def test_only_gray_columns_of_a_table_are_drawn():
    table = kr.units.Joined([("gaussian", 1), ("bernoulli", 5)])
    x = np.concatenate([np.full((2000, 1), 0.3, "float32"), GRAY], 1)
    (states,) = states_of_fit(kr.RBM(3, visible=table, seed=0), x)
    np.testing.assert_array_equal(states[:, 0], x[:, 0])
    assert set(np.unique(states[:, 1:])) == {0.0, 1.0}


@pytest.mark.slow
@pytest.mark.parametrize("as_bits", [False, True])
def test_a_pair_of_pixels_is_learned_from_gray_levels(as_bits, as_users_run):
    """With means as states the pair came out less dependent: 0.35 instead of 0.41."""
    rng = np.random.default_rng(0)
    x = np.tile(rng.choice([0.1, 0.9], (2000, 1)).astype("float32"), (1, 2))
    if as_bits:
        x = (rng.random(x.shape) < x).astype("float32")
    model = compiled(kr.RBM(2, kernel_regularizer=None, seed=0))
    fitted(model, x, epochs=30)
    p = np.exp(model.log_likelihood(all_states(2, 2), "exact"))
    np.testing.assert_allclose(p, [0.41, 0.09, 0.09, 0.41], atol=0.04)


def test_independent_gray_pixels_are_not_called_worse_than_independent(recwarn):
    """Before, 5 of 12 such fits were."""
    rng = np.random.default_rng(0)
    for seed in range(6):
        x = np.clip(rng.normal(0.1, 0.02, (300, 20)), 0, 1).astype("float32")
        fitted(compiled(kr.RBM(2, seed=seed)), x, batch_size=100, epochs=2)
    assert not [each for each in recwarn if "independent" in str(each.message)]
