"""Unit types: what one visible or hidden unit is."""

import keras

from keras_rbm.units.bernoulli import Bernoulli as Bernoulli
from keras_rbm.units.bernoulli import BernoulliParameters as BernoulliParameters
from keras_rbm.units.gaussian import Gaussian as Gaussian
from keras_rbm.units.gaussian import GaussianParameters as GaussianParameters
from keras_rbm.units.unit import Unit as Unit

_BY_NAME = {"bernoulli": Bernoulli, "gaussian": Gaussian}


def get(identifier):
    """Returns the unit type that a name, config or object stands for.

    Args:
        identifier: str (`"bernoulli"`, `"gaussian"`), a serialised config, or a
            `Unit`.

    Raises:
        ValueError: if it stands for none.

    Example:

    >>> keras_rbm.units.get("bernoulli")
    Bernoulli()
    """
    unit = identifier
    if isinstance(identifier, dict):
        unit = deserialize(identifier)
    elif isinstance(identifier, str) and identifier.lower() in _BY_NAME:
        unit = _BY_NAME[identifier.lower()]()
    if not isinstance(unit, Unit):
        raise ValueError(
            f"Expected a unit type, one of {sorted(_BY_NAME)} or a keras_rbm.units "
            f"object. Received: {identifier!r}. Pass for example 'bernoulli' or "
            "keras_rbm.units.Gaussian()."
        )
    return unit


def serialize(unit):
    """Returns the config of a unit type, which `deserialize` reads."""
    return keras.saving.serialize_keras_object(unit)


def deserialize(config):
    """Returns the unit type that `serialize` described."""
    return keras.saving.deserialize_keras_object(config)
