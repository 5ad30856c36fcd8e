import numpy as np
import pytest
import tensorflow as tf

from keras_rbm import random
from keras_rbm.inference.weights import (
    effective_number,
    effective_sample_size,
    systematic_rows,
)


def test_effective_sample_size():
    weights = np.random.default_rng(0).gamma(1.0, size=(50, 3))
    want = weights.sum(0) ** 2 / (weights**2).sum(0)
    got = effective_sample_size(tf.constant(np.log(weights) + 700.0))
    np.testing.assert_allclose(got, want, rtol=1e-12)
    np.testing.assert_allclose(effective_sample_size(tf.zeros(10)), 10.0, rtol=1e-6)


def test_effective_number_of_ancestors():
    ancestors = np.stack([np.arange(10), np.zeros(10), np.arange(10) // 5], 1)
    assert effective_number(ancestors).tolist() == [10.0, 1.0, 2.0]


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
@pytest.mark.parametrize("compiled", [False, True])
def test_each_row_is_drawn_as_often_as_its_weight_says(dtype, compiled):
    """To less than one, and on average exactly."""
    log_weights = 2.0 * np.random.default_rng(0).normal(size=(2, 40))
    log_weights[0, :3] = -np.inf
    log_weights[1, -3:] = -1e300 if dtype == tf.float64 else -1e30
    shares = np.exp(log_weights) / np.exp(log_weights).sum(1, keepdims=True)
    draw = tf.function(systematic_rows, autograph=False, jit_compile=compiled)
    shifts = tf.cast(random.uniform((400, 2), [0, 1]), dtype)
    counts = np.zeros((2, 40))
    for shift in shifts:
        rows = draw(tf.constant(log_weights, dtype), 100, shift).numpy()
        own = np.stack([np.bincount(x, minlength=40) for x in rows])
        assert (np.diff(rows) >= 0).all() and (abs(own - 100 * shares) < 1.001).all()
        counts += own
    error = np.sqrt(0.25 / 400)
    assert (abs(counts / 400 - 100 * shares) < 5 * error).all()


def test_the_last_row_is_drawn_where_rounding_leaves_a_gap():
    rows = systematic_rows(tf.zeros(1000), 1000, tf.constant(1.0 - 2.0**-24))
    assert rows[-1] == 999
