"""Two logical CPUs for every test, and fresh global Keras state."""

import functools
import gc
import inspect
import os
import pathlib
import unittest.mock

# Tests compile more than they compute, and much of it again: what XLA has compiled is
# kept from test to test, and from run to run. Read when TensorFlow is imported.
_XLA_CACHE = pathlib.Path(__file__).parents[2] / ".pytest_cache" / "xla"
_XLA_CACHE.mkdir(parents=True, exist_ok=True)
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=1")
os.environ.setdefault(
    "TF_XLA_FLAGS", f"--tf_xla_persistent_cache_directory={_XLA_CACHE}"
)
if "PYTEST_XDIST_WORKER" in os.environ:  # a core for each, which BLAS would not know
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import keras  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
import scipy.sparse  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.python import pywrap_tfe  # noqa: E402

from keras_rbm.inference import traces  # noqa: E402
from keras_rbm.models.boltzmann_machine import BoltzmannMachine  # noqa: E402
from keras_rbm.models.training import shared_programs  # noqa: E402

_CPU = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(
    _CPU, [tf.config.LogicalDeviceConfiguration()] * 2
)
# Passes over a graph take longer here than they save. Only functions are inlined:
# without that each process would take 8 GB.
_PASSES = """
    arithmetic_optimization auto_mixed_precision constant_folding debug_stripper
    dependency_optimization layout_optimizer loop_optimization pin_to_host_optimization
    remapping scoped_allocator_optimization shape_optimization
"""
tf.config.optimizer.set_experimental_options(dict.fromkeys(_PASSES.split(), False))
if "PYTEST_XDIST_WORKER" in os.environ:  # a core for each
    tf.config.threading.set_intra_op_parallelism_threads(1)


@pytest.fixture(autouse=True, scope="module")
def frozen_garbage():
    """Keeps the collector from walking the traces of all earlier modules, again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def nothing_is_compiled(monkeypatch):
    """Steps and sweeps that run for milliseconds would be compiled for seconds."""
    monkeypatch.setattr(traces, "compiles", False)


@pytest.fixture
def compiled_inference(monkeypatch):
    """Has the library compile what it does for users, `jit_compile="auto"` included."""
    monkeypatch.setattr(traces, "compiles", True)


def _num_steps(x, batch_size, epochs, initial_epoch, **kwargs):
    """Returns how many steps a fit on an array takes, or infinity."""
    is_array = isinstance(x, np.ndarray | tf.Tensor) or scipy.sparse.issparse(x)
    if not is_array or not x.ndim:
        return np.inf
    return (epochs - initial_epoch) * -(-x.shape[0] // (batch_size or 32))


@pytest.fixture(autouse=True)
def short_fits_run_eagerly(monkeypatch):
    """To trace a step takes as long as ten of them; `traced` has `fit` trace it."""
    fit = BoltzmannMachine.fit

    @functools.wraps(fit)
    def fit_in_short(self, *args, **kwargs):
        given = inspect.signature(fit).bind(self, *args, **kwargs)
        given.apply_defaults()
        alone = self.distribute_strategy.num_replicas_in_sync == 1
        traced = not self.compiled or self.run_eagerly or self.jit_compile
        if traced or not alone or _num_steps(**given.arguments) > 6:
            return fit(self, *args, **kwargs)
        self.run_eagerly = True
        try:
            return fit(self, *args, **kwargs)
        finally:
            self.run_eagerly = False
            self.train_function = self.test_function = None

    monkeypatch.setattr(BoltzmannMachine, "fit", fit_in_short)
    return fit


@pytest.fixture
def traced(monkeypatch, short_fits_run_eagerly):
    """Has each `fit` trace its step, as it does for users."""
    monkeypatch.setattr(BoltzmannMachine, "fit", short_fits_run_eagerly)


@pytest.fixture
def as_users_run(traced, compiled_inference):
    """Has everything traced and compiled as it is for users."""


@pytest.fixture(autouse=True)
def fresh_keras():
    """Gives each test the default policy, names counted from zero, and a seed.

    Both of Keras' functions have TensorFlow drop its kernels, too, which took a fifth
    of the time of all tests: they are made anew, and traces are optimized anew.
    """
    with unittest.mock.patch.object(pywrap_tfe, "TFE_ContextClearCaches"):
        keras.utils.clear_session(free_memory=False)
        keras.utils.set_random_seed(1)
    shared_programs._programs.clear()
    yield
    keras.config.set_dtype_policy("float32")


@pytest.fixture
def real_data():
    """Real data, with `tfds/` and `caltech101_silhouettes/` in it."""
    root = os.environ.get("KERAS_RBM_TEST_DATA")
    if not root:
        pytest.skip("KERAS_RBM_TEST_DATA names no folder with real data")
    return pathlib.Path(root)
