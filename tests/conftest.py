"""Two logical CPUs for every test, and fresh global Keras state."""

import gc
import os

# Tests compile more than they compute. Read when TensorFlow is imported.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=1")

import keras  # noqa: E402
import pytest  # noqa: E402
import tensorflow as tf  # noqa: E402

_CPU = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(
    _CPU, [tf.config.LogicalDeviceConfiguration()] * 2
)
# Passes over a graph that take longer here than they save. Without any of them tests
# would take a sixth less time, and 8 GB for each process.
tf.config.optimizer.set_experimental_options(
    dict.fromkeys(("constant_folding", "layout_optimizer", "remapping"), False)
)
if "PYTEST_XDIST_WORKER" in os.environ:  # a core for each
    tf.config.threading.set_intra_op_parallelism_threads(1)


@pytest.fixture(autouse=True, scope="module")
def frozen_garbage():
    """Keeps the collector from walking the traces of all earlier modules, again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def fresh_keras():
    """Gives each test the default policy, names counted from zero, and a seed."""
    keras.utils.clear_session(free_memory=False)
    keras.utils.set_random_seed(1)
    yield
    keras.config.set_dtype_policy("float32")
