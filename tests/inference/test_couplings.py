"""The gauge of categorical units, and what couples visible units."""

import numpy as np
import pytest
from random_models import randomize

from keras_rbm import RBM, inference, units

RNG = np.random.default_rng(0)
DATA = RNG.integers(0, 3, (30, 4)).astype("float32")


def made(hidden="double_rectified", visible=None, scale=0.5):
    visible = visible or units.Categorical(3)
    rbm = RBM(2, visible=visible, hidden=hidden, num_visible=4, seed=0)
    return randomize(rbm, 1, scale).potentials()


@pytest.mark.parametrize("hidden", ["gaussian", units.Categorical(4)])
def test_the_gauge_leaves_free_energies_alone(hidden):
    potentials = made(hidden)
    fixed = inference.zero_sum_gauge(potentials)
    energies = [model.free_energy(DATA) for model in (fixed, potentials)]
    np.testing.assert_allclose(*energies, atol=1e-5)
    sums = fixed.kernel.numpy().reshape(4, 3, -1).sum(1)
    np.testing.assert_allclose(sums, 0.0, atol=1e-6)
    if isinstance(hidden, units.Categorical):
        sums = fixed.kernel.numpy().reshape(12, 2, 4).sum(2)
        np.testing.assert_allclose(sums, 0.0, atol=1e-6)


def test_other_units_have_no_gauge():
    joined = units.Joined([("spin", 2), (units.Categorical(2), 2)])
    potentials = made(visible=joined)
    fixed = inference.zero_sum_gauge(potentials)
    np.testing.assert_array_equal(fixed.kernel[:2], potentials.kernel[:2])
    assert np.any(fixed.kernel[2:] != potentials.kernel[2:])


def test_couplings_are_the_second_order_of_the_free_energy():
    """Gaussian hidden units have no higher: F(v) = -v'Jv/2 - linear terms."""
    potentials = inference.zero_sum_gauge(made("gaussian"))
    couplings = inference.effective_couplings(potentials, DATA).numpy()
    energies = []
    for value, other in ((0, 0), (0, 2), (1, 0), (1, 2)):
        rows = np.array([[value, 0, other, 1]], "float32")
        energies.append(float(potentials.free_energy(rows)[0]))
    mixed = -(energies[3] - energies[2] - energies[1] + energies[0])
    want = (
        couplings[1, 8] - couplings[1, 6] - couplings[0, 8] + couplings[0, 6]
    )  # categories 1 and 0 of the first unit, 2 and 0 of the third
    assert mixed == pytest.approx(want, abs=1e-4)


def test_weights_choose_the_data():
    potentials = made()
    some = inference.effective_couplings(potentials, DATA[:10])
    weights = np.repeat([1.0, 0.0], [10, 20])
    all_of_them = inference.effective_couplings(potentials, DATA, weights)
    np.testing.assert_allclose(some, all_of_them, rtol=1e-5)


def test_coupled_units_score_highest():
    kernel = np.zeros((12, 1), "float32")
    kernel[0:3, 0] = kernel[6:9, 0] = [2.0, -1.0, -1.0]
    noise = np.random.default_rng(0).normal(0, 0.1, (12, 3))
    rbm = RBM(4, visible=units.Categorical(3), num_visible=4)
    rbm.kernel.assign(np.concatenate([kernel, noise], 1))
    couplings = inference.effective_couplings(rbm.potentials(), DATA)
    scores = inference.contact_scores(couplings, 4)
    np.testing.assert_allclose(scores, scores.T, atol=1e-6)
    assert np.unravel_index(scores.argmax(), (4, 4)) == (0, 2)
    assert not scores.diagonal().any()
    with pytest.raises(ValueError, match="one number each"):
        pairs = made(units.Categorical(2))
        inference.effective_couplings(pairs, DATA)


def test_scores_are_symmetric_whatever_the_rounding():
    noise = np.random.default_rng(0).normal(size=(60, 60)).astype("float32")
    couplings = noise @ noise.T
    scores = inference.contact_scores(couplings + 1e-6 * noise, num_units=20)
    np.testing.assert_array_equal(scores, scores.T)
    for wrong in (couplings + 0.1 * noise, np.where(noise > 3.0, np.nan, couplings)):
        with pytest.raises(ValueError, match="symmetric, finite couplings"):
            inference.contact_scores(wrong, num_units=20)
