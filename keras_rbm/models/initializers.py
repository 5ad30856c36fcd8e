"""Initializers with a model's seed, and other Keras objects as arguments."""

import keras


def normal(seed):
    """Returns the default initializer of kernels: normal, 0.01."""
    return keras.initializers.RandomNormal(stddev=0.01, seed=seed)


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
