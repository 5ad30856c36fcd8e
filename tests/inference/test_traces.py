import threading

import numpy as np
import pytest
import tensorflow as tf

import keras_rbm
from keras_rbm.inference import Potentials
from keras_rbm.inference.traces import full_precision

ROWS = (np.random.default_rng(0).random((30, 7)) < 0.4).astype("float32")


def built(model, *data):
    model.compile("sgd")
    model.fit(*data, verbose=0)
    return model


def score(name):
    """Returns a function that scores a new model."""
    if name == "crbm":
        crbm = built(keras_rbm.CRBM(3, seed=0), ROWS, ROWS)
        return lambda: [
            crbm.log_likelihood(ROWS, ROWS, method)
            for method in ("bethe", "mean_field", "ais")
        ]
    if name == "dbm":
        dbm = built(keras_rbm.DBM([4, 3], seed=0), ROWS)
        return lambda: dbm.log_likelihood_bound(ROWS)
    rbm = built(keras_rbm.RBM(5, seed=0), ROWS)
    return lambda: [
        rbm.free_energy(ROWS),
        rbm.pseudo_log_likelihood(ROWS),
        rbm.log_partition("tempering", num_chains=20),
        rbm.log_likelihood(ROWS, "exact"),
        rbm.log_partition("bidirectional", num_chains=10, precision=9.0),
        keras_rbm.inference.pseudo_log_likelihood(rbm.potentials(), ROWS),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rbm", "crbm", "dbm"])
def test_scores_do_not_round_factors_to_ten_bits(name, monkeypatch):
    """A GPU rounds them by default. It is a switch of the process."""
    run, flags = score(name), []
    product, enabled = (
        Potentials._product,
        tf.config.experimental.tensor_float_32_execution_enabled,
    )

    def recorded(*args, **kwargs):
        flags.append(enabled())
        return product(*args, **kwargs)

    assert enabled()
    monkeypatch.setattr(Potentials, "_product", recorded)
    run()
    assert flags and not any(flags)
    assert enabled()


def test_the_switch_goes_back_after_an_error():
    rbm = built(keras_rbm.RBM(5, seed=0), ROWS)
    rbm.kernel.assign(rbm.kernel * np.nan)
    with pytest.raises(ValueError, match="not finite|finite"):
        rbm.log_partition()
    assert tf.config.experimental.tensor_float_32_execution_enabled()


def test_the_switch_of_two_threads():
    """The first to leave switched it on for the second, which left it off for good."""
    enabled = tf.config.experimental.tensor_float_32_execution_enabled
    inside, leave = threading.Event(), threading.Event()

    def other():
        with full_precision():
            inside.set()
            leave.wait()

    thread = threading.Thread(target=other)
    with full_precision():
        thread.start()
        inside.wait()
    assert not enabled()
    leave.set()
    thread.join()
    assert enabled()
