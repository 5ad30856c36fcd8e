"""Initial weights that are a function of the model's seed."""

import keras


def normal(seed):
    """Returns the default initialiser of kernels: normal, 0.01."""
    return keras.initializers.RandomNormal(stddev=0.01, seed=seed)


def reseeded(initializer, number=1):
    """Returns an initialiser like this one that does not draw the same numbers.

    What Keras takes beside its own, functions and arrays, comes back as it is.
    """
    if not isinstance(initializer, keras.initializers.Initializer):
        return initializer
    config = initializer.get_config()
    if isinstance(config.get("seed"), int):
        config["seed"] += number
    return initializer.from_config(config)
