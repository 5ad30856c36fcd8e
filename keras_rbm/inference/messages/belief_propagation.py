"""Sum-product and max-product belief propagation."""

import tensorflow as tf
from numpy.typing import ArrayLike

from keras_rbm.inference.messages import batches, blocks
from keras_rbm.inference.messages.beliefs import (
    Beliefs,
    batch_of_models,
    checked_arguments,
    pairwise_products,
    without_batch,
)
from keras_rbm.inference.messages.categorical_messages import CategoricalRatios
from keras_rbm.inference.messages.ratio_messages import LogMessages, RatioMessages
from keras_rbm.inference.potentials import Potentials, own_log_weight
from keras_rbm.inference.traces import compiled, traced


def sum_product(
    potentials: Potentials,
    *,
    max_iterations: int | tf.Tensor = 100,
    tolerance: float = 1e-3,
    damping: float = 0.0,
    weights: ArrayLike | None = None,
    pairwise: str | None = "mean",
) -> Beliefs:
    """Approximates a model's marginals by loopy belief propagation [1].

    Hidden units are binary, visible ones binary or categorical.

    Exact if the non-zero weights form a tree, after as many sweeps as its
    diameter. Each model of a batch stops independently of the others. Gradients pass
    through the sweeps that were made, to the kernel and both biases.

    Args:
        potentials: `Potentials` of binary, or categorical visible and binary hidden
            units. For categories `pairwise` are probabilities of a category and h = 1.
        max_iterations: int ≥ 1, maximum number of sweeps (messages both ways); a
            tensor or variable can change without a new trace.
        tolerance: float ≥ 0; a model has converged when no belief changed by as much
            in a sweep. With 0 all `max_iterations` sweeps are made.
        damping: float in [0, 1), weight of the old messages to visible units, in the
            logarithmic domain; fixed points stay the same.
        weights: tensor (B,), of the models in `pairwise="mean"`; by default 1 / B.
        pairwise: `"mean"`, `"each"` or `None`, see `Beliefs`.

    Returns:
        `Beliefs`; `log_partition` is the Bethe estimate (not a bound).

    Raises:
        ValueError: if the units are others, or an option is out of range.

    Example:

    >>> model = keras_rbm.inference.Potentials([[2.0]], [0.0], [-1.0])
    >>> beliefs = keras_rbm.inference.sum_product(model)
    >>> exact = keras_rbm.inference.exact_log_partition(model)
    >>> print(np.round([beliefs.log_partition, exact], 4))
    [1.6265 1.6265]

    References:
        1. Ping, Ihler. Belief propagation in conditional RBMs for structured
           prediction. AISTATS 2017.
    """
    weights, limits = checked_arguments(
        potentials, weights, pairwise, max_iterations, tolerance, damping
    )
    return _propagate(potentials, weights, *limits, True, float(damping), pairwise)


def max_product(
    potentials: Potentials,
    *,
    max_iterations: int | tf.Tensor = 100,
    tolerance: float = 1e-3,
    damping: float = 0.0,
    weights: ArrayLike | None = None,
    pairwise: str | None = "mean",
) -> Beliefs:
    """Approximates the most probable joint state (v, h) by belief propagation.

    Exact if the non-zero weights form a tree and the maximum is unique. A unit
    is 1 in the decoded state if its belief, a normalized max-marginal, exceeds 1/2.
    Of categorical units `visible` is the decoded state itself, one-hot.

    Args:
        potentials: like all other arguments, see `sum_product`.

    Returns:
        `Beliefs`: `pairwise` is `v h'` of the decoded state, `log_partition` its
        log-weight `-E(v, h)`, a lower bound of log Z.

    Raises:
        ValueError: if the units are others, or an option is out of range.

    Example:

    >>> model = keras_rbm.inference.Potentials([[2.0]], [0.5], [-1.0])
    >>> beliefs = keras_rbm.inference.max_product(model)
    >>> print((beliefs.visible > 0.5).numpy(), (beliefs.hidden > 0.5).numpy())
    [ True] [ True]
    """
    weights, limits = checked_arguments(
        potentials, weights, pairwise, max_iterations, tolerance, damping
    )
    beliefs = _propagate(potentials, None, *limits, False, float(damping), None)
    models, weights = batch_of_models(potentials, weights)
    # A unit is 1 if its belief exceeds 1/2, or in the category of the largest one.
    states = models.visible.mode(beliefs.visible - 0.5)
    h = models.hidden.mode(beliefs.hidden - 0.5)
    v = models.visible.encode(states)
    weight = own_log_weight(models.visible, states) + own_log_weight(models.hidden, h)
    weight += tf.reduce_sum(tf.matmul(v, models.kernel) * h, -1)
    pairs = pairwise_products(v, h, weights, pairwise)
    visible = beliefs.visible if blocks.Layout.of(potentials).num_states == 1 else v
    beliefs = beliefs._replace(visible=visible, log_partition=weight, pairwise=pairs)
    return without_batch(beliefs, potentials, pairwise)


@traced
def _propagate(potentials, weights, max_iterations, tolerance, sums, damping, pairwise):
    """Returns `Beliefs`; those of states have no gradient, and a batch dimension."""
    models, weights = batch_of_models(potentials, weights)
    layout = blocks.Layout.of(potentials)
    model = layout.model(models)
    kernel, *biases = map(tf.stop_gradient, model)
    odds, row_size = blocks.odds_of(kernel), kernel.shape.num_elements()
    results = [tf.TensorSpec(bias.shape[1:]) for bias in biases]
    results += [tf.TensorSpec((), kind) for kind in (tf.float32, tf.int32, tf.float32)]
    results += [tf.TensorSpec(kernel.shape)] if pairwise == "each" else []
    totals = [tf.zeros_like(kernel)] if pairwise == "mean" else []

    def of_block(block):
        """Returns what messages are computed from, exp(W) or W, and their kind."""
        if not block:
            messages = LogMessages(sums, damping, layout.num_states)
        elif layout.num_states == 1:
            messages = RatioMessages(sums, damping, block)
        else:
            messages = CategoricalRatios(sums, damping, block, layout.num_states)
        first = odds if block else kernel
        return first, {"messages": messages, "pairwise": pairwise}

    def run(block):
        first, kind = of_block(block)

        def chunk(b, c, *rows):
            return _chunk((first, b, c), *rows, max_iterations, tolerance, **kind)

        return batches.in_chunks(chunk, biases, [weights], results, totals, row_size)

    def gradient(*upstream):
        means = upstream[3:] if pairwise == "mean" else []
        rows = [weights, iterations, *upstream[: len(upstream) - len(means)]]

        def run_back(block):
            first, kind = of_block(block)

            def chunk(b, c, weights, iterations, *rows):
                of_chunk = weights, iterations, [*rows, *means]
                return _chunk_gradients((first, b, c), *of_chunk, **kind)

            # A chunk is a quarter as large, because it keeps some states.
            of_biases, (of_first,) = batches.in_chunks(
                chunk, biases, rows, results[:2], [tf.zeros_like(kernel)], 4 * row_size
            )
            return [of_first * odds if block else of_first, *of_biases]

        return blocks.with_safe_block(kernel, run_back)

    rows, means = blocks.with_safe_block(kernel, run)
    values = list(map(tf.stop_gradient, [*rows, *means]))
    iterations, residual = values.pop(3), values.pop(3)
    if sums:
        values = batches.with_gradient(values, model, gradient)
    visible, hidden, log_partition, *pairs = values
    visible, hidden, *pairs = layout.restored(visible, hidden, *pairs)
    pairs = pairs[0] if pairs else None
    progress = iterations, residual < tolerance, residual
    beliefs = Beliefs(visible, hidden, pairs, log_partition, *progress)
    return without_batch(beliefs, potentials, pairwise) if sums else beliefs


@compiled
def _chunk(model, weights, max_iterations, tolerance, *, messages, pairwise):
    """Runs belief propagation on a few models.

    Args:
        model: tensors exp(W) (rows, H), or W itself for logarithms; b (n, rows);
            c (n, H).
        weights: tensor (n,).
        max_iterations, tolerance: scalar tensors.
        messages: `RatioMessages`, `CategoricalRatios` or `LogMessages`.
        pairwise: as in `sum_product`.

    Returns:
        two lists: visible and hidden beliefs, log Z, sweeps, residuals, and for
        `"each"` the pairs; for `"mean"` the weighted sum of the pairs.
    """

    def sweep(*state):
        new = messages.sweep(model, state)
        return new, _change(
            messages.beliefs(model, new), messages.beliefs(model, state)
        )

    state, iterations, residual = batches.until_converged(
        sweep, messages.start(model), max_iterations, tolerance
    )
    *values, pairs = _read(messages, model, state, weights, pairwise)
    each = [pairs] if pairwise == "each" else []
    return [*values, iterations, residual, *each], [pairs] if pairwise == "mean" else []


def _change(new, old):
    """Returns the largest change of a belief, (n,), infinite if one is not a number."""
    changes = [
        tf.reduce_max(tf.abs(after - before), range(1, after.shape.rank))
        for after, before in zip(new, old, strict=True)
    ]
    # XLA's maximum ignores NaN, which has not converged.
    is_number = tf.reduce_all(new[0] == new[0], range(1, new[0].shape.rank))
    change = tf.cast(tf.maximum(*changes), tf.float32)
    return tf.where(is_number, change, float("inf"))


def _read(messages, model, state, weights, pairwise):
    """Returns the float32 results of a few models' last states: pairs are the last."""
    shapes = [model[1].shape, model[2].shape, weights.shape]
    shapes.append((*weights.shape, *model[0].shape))
    results = [
        tf.reshape(tf.cast(part, tf.float32), shape)
        for part, shape in zip(messages.read(model, state), shapes, strict=True)
    ]
    if pairwise == "mean":
        # XLA joins this with what makes the pairs, but not a product of matrices.
        weighted = results[-1] * weights[:, tf.newaxis, tf.newaxis]
        results[-1] = tf.reduce_sum(weighted, 0)
    return results


@compiled
def _chunk_gradients(model, weights, iterations, upstream, *, messages, pairwise):
    """Returns gradients with respect to biases, and to the kernel, of `_chunk`.

    Args:
        model, weights, messages, pairwise: as for `_chunk`.
        iterations: int tensor (n,), the sweeps that were made.
        upstream: tensors, the gradients with respect to visible and hidden beliefs,
            log Z and, if any, pairs.
    """

    def read(model, state):
        results = _read(messages, model, state, weights, pairwise)
        return results[: len(upstream)]

    first, *biases = batches.gradients_of_sweeps(
        messages.start, messages.sweep, read, model, iterations, upstream
    )
    return biases, [first]
