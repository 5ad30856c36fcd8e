"""Sum-product and max-product belief propagation."""

import tensorflow as tf
from numpy.typing import ArrayLike

from keras_rbm.inference.arguments import check_model
from keras_rbm.inference.messages.adjoint import gradients_of_sweeps, with_gradient
from keras_rbm.inference.messages.beliefs import (
    Beliefs,
    BinaryModels,
    as_limits,
    check_options,
    checked_weights,
    pairwise_products,
    stopped,
    without_batch,
)
from keras_rbm.inference.messages.blocks import gradients_in_blocks, in_blocks
from keras_rbm.inference.messages.categorical_models import is_categorical
from keras_rbm.inference.messages.categorical_propagation import (
    categorical_max_product,
    categorical_sum_product,
)
from keras_rbm.inference.messages.log_messages import LogMessages
from keras_rbm.inference.messages.ratio_messages import RatioMessages
from keras_rbm.inference.messages.sweeps import change_of_beliefs, until_converged
from keras_rbm.inference.potentials import Potentials
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
    check_model(potentials)
    check_options(max_iterations, tolerance, damping, pairwise)
    weights = checked_weights(weights)
    limits = as_limits(max_iterations, tolerance)
    if is_categorical(potentials):
        return categorical_sum_product(
            potentials, weights, limits, float(damping), pairwise
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
    check_model(potentials)
    check_options(max_iterations, tolerance, damping, pairwise)
    weights = checked_weights(weights)
    limits = as_limits(max_iterations, tolerance)
    if is_categorical(potentials):
        return categorical_max_product(
            potentials, weights, limits, float(damping), pairwise
        )
    beliefs = _propagate(potentials, weights, *limits, False, float(damping), None)
    batch = potentials.batch_size is not None
    models = BinaryModels.of(potentials, weights)
    v, h = (
        tf.cast((layer if batch else layer[tf.newaxis]) > 0.5, tf.float32)
        for layer in (beliefs.visible, beliefs.hidden)
    )
    coupled = models.visible_bias + tf.matmul(h, models.kernel, transpose_b=True)
    weight = tf.reduce_sum(v * coupled, -1) + tf.reduce_sum(h * models.hidden_bias, -1)
    pairs = pairwise_products(v, h, models.weights, pairwise)
    if not batch:
        weight, pairs = weight[0], pairs[0] if pairwise == "each" else pairs
    return beliefs._replace(log_partition=weight, pairwise=pairs)


@traced
def _propagate(potentials, weights, max_iterations, tolerance, sums, damping, pairwise):
    models = BinaryModels.of(potentials, weights)
    options = {"sums": sums, "damping": damping, "pairwise": pairwise}

    def chunk(part, odds, block):
        first = odds if block else part.kernel
        model, limits = (first, *part[1:3]), (max_iterations, tolerance)
        return _chunk(model, part.weights, *limits, block=block, **options)

    fixed = tf.nest.map_structure(tf.stop_gradient, models)
    beliefs = in_blocks(chunk, fixed, pairwise)
    if sums:

        def gradient(upstream):
            return gradients_in_blocks(
                lambda model, part, rows, pairs, block: _chunk_gradients(
                    model, part.weights, rows, pairs, block=block, **options
                ),
                fixed,
                beliefs.num_iterations,
                upstream,
                pairwise,
            )

        beliefs = with_gradient(beliefs, tuple(models[:3]), gradient)
    else:  # states have no gradient
        beliefs = stopped(beliefs)
    if potentials.batch_size is None:
        return without_batch(beliefs, pairwise)
    return beliefs


def _messages(model, sums, damping, block):
    """Returns the messages that are safe with the weights, and the model for them."""
    if block:
        return RatioMessages(sums, damping, block), model
    double = tuple(tf.cast(part, tf.float64) for part in model)
    return LogMessages(sums, damping), double


@compiled
def _chunk(
    model, weights, max_iterations, tolerance, *, sums, damping, block, pairwise
):
    """Runs belief propagation on a few models.

    Args:
        model: tensors exp(W) (V, H), or W itself for logarithms; b (n, V); c (n, H).
        weights: tensor (n,).
        max_iterations, tolerance: scalar tensors.
        sums: bool, whether messages sum over a state, or take the maximum.
        damping, pairwise: as in `sum_product`.
        block: int, how many ratios to multiply before taking a logarithm; 0 for
            logarithms of each.

    Returns:
        `Beliefs`.
    """
    messages, model = _messages(model, sums, damping, block)

    def sweep(*state):
        new = messages.sweep(model, state)
        change = change_of_beliefs(new[-2:], messages.before(model, state))
        return new, change

    state, iterations, residual = until_converged(
        sweep, messages.start(model), max_iterations, tolerance
    )
    visible, hidden, log_partition, pairs = _beliefs_at(
        messages, model, state, weights, pairwise
    )
    return Beliefs(
        visible,
        hidden,
        pairs,
        log_partition,
        iterations,
        residual < tolerance,
        residual,
    )


def _beliefs_at(messages, model, state, weights, pairwise):
    """Returns the float32 results of a few models' last states."""
    visible, hidden, pairs, log_partition = messages.read(model, state)
    pairs = None if pairwise is None else tf.cast(pairs, tf.float32)
    if pairwise == "mean":
        pairs = tf.reduce_sum(pairs * weights[:, tf.newaxis, tf.newaxis], 0)
    return (
        tf.cast(tf.sigmoid(visible), tf.float32),
        tf.cast(tf.sigmoid(hidden), tf.float32),
        tf.cast(log_partition, tf.float32),
        pairs,
    )


@compiled
def _chunk_gradients(model, weights, rows, pairs, *, sums, damping, block, pairwise):
    """Returns gradients with respect to a model of `_chunk`.

    Args:
        model, weights, sums, damping, block, pairwise: as for `_chunk`.
        rows: tensors (n, …): the sweeps that were made, and the gradients with respect
            to visible and hidden beliefs, log Z and, for `"each"`, pairs.
        pairs: tensor (V, H), the gradient with respect to the mean of the pairs, or
            zeros.
    """
    iterations, *upstream = rows
    if pairwise == "mean":
        upstream.append(pairs)
    messages, _ = _messages(model, sums, damping, block)

    def prepared(model):
        return _messages(model, sums, damping, block)[1]

    def read(model, state):
        results = _beliefs_at(messages, prepared(model), state, weights, pairwise)
        return [part for part in results if part is not None]

    return gradients_of_sweeps(
        lambda model: messages.start(prepared(model)),
        lambda model, state: messages.sweep(prepared(model), state),
        read,
        model,
        iterations,
        upstream,
    )
