import message_passing as reference
import numpy as np
import pytest
import tensorflow as tf
from brute_force import Enumerated, random_gaussian_potentials, random_potentials
from message_passing import random_batch, random_trees, rows

from keras_rbm.inference import BeliefPropagation, Potentials, max_product


@pytest.mark.parametrize("sizes", [(5, 4), (1, 6), (7, 1)], ids=str)
def test_decodes_the_most_probable_state_of_trees(sizes):
    for seed in range(8):
        potentials = random_trees(*sizes, batch_size=5, seed=seed)
        sweeps = reference.diameter(potentials.kernel.numpy())
        beliefs = max_product(
            potentials, max_iterations=sweeps, tolerance=0.0, pairwise="each"
        )
        for n, model in enumerate(rows(potentials)):
            truth = Enumerated(model)
            index = np.unravel_index(truth.log_joint.argmax(), truth.log_joint.shape)
            visible, hidden = truth.v[index[0]], truth.h[index[1]]
            np.testing.assert_array_equal(beliefs.visible[n] > 0.5, visible)
            np.testing.assert_array_equal(beliefs.hidden[n] > 0.5, hidden)
            np.testing.assert_array_equal(
                beliefs.pairwise[n], np.outer(visible, hidden)
            )
            np.testing.assert_allclose(
                beliefs.log_partition[n], truth.log_joint.max(), rtol=1e-5, atol=1e-5
            )


def test_beliefs_are_max_marginals_on_trees():
    potentials = random_trees(5, 4, batch_size=5)
    beliefs = max_product(potentials, max_iterations=8, tolerance=0.0)
    truth = Enumerated(rows(potentials)[0])
    for belief, states, log_weight in (
        (beliefs.visible[0], truth.v, truth.log_joint.max(1)),
        (beliefs.hidden[0], truth.h, truth.log_joint.max(0)),
    ):
        best = [
            [log_weight[states[:, i] == value].max() for value in (0, 1)]
            for i in range(states.shape[1])
        ]
        log_odds = np.subtract(*np.transpose(best)[::-1])
        np.testing.assert_allclose(belief, 1 / (1 + np.exp(-log_odds)), atol=1e-5)


@pytest.mark.usefixtures("compiled_inference")  # ties are decoded as it rounds
def test_equals_the_equations_sweep_by_sweep():
    potentials = random_batch(12, 8, batch_size=5)
    for sweep, want in enumerate(
        reference.message_passing(potentials, 6, maximum=True)
    ):
        beliefs = max_product(
            potentials, max_iterations=sweep + 1, tolerance=0.0, pairwise="each"
        )
        np.testing.assert_allclose(beliefs.visible, want.visible, atol=1e-5)
        np.testing.assert_allclose(beliefs.hidden, want.hidden, atol=1e-5)
        np.testing.assert_array_equal(beliefs.pairwise, want.pairwise)
        np.testing.assert_allclose(
            beliefs.log_partition, want.log_partition, rtol=1e-5, atol=1e-5
        )
        np.testing.assert_allclose(beliefs.residual, want.residual, atol=1e-5)


def test_never_above_the_best_state():
    for seed in range(6):
        potentials = random_batch(12, 8, batch_size=5, seed=seed)
        beliefs = max_product(potentials)
        best = [Enumerated(model).log_joint.max() for model in rows(potentials)]
        assert np.all(beliefs.log_partition <= np.array(best) + 1e-4)


def test_large_weights():
    rng = np.random.default_rng(0)
    kernel = rng.uniform(-50, 50, (12, 8))
    potentials = reference.with_random_biases(kernel, 5, rng)
    want = reference.message_passing(potentials, 3, maximum=True)[-1]
    beliefs = max_product(potentials, max_iterations=3, tolerance=0.0, pairwise="each")
    np.testing.assert_allclose(beliefs.visible, want.visible, atol=1e-4)
    np.testing.assert_allclose(beliefs.hidden, want.hidden, atol=1e-4)
    np.testing.assert_array_equal(beliefs.pairwise, want.pairwise)


def test_extreme_models_are_finite():
    kernel = 50 * np.sign(np.random.default_rng(0).normal(size=(12, 8)))
    for bias in (-100.0, 0.0, 100.0):
        potentials = Potentials(
            tf.constant(kernel, tf.float32), tf.fill([5, 12], bias), tf.zeros(8)
        )
        beliefs = max_product(potentials, pairwise="each")
        for belief in (beliefs.visible, beliefs.hidden, beliefs.pairwise):
            assert np.all((belief >= 0) & (belief <= 1))
        assert np.all(np.isfinite(beliefs.log_partition))


def test_damping():
    potentials = random_batch(12, 8, batch_size=5)
    want = reference.message_passing(potentials, 4, maximum=True, damping=0.5)[-1]
    beliefs = max_product(
        potentials, max_iterations=4, tolerance=0.0, damping=0.5, pairwise="each"
    )
    np.testing.assert_allclose(beliefs.visible, want.visible, atol=1e-5)
    np.testing.assert_allclose(beliefs.hidden, want.hidden, atol=1e-5)


@pytest.mark.slow
def test_what_every_method_promises():
    reference.assert_rows_do_not_depend_on_the_batch(max_product, sizes=(5,))
    reference.assert_either_bias_may_have_the_batch(max_product)
    reference.assert_shapes(max_product)
    reference.assert_pairwise_is_weighted(max_product)


@pytest.mark.slow
def test_compiled():
    reference.assert_compiles_for_any_batch_size(max_product)


def test_object_is_the_function():
    potentials = random_batch(12, 8, batch_size=5)
    options = {"max_iterations": 9, "tolerance": 1e-4, "damping": 0.5}
    infer = BeliefPropagation("max_product", **options)
    want = max_product(potentials, pairwise="each", **options)
    reference.assert_same(infer(potentials, pairwise="each"), want)
    reference.assert_saved_and_restored(infer)


def test_bad_input():
    for option in ({"max_iterations": 0}, {"tolerance": -1.0}, {"damping": 1.0}):
        with pytest.raises(ValueError, match=next(iter(option))):
            max_product(random_potentials(3, 2), **option)
    with pytest.raises(ValueError, match="(?s)pairwise.*'all'"):
        max_product(random_potentials(3, 2), pairwise="all")
    with pytest.raises(ValueError, match="binary units"):
        max_product(random_gaussian_potentials(3, 2))
