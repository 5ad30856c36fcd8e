"""What Keras has for a model: initializers, that go by its seed, regularizers."""

import keras


def normal(seed):
    """Returns the default initializer of kernels: normal, 0.01."""
    return keras.initializers.RandomNormal(stddev=0.01, seed=seed)


def reseeded(initializer, number=1):
    """Returns an initializer like this one that does not draw the same numbers.

    What Keras takes beside its own, functions and arrays, comes back as it is.
    """
    if not isinstance(initializer, keras.initializers.Initializer):
        return initializer
    config = initializer.get_config()
    if isinstance(config.get("seed"), int):
        config["seed"] += number
    return initializer.from_config(config)


def keras_part(get, name, identifier):
    """Returns what one of Keras' `get` functions makes of an argument.

    Raises:
        ValueError: if it makes nothing of it.
    """
    try:
        part = get(identifier)
    except Exception as error:  # Keras' own are of many kinds
        raise _no_part(name, identifier) from error
    layer = isinstance(part, keras.Layer)
    if layer or (
        part is not None and not callable(part) and not hasattr(part, "apply")
    ):
        raise _no_part(name, identifier)
    return part


def _no_part(name, identifier):
    return ValueError(
        f"Expected {name} as Keras takes it: an object, its name, its config. "
        f"Received: {name}={identifier!r:.200}."
    )
