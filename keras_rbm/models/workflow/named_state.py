"""Saving variables under their names, and restoring all of them or none."""

import numpy as np


def save_named(store, variables):
    """Writes a dict of variables into a Keras weights store."""
    for name, variable in variables.items():
        store[name] = variable


def load_named(store, required, optional):
    """Assigns variables from a Keras weights store, after checking all of them.

    Args:
        store: what Keras hands to `load_own_variables`.
        required: dict of name to variable; each must be there.
        optional: dict of name to variable; those there are restored.

    Raises:
        ValueError: if one is missing or of another shape; nothing is assigned then.
    """
    names = set(store.keys())
    missing = sorted(set(required) - names)
    if missing:
        raise ValueError(
            f"Expected saved variables {sorted(required)}. Received: {sorted(names)}. "
            f"Missing: {missing}. Load a file that the same class of model saved."
        )
    chosen = required | {k: v for k, v in optional.items() if k in names}
    for name, variable in chosen.items():
        shape = tuple(store[name].shape)
        if shape != tuple(variable.shape):
            raise ValueError(
                f"Expected {name} of shape {tuple(variable.shape)}. Received: shape "
                f"{shape}. Nothing was loaded; make a model (and for 'rule.…' a rule) "
                "of the saved size."
            )
    for name, variable in chosen.items():
        variable.assign(np.asarray(store[name]))
