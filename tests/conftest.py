"""Two logical CPUs for every test, and fresh global Keras state."""

import keras
import pytest
import tensorflow as tf

_CPU = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(
    _CPU, [tf.config.LogicalDeviceConfiguration()] * 2
)


@pytest.fixture(autouse=True)
def fresh_keras():
    """Gives each test the default policy, names counted from zero, and a seed."""
    keras.utils.clear_session(free_memory=False)
    keras.utils.set_random_seed(1)
    yield
    keras.config.set_dtype_policy("float32")
