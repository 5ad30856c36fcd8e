"""Export of models as SavedModels with named endpoints."""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from keras_rbm.models.files.saving import written_whole


class Endpoint(NamedTuple):
    """A function of an exported model.

    Attributes:
        function: takes tensors and returns a dict of tensors.
        signature: list of `tf.TensorSpec`, its arguments with their names.
    """

    function: Callable[..., Any]
    signature: list[tf.TensorSpec]


def export_saved_model(model, filepath, verbose):
    """Writes a model's endpoints as a SavedModel, whole or not at all."""
    archive = keras.export.ExportArchive()
    archive.track(model)
    inference = getattr(model, "inference", None)
    if inference is not None and inference.variables:
        archive.add_variable_collection("inference", inference.variables)
    endpoints = model._endpoints()
    for name, (function, signature) in endpoints.items():
        archive.add_endpoint(name, _with_names(function, signature), signature)
    # `keras.layers.TFSMLayer` calls it by default: it returns one tensor, as the model.
    signature = endpoints["serving_default"].signature
    archive.add_endpoint("serve", _with_names(model.call, signature), signature)
    with written_whole(filepath) as place:
        archive.write_out(place, verbose=bool(verbose))


def _with_names(function, signature):
    """Returns a function whose arguments have the signature's names."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    arguments = [inspect.Parameter(spec.name, kind) for spec in signature]

    def endpoint(*values, **others):
        return function(*values, *others.values())

    endpoint.__signature__ = inspect.Signature(arguments)  # type: ignore[attr-defined]
    return endpoint


def rows(width, name="x"):
    """Returns the `TensorSpec` of a batch of any size."""
    return tf.TensorSpec((None, width), tf.float32, name=name)


def number(name):
    """Returns the `TensorSpec` of an integer."""
    return tf.TensorSpec((), tf.int32, name=name)


def named(name, function):
    """Returns a function whose result is in a dict under a name."""
    return lambda *arguments: {name: function(*arguments)}


def chain_endpoints(sample, first):
    """Returns the two endpoints that draw samples, with and without a seed.

    Args:
        sample: a model's `sample(first, *, steps, seed)`.
        first: `tf.TensorSpec` of its first argument.
    """

    def seeded(first, steps, seed):
        high = tf.bitwise.right_shift(seed, 31)
        pair = tf.bitwise.bitwise_and(tf.stack([seed, high]), 0x7FFFFFFF)
        return {"visible": sample(first, steps=steps, seed=pair)}

    def stateful(first, steps):
        return {"visible": sample(first, steps=steps)}

    signature = [first, number("steps")]
    return {
        "sample": Endpoint(seeded, [*signature, number("seed")]),
        "sample_stateful": Endpoint(stateful, signature),
    }
