"""Converts an `InfiniteRBM` to an RBM, and back."""

import numpy as np
import tensorflow as tf

from keras_rbm.checks import check_counts
from keras_rbm.models.rbm import RBM
from keras_rbm.units.bernoulli import are_binary


def to_rbm(model, approximate):
    """See `InfiniteRBM.to_rbm`."""
    count = model.hidden_units
    kernel, bias, coefficients = (
        tf.convert_to_tensor(variable).numpy()[..., :count]
        for variable in (model.kernel, model.hidden_bias, model.coefficients)
    )
    whole = np.floor(coefficients)
    rest = coefficients - whole
    if rest.any() and not approximate:
        raise ValueError(
            "Expected whole coefficients: an RBM has no fractional units. "
            f"Received: coefficients from {coefficients.min():.3g} to "
            f"{coefficients.max():.3g}. Pass approximate=True for an RBM near it."
        )
    units_of = [np.repeat(np.arange(count), whole.astype(int)), np.nonzero(rest)[0]]
    chosen = np.concatenate(units_of)
    if not len(chosen):
        raise ValueError(
            "Expected a model with hidden units. Received: model "
            f"'{model.name}', whose visible units are still independent. Call "
            "fit() first."
        )
    scale = np.concatenate([np.ones(len(units_of[0])), rest[units_of[1]]])
    options = {"seed": model.seed, "dtype": model.dtype_policy}
    rbm = RBM(len(chosen), num_visible=len(kernel), **options)
    rbm.kernel.assign(kernel[:, chosen] * scale)
    rbm.hidden_bias.assign(bias[chosen] * scale)
    rbm.visible_bias.assign(model.visible_bias)
    rbm._copy_record(model)
    return rbm


def from_rbm(cls, rbm, max_hidden_units, **kwargs):
    """See `InfiniteRBM.from_rbm`."""
    if not isinstance(rbm, (RBM, cls)):
        raise TypeError(
            "Expected an RBM or InfiniteRBM. Received: rbm of type "
            f"{type(rbm).__name__}."
        )
    rbm._assert_built("from_rbm")
    for side in ("visible", "hidden"):
        if not are_binary(getattr(rbm, side)):
            raise ValueError(
                "Expected an RBM of binary units. Received: "
                f"{side}={getattr(rbm, side)!r}."
            )
    check_counts(max_hidden_units=max_hidden_units)
    count = rbm.hidden_units
    if max_hidden_units < count:
        raise ValueError(
            f"Expected max_hidden_units ≥ {count}, the RBM's hidden units. "
            f"Received: max_hidden_units={max_hidden_units}."
        )
    width = rbm.kernel.shape[0]
    options = {"seed": rbm.seed, "dtype": rbm.dtype_policy} | kwargs
    model = cls(max_hidden_units, num_visible=width, **options)
    coefficients = getattr(rbm, "coefficients", tf.ones(count))
    empty = [0, max_hidden_units - count]
    model.kernel.assign(tf.pad(rbm.kernel[:, :count], [[0, 0], empty]))
    model.hidden_bias.assign(tf.pad(rbm.hidden_bias[:count], [empty]))
    model.coefficients.assign(tf.pad(coefficients[:count], [empty]))
    model.num_units.assign(count)
    model.visible_bias.assign(rbm.visible_bias)
    model._copy_record(rbm)
    return model
