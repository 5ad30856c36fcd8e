"""Exact results by enumerating the smaller layer, of many models, and gradients."""

import math

import numpy as np
import tensorflow as tf

from keras_rbm.inference.arguments import check_model
from keras_rbm.inference.messages import batches
from keras_rbm.inference.messages.beliefs import batch_of_models
from keras_rbm.inference.potentials import (
    Moments,
    Potentials,
    finite_layers,
    num_states,
)
from keras_rbm.inference.traces import compiled, traced_by_size
from keras_rbm.inference.unit_states import UnitStates
from keras_rbm.units.bernoulli import BernoulliParameters

#: Largest number of binary units that is enumerated; for other units, 2^25 states.
MAX_UNITS = 25
#: log2 of the states of a layer times the rows of the other that take about a second.
_QUICK = 26.5
#: Binary units, or as many states of others, that cost no more than a few sweeps.
CHEAP_UNITS = 8


def exact_log_partition(potentials: Potentials) -> tf.Tensor:
    """Computes `log Z = log sum_{v,h} exp(-E(v, h))`.

    The finite layer with fewer states is enumerated; the other is summed (or, for
    real-valued units, integrated) in closed form. Gradients pass through it, once.

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
    (log_partition, *_), _ = enumerated(potentials, None, None, None, tf.float64)
    return log_partition[0] if potentials.batch_size is None else log_partition


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
    (log_partition, visible, hidden), kernel = enumerated(
        potentials, None, "statistics", "each", tf.float64
    )
    moments = Moments(kernel, visible, hidden, tf.ones_like(log_partition))
    if potentials.batch_size is None:
        return tf.nest.map_structure(lambda leaf: leaf[0], moments)
    return moments


def smaller_layer(potentials):
    """Returns which layer to enumerate, "visible" or "hidden".

    Raises:
        ValueError: if it has too many states, or neither layer is finite.
    """
    sizes = finite_layers(potentials)
    layers = (potentials.visible, potentials.hidden)
    kinds = " and ".join(
        type(layer).__name__.removesuffix("Parameters") for layer in layers
    )
    if not sizes:
        raise ValueError(
            "Expected at least one layer of units with finitely many states. Received: "
            f"{kinds} units. Use MeanField(), or for log Z 'bidirectional'."
        )
    side = min(sizes, key=sizes.get)
    if sizes[side] > MAX_UNITS:
        count = getattr(potentials, f"num_{side}")
        states = "" if sizes[side] == count else f" (2^{sizes[side]:.1f} states)"
        raise ValueError(
            f"Expected a layer of at most {MAX_UNITS} binary units to enumerate, or "
            f"2^{MAX_UNITS} states of others. Received: num_{side}={count}{states}, of "
            f"{kinds} units. Use MeanField(), or for log Z 'bidirectional'."
        )
    return side


def is_quick(potentials):
    """Returns whether log Z of a single model is summed within about a second."""
    sizes = finite_layers(potentials)
    if potentials.batch_size is not None or not sizes:
        return False
    side = min(sizes, key=sizes.get)
    layers = {"visible": potentials.hidden, "hidden": potentials.visible}
    most = min(MAX_UNITS, _QUICK - math.log2(layers[side].num_rows))
    return sizes[side] <= most


def has_few_states(units):
    """Returns whether a layer's states cost no more than a few sweeps."""
    return units.finite and np.log2(num_states(units)).sum() <= CHEAP_UNITS


@traced_by_size
def enumerated(potentials, weights, read, pairwise, dtype):
    """Sums over the states of the smaller layer, the other summed in closed form.

    Args:
        potentials: `Potentials`.
        weights: tensor (B,), of the models in `pairwise="mean"`; by default 1 / B.
        read: what is averaged in each layer: its `"statistics"`, its encoded states,
            `"means"`, or nothing, `None`.
        pairwise: `"mean"`, `"each"` or `None`, as in `Beliefs`.
        dtype: that of all results. XLA compiles float32.

    Returns:
        `([log_partition, visible, hidden], pairs)`: (B,), and trees with leaves
        (B, …). Gradients pass through them, once, to all parameters.
    """
    side = smaller_layer(potentials)
    potentials = tf.nest.map_structure(lambda leaf: tf.cast(leaf, dtype), potentials)
    models, weights = batch_of_models(potentials, weights, dtype)
    sums = _Sums(models, side, read, pairwise)
    leaves = tf.nest.flatten(models)
    fixed = list(map(tf.stop_gradient, leaves))
    # Biases and masks are of each model, the kernel and other parameters of all.
    of_each = [i for i, leaf in enumerate(leaves) if i and leaf.shape.rank == 2]
    of_all = [i for i in range(len(leaves)) if i not in of_each]

    def whole(parts):
        models = list(fixed)
        for i, part in zip(of_each, parts, strict=True):
            models[i] = part
        return models

    def forward(*parts):
        *parts, weights = parts
        results = sums.over_all_states(whole(parts), weights)
        return (results[:-1], results[-1:]) if pairwise == "mean" else (results, [])

    def backward(parts, weights, upstream):
        gradients = sums.gradients(whole(parts), weights, upstream)
        return [gradients[i] for i in of_each], [gradients[i] for i in of_all]

    if dtype == tf.float32:
        forward, backward = compiled(forward), compiled(backward)

    def gradient(*upstream):
        rows, total = upstream[: len(results)], upstream[len(results) :]

        def chunk(*arrays):
            biases, (weights, *rows) = arrays[: len(parts)], arrays[len(parts) :]
            return backward(biases, weights, [*rows, *total])

        specs = [tf.TensorSpec(leaf.shape[1:], dtype) for leaf in parts]
        zeros = [tf.zeros_like(leaves[i]) for i in of_all]
        rows, totals = batches.in_chunks(
            chunk, parts, [weights, *rows], specs, zeros, 4 * sums.row_size
        )
        gradients = dict(zip([*of_each, *of_all], [*rows, *totals], strict=True))
        return [gradients[i] for i in range(len(leaves))]

    parts = [fixed[i] for i in of_each]
    structure = [models.visible_bias[:, 0], *sums.averages(models)]
    results = [
        tf.TensorSpec(leaf.shape[1:], dtype) for leaf in tf.nest.flatten(structure)
    ]
    if pairwise == "each":
        results.append(tf.TensorSpec(models.kernel.shape, dtype))
    totals = [tf.zeros_like(models.kernel)] if pairwise == "mean" else []
    rows, means = batches.in_chunks(
        forward, parts, [weights], results, totals, sums.row_size
    )
    values = batches.with_gradient(rows + means, leaves, gradient)
    pairs = values.pop() if pairwise else None
    return tf.nest.pack_sequence_as(structure, values), pairs


class _Sums:
    """Sums over the states of one layer of n models, in chunks if they are many.

    Then there is one model: its log Z is the sum of those of the chunks, and its
    averages are those of the chunks, weighted by their mass. The gradient is computed
    likewise, of what each chunk contributes.

    Args:
        models: `Potentials`, whose types and sizes count.
        side: str, the layer whose states are enumerated.
        read, pairwise: as for `enumerated`.
    """

    def __init__(self, models, side, read, pairwise):
        self.models, self.read, self.pairwise = models, read, pairwise
        self.is_visible = side == "visible"
        layers = models.visible, models.hidden
        units, others = layers if self.is_visible else layers[::-1]
        self.total = math.prod(map(int, num_states(units)))
        most = max(1, batches.CHUNK_SIZE // others.num_rows)
        self.num_chunks = -(-self.total // most)
        self.count = -(-self.total // self.num_chunks)
        self.num_chunks = -(-self.total // self.count)
        self.row_size = self.count * others.num_rows

    def averages(self, models):
        """Returns something of the structure and sizes of the averages."""
        layers = models.visible, models.hidden
        return [self._average(layer, None, layer.bias)[0] for layer in layers]

    def over_all_states(self, leaves, weights):
        """Returns log Z (n,), averages, and means of pairs, if any, as a list."""
        return self._over_chunks(lambda i: self._sums(leaves, weights, i), _merged)

    def gradients(self, leaves, weights, upstream):
        """Returns gradients with respect to the leaves of n models."""
        leaves = list(map(tf.identity, leaves))
        if self.num_chunks > 1:
            whole = self.over_all_states(leaves, weights)

        def of_chunk(index):
            with tf.GradientTape() as tape:
                tape.watch(leaves)
                parts = self._sums(leaves, weights, index)
            weighted = list(upstream)
            if self.num_chunks > 1:
                share = tf.exp(parts[0] - whole[0])[0]
                for i in range(1, len(weighted)):
                    weighted[0] += tf.reduce_sum(weighted[i] * (parts[i] - whole[i]))
                weighted = [share * part for part in weighted]
            return tape.gradient(parts, leaves, weighted, unconnected_gradients="zero")

        return self._over_chunks(
            of_chunk, lambda one, two: [a + b for a, b in zip(one, two, strict=True)]
        )

    def _over_chunks(self, function, add):
        """Adds up what a function of a chunk's number returns."""
        first = function(0)
        if self.num_chunks == 1:
            return first
        return tf.while_loop(
            lambda index, _: index < self.num_chunks,
            lambda index, so_far: (index + 1, add(so_far, function(index))),
            (1, first),
        )[1]

    def _average(self, layer, states, natural):
        """Returns what is averaged in a layer, of states, or given natural parameters.

        That are its statistics, or encoded means, and the first statistic beside it.
        """
        if self.read == "statistics":
            if natural is None:
                statistics = layer.statistics(states)
            else:
                statistics = layer.expected_statistics(natural)
            return statistics, statistics[0]
        encoded = layer.encode(states) if natural is None else layer.mean(natural)
        return (encoded if self.read else ()), layer.first(encoded)

    def _sums(self, leaves, weights, index):
        """Returns what `over_all_states` does, of the states of one chunk."""
        models = tf.nest.pack_sequence_as(self.models, leaves)
        kernel, others, units = models.transpose() if self.is_visible else models
        bias, (n, width) = others.bias, others.bias.shape
        numbers = index * self.count + tf.range(self.count)
        digits = digits_of(numbers, num_states(units))
        states, own = _states_and_weights(units, digits)
        inputs = tf.matmul(units.first_of(states), kernel, transpose_b=True)
        natural = tf.reshape(bias + inputs[:, tf.newaxis], (-1, width))
        repeated = others.repeat(self.count)
        log_weights, base = own
        if isinstance(others, BernoulliParameters) and bias.dtype == tf.float32:
            gain = _softplus_gain(bias, inputs[:, tf.newaxis])
            base += tf.reduce_sum(others.log_partition(bias), -1)
        else:
            gain = tf.reshape(repeated.log_partition(natural), (self.count, n, -1))
        log_weights += tf.reduce_sum(gain, -1)  # (states, n)
        if self.num_chunks * self.count > self.total:  # the last one is not full
            is_state = (numbers < self.total)[:, tf.newaxis]
            log_weights = tf.where(is_state, log_weights, -float("inf"))
        shares = tf.nn.softmax(log_weights, 0)
        log_partition = base + tf.reduce_logsumexp(log_weights, 0)
        of_units, first = self._average(units, states, None)
        of_others, first_given = self._average(repeated, None, natural)

        def by_state(leaf):
            rows = tf.reshape(leaf, (self.count, n, -1))
            return rows * shares[..., tf.newaxis]

        averages = [
            tf.nest.map_structure(
                lambda leaf: tf.reduce_sum(by_state(leaf), 0), of_others
            ),
            tf.nest.map_structure(
                lambda leaf: tf.matmul(shares, leaf, transpose_a=True), of_units
            ),
        ]
        pairs = []
        if self.pairwise == "mean":
            both = tf.reduce_sum(by_state(first_given) * weights[:, tf.newaxis], 1)
            pairs = [tf.matmul(both, first, transpose_a=True)]
        elif self.pairwise == "each":
            pairs = [tf.einsum("snr,sk->nrk", by_state(first_given), first)]
        if self.is_visible:
            averages, pairs = (
                averages[::-1],
                list(map(tf.linalg.matrix_transpose, pairs)),
            )
        return tf.nest.flatten([log_partition, averages, pairs])


def _states_and_weights(units, digits):
    """Returns states (S, units) by their units' numbers, and own log-weights (S, n).

    The latter are relative to those of the best state, so that large biases cancel
    exactly; its log-weights (n,) come with them.
    """
    count, size = digits.shape
    most = units.values.shape[1]
    values = tf.constant(units.values.ravel(), units.bias.dtype)
    states = tf.gather(values, digits + most * np.arange(size, dtype=np.int32))
    table = UnitStates.of(units, units.bias)
    best = tf.stop_gradient(tf.reduce_max(table.own, -1, keepdims=True))
    relative = tf.where(table.is_real, table.own - best, 0.0)
    relative = tf.reshape(relative, (-1, size * most))
    chosen = tf.one_hot(digits, most, dtype=units.bias.dtype)
    chosen = tf.reshape(chosen, (count, -1))
    weights = tf.matmul(chosen, relative, transpose_b=True)
    return states, (weights, tf.reduce_sum(best[..., 0], -1))


def digits_of(numbers, sizes):
    """Returns each unit's state in states by number, (states, units).

    A number has one digit per unit; the first unit's digit is the lowest.

    Args:
        numbers: int tensor or array (states,).
        sizes: int array (units,) or (states, units), how many states units have.
    """
    places = np.cumprod(sizes, -1) // sizes
    return numbers[:, np.newaxis] // np.int32(places) % np.int32(sizes)


def _merged(one, two):
    """Returns log Z and averages over the states of two chunks together."""
    log_partition = tf.reduce_logsumexp([one[0], two[0]], 0)
    shares = [tf.exp(part[0] - log_partition)[0] for part in (one, two)]
    pairs = zip(one[1:], two[1:], strict=True)
    return [log_partition, *(shares[0] * a + shares[1] * b for a, b in pairs)]


def _softplus_gain(own, inputs):
    """Returns `softplus(own + inputs) - softplus(own)`, exactly also for large own."""
    larger = tf.where(own > 0.0, tf.maximum(inputs, -own), tf.nn.relu(own + inputs))
    rest = tf.math.softplus(-tf.abs(own + inputs)) - tf.math.softplus(-tf.abs(own))
    return larger + rest
