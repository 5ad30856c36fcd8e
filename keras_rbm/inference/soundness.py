"""Checks of a model's parameters: are they numbers, and is its Z finite?"""

import numpy as np
import tensorflow as tf


def check_finite(potentials):
    """Raises a ValueError if a parameter is NaN or infinite, and names it.

    Not checked while tracing a `tf.function`.
    """
    named = {"kernel": potentials.kernel}
    for side in ("visible", "hidden"):
        units = getattr(potentials, side)
        named |= _named_parameters(side, units)
    for name, value in named.items():
        value = tf.convert_to_tensor(value)
        if not hasattr(value, "numpy"):
            return
        if not tf.reduce_all(tf.math.is_finite(value)):
            raise ValueError(
                f"Expected finite parameters. Received: NaN or infinite values in "
                f"{name}. Training has diverged: go back to earlier weights, and use "
                "a smaller learning rate."
            )


def _named_parameters(name, units):
    """Returns a dict of name to tensor of a layer's parameters, including its parts."""
    if not hasattr(units, "_asdict"):
        return {name: units}
    named = {}
    for field, value in units._asdict().items():
        parts = value if isinstance(value, tuple) else (value,)
        for part in parts:
            named |= _named_parameters(f"{name}_{field}", part)
    return named


def check_normalizable(potentials):
    """Raises if a pair of unbounded layers has no finite partition function.

    Units with finitely many or bounded states can be combined with all others.

    Raises:
        ValueError: unless diag(precision_v) - W diag(1/precision_h) W' of the unbounded
            units is positive definite. This is not necessary for rectified units.
            Not checked while tracing a `tf.function`.
    """
    if not tf.executing_eagerly():
        return
    layers = (potentials.visible, potentials.hidden)
    visible, hidden = (np.asarray(units.curvature, np.float64) for units in layers)
    if np.isinf(visible).all() or np.isinf(hidden).all():
        return
    kernel = np.asarray(tf.cast(potentials.kernel, tf.float64))[~np.isinf(visible)]
    marginal = np.diag(visible[~np.isinf(visible)]) - (kernel / hidden) @ kernel.T
    smallest = np.linalg.eigvalsh(marginal)[0]
    if not smallest > 0:
        raise ValueError(
            "Expected diag(precision_v) - W diag(1 / precision_h) W' to be positive "
            "definite, or two layers of Gaussian or rectified units may have no finite "
            f"partition function. Received: smallest eigenvalue {smallest:.3g}. Use a "
            "smaller kernel, a larger precision, or units with finitely many states in "
            "one of the layers."
        )
