"""The variables of a layer of units, and the parameters made from them."""

import zlib

import keras
import numpy as np
import tensorflow as tf

from keras_rbm import units
from keras_rbm._checks import is_int

#: Weights that say what data were like.
_OF_DATA = "base_rate", "examples_seen"


def unit_types(visible, hidden):
    """Returns the unit types of both layers; raises a ValueError if they do not fit."""
    visible, hidden = units.get(visible), units.get(hidden)
    if visible.hidden_only:
        raise ValueError(
            "Expected visible units that can be fitted to data. Received: visible="
            f"{visible!r}, which can only be hidden. Use visible='gaussian'."
        )
    return visible, hidden


def add_units(model, template, unit, count, bias_initializer=None):
    """Creates the variables of `count` units, as attributes of the model.

    Args:
        model: `BoltzmannMachine`.
        template: str, the variables' names, with `{}` for the unit's name of each, such
            as `"hidden_{}"`.
        unit: `Unit`.
        count: int, columns of states.
        bias_initializer: Keras initializer or `None` for the unit's own.
    """
    start = {"bias": bias_initializer}
    for name, (initializer, trainable) in unit.variables().items():
        variable = model.add_weight(
            name=template.format(name),
            shape=unit.shape_of(name, count),
            initializer=start.get(name) or initializer,
            trainable=trainable,
            constraint=unit.constraint(name),
        )
        setattr(model, variable.name, variable)


def layer_parameters(model, template, unit, **given):
    """Returns the parameters made from the variables of `add_units`.

    Args:
        model, template, unit: see `add_units`.
        **given: tensors to use instead of variables, such as a `bias`.
    """
    values = {
        name: tf.cast(getattr(model, template.format(name)), model.variable_dtype)
        for name in unit.variables()
        if name not in given
    }
    return unit.parameters(**values, **given)


def initial_parameters(unit, count, **given):
    """Returns the parameters with which `count` units begin.

    Args:
        unit: `Unit`.
        count: int, columns of states.
        **given: arrays to use instead, such as what `Unit.fitted` returns.
    """
    starts = {
        name: initializer(unit.shape_of(name, count))
        for name, (initializer, _) in unit.variables().items()
    }
    values = {k: tf.cast(v, tf.float32) for k, v in (starts | given).items()}
    return unit.parameters(**values)


def visible_parameters(model):
    """Returns the parameters of the units of the data."""
    return layer_parameters(model, "visible_{}", model.visible)


def potentials_of_any(model):
    """Returns a model's `Potentials`, those given an example if it has an input."""
    return model.potentials(model._an_example() if model.conditional else None)


def fingerprint(model):
    """Returns a number that differs if a model's weights do.

    What a model knows of data is no part of it. It is 0 in a graph, where values are
    not known.
    """
    if not tf.executing_eagerly():
        return 0
    number = 0
    for weight in model.weights:
        if weight.name not in _OF_DATA:
            number = zlib.crc32(np.ascontiguousarray(weight).tobytes(), number)
    return number or 1


def check_fingerprint(model, log_partition, method="log_partition"):
    """Raises a ValueError if an estimate of log Z is of other parameters.

    Args:
        model: a built model.
        log_partition: `LogPartition`, or anything else, of which nothing is known.
        method: str, what to call for another.
    """
    known = getattr(log_partition, "fingerprint", 0)
    own = known and fingerprint(model)
    if own and own != known:
        raise ValueError(
            f"Expected log_partition of the weights that '{model.name}' has now. "
            "Received: one of other weights; the model has been trained or changed "
            f"since, or it is another's. Call {method}() again."
        )


def check_input_shape(shape, model):
    """Raises a ValueError unless a model is or can be built for inputs of a shape."""
    known = isinstance(shape, (tuple, list, tf.TensorShape)) and len(shape) > 0
    if not known or not all(size is None or is_int(size) for size in shape):
        raise ValueError(
            "Expected input_shape as a tuple of ints and None. Received: input_shape="
            f"{shape!r:.200}."
        )
    if model.built:
        width = model.input_spec.axes[-1]
        if shape[-1] != width:
            raise ValueError(
                f"Expected an input of width {width}, for which '{model.name}' is "
                f"built. Received: input_shape={tuple(shape)}. Make a new model."
            )
        return
    if len(shape) != 2 or shape[-1] is None or shape[-1] < 1:
        raise ValueError(
            "Expected an input of shape (examples, units) of known width. Received: "
            f"input_shape={tuple(shape)}. Flatten each example to a vector, or pass "
            "num_visible=."
        )


def check_no_input_shape(arguments):
    """Raises a ValueError if a constructor was given the shape of the input."""
    for name in arguments.keys() & {"input_dim", "input_shape"}:
        raise ValueError(
            f"Expected no {name}. Received: {name}={arguments[name]}. Call "
            "build((None, columns)), or just fit."
        )


def normal(seed, stddev=0.01):
    """Returns the default initializer of kernels."""
    return keras.initializers.RandomNormal(stddev=stddev, seed=seed)


def reseeded(initializer, number=1):
    """Returns an initializer like this one that does not draw the same numbers.

    Other initializers that Keras accepts, functions and arrays, are returned unchanged.
    """
    if not isinstance(initializer, keras.initializers.Initializer):
        return initializer
    config = initializer.get_config()
    if isinstance(config.get("seed"), int):
        config["seed"] += number
    return initializer.from_config(config)


def keras_part(get, name, identifier):
    """Returns the object that one of Keras' `get` functions finds for an argument.

    Raises:
        ValueError: if it finds none.
    """
    try:
        part = get(identifier)
    except Exception as error:  # Keras raises errors of many types
        raise _no_part(name, identifier) from error
    layer = isinstance(part, keras.Layer)
    if layer or (
        part is not None and not callable(part) and not hasattr(part, "apply")
    ):
        raise _no_part(name, identifier)
    return part


def _no_part(name, identifier):
    cure = (
        " Is its class registered? If not, decorate it with "
        "keras.saving.register_keras_serializable(), or load with custom_objects=."
    )
    return ValueError(
        f"Expected {name} as Keras takes it: an object, its name, its config. "
        f"Received: {name}={identifier!r:.200}."
        f"{cure if isinstance(identifier, dict) else ''}"
    )
