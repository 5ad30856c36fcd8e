"""Where the first `fit` starts the visible units."""

import keras
import numpy as np
import pytest

import keras_rbm

RNG = np.random.default_rng(0)
TWO = np.concatenate([RNG.normal(0, 1, (50, 1)), RNG.normal(100, 1, (50, 1))])


def fitted(data, visible="gaussian", frozen=(), **kwargs):
    """Returns an RBM after a first fit that trains nothing."""
    rbm = keras_rbm.RBM(2, visible=visible, num_visible=data.shape[1], seed=0)
    for name in frozen:
        getattr(rbm, f"visible_{name}").trainable = False
    rbm.compile(keras.optimizers.SGD(0.0), run_eagerly=True)
    rbm.fit(data, batch_size=len(data), verbose=0, **kwargs)
    return rbm


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
    rbm = fitted(data, visible, [frozen])
    np.testing.assert_array_equal(getattr(rbm, f"visible_{frozen}"), [0.0, 0.0])
    if frozen == "log_precision":  # the units' means are right at this precision
        np.testing.assert_allclose(rbm.visible_bias, data.mean(0), rtol=1e-5)


@pytest.mark.parametrize("size", [1.0, 0.001])
def test_a_zero_bias_of_weights_that_were_set_stays(size):
    """Only weights that no initializer draws are known to be set."""
    data = np.tile([[1.0, 1.0, 0.0]], (50, 1)).astype("float32")
    rbm = keras_rbm.RBM(2, num_visible=3, seed=0)
    rbm.kernel.assign(size * np.ones((3, 2)))
    rbm.compile(keras.optimizers.SGD(0.0), run_eagerly=True)
    rbm.fit(data, verbose=0)
    assert np.any(rbm.visible_bias) == (size < 0.01)


def test_an_initializer_may_be_a_function():
    """Keras calls it with a dtype, which need not have a default."""
    rbm = keras_rbm.RBM(
        2, kernel_initializer=lambda shape, dtype: np.ones(shape, dtype), num_visible=3
    )
    rbm.compile(keras.optimizers.SGD(0.0), run_eagerly=True)
    rbm.fit(np.eye(3, dtype="float32"), verbose=0)
    assert np.all(np.asarray(rbm.visible_bias) != 0.0)
