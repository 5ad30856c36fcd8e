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
import re
import threading
import warnings
from typing import Any

import keras
import tensorflow as tf

from keras_rbm.inference import traces
from keras_rbm.models.training.progress import schedule_of
from keras_rbm.regularizers import Prior

#: Number of programs that are kept.
_MOST = 16
_programs: collections.OrderedDict[str, Any] = collections.OrderedDict()
_active, _lock = threading.local(), threading.RLock()
#: Names of methods that Keras sets on each object.
_SET_BY_KERAS = {"build", "loss", "quantize"}


def program_for(model, compiled, function, *specs):
    """Returns a callable that does what `function` does for a model.

    Args:
        model: a model that has been compiled and built.
        compiled: bool, whether XLA compiles the function.
        function: `tf.function` that calls the model, and no other.
        specs: nests of `tf.TensorSpec`, one for each argument.
    """
    variables = variables_of(model)
    key = _key_of(model, compiled, variables, specs)
    if key is None:
        return function
    with _lock:
        program = _programs.pop(key, None)
        if program is None:
            program = function.get_concrete_function(*specs)
            if not _releases_captures(program, variables):
                return function
        _programs[key] = program  # as the last
        if len(_programs) > _MOST:
            _programs.popitem(last=False)
    return functools.partial(_call, program, variables)


def variables_of(model):
    """Returns all variables that a training step uses, in an order of its own."""
    optimizer = model.optimizer
    kept = [*model.guard.variables, *model.learner.variables, *model.variables]
    kept += [*optimizer.variables, *(v for m in model.metrics for v in m.variables)]
    holders = [schedule_of(optimizer), model.inference]
    holders += [getattr(model.rule, "inference", None)]
    for other in (*holders, *(v.regularizer for v in model.trainable_variables)):
        parts = getattr(other, "__dict__", {}).values()
        kept += [value for value in parts if isinstance(value, tf.Variable)]
    kept = [each if isinstance(each, tf.Variable) else each.value for each in kept]
    return list({id(each.handle): each for each in kept}.values())


def _key_of(model, compiled, variables, specs):
    """Returns what a program depends on as a str, or `None` if that is not known."""
    if model._reports_predictions or not _is_as_written(model):
        return None
    serialize = keras.saving.serialize_keras_object
    parts = {
        "model": (type(model).__module__, type(model).__name__, model.get_config()),
        "rule": model.rule,
        "optimizer": model.optimizer,
        "variables": [
            (v.name, v.trainable, _kind_of(v.regularizer), v.constraint)
            for v in model.variables
        ],
        "kinds": [(*each.shape, each.dtype.name) for each in variables],
        "modes": (compiled, traces.compiles, repr(specs)),
    }
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of lambdas, which are not known anyway
            text = json.dumps(_without_start(parts, serialize), sort_keys=True)
    except Exception:  # what others have written may not have a config
        return None
    # The config of an object of Keras or of this library is all that it depends on.
    modules = re.findall(r'"module": "([^".]+)|"registered_name": "([^">]+)>', text)
    names = {name for pair in modules for name in pair if name}
    # Of functions, which are "builtins" to Keras, the config is a name only.
    return text if names <= {"keras", "keras_rbm"} else None


def _kind_of(regularizer):
    """Returns a regularizer, or the type of a prior, whose strength is a variable."""
    kind = type(regularizer)
    own = isinstance(regularizer, Prior) and kind.__module__.startswith("keras_rbm.")
    return kind.__name__ if own else regularizer


def _is_as_written(model):
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


def _without_start(part, serialize):
    """Returns a config without what only the first values of variables depend on."""
    if isinstance(part, dict):
        names = (
            n for n in part if n not in ("seed", "name") and "initializer" not in n
        )
        return {name: _without_start(part[name], serialize) for name in names}
    if isinstance(part, (list, tuple)):
        return [_without_start(each, serialize) for each in part]
    plain = part is None or isinstance(part, (str, int, float))
    return part if plain else _without_start(serialize(part), serialize)


def _releases_captures(program, variables):
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
