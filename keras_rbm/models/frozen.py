"""Makes the `keras_rbm_frozen.Scorer` of a model."""

import numpy as np
import tensorflow as tf

from keras_rbm_frozen.scorer import Scorer

_SIDES = "visible", "hidden"


def scorer_of(model, log_partition=None):
    """Returns a model's `Scorer`.

    Args:
        model: built `RBM` or `CRBM`.
        log_partition: `LogPartition` or number, of an `RBM`; by default computed.

    Raises:
        ValueError: if rows have models of their own (`missing="absent"`), or x is not
            an array of features.
    """
    model._assert_built("scorer")
    inputs, arrays = None, {}
    if model.conditional:
        if model.visible_kernel is None or model.backbone is not None:
            raise ValueError(
                "Expected a CRBM of features (N, X). Received: one with a backbone or "
                "shifts. Freeze the network's features and a CRBM of these."
            )
        inputs = tf.zeros((1, model.num_features))
        arrays = {f"{s}_kernel": getattr(model, f"{s}_kernel") for s in _SIDES}
    elif model.missing == "absent":
        raise ValueError(
            "Expected a model with one log Z. Received: missing='absent', where each "
            "row has a model of its own. Use log_likelihood."
        )
    elif log_partition is None:
        log_partition = model.log_partition()
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
    ends = [
        getattr(log_partition, n, log_partition) for n in ("value", "lower", "upper")
    ]
    return Scorer(
        {name: np.asarray(array, np.float32) for name, array in arrays.items()},
        layers,
        None if model.conditional else [float(end) for end in ends],
    )
