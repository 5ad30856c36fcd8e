"""Mixed-product: the published equations, and best replies of all units at once."""

import message_passing as reference
import numpy as np
import pytest
from brute_force import Enumerated, random_potentials
from message_passing import random_batch, rows

from keras_rbm.inference import Potentials, mixed_product


def assert_decoded(result, n, want):
    np.testing.assert_array_equal(result.visible[n], want.visible)
    np.testing.assert_allclose(
        result.log_partition[n], want.log_weight, rtol=1e-5, atol=1e-5
    )
    assert bool(result.converged[n]) == want.converged
    assert int(result.num_iterations[n]) == want.num_iterations


#: Categories, the scale of weights, and how many models: some end in a cycle of two.
@pytest.mark.parametrize(
    ("q", "scale", "count"),
    [(1, 1.0, 60), (1, 12.0, 15), (1, 50.0, 15), (1, 1e4, 15)]
    + [(3, 1.0, 40), (3, 4.0, 15), (3, 30.0, 15)],
)
def test_equals_best_replies_of_all_units_at_once(q, scale, count):
    """Messages and free energies say the same: `F(v_i = 0) - F(v_i = 1)`."""
    potentials = random_batch(8, 5, count, scale=scale, q=q)
    for sweeps in (1, 2, 100):
        result = mixed_product(potentials, max_iterations=sweeps)
        wanted = [reference.mixed_product(model, sweeps) for model in rows(potentials)]
        for n, want in enumerate(wanted):
            assert_decoded(result, n, want)
    assert scale > 1.0 or not all(want.converged for want in wanted)


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


@pytest.mark.parametrize("q", [1, 3])
def test_hidden_units_and_pairs_are_conditional_means(q):
    potentials = random_batch(6, 5, batch_size=5, q=q)
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


@pytest.mark.parametrize("q", [1, 4])
@pytest.mark.parametrize("push", [-100.0, 100.0])
def test_units_that_their_biases_decide(q, push):
    kernel, visible, hidden = random_batch(12, 8, 5, scale=12.0, q=q)
    b = visible.bias + push * np.where(np.arange(12 * q) % 4, 0.0, 1.0)
    potentials = Potentials(kernel, visible._replace(bias=b), hidden)
    result = mixed_product(potentials)
    for n, model in enumerate(rows(potentials)):
        assert_decoded(result, n, reference.mixed_product(model, 100))
