"""The result of approximate inference, and its arguments."""

import numbers
from typing import NamedTuple

import tensorflow as tf

from keras_rbm.inference.arguments import as_floats, check_model, check_sizes
from keras_rbm.inference.potentials import Potentials
from keras_rbm.units.bernoulli import BernoulliParameters

PAIRWISE = ("mean", "each", None)


class Beliefs(NamedTuple):
    """Approximate marginals of a model, or of a batch of B models.

    If the potentials have no batch dimension, these have none either. For units that
    are not binary beliefs are means; for categorical units they are the probabilities
    of the categories, q columns per unit.

    Attributes:
        visible: tensor (B, V), beliefs that a visible unit is 1.
        hidden: tensor (B, H), likewise.
        pairwise: beliefs that both units are 1 (means of `t(v) t(h)'`): the weighted
            mean over the models, (V, H), or those of each model, (B, V, H), or `None`,
            as requested.
        log_partition: tensor (B,), estimate of log Z in nats; its kind depends on
            the routine.
        num_iterations: int32 tensor (B,), sweeps made.
        converged: bool tensor (B,).
        residual: tensor (B,), largest change of a belief in the last sweep.
    """

    visible: tf.Tensor
    hidden: tf.Tensor
    pairwise: tf.Tensor | None
    log_partition: tf.Tensor
    num_iterations: tf.Tensor
    converged: tf.Tensor
    residual: tf.Tensor


def check_binary(potentials):
    """Raises a ValueError unless both layers are binary.

    Message passing with categorical visible units has models of its own.
    """
    for side, units in (("visible", potentials.visible), ("hidden", potentials.hidden)):
        if not isinstance(units, BernoulliParameters):
            raise ValueError(
                "Expected binary units in both layers, or categorical visible and "
                f"binary hidden ones, for message passing. Received: {side} units "
                f"{type(units).__name__}. Use mean_field, or sample from the model."
            )


def batch_of_models(potentials, weights=None, dtype=tf.float32):
    """Returns B models (one if there is no batch), with weights, in a dtype.

    Args:
        potentials: `Potentials`.
        weights: tensor (B,), of the models in means; by default 1 / B.

    Returns:
        `Potentials` whose biases are (B, V) and (B, H); weights (B,).

    Raises:
        ValueError: if there is not a weight for each model.
    """
    count = static_size(potentials)

    def each(units):
        bias = tf.cast(units.bias, dtype)
        return units.with_bias(tf.broadcast_to(bias, (count, bias.shape[-1])))

    if weights is None:
        weights = tf.fill([count], 1.0 / tf.cast(count, dtype))
    shape = [None if tf.is_tensor(count) else count]
    weights = as_floats("weights", weights, shape, dtype)
    layers = each(potentials.visible), each(potentials.hidden)
    return Potentials(tf.cast(potentials.kernel, dtype), *layers), weights


def static_size(potentials):
    """Returns the number of models, an int if it is known; 1 if there is no batch."""
    for bias in (potentials.visible_bias, potentials.hidden_bias):
        if bias.shape.rank == 2 and bias.shape[0] is not None:
            return bias.shape[0]
    batch = potentials.batch_size
    return 1 if batch is None else batch


def pairwise_products(visible, hidden, weights, pairwise):
    """Returns pairwise beliefs of independent (or decoded) units."""
    if pairwise == "each":
        return visible[:, :, tf.newaxis] * hidden[:, tf.newaxis, :]
    if pairwise == "mean":
        return tf.matmul(visible * weights[:, tf.newaxis], hidden, transpose_a=True)
    return None


def without_batch(beliefs, potentials, pairwise):
    """Returns beliefs without a batch dimension, if the potentials have none."""
    if 2 in (potentials.visible_bias.shape.rank, potentials.hidden_bias.shape.rank):
        return beliefs
    parts = beliefs._asdict()
    mean = parts.pop("pairwise")
    alone = {name: part[0] for name, part in parts.items()}
    return Beliefs(**alone, pairwise=mean[0] if pairwise == "each" else mean)


def check_options(max_iterations=1, tolerance=0.0, damping=0.0, pairwise=None):
    """Raises a ValueError unless the options of an inference routine are valid."""
    check_sizes(max_iterations=max_iterations)
    if not isinstance(tolerance, numbers.Real) or not tolerance >= 0.0:
        raise ValueError(
            f"Expected a number tolerance ≥ 0. Received: tolerance={tolerance!r}."
        )
    if not isinstance(damping, numbers.Real) or not 0.0 <= damping < 1.0:
        raise ValueError(
            f"Expected a number damping in [0, 1). Received: damping={damping!r}."
        )
    if not isinstance(pairwise, str | None) or pairwise not in PAIRWISE:
        raise ValueError(
            f"Expected pairwise to be one of {PAIRWISE}. Received: "
            f"pairwise={pairwise!r}."
        )


def checked_arguments(
    potentials, weights, pairwise, max_iterations, tolerance=0.0, damping=0.0
):
    """Checks what all routines take; returns weights, and two limits as tensors.

    The limits are the number of sweeps and the tolerance: other values need no new
    trace.
    """
    check_model(potentials)
    check_options(max_iterations, tolerance, damping, pairwise)
    if weights is not None:
        weights = as_floats("weights", weights, (None,))
    # A variable becomes its value: a trace must not depend on a deleted object.
    max_iterations = tf.cast(tf.convert_to_tensor(max_iterations), tf.int32)
    limits = tf.maximum(max_iterations, 1), tf.cast(float(tolerance), tf.float32)
    return weights, limits
