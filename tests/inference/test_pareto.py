import numpy as np
import pytest
import tensorflow as tf

from keras_rbm.inference.weights import pareto_k


@pytest.mark.parametrize(
    ("deviation", "count", "shape"),
    [
        (0.1, 100, -0.3312000971307784),
        (0.5, 1000, -0.0823972504607368),
        (1.0, 1000, 0.34235866855363456),
        (4.0, 100, 1.3719954796116887),
        (4.0, 1000, 1.5316815092474618),
    ],
)
def test_agrees_with_arviz(deviation, count, shape):
    """Shapes that ArviZ 1.0 finds for the same normal log weights."""
    rng = np.random.default_rng(0)
    for each in (0.1, 0.5, 1, 2, 4):
        for number in (100, 1000):
            values = each * rng.normal(size=number)
            if (each, number) == (deviation, count):
                log_weights = values
    np.testing.assert_allclose(pareto_k(log_weights), shape, rtol=1e-9)


def test_each_model_has_its_own_whatever_the_scale():
    log_weights = np.random.default_rng(1).normal(size=(60, 3)) * [0.1, 1, 5]
    together = pareto_k(log_weights + [0, 1000, -1000]).numpy()
    alone = [pareto_k(column).numpy() for column in log_weights.T]
    np.testing.assert_allclose(together, alone, rtol=1e-6)
    assert together[0] < together[2] > 0.7


def test_a_tail_that_tells_nothing():
    assert pareto_k(tf.zeros(100)) == -np.inf
    assert pareto_k(tf.zeros(20)) == np.inf
    assert pareto_k(tf.zeros((20, 4))).shape == (4,)
