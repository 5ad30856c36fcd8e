"""Copies of objects that belong to only one model, made for each fit."""

from keras_rbm import rules
from keras_rbm.checks import check_numbers
from keras_rbm.models.workflow.defaults import optimizer_for


def new_rule(rule):
    """Returns a learning rule like the one that a name, config or object stands for."""
    return rules.deserialize(rules.serialize(rules.get(rule)))


def new_optimizer(optimizer, learning_rate=None):
    """Returns a Keras optimizer like the given one, or `None` for the default.

    Args:
        optimizer: str, Keras optimizer, or `None` for the default of `RBM.compile`.
        learning_rate: float > 0 or Keras schedule, to replace its own, or `None`.

    Raises:
        TypeError, ValueError: if the learning rate is neither.
    """
    if optimizer is None and learning_rate is None:
        return None
    optimizer = optimizer_for(optimizer)
    config = optimizer.get_config()
    if learning_rate is not None:
        if not callable(learning_rate):
            check_numbers(learning_rate=learning_rate)
            if learning_rate <= 0.0:
                raise ValueError(
                    "Expected learning_rate > 0, or None for the optimizer's own. "
                    f"Received: learning_rate={learning_rate!r}."
                )
        config["learning_rate"] = learning_rate
    return type(optimizer).from_config(config)
