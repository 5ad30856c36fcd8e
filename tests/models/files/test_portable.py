"""ONNX, LiteRT and OpenVINO files answer as the live models do."""

import importlib

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_rbm import CRBM, DBM, DBN, RBM, InfiniteRBM
from keras_rbm.inference import BeliefPropagation, MeanField
from keras_rbm.models.files import portable

RNG = np.random.default_rng(0)
SUFFIX = {"onnx": ".onnx", "litert": ".tflite", "openvino": ".xml"}
#: What it takes to write a file, and what to read it.
PACKAGES = {
    "onnx": ("onnx", "tf2onnx", "onnxruntime"),
    "litert": ("ai_edge_litert",),
    "openvino": ("openvino",),
}
# Of Keras, TensorFlow and the converters, about themselves.
pytestmark = pytest.mark.filterwarnings("ignore")


def with_weights(model, scale=1.0):
    """Gives a model weights of some size, of which units are not copies."""
    generator = np.random.default_rng(1)
    for weight in model.trainable_weights:
        weight.assign(generator.normal(0, scale, weight.shape))
    return model


def rbm():
    return with_weights(RBM(4, num_visible=6, seed=0))


def gaussian():
    model = with_weights(RBM(4, visible="gaussian", num_visible=6, seed=0), 0.3)
    model.adapt(RNG.normal(2, 3, (50, 6)))
    return model


def grown():
    model = InfiniteRBM(8, num_visible=6, seed=0)
    for seed in range(3):
        weights = np.random.default_rng(seed).normal(0, 1, 6)
        model.insert_unit(weights, 0.1)
    return model


def dbn():
    rbms = [with_weights(RBM(4, num_visible=6)), with_weights(RBM(3, num_visible=4))]
    model = DBN(rbms)
    model.build((None, 6))
    return model


def dbm():
    return with_weights(DBM([4, 3], num_visible=6, seed=0))


def crbm(inference="belief_propagation", scale=0.5):
    options = {"inference": inference, "num_visible": 5, "num_features": 6, "seed": 0}
    return with_weights(CRBM(4, **options), scale)


def fixed_sweeps():
    return crbm(BeliefPropagation(max_iterations=7, tolerance=0.0))


def mixed():
    return crbm("mixed_product")


def mean_field():
    return crbm(MeanField(max_iterations=8))


def exact():
    return crbm("exact")


def exact_of_many_units():
    """Of layers that are enumerated for one model at a time."""
    options = {"num_visible": 13, "num_features": 6, "seed": 0}
    return with_weights(CRBM(13, inference="exact", **options), 0.5)


def large_weights():
    return crbm(scale=9.0)


def very_large_weights():
    return crbm(scale=60.0)


MODELS = {f.__name__: f for f in (rbm, gaussian, grown, dbn, dbm, fixed_sweeps)}
ENDPOINTS = {
    "rbm": ("serving_default", "transform", "reconstruct", "free_energy"),
    "gaussian": ("serving_default", "reconstruct", "free_energy"),
    "grown": ("serving_default", "reconstruct", "free_energy"),
    "dbn": ("serving_default", "reconstruct"),
    "dbm": ("serving_default", "reconstruct", "variational_free_energy"),
    "fixed_sweeps": ("serving_default", "predict_map", "free_energy"),
}
CASES = [(name, endpoint) for name, ends in ENDPOINTS.items() for endpoint in ends]


@pytest.fixture(params=SUFFIX)
def format(request):
    """A format that this environment writes and reads."""
    needed(request.param)
    return request.param


def needed(format):
    for package in PACKAGES[format]:
        pytest.importorskip(package, reason=f"{format} takes {package}")
    if not portable.FORMATS[format].is_known:
        pytest.skip(f"Keras {keras.__version__} writes no {format}")


def run(format, path, feeds):
    """Returns dict of name to array, by the format's own runtime."""
    if format == "onnx":
        session = importlib.import_module("onnxruntime").InferenceSession(path)
        names = [output.name for output in session.get_outputs()]
        return dict(zip(names, session.run(None, feeds), strict=True))
    if format == "openvino":
        core = importlib.import_module("openvino").Core()
        precise = {"INFERENCE_PRECISION_HINT": "f32"}
        compiled = core.compile_model(path, "CPU", precise)
        result = compiled(feeds)
        return {out.get_any_name(): result[out] for out in compiled.outputs}
    interpreter = importlib.import_module("ai_edge_litert.interpreter")
    return interpreter.Interpreter(model_path=path).get_signature_runner()(**feeds)


def largest_difference(model, format, endpoint, folder):
    """Exports an endpoint, and compares its answers with the live model's."""
    path = folder / f"model{SUFFIX[format]}"
    model.export(path, format, endpoint=endpoint)
    function, signature = model._endpoints()[endpoint]
    largest = 0.0
    for size in (1, 7, 16, 40):
        arrays = [RNG.integers(0, 2, (size, spec.shape[1])) for spec in signature]
        arrays = [array.astype("float32") for array in arrays]
        names = [spec.name for spec in signature]
        answer = run(format, str(path), dict(zip(names, arrays, strict=True)))
        (name, live), *others = function(*arrays).items()
        assert list(answer) == [name] and not others
        assert answer[name].shape == live.shape
        largest = max(largest, np.abs(answer[name] - live).max())
    return largest


@pytest.mark.parametrize(
    "name, format",
    [
        ("rbm", "onnx"),
        ("rbm", "litert"),
        ("rbm", "openvino"),
        ("dbm", "litert"),
        ("fixed_sweeps", "onnx"),
    ],
    indirect=["format"],
)
def test_default_endpoint(name, format, tmp_path):
    assert (
        largest_difference(MODELS[name](), format, "serving_default", tmp_path) < 1e-5
    )


@pytest.mark.slow
@pytest.mark.parametrize("name, endpoint", CASES)
def test_every_endpoint(name, endpoint, format, tmp_path, compiled_inference):
    assert largest_difference(MODELS[name](), format, endpoint, tmp_path) < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize(
    "make", [exact, mixed, mean_field, large_weights, very_large_weights]
)
def test_other_inference(make, format, tmp_path, compiled_inference):
    """Weights beyond 10 take another way, of ratios without products.

    Those beyond 40 take that of logarithms of ratios.
    """
    if format == "litert" and make is very_large_weights:
        pytest.skip("see test_litert_has_no_float64")
    model = make()
    assert largest_difference(model, format, "serving_default", tmp_path) < 1e-5


def test_free_energy_of_large_inputs(tmp_path):
    """LiteRT's own softplus is log(1 + exp(x)), infinite from 89."""
    needed("litert")
    model = rbm()
    model.kernel.assign(100 * model.kernel)
    assert largest_difference(model, "litert", "free_energy", tmp_path) < 1e-3


def test_export_leaves_the_model_alone(tmp_path):
    needed("onnx")
    model = rbm()
    before = model.get_weights()
    model.export(tmp_path / "model.onnx", "onnx")
    for one, other in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(one, other)
    model.compile("sgd")
    model.fit(RNG.integers(0, 2, (30, 6)).astype("float32"), verbose=0)
    assert [file.name for file in tmp_path.iterdir()] == ["model.onnx"]


def test_files_of_a_format_are_replaced(tmp_path):
    needed("openvino")
    for _ in range(2):
        rbm().export(tmp_path / "model.xml", "openvino")
    assert {file.name for file in tmp_path.iterdir()} == {"model.xml", "model.bin"}


def check_nothing_is_written(model, folder, message, **kwargs):
    arguments = {"filepath": folder / "model.onnx", "format": "onnx"} | kwargs
    with pytest.raises(ValueError, match=message):
        model.export(**arguments)
    assert not list(folder.iterdir())


def test_what_cannot_be_exported(tmp_path):
    refused = {
        "endpoint='sample'.*'tf_saved_model'": {"endpoint": "sample"},
        "endpoint='score'": {"endpoint": "score"},
        "format='pmml'": {"format": "pmml"},
        "'.onnx' for ONNX.*model.pb": {"filepath": tmp_path / "model.pb"},
        "SavedModel has all.*'transform'": {
            "format": "tf_saved_model",
            "endpoint": "transform",
        },
    }
    for message, arguments in refused.items():
        check_nothing_is_written(rbm(), tmp_path, message, **arguments)
    half = RBM(4, num_visible=6, dtype="mixed_bfloat16")
    check_nothing_is_written(half, tmp_path, "computes in float32.*mixed_bfloat16")
    check_nothing_is_written(RBM(4), tmp_path, "built model in export")


def test_an_older_keras_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(keras, "__version__", "3.12.4")
    message = "Expected Keras 3.15.*write LiteRT. Received: Keras 3.12.4"
    path = tmp_path / "model.tflite"
    check_nothing_is_written(rbm(), tmp_path, message, filepath=path, format="litert")


def test_what_a_format_cannot_hold(tmp_path):
    """The converter to ONNX writes operations that do not exist, without an error."""
    needed("onnx")
    message = "ONNX can hold.*endpoint='serving_default'.*SavedModel"
    rectified = with_weights(RBM(4, hidden="rectified", num_visible=6))
    check_nothing_is_written(rectified, tmp_path, message)


@pytest.mark.parametrize("make", [exact_of_many_units, very_large_weights])
def test_litert_has_no_float64(make, tmp_path):
    needed("litert")
    message = "LiteRT can hold.*endpoint='serving_default'.*SavedModel"
    path = tmp_path / "model.tflite"
    options = {"filepath": path, "format": "litert"}
    check_nothing_is_written(make(), tmp_path, message, **options)


def test_softplus_of_export_is_that_of_tensorflow():
    x = np.concatenate([np.linspace(-100, 100, 2001), [-1e30, 1e30]])
    for dtype in ("float32", "float64"):
        tolerance = 2 * np.finfo(dtype).eps
        got = portable._softplus(tf.constant(x, dtype))
        exact = np.logaddexp(0, x.astype(dtype).astype("float64"))
        np.testing.assert_allclose(got, exact, 4 * tolerance, tolerance)


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "tf2onnx", None)
    pytest.importorskip("onnx")
    with pytest.raises(ImportError, match=r"tf2onnx.*pip install keras-rbm\[export\]"):
        rbm().export(tmp_path / "model.onnx", "onnx")
    assert not list(tmp_path.iterdir())
