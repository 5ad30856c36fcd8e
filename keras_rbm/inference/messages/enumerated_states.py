"""Exact beliefs of models whose visible or hidden layer has few states, of any type."""

import itertools

import numpy as np
import tensorflow as tf

from keras_rbm.inference.messages.beliefs import Beliefs, batch_of_models
from keras_rbm.inference.potentials import Potentials, finite_layers, num_states
from keras_rbm.units.layer_parameters import LayerParameters

#: States of a layer, such as the classes of a label, that are enumerated at once.
MOST_STATES = 2**12
#: States of a layer that cost no more than a few sweeps.
CHEAP_STATES = 2**8


def enumerated_states(
    potentials: Potentials, weights: tf.Tensor | None, pairwise: str | None
) -> Beliefs:
    """Returns the exact `Beliefs` of models, through which gradients pass.

    All states of the smaller finite layer are summed, with the other summed or
    integrated in closed form. Memory grows with B · states · units of the other layer.

    Args:
        potentials: `Potentials`, with a layer of at most `MOST_STATES` states.
        weights, pairwise: as for `sum_product`.

    Returns:
        `Beliefs` of B models, one if there is no batch.

    Raises:
        ValueError: if no layer has so few states.
    """
    sizes = finite_layers(potentials)
    side = min(sizes, key=sizes.get) if sizes else None
    if side is None or sizes[side] > np.log2(MOST_STATES):
        raise ValueError(
            f"Expected a layer of at most {MOST_STATES} states for exact inference of "
            f"units {_names(potentials)}. Received: "
            + (f"2^{sizes[side]:.1f} states." if side else "no layer of finitely many.")
            + " Use MeanField()."
        )
    models, weights = batch_of_models(potentials, weights)
    if side == "visible":
        return _enumerated(models, weights, pairwise)
    beliefs = _enumerated(models.transpose(), weights, pairwise)
    pairs = beliefs.pairwise
    return beliefs._replace(
        visible=beliefs.hidden,
        hidden=beliefs.visible,
        pairwise=None if pairs is None else tf.linalg.matrix_transpose(pairs),
    )


def has_few_states(units: LayerParameters) -> bool:
    """Returns whether a layer's states cost no more than a few sweeps."""
    if not units.finite:
        return False
    return bool(np.prod(np.float64(num_states(units))) <= CHEAP_STATES)


def _names(potentials):
    kinds = (potentials.visible, potentials.hidden)
    return " and ".join(type(each).__name__ for each in kinds)


def _enumerated(models, weights, pairwise):
    """Enumerates the visible layer of B models."""
    units, others = models.visible, models.hidden
    counts = num_states(units)
    each = [own[:n] for own, n in zip(units.values, counts, strict=True)]
    states = tf.constant([*itertools.product(*each)], tf.float32)  # (S, V)
    first = units.first_of(states)
    inputs = tf.matmul(first, models.kernel)
    natural = others.bias[:, tf.newaxis] + inputs  # (B, S, H)
    rows = tf.shape(natural)[0]
    flat = tf.reshape(natural, (-1, natural.shape[-1]))
    total = tf.reduce_sum(others.log_partition(flat), -1)
    own = tf.matmul(units.bias, first, transpose_b=True)
    own += tf.reduce_sum(units.base_measure(states), -1)
    log_weights = own + tf.reshape(total, (rows, -1))
    log_partition = tf.reduce_logsumexp(log_weights, -1)
    shares = tf.nn.softmax(log_weights)
    mean = others.mean(flat)
    shape = rows, states.shape[0], mean.shape[-1]
    both = shares[:, :, tf.newaxis] * tf.reshape(others.first(mean), shape)
    pairs = None
    if pairwise == "each":
        pairs = tf.einsum("sv,nsh->nvh", first, both)
    elif pairwise == "mean":
        pairs = tf.einsum("sv,nsh,n->vh", first, both, weights)
    return Beliefs(
        tf.matmul(shares, units.encode(states)),
        tf.einsum("ns,nsh->nh", shares, tf.reshape(mean, shape)),
        pairs,
        log_partition,
        tf.ones_like(log_partition, tf.int32),
        tf.ones_like(log_partition, tf.bool),
        tf.zeros_like(log_partition),
    )
