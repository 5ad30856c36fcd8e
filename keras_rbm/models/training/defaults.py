"""Default arguments of `compile`."""

import warnings
from typing import Any

import keras

from keras_rbm import rules
from keras_rbm._checks import check_counts, check_flags
from keras_rbm.models.layer_variables import keras_part
from keras_rbm.models.training.progress import schedule_of
from keras_rbm.optimizers.falling_rate import FallingRate
from keras_rbm.rules.learning_rule import Rule

#: Adam's learning rate for 64 visible units, and the largest. Chosen by
#: `examples/defaults.py`.
_RATE, _LARGEST_RATE = 0.03, 0.05
#: The largest for a model on a network, which larger ones spoil in long training.
_NETWORK_RATE = 0.003
#: Rate of plain gradient descent, for which the width makes no difference.
_SGD_RATE = 0.2
#: Adam's momentum. Samples follow the model with a delay, and more momentum overshoots.
BETA_1 = 0.5
_WITH_MOMENTUM = ("adam", "adamw", "adamax", "nadam")
_LIKE_ADAM = (*_WITH_MOMENTUM, "rmsprop")


def choose_rate(model, num_visible):
    """Sets the rate that a model's optimizer begins with, if it is left to the model.

    It may be set again until training begins, when `settle_rate` ends the choice.

    Args:
        model: a model with a rule and an optimizer.
        num_visible: float, see `default_rate`.
    """
    rate = open_rate(model)
    if rate is not None:
        name = type(model.optimizer).__name__
        has_network = bool(model.layers)
        initial = default_rate(name, num_visible, has_network) * model.rule.rate_share
        rate.initial_learning_rate = initial


def open_rate(model):
    """Returns the `FallingRate` that a model may still choose, or `None`."""
    rate = schedule_of(model.optimizer)
    return rate if isinstance(rate, FallingRate) and not rate.settled else None


def settle_rate(model):
    """Keeps the rate that a model's optimizer begins with."""
    rate = open_rate(model)
    if rate is not None:
        rate.settled = True


def default_rate(optimizer, num_visible, has_network=False):
    """Returns the learning rate that an optimizer begins with by default.

    The more visible units there are, the further a step of Adam moves the input of a
    hidden unit, because early steps of all its weights have the same direction.

    Args:
        optimizer: str, a name for which `has_default_rate`.
        num_visible: float, the number of visible units that vary as much as they can.
        has_network: bool, whether a network is trained with the model.
    """
    if optimizer.lower() == "sgd":
        return _SGD_RATE
    largest = _NETWORK_RATE if has_network else _LARGEST_RATE
    return min(largest, _RATE * (64.0 / num_visible) ** 0.75)


def has_default_rate(optimizer):
    """Returns whether `default_rate` is known for the name of an optimizer."""
    return optimizer.lower() in (*_LIKE_ADAM, "sgd")


def optimizer_for(identifier, samples=True):
    """Returns the optimizer that `compile` was given.

    One given by name has a `FallingRate`, which the model chooses when it is built, and
    less momentum if gradients are differences of `samples`.

    Raises:
        ValueError: if it is a learning rule, or not a known optimizer.
    """
    if isinstance(identifier, str) and has_default_rate(identifier):
        config: dict[str, Any] = {"learning_rate": FallingRate(None)}
        if samples and identifier.lower() in _WITH_MOMENTUM:
            config["beta_1"] = BETA_1
        identifier = {"class_name": identifier, "config": config}
    return _keras_optimizer(identifier)


def is_rule(identifier):
    """Returns whether an argument is a learning rule, or the name of one."""
    if not isinstance(identifier, str):
        return isinstance(identifier, Rule)
    try:
        return bool(rules.get(identifier))
    except ValueError:
        return False


def _keras_optimizer(identifier):
    if is_rule(identifier):
        raise ValueError(
            f"Expected an optimizer. Received: optimizer={identifier!r}, which is a "
            f"learning rule. Call compile(rule={identifier!r})."
        )
    return keras_part(keras.optimizers.get, "optimizer", identifier)


def warn_of_rate(name, optimizer):
    """Warns that no suitable rate is known for an optimizer given by name."""
    if not has_default_rate(name):
        warnings.warn(
            f"optimizer={name!r} has Keras' learning rate, "
            f"{float(optimizer.learning_rate):g}, and it does not fall. Only these get "
            f"one that suits: {', '.join(_LIKE_ADAM)}, sgd. For others pass an object "
            "with a rate, such as keras_rbm.optimizers.FallingRate(0.01).",
            stacklevel=4,
        )


def new_optimizer(identifier, **config):
    """Returns a copy of Keras' optimizer, with other values of its config if given."""
    optimizer = _keras_optimizer(identifier)
    return type(optimizer).from_config(optimizer.get_config() | config)


def new_rule(identifier):
    """Returns a copy of the learning rule that a name, config or object stands for."""
    return rules.deserialize(rules.serialize(rules.get(identifier)))


def check_compile_options(metrics, run_eagerly, steps_per_execution, jit_compile):
    """Raises an error unless the other arguments of `compile` are valid.

    Args:
        metrics, run_eagerly, steps_per_execution, jit_compile: as for `compile`.
    """
    if metrics is not None and not isinstance(metrics, (list, tuple, dict)):
        raise TypeError(
            "Expected metrics as a list. Received: metrics of type "
            f"{type(metrics).__name__}. Pass [metric]."
        )
    if not is_auto(steps_per_execution):
        check_counts(steps_per_execution=steps_per_execution)
    check_flags(run_eagerly=run_eagerly)
    if not is_auto(jit_compile):
        check_flags(jit_compile=jit_compile)


def is_auto(value):
    """Returns whether an argument is the word "auto"."""
    return isinstance(value, str) and value == "auto"
