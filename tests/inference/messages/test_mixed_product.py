import message_passing as reference
import numpy as np
import pytest
import tensorflow as tf
from brute_force import (
    Enumerated,
    binary_states,
    random_gaussian_potentials,
    random_potentials,
)
from message_passing import random_batch, rows

from keras_rbm.inference import BeliefPropagation, Potentials, mixed_product

#: Seeds of `random_potentials(8, 5)`.
SEEDS = range(200)


@pytest.fixture(scope="module")
def decoded():
    """The library's and the reference's results on 200 dense models."""
    models = [random_potentials(8, 5, seed=seed) for seed in SEEDS]
    return [
        (model, mixed_product(model), reference.mixed_product(model, 100))
        for model in models
    ]


def test_finds_the_most_probable_visible_state_with_one_visible_unit():
    """Over v in {0, 1}, h summed out."""
    for seed in range(4):
        potentials = random_batch(1, 6, batch_size=10, seed=seed, scale=2)
        result = mixed_product(potentials)
        assert np.all(result.converged)
        for n, model in enumerate(rows(potentials)):
            best = reference.free_energy(model, binary_states(1)).argmin()
            np.testing.assert_array_equal(result.visible[n], [best])


def test_equals_flips_of_all_units_at_once(decoded):
    """Messages and free energies say the same: `F(v_i = 0) - F(v_i = 1)`."""
    for _, result, want in decoded:
        np.testing.assert_array_equal(result.visible, want.visible)
        np.testing.assert_allclose(result.log_partition, -want.free_energy, rtol=1e-5)
        assert bool(result.converged) == want.converged
        assert int(result.num_iterations) == want.num_iterations


def test_equals_the_published_equations():
    """Ping and Ihler (2017), equations 13, 15, 16 and 17, sweep by sweep."""
    for seed in range(10):
        model = random_potentials(8, 5, seed=seed)
        states = [np.zeros(8), *reference.published_mixed_product(model, 4)]
        energies = [reference.free_energy(model, state) for state in states]
        for sweep in range(1, 5):
            result = mixed_product(model, max_iterations=sweep)
            best = np.argmin(energies[: sweep + 1])
            np.testing.assert_array_equal(result.visible, states[best])


def test_fixed_points_are_optimal_under_single_flips(decoded):
    for model, result, _ in decoded:
        if result.converged:
            visible = result.visible.numpy().astype(float)
            gains = reference.flip_gains(model, visible)
            assert np.all(gains * (2 * visible - 1) > -1e-5)


def test_mostly_finds_the_global_optimum(decoded):
    """95 % of these models, by a reference that shares no code."""
    states = binary_states(8)
    found = [
        np.array_equal(
            result.visible, states[reference.free_energy(model, states).argmin()]
        )
        for model, result, _ in decoded
    ]
    assert 0.9 <= np.mean(found) < 1


def test_stops_at_a_two_cycle(decoded):
    cycles = [result for _, result, want in decoded if not want.converged]
    assert len(cycles) > 3
    for result in cycles:
        assert not result.converged
        assert result.num_iterations < 20


def test_never_worse_than_the_start(decoded):
    for model, result, _ in decoded:
        start = reference.free_energy(model, np.zeros(8))
        assert -result.log_partition <= start + 1e-5


def test_hidden_units_and_pairs_are_conditional_means():
    potentials = random_batch(12, 8, batch_size=5)
    result = mixed_product(potentials, pairwise="each")
    visible = result.visible.numpy()
    assert set(np.unique(visible)) == {0.0, 1.0}
    for n, model in enumerate(rows(potentials)):
        joint = Enumerated(model)
        row = joint.v.tolist().index(visible[n].tolist())
        hidden = joint.joint[row] @ joint.h / joint.p_visible[row]
        np.testing.assert_allclose(result.hidden[n], hidden, atol=1e-5)
        np.testing.assert_allclose(
            result.pairwise[n], np.outer(visible[n], hidden), atol=1e-5
        )
        log_weight = np.log(joint.p_visible[row]) + joint.log_partition
        np.testing.assert_allclose(result.log_partition[n], log_weight, rtol=1e-5)


@pytest.mark.parametrize("largest", [12, 50])
def test_extreme_models(largest):
    rng = np.random.default_rng(largest)
    kernel = rng.uniform(-largest, largest, (12, 8))
    kernel, visible, hidden = reference.with_random_biases(kernel, 5, rng)
    for bias in (-100.0, 0.0, 100.0):
        potentials = Potentials(kernel, visible.bias + bias, hidden.bias)
        result = mixed_product(potentials)
        for n, model in enumerate(rows(potentials)):
            want = reference.mixed_product(model, 100)
            np.testing.assert_array_equal(result.visible[n], want.visible)
            np.testing.assert_allclose(
                result.log_partition[n], -want.free_energy, rtol=1e-5, atol=1e-3
            )


def test_what_every_method_promises():
    reference.assert_rows_do_not_depend_on_the_batch(mixed_product, sizes=(5,))
    reference.assert_either_bias_may_have_the_batch(mixed_product)
    reference.assert_shapes(mixed_product)
    reference.assert_pairwise_is_weighted(mixed_product)


@pytest.mark.slow
def test_compiles_for_any_batch_size():
    reference.assert_compiles_for_any_batch_size(mixed_product)


def test_max_iterations_of_the_object_is_no_constant():
    potentials = random_batch(12, 8, batch_size=5)
    infer = BeliefPropagation("mixed_product")
    traces = []

    @tf.function
    def compiled(visible_bias):
        traces.append(visible_bias)
        return infer(
            potentials._replace(visible=type(potentials.visible)(visible_bias))
        )

    for max_iterations in (1, 4, 2):
        infer.max_iterations = max_iterations
        want = mixed_product(potentials, max_iterations=max_iterations)
        reference.assert_same(compiled(potentials.visible_bias), want)
    assert len(traces) == 1


def test_object_is_the_function():
    potentials = random_batch(12, 8, batch_size=5)
    infer = BeliefPropagation("mixed_product", max_iterations=3)
    want = mixed_product(potentials, max_iterations=3)
    reference.assert_same(infer(potentials), want)
    reference.assert_saved_and_restored(infer)


def test_bad_input():
    with pytest.raises(ValueError, match="max_iterations"):
        mixed_product(random_potentials(3, 2), max_iterations=0)
    with pytest.raises(ValueError, match="(?s)pairwise.*'all'"):
        mixed_product(random_potentials(3, 2), pairwise="all")
    with pytest.raises(ValueError, match="binary units"):
        mixed_product(random_gaussian_potentials(3, 2))
