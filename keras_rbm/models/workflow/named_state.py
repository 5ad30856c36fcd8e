"""Saving variables under their names, and restoring all of them or none."""

import numpy as np
import tensorflow as tf

from keras_rbm.models.workflow.digests import check_digests, save_digests

_KIND = "kind"


def save_named(store, variables, kind):
    """Writes a dict of variables, and their kind, into a Keras weights store."""
    for name, variable in variables.items():
        store[name] = variable
    store[_KIND] = np.frombuffer(kind.encode(), np.uint8)
    save_digests(store, variables)


def load_named(store, required, optional, kind):
    """Assigns variables from a Keras weights store, after checking all of them.

    Args:
        store: the store that Keras passes to `load_own_variables`.
        required: dict of name to variable; each must be in the store.
        optional: dict of name to variable; those in the store are restored.
        kind: str, the kind of model. Files from before 2026-12 do not have it.

    Raises:
        ValueError: if a variable is missing or has another shape, if they are from
            another kind of model, or not what was saved; nothing is assigned then.
    """
    names = set(store.keys())
    if _KIND in names:
        saved = np.asarray(store[_KIND]).tobytes().decode()
        if saved != kind:
            raise ValueError(
                f"Expected the variables of a model of one kind: {kind}. Received: a "
                f"file of a {saved}. Nothing was loaded; load its own model with "
                "keras.saving.load_model, or convert it (InfiniteRBM.to_rbm)."
            )
    missing = sorted(set(required) - names)
    if missing:
        raise ValueError(
            f"Expected saved variables {sorted(required)}. Received: {sorted(names)}. "
            f"Missing: {missing}. Load a file that the same class of model saved."
        )
    check_digests(store)
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


def kind_of(model):
    """Returns the kind of a model: its class, and the classes of its units."""
    own = next(c for c in type(model).__mro__ if c.__module__.startswith("keras_rbm."))
    visible, hidden = (
        ", ".join(dict.fromkeys(type(unit).__name__ for unit in tf.nest.flatten(side)))
        for side in (model.visible, model.hidden)
    )
    return f"{own.__name__} of {visible} and {hidden} units"


def snapshot(model):
    """Returns everything in a model that loading a file may change, for `restore`."""
    required, optional = model.state()
    variables = [*required.values(), *optional.values()]
    if model.compiled:
        variables += model.optimizer.variables
    return model._fit_start, [(variable, np.array(variable)) for variable in variables]


def restore(model, taken):
    """Restores a model to a `snapshot`."""
    model._fit_start, values = taken
    for variable, value in values:
        variable.assign(value)
