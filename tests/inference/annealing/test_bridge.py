import numpy as np
import pytest
import scipy.optimize
from scipy.special import expit

from keras_rbm.inference.annealing.bridge import bridge


def balance(delta, low, high, weights):
    """The published equation, left minus right, for weighted chains."""
    up, down = expit(low - delta).mean(0), expit(delta - high).mean(0)
    return np.sum(weights * (up - down))


def solved(low, high, weights):
    ends = min(low.min(), high.min()) - 1, max(low.max(), high.max()) + 1
    return scipy.optimize.brentq(balance, *ends, (low, high, weights), xtol=1e-13)


@pytest.mark.parametrize("spread", [0.1, 1.0, 10.0, 100.0])
@pytest.mark.parametrize("gap", [0.0, 1.0, 20.0, 150.0])
def test_bridge_solves_the_published_equation(spread, gap):
    """Newton's step for sides that are tiny was too short to arrive."""
    rng = np.random.default_rng(0)
    center = rng.normal(0, 50, (1, 3, 1))
    low = center - gap + spread * rng.normal(size=(7, 3, 5))
    high = center + 2 * gap + spread * rng.normal(size=(7, 3, 5))
    ratios, parts = (x.numpy() for x in bridge(low, high))
    assert ratios.shape == (3,) and parts.shape == (3, 5)
    for pair in range(3):
        sides = low[:, pair], high[:, pair]
        want = solved(*sides, np.ones(5))
        np.testing.assert_allclose(ratios[pair], want, atol=1e-7)


def test_parts_are_what_each_chain_adds_to_first_order():
    rng = np.random.default_rng(1)
    low = rng.normal(-1, 1, (6, 2, 4)) + rng.normal(size=(1, 2, 4))
    high = rng.normal(1, 1, (6, 2, 4)) + rng.normal(size=(1, 2, 4))
    parts = bridge(low, high)[1].numpy()
    np.testing.assert_allclose(parts.mean(1), 0, atol=1e-8)
    step = 1e-5
    for pair, chain in np.ndindex(2, 4):
        sides = low[:, pair], high[:, pair]
        more, less = (0.25 + sign * step * np.eye(4)[chain] for sign in (1, -1))
        slope = (solved(*sides, more) - solved(*sides, less)) / (2 * step)
        np.testing.assert_allclose(parts[pair, chain], slope, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("distance", [0.0, 10.0, 1e3, 1e5])
def test_extreme_states_are_finite(distance):
    """Far apart, both sides of the equation were 0 in float64, and any Delta right."""
    rng = np.random.default_rng(2)
    for noise in (np.zeros((2, 5, 1, 3)), rng.normal(size=(2, 5, 1, 3))):
        for low, high in ([-distance, distance], [distance, -distance]):
            ratio, parts = bridge(7 + low + noise[0], 7 + high + noise[1])
            assert abs(ratio[0] - 7) < 4 and np.isfinite(parts).all()
            if not noise.any():
                np.testing.assert_allclose(ratio, 7)
                np.testing.assert_allclose(parts, 0)
