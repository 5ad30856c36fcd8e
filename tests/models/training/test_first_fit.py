"""Where the first `fit` starts the visible units."""

import keras
import numpy as np
import pytest
from small_models import compiled, fitted as after_fit

import keras_rbm

RNG = np.random.default_rng(0)
TWO = np.concatenate([RNG.normal(0, 1, (50, 1)), RNG.normal(100, 1, (50, 1))])


def fitted(data, rbm=None, **kwargs):
    """Returns an RBM after a first fit that trains nothing."""
    width = data.shape[1]
    rbm = rbm or keras_rbm.RBM(2, visible="gaussian", num_visible=width, seed=0)
    compiled(rbm, keras.optimizers.SGD(0.0), run_eagerly=True)
    return after_fit(rbm, data, batch_size=len(data), **kwargs)


def test_periodic_data():
    data = np.zeros((20_000, 1), "float32")
    data[1::2] = 100.0
    rbm = fitted(data)
    np.testing.assert_allclose(rbm.visible_shift, [50.0], atol=2.0)
    np.testing.assert_allclose(rbm.visible_scale, [50.0], atol=1.0)


def test_weights_count():
    weights = np.repeat([1.0, 0.25], 50)
    rbm = fitted(TWO, sample_weight=weights)
    mean = np.average(TWO, 0, weights)
    deviation = np.sqrt(np.average(np.square(TWO - mean), 0, weights))
    np.testing.assert_allclose(rbm.visible_shift, mean, rtol=1e-5)
    np.testing.assert_allclose(rbm.visible_scale, deviation, rtol=1e-5)
    np.testing.assert_allclose(fitted(TWO).visible_shift, TWO.mean(0), rtol=1e-5)


@pytest.mark.parametrize("frozen", ["bias", "log_precision"])
def test_frozen_variables_stay(frozen):
    data = RNG.normal(1.0, 3.0, (50, 2))
    visible = keras_rbm.units.Gaussian(standardize=False)
    rbm = keras_rbm.RBM(2, visible=visible, num_visible=2, seed=0)
    getattr(rbm, f"visible_{frozen}").trainable = False
    fitted(data, rbm)
    np.testing.assert_array_equal(getattr(rbm, f"visible_{frozen}"), [0.0, 0.0])
    if frozen == "log_precision":  # the units' means are right at this precision
        np.testing.assert_allclose(rbm.visible_bias, data.mean(0), rtol=1e-5)


@pytest.mark.parametrize("size", [1.0, 0.001])
def test_a_zero_bias_of_weights_that_were_set_stays(size):
    """Only weights that no initializer draws are known to be set."""
    data = np.tile([[1.0, 1.0, 0.0]], (50, 1)).astype("float32")
    rbm = keras_rbm.RBM(2, num_visible=3, seed=0)
    rbm.kernel.assign(size * np.ones((3, 2)))
    assert np.any(fitted(data, rbm).visible_bias) == (size < 0.01)


def test_an_initializer_may_be_a_function():
    """Keras calls it with a dtype, which need not have a default."""
    ones = lambda shape, dtype: np.ones(shape, dtype)  # noqa: E731
    rbm = keras_rbm.RBM(2, kernel_initializer=ones, num_visible=3)
    bias = fitted(np.eye(3, dtype="float32"), rbm).visible_bias
    assert np.all(np.asarray(bias) != 0.0)
