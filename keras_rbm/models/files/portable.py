"""Export of one endpoint as ONNX, LiteRT or OpenVINO, by Keras' own exporters."""

import contextlib
import importlib
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest import mock

import keras
import tensorflow as tf

from keras_rbm._optional_imports import import_optional

if TYPE_CHECKING:
    from keras_rbm.models.files.exporting import Endpoint

#: Endpoints that draw random numbers, which only TensorFlow can draw.
_RANDOM = ("sample", "sample_stateful")


class Format(NamedTuple):
    """A file format.

    Attributes:
        title: str, its name.
        suffix: str, how a path must end.
        modules: tuple of str, modules needed to write it, besides TensorFlow.
        keras: tuple of two ints, the first Keras version that writes it for a model.
    """

    title: str
    suffix: str
    modules: tuple[str, ...]
    keras: tuple[int, int] = (3, 12)

    @property
    def is_known(self) -> bool:
        """bool: whether this Keras writes it."""
        return tuple(map(int, keras.__version__.split(".")[:2])) >= self.keras


FORMATS = {
    "onnx": Format("ONNX", ".onnx", ("onnx", "tf2onnx")),
    "litert": Format("LiteRT", ".tflite", (), (3, 15)),
    "openvino": Format("OpenVINO", ".xml", ("openvino",), (3, 13)),
}


def check_portable(
    model: keras.Model, filepath: str | os.PathLike, format: str, endpoint: str
) -> "Endpoint":
    """Returns the `Endpoint` to export, or raises before anything is written."""
    if format not in FORMATS:
        raise ValueError(
            f"Expected format to be one of {('tf_saved_model', *FORMATS)}. Received: "
            f"format={format!r}."
        )
    title, suffix, modules, since = FORMATS[format]
    if not FORMATS[format].is_known:
        raise ValueError(
            f"Expected Keras {'.'.join(map(str, since))} or later to write {title}. "
            f"Received: Keras {keras.__version__}. Upgrade it, or pass format='onnx'."
        )
    endpoints = model._endpoints()
    fixed = tuple(name for name in endpoints if name not in _RANDOM)
    if endpoint in _RANDOM and endpoint in endpoints:
        raise ValueError(
            f"Expected an endpoint without random numbers for {title}, one of {fixed}. "
            f"Received: endpoint={endpoint!r}. Export a SavedModel, format="
            "'tf_saved_model', which samples."
        )
    if endpoint not in endpoints:
        raise ValueError(
            f"Expected endpoint to be one of {fixed}. Received: endpoint={endpoint!r}."
        )
    if not str(filepath).endswith(suffix):
        raise ValueError(
            f"Expected a path that ends in {suffix!r} for {title}. Received: filepath="
            f"{str(filepath)!r}. Call export('model{suffix}', format={format!r})."
        )
    if model.compute_dtype != "float32":
        raise ValueError(
            f"Expected a model that computes in float32, to export endpoint="
            f"{endpoint!r} to {title}. Received: dtype={model.dtype_policy.name!r}. "
            "Load its weights into a model with dtype='float32' first, or export a "
            "SavedModel."
        )
    for module in modules:
        import_optional(module, f"helps to write {title}", "export")
    return endpoints[endpoint]


def export_portable(
    model: keras.Model,
    filepath: str | os.PathLike,
    format: str,
    name: str,
    endpoint: "Endpoint",
    verbose: bool | None = None,
    **kwargs: Any,
) -> None:
    """Writes one endpoint of a model by Keras' exporter.

    Args:
        model: a built model.
        filepath: path to write.
        format: str, a key of `FORMATS`.
        name: str, the endpoint's name.
        endpoint: `Endpoint`.
        verbose: as in Keras.
        **kwargs: for Keras' exporter.

    Raises:
        ValueError: if the endpoint cannot be converted.
    """
    wrapped = _OneEndpoint(model, endpoint.function)
    options: dict[str, Any] = {"input_signature": endpoint.signature}
    if format == "litert":
        # Other operations would need TensorFlow beside the interpreter.
        options["target_spec"] = {"supported_ops": [tf.lite.OpsSet.TFLITE_BUILTINS]}
    try:
        choice = _choosing_by_where() if format == "onnx" else contextlib.nullcontext()
        with choice:
            wrapped.export(str(filepath), format, bool(verbose), **options | kwargs)
        if format == "onnx":  # the converter ignores operations it does not know
            importlib.import_module("onnx").checker.check_model(str(filepath))
    except Exception as error:
        reason = str(error).strip().partition("\n")[0][:300]
        raise ValueError(
            f"Expected an endpoint that {FORMATS[format].title} can hold. Received: "
            f"endpoint={name!r} of {type(model).__name__} '{model.name}'; the "
            f"converter says: {reason!r}. Export a SavedModel, which can hold all "
            "endpoints (format='tf_saved_model'), or set another inference."
        ) from error


class _OneEndpoint(keras.Model):
    """A model whose `call` is one endpoint of another, with variables as constants."""

    def __init__(self, model: keras.Model, function: Callable[..., Any]) -> None:
        super().__init__(name=model.name)
        self.model = model
        self.function = function
        self.constants = [(each, each.numpy()) for each in model.variables]
        self.built = True

    def call(self, x: tf.Tensor, v: tf.Tensor | None = None) -> Any:
        constants = [(each, tf.constant(value)) for each, value in self.constants]
        scope = keras.StatelessScope(constants)
        softplus = mock.patch.object(tf.math, "softplus", _softplus)
        with _inlined_functions(), softplus, scope:
            return self.function(x) if v is None else self.function(x, v)


@contextlib.contextmanager
def _inlined_functions():
    """Makes a trace contain the operations of each `tf.function`, not a call of it.

    Converters do not know functions that XLA must compile.
    """
    before = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(True)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(before)


def _choosing_by_where():
    """Makes tf2onnx choose by `Where`, not by products with 0 and 1.

    Those are NaN next to infinity.
    """
    tf2onnx = importlib.import_module("tf2onnx.tfonnx")
    opsets = tf2onnx.handler.tf_op.get_opsets()[tf2onnx.constants.ONNX_DOMAIN]
    return mock.patch.dict(opsets[9], SelectV2=(_as_where, {}))


def _as_where(graph, node, **kwargs):
    node.type = "Where"


def _softplus(x):
    """Returns softplus by operations of all formats.

    LiteRT's own is log(1 + exp(x)), infinite from 89; onnxruntime's has no float64.
    """
    return tf.nn.relu(x) + tf.math.log(1.0 + tf.exp(-tf.abs(x)))
