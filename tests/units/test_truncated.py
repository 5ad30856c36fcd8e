import numpy as np
import pytest
import tensorflow as tf

from keras_rbm.units.rectified import HalfGaussian


@pytest.mark.parametrize("jit_compile", [False, True])
def test_extreme_noise_gives_finite_states(jit_compile):
    """Compiled, one draw in ten million was infinite, and ended long fits with NaN."""
    ends = 2.0 ** -np.arange(1.0, 25.0)
    noise = np.float32(np.concatenate([ends, 1.0 - ends[:-1]]))[:, np.newaxis]
    locations = np.linspace(-8.0, 8.0, 161, dtype="float32")

    @tf.function(jit_compile=jit_compile)
    def drawn():
        return HalfGaussian(tf.constant(locations), tf.ones(161)).sample(noise)

    states = drawn().numpy()
    assert np.isfinite(states).all() and (states >= 0.0).all()
    assert (np.diff(states[:24], axis=0) > -1e-3).all()  # less noise, larger states
