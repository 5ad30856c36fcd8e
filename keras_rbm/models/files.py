"""Files of a model: saved, loaded and exported, whole or not at all."""

import contextlib
import glob
import inspect
import math
import os
import shutil
import time
import uuid
from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from keras_rbm._checks import as_path
from keras_rbm.models.frozen import log_z_of
from keras_rbm.models.training.progress import FitState, set_prior

_KIND, _FIT = "kind", "fit"
#: Seconds after which a file that is not renamed was left by a process that is gone.
_LEFT = 3600.0


def state_of(model):
    """Returns two dicts of the variables to save, by name: required and optional.

    Keras saves the weights of layers, but not the seeds of their random numbers.
    """
    of_layers = {id(v) for layer in model.layers for v in layer.variables}
    weights = [v for v in model.weights if id(v) not in of_layers]
    required = {variable.name: variable for variable in weights}
    required["seed_generator"] = model.seed_generator.state
    kept = {id(variable) for variable in [*model.weights, *required.values()]}
    seeds = [variable for variable in model.variables if id(variable) not in kept]
    optional = {f"layers.seed_{i}": seed for i, seed in enumerate(seeds)}
    rule = [] if model.learner is None else model.learner.variables
    return required, optional | {f"rule.{v.name}": v for v in rule}


def save_state(model, store):
    """Writes a model's variables under their names into a Keras weights store."""
    required, optional = state_of(model)
    for name, variable in (required | optional).items():
        store[name] = variable
    store[_FIT] = np.array(model.fit_state)
    store[_KIND] = np.frombuffer(_kind_of(model).encode(), np.uint8)


def load_state(model, store):
    """Assigns a model's variables from a store, after checking all of them.

    Raises:
        ValueError: if a variable is missing or has another shape, or they are from
            another kind of model; nothing is assigned then.
    """
    names, kind = set(store.keys()), _kind_of(model)
    required, optional = state_of(model)
    if _KIND in names:
        saved = np.asarray(store[_KIND]).tobytes().decode()
        if saved != kind:
            raise ValueError(
                f"Expected the variables of a model of one kind: {kind}. Received: a "
                f"file of a {saved}. Nothing was loaded; load its own model with "
                "keras.saving.load_model, or convert it (InfiniteRBM.to_rbm)."
            )
    missing = sorted({*required, _KIND, _FIT} - names)
    if missing:
        raise ValueError(
            f"Expected saved variables {sorted(required)}. Received: {sorted(names)}. "
            f"Missing: {missing}. Load a file that the same class of model saved."
        )
    chosen = required | {k: v for k, v in optional.items() if k in names}
    for name, variable in chosen.items():
        shape = tuple(store[name].shape)
        if shape != tuple(variable.shape):
            raise ValueError(
                f"Expected {name} of shape {tuple(variable.shape)}. Received: shape "
                f"{shape}. Nothing was loaded; make a model (and for 'rule.…' a rule) "
                "of the saved size."
            )
    for name, variable in chosen.items():
        variable.assign(np.asarray(store[name]))
    count, steps, *others = map(float, np.asarray(store[_FIT]))
    set_prior(model, FitState(int(count), int(steps), *others))


def _kind_of(model):
    """Returns the kind of a model: its class, and the classes of its units."""
    kind = next(c for c in type(model).__mro__ if c.__module__.startswith("keras_rbm."))
    visible, hidden = (
        ", ".join(dict.fromkeys(type(unit).__name__ for unit in tf.nest.flatten(side)))
        for side in (model.visible, model.hidden)
    )
    return f"{kind.__name__} of {visible} and {hidden} units"


def save(model, filepath, overwrite, zipped, **kwargs):
    """Saves a whole model as `keras.Model.save` does, all of it or nothing."""
    suffix = None if zipped is False else ".keras"
    with written_whole(filepath, suffix, "save", overwrite) as place:
        keras.Model.save(model, place, overwrite, zipped, **kwargs)


def save_weights(model, filepath, overwrite, max_shard_size):
    """Saves a model's variables as `keras.Model.save_weights` does, all or nothing."""
    if max_shard_size is not None:
        keras.Model.save_weights(model, filepath, overwrite, max_shard_size)
        return
    with written_whole(filepath, ".weights.h5", "save_weights", overwrite) as place:
        keras.Model.save_weights(model, place, overwrite)


@contextlib.contextmanager
def unchanged_unless_loaded(model, filepath):
    """Restores a model, or each of its `rbms`, to what it was if reading a file fails.

    Raises:
        ValueError: if the path does not end like a file that weights are read from.
    """
    if not str(as_path(filepath)).endswith((".h5", ".keras", ".weights.json")):
        raise ValueError(
            "Expected a path that ends in '.weights.h5' or '.keras'. Received: "
            f"filepath={str(filepath)!r}."
        )
    models = getattr(model, "rbms", [model])
    before = [(each, each.fit_state, _values(each)) for each in models]
    try:
        yield
    except BaseException:
        for model, fit_state, values in before:
            set_prior(model, fit_state)
            for variable, value in values:
                variable.assign(value)
        raise


def _values(model):
    """Returns all variables that loading a file may change, with their values."""
    required, optional = state_of(model)
    variables = {id(v): v for v in [*model.variables, *required.values()]}
    variables = [*variables.values(), *optional.values()]
    if model.compiled:
        variables += model.optimizer.variables
    return [(variable, np.array(variable)) for variable in variables]


@contextlib.contextmanager
def written_whole(filepath, suffix=None, method=None, overwrite=True):
    """Yields a path beside `filepath`; its file or directory is then renamed to it.

    Args:
        filepath: path of the file or directory to write.
        suffix: str, how a file's path must end, or `None`.
        method: str, the method that writes it, for the message.
        overwrite: bool, as for `keras.Model.save`.

    Raises:
        ValueError: if the path ends otherwise.
    """
    if suffix is not None and not str(filepath).endswith(suffix):
        raise ValueError(
            f"Expected a path that ends in '{suffix}'. Received: filepath="
            f"{str(filepath)!r}. Call {method}('model{suffix}'), or export(directory) "
            "for a SavedModel."
        )
    place = as_path(filepath)
    remote = "://" in str(filepath)
    if remote or (place.exists() and not overwrite):  # then Keras asks the user
        yield filepath
        return
    _remove_left(place)
    # The ending is kept: Keras reads the format from it.
    beside = place.with_name(f".{uuid.uuid4().hex[:8]}-{place.name}")
    try:
        yield beside
        _replace(beside, place)
    finally:
        _remove(beside)


def _remove_left(place):
    """Removes what writing to a place has left beside it when it was killed."""
    for left in place.parent.glob(f".{'[0-9a-f]' * 8}-{glob.escape(place.name)}"):
        with contextlib.suppress(OSError):  # another process may have renamed it
            if time.time() - left.stat().st_mtime > _LEFT:  # else it may be at work
                _remove(left)


def _replace(beside, place):
    """Renames a file or directory, and replaces an existing one."""
    if not place.is_dir():
        os.replace(beside, place)
        return
    old = beside.with_name(beside.name + ".old")
    os.replace(place, old)
    try:
        os.replace(beside, place)
    except OSError:
        os.replace(old, place)
        raise
    _remove(old)


def _remove(path):
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def summary_of(model):
    """Returns the names and shapes of a model's variables, a str."""
    if not model.built:
        return f"{model.name} ({type(model).__name__}): not built yet."
    rows = []
    for variable in model.weights:
        name = variable.path.split("/", 1)[-1]
        fixed = "" if variable.trainable else "not trained"
        count = f"{math.prod(variable.shape):,}"
        rows.append((name, str(tuple(variable.shape)), count, fixed))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    trained = sum(math.prod(variable.shape) for variable in model.trainable_weights)
    return "\n".join(
        [
            f"{model.name} ({type(model).__name__})",
            *("  ".join(map(str.ljust, cells, widths)).rstrip() for cells in rows),
            f"{trained:,} of {model.count_params():,} parameters are trainable.",
        ]
    )


class Endpoint(NamedTuple):
    """A function of an exported model.

    Attributes:
        function: takes tensors and returns a dict of tensors.
        signature: list of `tf.TensorSpec`, its arguments with their names.
    """

    function: Callable[..., Any]
    signature: list[tf.TensorSpec]


def export_saved_model(model, filepath, verbose, log_partition=None):
    """Writes a model's endpoints as a SavedModel, whole or not at all."""
    endpoints = model._endpoints()
    if log_partition is not None:
        endpoints["log_likelihood"] = _with_log_z(model, endpoints, log_partition)
    archive = keras.export.ExportArchive()
    archive.track(model)
    inference = getattr(model, "inference", None)
    if inference is not None and inference.variables:
        archive.add_variable_collection("inference", inference.variables)
    for name, (function, signature) in endpoints.items():
        archive.add_endpoint(name, _with_names(function, signature), signature)
    # `keras.layers.TFSMLayer` calls it by default: it returns one tensor, as the model.
    signature = endpoints["serving_default"].signature
    archive.add_endpoint("serve", _with_names(model.call, signature), signature)
    with written_whole(filepath) as place:
        archive.write_out(place, verbose=bool(verbose))


def _with_log_z(model, endpoints, log_partition):
    """Returns the endpoint of log p(v) and the ends of its interval."""
    ends, energy = log_z_of(model, log_partition), endpoints["free_energy"]
    names = "log_likelihood", "upper", "lower"
    constants = dict(zip(names, map(tf.constant, ends), strict=True))

    def log_likelihood(x):
        energies = energy.function(x)["free_energy"]
        return {name: -energies - z for name, z in constants.items()}

    return Endpoint(log_likelihood, energy.signature)


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


def endpoints_of_features(call, reconstruct, sample, width):
    """Returns the endpoints that all models of p(v) have: a dict by name.

    Args:
        call, reconstruct, sample: methods of the model.
        width: int, columns of its states.
    """
    visible = [rows(width)]
    transform = Endpoint(named("features", call), visible)
    return {
        "serving_default": transform,
        "transform": transform,
        "reconstruct": Endpoint(named("visible", reconstruct), visible),
    } | chain_endpoints(sample, number("num_samples"))


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
