"""Exact results by enumerating the smaller layer."""

import math

import numpy as np
import tensorflow as tf

from keras_rbm.inference.arguments import check_model
from keras_rbm.inference.potentials import (
    Moments,
    Potentials,
    finite_layers,
    num_states,
    own_log_weight,
)
from keras_rbm.inference.traces import traced_by_size

#: Largest number of binary units that is enumerated; for other units, 2^25 states.
MAX_UNITS = 25
_CHUNK = 2**12


def exact_log_partition(potentials: Potentials) -> tf.Tensor:
    """Computes `log Z = log sum_{v,h} exp(-E(v, h))`.

    The finite layer with fewer states is enumerated; the other is summed (or, for
    real-valued units, integrated) in closed form.

    Args:
        potentials: `Potentials`.

    Returns:
        float64 tensor of shape (), or (B,) if the biases have a batch dimension, nats.

    Raises:
        ValueError: if the smaller finite layer has more than 2^25 states (25 binary
            units), or neither layer is finite.

    Example:

    >>> model = keras_rbm.inference.Potentials(tf.zeros((3, 2)), [0.0] * 3, [0.0] * 2)
    >>> z = keras_rbm.inference.exact_log_partition(model)
    >>> print(f"{z / np.log(2):.4f}")
    5.0000
    """
    check_model(potentials)
    return enumerated_log_partition(potentials)


@traced_by_size
def enumerated_log_partition(potentials: Potentials) -> tf.Tensor:
    """Returns what `exact_log_partition` does, for `Potentials`."""
    return _for_each_model(_log_partition, potentials, tf.float64)


def exact_moments(potentials: Potentials) -> Moments:
    """Computes the model's expected statistics.

    Args:
        potentials: `Potentials`.

    Returns:
        `Moments` without a row axis: kernel (V, H), visible and hidden statistics
        (V,) and (H,), weight 1; with a leading axis B if the biases have one.
        All in float64.

    Raises:
        ValueError: as for `exact_log_partition`.

    Example:

    >>> model = keras_rbm.inference.Potentials(tf.zeros((3, 2)), [0.0] * 3, [0.0] * 2)
    >>> print(keras_rbm.inference.exact_moments(model).kernel.numpy().max().round(9))
    0.25
    """
    check_model(potentials)
    return _exact_moments(potentials)


@traced_by_size
def _exact_moments(potentials):
    v, h = potentials.visible, potentials.hidden
    dtype = tf.float64
    signature = Moments(
        dtype,
        tf.nest.map_structure(lambda _: dtype, v.expected_statistics(v.bias)),
        tf.nest.map_structure(lambda _: dtype, h.expected_statistics(h.bias)),
        dtype,
    )
    return _for_each_model(_moments, potentials, signature, _swapped)


def _named(units):
    """Returns what a unit type is called where models are made."""
    return type(units).__name__.removesuffix("Parameters")


def smaller_layer(potentials: Potentials) -> str:
    """Returns which layer to enumerate, "visible" or "hidden".

    Raises:
        ValueError: if it has too many states, or neither layer is finite.
    """
    sizes = finite_layers(potentials)
    kinds = f"{_named(potentials.visible)} and {_named(potentials.hidden)}"
    if not sizes:
        raise ValueError(
            "Expected at least one layer of units with finitely many states. Received: "
            f"{kinds} units. Use an estimate, for log Z 'bidirectional'."
        )
    side = min(sizes, key=sizes.get)
    if sizes[side] > MAX_UNITS:
        raise ValueError(
            f"Expected a layer of at most {MAX_UNITS} binary units to enumerate, or "
            f"2^{MAX_UNITS} states of others. Received: {_size(potentials, side)} of "
            f"{kinds} units. Use an estimate, for log Z 'bidirectional'."
        )
    return side


def _size(potentials, side):
    count, states = getattr(potentials, f"num_{side}"), finite_layers(potentials)[side]
    size = "" if states == count else f" (2^{states:.1f} states)"
    return f"num_{side}={count}{size},"


def _for_each_model(function, potentials, signature, swap=lambda result: result):
    """Returns results of a function that enumerates a model's hidden layer.

    If the visible layer is the one to enumerate, the function gets the transposed
    model, and `swap` swaps the layers of its result.
    """
    transposes = smaller_layer(potentials) == "visible"
    potentials = tf.nest.map_structure(lambda x: tf.cast(x, tf.float64), potentials)

    def run(model):
        return swap(function(model.transpose())) if transposes else function(model)

    batch = potentials.batch_size
    if batch is None:
        return run(potentials)

    def one(index):
        layers = (layer.of_model(index) for layer in potentials[1:])
        return run(Potentials(potentials.kernel, *layers))

    return tf.map_fn(one, tf.range(batch), fn_output_signature=signature)


def _states(units, start, count):
    """Returns a layer's states number `start` to `start + count - 1`, (count, units).

    A state's number has one digit per unit; the first unit's digit is the lowest.
    """
    values, sizes = units.values, num_states(units)
    places = np.cumprod(np.append(1, sizes[:-1]))
    index = start + tf.range(count)[:, tf.newaxis]
    digits = index // tf.constant(places, tf.int32) % tf.constant(sizes, tf.int32)
    digits += np.arange(len(sizes), dtype=np.int32) * values.shape[1]
    return tf.gather(tf.constant(values.ravel(), units.bias.dtype), digits)


def _log_weights(potentials, hidden):
    """Returns each hidden state's log weight, with visible units summed out."""
    visible = potentials.visible.log_partition(potentials.visible_natural(hidden))
    return own_log_weight(potentials.hidden, hidden) + tf.reduce_sum(visible, -1)


def _chunks(potentials):
    """Returns the numbers of chunks, of states in a chunk, and of all states.

    A last chunk that is not full repeats states from 0 on.
    """
    total = math.prod(map(int, num_states(potentials.hidden)))
    count = min(_CHUNK, total)
    return -(-total // count), count, total


def _chunk(potentials, index, count, total):
    """Returns `count` states from number `index · count` on, and their log weights."""
    first = index * count
    hidden = _states(potentials.hidden, first, count)
    log_weights = _log_weights(potentials, hidden)
    if total % count:
        there = first + tf.range(count) < total
        log_weights = tf.where(there, log_weights, -float("inf"))
    return hidden, log_weights


def _log_partition(potentials):
    chunks, count, total = _chunks(potentials)
    dtype = potentials.hidden_bias.dtype

    def add(index, log_sum):
        _, log_weights = _chunk(potentials, index, count, total)
        chunk = tf.reduce_logsumexp(log_weights)
        return index + 1, tf.reduce_logsumexp(tf.stack([log_sum, chunk]))

    minus_infinity = tf.constant(-float("inf"), dtype)
    return tf.while_loop(
        lambda index, _: index < chunks, add, (tf.constant(0), minus_infinity)
    )[1]


def _moments(potentials):
    log_partition = _log_partition(potentials)
    chunks, count, total_states = _chunks(potentials)

    def chunk_moments(index):
        hidden, log_weights = _chunk(potentials, index, count, total_states)
        weights = tf.exp(log_weights - log_partition)
        h = potentials.hidden.statistics(hidden)
        v = potentials.visible.expected_statistics(potentials.visible_natural(hidden))
        kernel = tf.matmul(v.bias, h.bias * weights[:, tf.newaxis], transpose_a=True)
        return Moments(kernel, v, h, weights).mean()

    return tf.while_loop(
        lambda index, _: index < chunks,
        lambda index, total: (
            index + 1,
            tf.nest.map_structure(tf.add, total, chunk_moments(index)),
        ),
        (tf.constant(1), chunk_moments(tf.constant(0))),
    )[1]


def _swapped(moments):
    kernel = tf.transpose(moments.kernel)
    return Moments(kernel, moments.hidden, moments.visible, moments.weights)
