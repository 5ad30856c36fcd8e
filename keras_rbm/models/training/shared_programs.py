"""Programs of training steps that models of one shape and kind share.

To trace a step and to compile it takes longer than many a small fit. What comes out
depends only on what the model, its rule and its optimizer are configured as, and not on
the values of their variables. So a program is kept, and runs with the variables of any
model of that kind.
"""

import collections
import functools
import inspect
import json
import threading
import warnings
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from keras_rbm import rules
from keras_rbm.inference import traces

#: Number of programs that are kept.
_MOST = 16
_programs: collections.OrderedDict[str, Any] = collections.OrderedDict()
_active, _lock = threading.local(), threading.RLock()
#: Names of methods that Keras sets on each object.
_SET_BY_KERAS = {"build", "loss", "quantize"}


def program_for(model: Any, function: Any, *specs: Any) -> Callable[..., Any]:
    """Returns a callable that does what `function` does for a model.

    Args:
        model: a model that has been compiled and built.
        function: `tf.function` that calls the model, and no other.
        specs: nests of `tf.TensorSpec`, one for each argument.
    """
    variables = variables_of(model)
    key = _key_of(model, variables, specs)
    if key is None:
        return function
    with _lock:
        program = _programs.pop(key, None)
        if program is None:
            program = function.get_concrete_function(*specs)
            if not _has_let_go(program, variables):
                return function
        _programs[key] = program  # as the last
        if len(_programs) > _MOST:
            _programs.popitem(last=False)
    return functools.partial(_call, program, variables)


def variables_of(model: Any) -> list[tf.Variable]:
    """Returns all variables that a training step uses, in an order of its own."""
    optimizer = model.optimizer
    kept = [*model._guard.variables, *model._learner.variables, *model.variables]
    kept += [*optimizer.variables, *(v for m in model.metrics for v in m.variables)]
    schedule = getattr(optimizer, "inner_optimizer", optimizer)._learning_rate
    others = [schedule, model.inference, getattr(model.rule, "inference", None)]
    for other in (*others, *(v.regularizer for v in model.trainable_variables)):
        own = getattr(other, "__dict__", {}).values()
        kept += [value for value in own if isinstance(value, tf.Variable)]
    kept = [each if isinstance(each, tf.Variable) else each.value for each in kept]
    return list({id(each.handle): each for each in kept}.values())


def _key_of(model, variables, specs):
    """Returns what a program depends on as a str, or `None` if that is not known."""
    if model._reports_predictions or not _are_as_written(model):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of lambdas, which are not known anyway
            parts = _parts_of(model)
        kinds = [(*each.shape, each.dtype.name) for each in variables]
        modes = bool(model.jit_compile), traces.compiles
        text = json.dumps([parts, kinds, modes, repr(specs)], sort_keys=True)
    except Exception:  # what others have written may not have a config
        return None
    return text if all(map(_is_known, _objects(parts))) else None


def _parts_of(model):
    """Returns the configs of all that takes part in a step."""
    serialize = keras.saving.serialize_keras_object
    own = [
        (v.name, v.trainable, serialize(v.regularizer), serialize(v.constraint))
        for v in model.variables
    ]
    configs = {
        "model": {**_of_class(model), "config": model.get_config()},
        "rule": rules.serialize(model.rule),
        "optimizer": keras.optimizers.serialize(model.optimizer),
    }
    for part in ("model", "optimizer"):
        configs[part]["config"].pop("name", None)
    return _without_start(configs), own


def _of_class(model):
    return {"class_name": type(model).__name__, "module": type(model).__module__}


def _are_as_written(model):
    """Returns whether no method, or state beside the config, was set on an object."""
    optimizer = model.optimizer
    excluded = "_exclude_from_weight_decay", "_exclude_from_weight_decay_pattern"
    if any(getattr(optimizer, name, None) for name in excluded):
        return False
    return not any(
        inspect.isfunction(getattr(type(each), name, None))
        for each in (model, model.rule, optimizer)
        for name in vars(each).keys() - _SET_BY_KERAS
    )


def _without_start(part):
    """Returns a config without what only the first values of variables depend on."""
    if isinstance(part, dict):
        kept = (key for key in part if key != "seed" and "initializer" not in key)
        return {key: _without_start(part[key]) for key in kept}
    if isinstance(part, (list, tuple)):
        return [*map(_without_start, part)]
    return part


def _objects(part):
    """Yields the dicts of a config that stand for objects."""
    if isinstance(part, dict):
        if "class_name" in part:
            yield part
        part = list(part.values())
    if isinstance(part, (list, tuple)):
        for each in part:
            yield from _objects(each)


def _is_known(part):
    """Returns whether an object is of Keras or this library, so its config is all."""
    name = part.get("registered_name") or ""
    own = (part.get("module") or "").split(".")[0] in ("keras", "keras_rbm")
    return name.startswith("keras_rbm>") or own


def _has_let_go(program, variables):
    """Lets a program take the variables of `_call`; returns whether it can."""
    numbers = {id(each.handle): number for number, each in enumerate(variables)}
    captured = [tensor for tensor, _ in program.graph.captures]
    if not all(id(tensor) in numbers for tensor in captured):
        return False
    for tensor in captured:
        number = numbers[id(tensor)]
        program.replace_capture_with_deferred_capture(
            tensor,
            lambda number=number: _active.variables[number].handle,
            tf.TensorSpec((), tf.resource),
        )
    return True


def _call(program, variables, *arguments):
    """Calls a program with the variables of a model."""
    _active.variables = variables
    try:
        return program(*arguments)
    finally:
        _active.variables = None
