"""Makes the `keras_rbm_frozen.Scorer` of a model."""

import numpy as np
import tensorflow as tf

from keras_rbm_frozen.scorer import Scorer

_SIDES = "visible", "hidden"


def log_z_of(model, log_partition=None):
    """Returns log Z and the ends of its interval, checked: three floats.

    Args:
        model: `RBM`.
        log_partition: `LogPartition` of its weights, a number, the name of a method, or
            `None`.

    Raises:
        ValueError: if it is none of these, or the model has not one log Z.
    """
    if model.conditional or getattr(model, "missing", None) == "absent":
        raise ValueError(
            "Expected a model that has one log Z, the same for all rows. Received: "
            f"{type(model).__name__} '{model.name}'."
        )
    if log_partition is None or isinstance(log_partition, str):
        log_partition = model.log_partition(log_partition)
    value = float(model._log_partition_value(log_partition))
    ends = (getattr(log_partition, end, value) for end in ("lower", "upper"))
    return [value, *map(float, ends)]


def scorer_of(model, log_partition=None):
    """Returns a model's `Scorer`.

    Args:
        model: built `RBM` or `CRBM`.
        log_partition: of an `RBM`, see `log_z_of`.

    Raises:
        ValueError: as `log_z_of`, or if x is not an array of features.
    """
    model._assert_built("scorer")
    inputs, log_z, arrays = None, None, {}
    if model.conditional:
        if model.visible_kernel is None or model.backbone is not None:
            raise ValueError(
                "Expected a CRBM of features (N, X). Received: one with a backbone or "
                "shifts. Freeze the network's features and a CRBM of these."
            )
        inputs = tf.zeros((1, model.num_features))
        arrays = {f"{s}_kernel": getattr(model, f"{s}_kernel") for s in _SIDES}
    else:
        log_z = log_z_of(model, log_partition)
    potentials = model.potentials(inputs, dtype=model.variable_dtype)
    arrays["kernel"], layers = potentials.kernel, {}
    for side in _SIDES:
        layer = getattr(potentials, side)
        arrays[f"{side}_bias"] = tf.reshape(layer.bias, [-1])
        layers[side] = []
        for number, part in enumerate(getattr(layer, "parts", [layer])):
            kind = type(part).__name__.removesuffix("Parameters")
            layers[side].append((kind, int(part.num_units)))
            fields = part._asdict().items()
            arrays |= {
                f"{side}_{number}_{n}": value for n, value in fields if n != "bias"
            }
    return Scorer(
        {name: np.asarray(array, np.float32) for name, array in arrays.items()},
        layers,
        log_z,
    )
