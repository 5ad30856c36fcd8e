"""Objects that a name or a config identifies: unit types, inference, rules."""

from typing import Any

import keras


class Serializable:
    """Base class of small registered objects that are restored from their config."""

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Serializable":
        """Returns the object that `get_config` describes."""
        return cls(**config)

    def __repr__(self):
        config = self.get_config()
        for name, value in config.items():
            if isinstance(value, dict) and "class_name" in value:
                config[name] = getattr(self, name)
        arguments = ", ".join(f"{k}={v!r}" for k, v in config.items())
        return f"{type(self).__name__}({arguments})"


def find(identifier, kind, by_name, expected, example):
    """Returns the object that an identifier stands for.

    Args:
        identifier: str, a serialized config, or an object of the kind.
        kind: class.
        by_name: dict of lower-case name to a function that makes an object.
        expected: str, what was expected, for the error message.
        example: str, an object that could be passed.

    Raises:
        ValueError: if the identifier is unknown.
    """
    instance = identifier
    if isinstance(identifier, dict):
        try:
            instance = keras.saving.deserialize_keras_object(identifier)
        except TypeError as error:  # Keras knows no such class
            raise _no_object(expected, by_name, identifier, example) from error
    elif isinstance(identifier, str) and identifier.lower() in by_name:
        instance = by_name[identifier.lower()]()
    if not isinstance(instance, kind):
        raise _no_object(expected, by_name, identifier, example)
    return instance


def _no_object(expected, by_name, identifier, example):
    return ValueError(
        f"Expected {expected}, one of {sorted(by_name)} or an object. Received: "
        f"{identifier!r}. Pass for example {example}."
    )
