"""Exported models answer as the live ones do, in a process without keras_rbm."""

import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from same import refused
from small_models import binary, compiled, fitted, quick

from keras_rbm import CRBM, DBM, DBN, RBM, InfiniteRBM

X, V = binary(30), binary(30, 5, seed=1)


def fitted_rbm():
    return fitted(compiled(RBM(4, seed=0), "sgd"), X)


def fitted_crbm():
    return fitted(compiled(CRBM(4, seed=0), "sgd"), X, V)


def grown():
    model = InfiniteRBM(8, num_visible=6, seed=0)
    for seed in range(3):
        model.insert_unit(np.random.default_rng(seed).normal(0, 1, 6), 0.1)
    return model


def dbn():
    return DBN([RBM(4, num_visible=6, seed=0), RBM(3, seed=1)])


def dbm():
    model = DBM([4, 3], num_visible=6, seed=0)
    for kernel in model.kernels:
        kernel.assign(20 * kernel)
    return model


def gaussian():
    rbm = RBM(4, visible="gaussian", seed=0)
    rbm.adapt(X + V.mean())
    return rbm


MODELS = {f.__name__: f for f in (fitted_rbm, fitted_crbm, grown, dbn, dbm, gaussian)}


def live_answers(model):
    """Returns dict of endpoint to arguments and what the model itself answers."""
    if isinstance(model, CRBM):
        x, v = X[:7], V[:7]
        marginals = ((x,), {"marginals": model.predict(x, verbose=0)})
        return {
            "serving_default": marginals,
            "predict": marginals,
            "predict_map": ((x,), {"visible": model.predict_map(x)}),
            "free_energy": ((x, v), {"free_energy": model.free_energy(x, v)}),
            "sample": ((x, 5, 3), {"visible": model.sample(x, steps=5, seed=3)}),
        }
    x = X[:7]
    features = ((x,), {"features": model.predict(x, verbose=0)})
    answers = {
        "serving_default": features,
        "transform": features,
        "reconstruct": ((x,), {"visible": model.reconstruct(x)}),
        "sample": ((4, 5, 3), {"visible": model.sample(4, steps=5, seed=3)}),
    }
    for name in ("free_energy", "variational_free_energy"):
        if hasattr(model, name):
            answers[name] = ((x,), {"free_energy": getattr(model, name)(x)})
    return answers


# Of a conditional one the process without the library asks.
@pytest.mark.parametrize("name", quick(MODELS, "fitted_rbm", "grown"))
def test_served_values_are_the_live_models(name, tmp_path):
    model = MODELS[name]()
    model.export(tmp_path / "model")
    loaded = tf.saved_model.load(tmp_path / "model")
    answers = live_answers(model)
    assert set(loaded.signatures) == {*answers, "sample_stateful", "serve"}
    for name, (arguments, expected) in answers.items():
        result = getattr(loaded, name)(*arguments)
        assert list(result) == list(expected)
        for key, value in expected.items():
            np.testing.assert_allclose(result[key], value, atol=1e-6, err_msg=name)
    arguments = answers["sample"][0][:-1]
    negative = loaded.sample(*arguments, seed=-3)["visible"]
    live = model.sample(arguments[0], steps=arguments[1], seed=-3)
    np.testing.assert_array_equal(negative, live)
    by_name = loaded.sample(*arguments, seed=3)["visible"]
    np.testing.assert_array_equal(by_name, answers["sample"][1]["visible"])
    first, second = (loaded.sample_stateful(*arguments)["visible"] for _ in range(2))
    assert first.shape == second.shape == answers["sample"][1]["visible"].shape
    assert not np.array_equal(first, second)
    again = tf.saved_model.load(tmp_path / "model")
    np.testing.assert_array_equal(again.sample_stateful(*arguments)["visible"], first)


SCRIPT = """
import sys
sys.modules["keras_rbm"] = None  # to import it is an error
import numpy as np, tensorflow as tf
model = tf.saved_model.load(sys.argv[1])
data = np.load(sys.argv[2])
served = model.signatures["serving_default"](x=tf.constant(data["x"]))
np.testing.assert_allclose(served["marginals"], data["marginals"], atol=1e-6)
energy = model.free_energy(data["x"], data["v"])["free_energy"]
np.testing.assert_allclose(energy, data["energy"], atol=1e-4)
np.testing.assert_array_equal(model.sample(data["x"], 5, 3)["visible"], data["sample"])
assert model.sample_stateful(data["x"], 2)["visible"].shape == data["v"].shape
assert model.predict_map(data["x"])["visible"].shape == data["v"].shape
assert {"predict_map", "sample_stateful"} < set(model.signatures)
served = model.signatures["serving_default"]
assert served.structured_input_signature[1]["x"].shape.as_list() == [None, 6]
print("served")
"""


@pytest.mark.slow
@pytest.mark.multiprocess
def test_a_process_without_the_library_serves_it(tmp_path):
    crbm = fitted_crbm()
    crbm.export(tmp_path / "model")
    answers = {
        "marginals": crbm.predict(X, verbose=0),
        "energy": crbm.free_energy(X, V),
        "sample": crbm.sample(X, steps=5, seed=3),
    }
    np.savez(tmp_path / "data.npz", x=X, v=V, **answers)
    command = [sys.executable, "-c", SCRIPT, "model", "data.npz"]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert "served" in result.stdout, result.stderr


def test_a_likelihood_is_served_with_its_interval(tmp_path):
    rbm = fitted_rbm()
    z = rbm.log_partition("exact")._replace(lower=1.0, upper=9.0)
    rbm.export(tmp_path / "model", log_partition=z, verbose=False)
    model = tf.saved_model.load(tmp_path / "model")  # holds the variables
    served = model.log_likelihood(X)
    np.testing.assert_allclose(served["log_likelihood"], rbm.log_likelihood(X, z), 1e-5)
    energies = rbm.free_energy(X)
    np.testing.assert_allclose(served["lower"], -energies - 9.0, 1e-5)
    np.testing.assert_allclose(served["upper"], -energies - 1.0, 1e-5)
    for other in (fitted_crbm(), RBM(2, num_visible=6, missing="absent")):
        with pytest.raises(ValueError, match="one log Z"):
            other.export(tmp_path / "no", log_partition=z)
    assert not (tmp_path / "no").exists()


def test_export_comes_before_any_call(tmp_path):
    RBM(4, num_visible=6).export(tmp_path / "fresh")
    with refused("format=pmml"):
        fitted_rbm().export(tmp_path / "no", "pmml")
    assert not (tmp_path / "no").exists()


@pytest.mark.filterwarnings("ignore")  # of the converter, about itself
def test_a_dense_layer_that_equals_the_features_in_onnx(tmp_path):
    """So says the guide "Deploy a model"; Keras also writes the model itself."""
    for package in ("onnx", "tf2onnx"):
        pytest.importorskip(package)
    onnxruntime = pytest.importorskip("onnxruntime")
    rbm = fitted_rbm()
    dense = keras.layers.Dense(4, activation="sigmoid")
    features = keras.Sequential([keras.Input((6,)), dense])
    dense.set_weights([rbm.kernel, rbm.hidden_bias])
    np.testing.assert_allclose(features(X), rbm(X), atol=1e-6)
    for model in (features, rbm):
        model.export(tmp_path / "model.onnx", format="onnx", verbose=False)
        session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
        (answer,) = session.run(None, {session.get_inputs()[0].name: X})
        np.testing.assert_allclose(answer, rbm(X), atol=1e-6)
