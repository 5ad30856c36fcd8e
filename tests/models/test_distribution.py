"""Several devices in one process, and several processes."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from brute_force import random_potentials, rbm_like
from model_test_case import two_cpus
from same import assert_same
from small_models import binary, compiled, fitted, slow
from workers import start_workers

import keras_rbm
from keras_rbm import CRBM, RBM


def doubled(make):
    """Returns a model on two logical devices, with the weights of a single one."""
    single = make()
    with two_cpus().scope():
        double = make()
    double.set_weights(single.get_weights())
    return single, double


ROWS = binary()


@pytest.mark.parametrize("rule", ["pcd", slow("sdcp")])
def test_a_strategy_with_one_device(traced, rule):
    """`MirroredStrategy()` on a machine with one GPU, or none."""
    bad = tf.data.Dataset.from_tensor_slices([ROWS[:10], np.nan * ROWS[:10]])
    models, one = [], tf.distribute.MirroredStrategy(["CPU:0"])
    for strategy in (tf.distribute.get_strategy(), one):
        with strategy.scope():
            rbm = compiled(RBM(4, num_visible=6, seed=0), "sgd", rule=rule)
        models.append(fitted(rbm, ROWS, batch_size=10))
        with pytest.raises(ValueError, match="The step has changed nothing"):
            rbm.fit(bad, verbose=0)
    assert_same(*[model.get_weights() for model in models])


def test_fit_compiles_in_the_scope_of_a_model():
    with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
        rbm = RBM(4, num_visible=6, seed=0)
    assert np.isfinite(fitted(rbm, ROWS).kernel).all()


def test_log_partition_is_that_of_one_device():
    single, double = doubled(lambda: rbm_like(random_potentials(8, 5)))
    values = [model.log_partition("ais").value for model in (single, double)]
    assert values[0] == values[1]


def run_workers(folder, *arguments):
    """Runs two worker processes; returns their results, `None` of one that fell."""
    workers = start_workers(folder, *arguments)
    last = workers[1].communicate(timeout=240)
    if workers[1].returncode == 9:  # fell on purpose: no need to wait for the other
        workers[0].kill()
    outputs = [workers[0].communicate(timeout=240), last]
    if workers[1].returncode == 9:
        return None
    for worker, (_, errors) in zip(workers, outputs, strict=True):
        assert worker.returncode == 0, errors[-3000:]
    return [json.loads(output.splitlines()[-1]) for output, _ in outputs]


def one_process():
    """Returns the model that the workers train, and its data."""
    rng = np.random.default_rng(0)
    x, y = (rng.integers(0, 2, (40, n)).astype("float32") for n in (6, 5))
    crbm = CRBM(4, num_visible=5, num_features=6, inference="mean_field", seed=1)
    metrics = [keras_rbm.metrics.PixelError()]
    return compiled(crbm, keras.optimizers.SGD(0.5), metrics=metrics), x, y


@pytest.mark.slow
@pytest.mark.multiprocess
def test_two_processes_learn_as_one(tmp_path):
    first, second = run_workers(tmp_path, "learn")
    crbm, x, y = one_process()
    options = {"batch_size": 10, "epochs": 3, "verbose": 0}
    history = crbm.fit(x, y, validation_data=(x, y), **options).history
    assert first["history"] == second["history"]
    assert history.keys() == first["history"].keys()
    for name, values in history.items():
        np.testing.assert_allclose(first["history"][name], values, rtol=1e-4)
    np.testing.assert_allclose(first["kernel"], crbm.kernel, rtol=1e-3, atol=1e-6)
    assert first["kernel"] == second["kernel"]
    # Sampling: one model, chains of their own.
    assert first["rbm_kernel"] == second["rbm_kernel"]
    assert first["chains"] != second["chains"]
    assert np.isfinite(first["rbm_loss"]).all()
    assert first["log_partition"] == second["log_partition"]
    assert first["log_partition"] == pytest.approx(first["exact"], abs=0.1)


@pytest.mark.slow
@pytest.mark.multiprocess
def test_a_fallen_worker_costs_an_epoch_at_most(tmp_path):
    assert run_workers(tmp_path, "fall") is None
    first, second = run_workers(tmp_path, "resume")
    assert first["started_at"] == second["started_at"] == 2
    whole, x, y = one_process()
    whole.fit(x, y, batch_size=10, epochs=4, verbose=0)
    np.testing.assert_allclose(first["kernel"], whole.kernel, rtol=1e-3, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_batches_that_devices_cannot_share_evenly(dtype):
    """Of 3 rows one device gets two, of 1 row one gets none."""
    data = ROWS[:9]

    def make():
        rbm = RBM(4, num_visible=6, seed=0, dtype=dtype)
        rule = keras_rbm.rules.MaximumLikelihood("exact")
        return compiled(rbm, keras.optimizers.SGD(0.5), rule=rule, jit_compile=False)

    single, double = doubled(make)
    for rbm in (single, double):
        rbm.adapt(data)
        rbm.evaluate(data[:1], verbose=0)
        fitted(rbm, data[:7], batch_size=3, shuffle=False)
        rbm.train_on_batch(data[:1])
    near = 1e-6 if dtype == "float32" else 1e-2
    np.testing.assert_allclose(double.kernel, single.kernel, atol=near)


@pytest.mark.slow
def test_divergence_is_named_on_several_devices():
    with two_cpus().scope():
        rbm = compiled(RBM(4, seed=0), keras.optimizers.SGD(500.0))
    with pytest.warns(UserWarning, match="The learning rate is 500"):
        rbm.fit(ROWS, epochs=4, verbose=0)
