"""The variables of a layer of units, and the parameters made from them."""

import tensorflow as tf

from keras_rbm import units


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
        model: `RuleModel`.
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
