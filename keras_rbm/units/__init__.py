"""Unit types: the distributions of visible and hidden units."""

from typing import Any as _Any

import keras

from keras_rbm._serializable import find as _find
from keras_rbm.units.bernoulli import Bernoulli as Bernoulli, Spin as Spin
from keras_rbm.units.binomial import Binomial as Binomial
from keras_rbm.units.categorical import Categorical as Categorical
from keras_rbm.units.double_rectified import DoubleRectified as DoubleRectified
from keras_rbm.units.gaussian import Gaussian as Gaussian
from keras_rbm.units.joined_units import Joined as Joined
from keras_rbm.units.rectified import Rectified as Rectified
from keras_rbm.units.unit import LayerParameters as LayerParameters, Unit as Unit

_BY_NAME = {
    "bernoulli": Bernoulli,
    "double_rectified": DoubleRectified,
    "gaussian": Gaussian,
    "rectified": Rectified,
    "spin": Spin,
}
#: Names that need an argument, and what to write.
_WITH_SIZES = {
    "binomial": "Binomial(n)",
    "categorical": "Categorical(num_states)",
    "joined": "Joined([('bernoulli', 3), ('gaussian', 2)])",
    "potts": "Categorical(num_states)",
}


def get(identifier: str | dict[str, _Any] | Unit) -> Unit:
    """Returns the unit type that a name, config or object stands for.

    Args:
        identifier: str (`"bernoulli"`, `"spin"`, `"gaussian"`, `"rectified"`,
            `"double_rectified"`), a serialized config, or a `Unit`.

    Raises:
        ValueError: if the identifier is unknown.

    Example:

    >>> keras_rbm.units.get("bernoulli")
    Bernoulli()
    """
    if isinstance(identifier, str) and identifier.lower() in _WITH_SIZES:
        raise ValueError(
            f"Expected units of a stated size. Received: {identifier!r}, a name only. "
            f"Pass keras_rbm.units.{_WITH_SIZES[identifier.lower()]}."
        )
    return _find(
        identifier, Unit, _BY_NAME, "a unit type", "keras_rbm.units.Gaussian()"
    )


def serialize(unit: Unit) -> dict[str, _Any]:
    """Returns the config of a unit type, which `deserialize` reads."""
    return keras.saving.serialize_keras_object(unit)


def deserialize(config: dict[str, _Any]) -> Unit:
    """Returns the unit type that `serialize` describes."""
    return keras.saving.deserialize_keras_object(config)
