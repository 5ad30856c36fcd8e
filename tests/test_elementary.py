"""Basic operations compute what TensorFlow's own functions do."""

import numpy as np
import pytest

from keras_rbm.elementary import basic_operations, softplus


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_basic_forms(dtype):
    tolerance = 2 * np.finfo(dtype).eps
    x = np.concatenate([np.linspace(-100, 100, 2001), [-1e30, 1e30]]).astype(dtype)
    own = softplus(x)
    with basic_operations():
        basic = softplus(x)
    for positive in (own, basic):
        exact = np.logaddexp(0, x.astype("float64"))
        np.testing.assert_allclose(positive, exact, 4 * tolerance, tolerance)
