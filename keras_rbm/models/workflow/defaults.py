"""What `compile` takes where the user says nothing."""

import keras

from keras_rbm import rules

#: Of Adam. Chosen by `examples/defaults.py`.
_LEARNING_RATE = 0.005


def optimizer_for(identifier):
    """Returns the optimizer that `compile` was given, or the default, `Adam(0.005)`.

    Raises:
        ValueError: if it is a learning rule, or stands for no optimizer.
    """
    if identifier is None:
        return keras.optimizers.Adam(_LEARNING_RATE)
    named = isinstance(identifier, str) and rules.is_name(identifier)
    if named or isinstance(identifier, rules.Rule):
        raise ValueError(
            f"Expected an optimizer. Received: optimizer={identifier!r}, which is a "
            f"learning rule. Call compile(rule={identifier!r})."
        )
    return keras.optimizers.get(identifier)
