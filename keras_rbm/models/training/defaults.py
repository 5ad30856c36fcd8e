"""Default arguments of `compile`."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_rbm import rules
from keras_rbm._checks import check_counts, check_flags
from keras_rbm.models.initializers import keras_part
from keras_rbm.rules.rule import Rule

#: Adam's learning rate for 64 visible units, and the largest. Chosen by
#: `examples/defaults.py`.
_RATE, _LARGEST_RATE = 0.03, 0.05
#: What Keras gives it.
_ADAMS_RATE = 0.001


def default_rate(num_visible: int) -> float:
    """Returns Adam's default learning rate.

    The more visible units there are, the further a step moves the input of a hidden
    unit, because early steps of all its weights have the same direction.
    """
    return min(_LARGEST_RATE, _RATE * (64.0 / num_visible) ** 0.75)


def awaits_rate(model: keras.Model) -> bool:
    """Returns whether a model's default learning rate waits for the data's width.

    A rate that the user has set since `compile` stays.
    """
    if not model._chooses_rate or model.optimizer.built:
        return False
    rate = tf.convert_to_tensor(model.optimizer.learning_rate)
    return float(rate) == float(np.float32(_ADAMS_RATE))


def optimizer_for(identifier: Any) -> keras.optimizers.Optimizer:
    """Returns the optimizer that `compile` was given, or by default Adam.

    The rate of the default, `default_rate`, is set when the model is built.

    Raises:
        ValueError: if it is a learning rule, or not a known optimizer.
    """
    if identifier is None:
        return keras.optimizers.Adam()
    named = isinstance(identifier, str) and rules.is_name(identifier)
    if named or isinstance(identifier, rules.Rule):
        raise ValueError(
            f"Expected an optimizer. Received: optimizer={identifier!r}, which is a "
            f"learning rule. Call compile(rule={identifier!r})."
        )
    return keras_part(keras.optimizers.get, "optimizer", identifier)


def new_optimizer(identifier: Any, **config: Any) -> keras.optimizers.Optimizer:
    """Returns a copy of an optimizer, with other values of its config if given."""
    optimizer = optimizer_for(identifier)
    return type(optimizer).from_config(optimizer.get_config() | config)


def new_rule(identifier: str | dict[str, Any] | Rule) -> Rule:
    """Returns a copy of the learning rule that a name, config or object stands for."""
    return rules.deserialize(rules.serialize(rules.get(identifier)))


def check_compile_options(
    metrics: Any, run_eagerly: Any, steps_per_execution: Any, jit_compile: Any
) -> None:
    """Raises an error unless the other arguments of `compile` are valid.

    Args:
        metrics: list of the arguments `metrics` and `weighted_metrics`.
        run_eagerly, steps_per_execution, jit_compile: as for `compile`.
    """
    for given in metrics:
        if given is not None and not isinstance(given, (list, tuple, dict)):
            raise TypeError(
                "Expected metrics as a list. Received: metrics of type "
                f"{type(given).__name__}. Pass [metric]."
            )
    check_counts(steps_per_execution=steps_per_execution)
    check_flags(run_eagerly=run_eagerly)
    automatic = isinstance(jit_compile, str) and jit_compile == "auto"
    if not automatic:
        check_flags(jit_compile=jit_compile)
