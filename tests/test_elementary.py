"""Basic operations compute what TensorFlow's own functions do."""

import numpy as np
import pytest
import scipy.special
import tensorflow as tf

from keras_rbm.elementary import basic_operations, binary_entropy, softplus


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_basic_forms(dtype):
    tolerance = 2 * np.finfo(dtype).eps
    x = np.concatenate([np.linspace(-100, 100, 2001), [-1e30, 1e30]]).astype(dtype)
    mean = np.array([0, 1e-30, 1e-7, 0.1, 0.5, 0.9, 1 - 1e-7, 1], dtype)
    wide = mean.astype("float64")
    entropy = scipy.special.entr(wide) + scipy.special.entr(1 - wide)
    own = softplus(x), binary_entropy(tf.constant(mean))
    with basic_operations():
        basic = softplus(x), binary_entropy(tf.constant(mean))
    for positive, entropies in (own, basic):
        exact = np.logaddexp(0, x.astype("float64"))
        np.testing.assert_allclose(positive, exact, 4 * tolerance, tolerance)
        np.testing.assert_allclose(entropies, entropy, 4 * tolerance, tolerance)
