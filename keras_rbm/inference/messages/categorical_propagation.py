"""Sum-product and max-product with categorical visible units."""

import tensorflow as tf

from keras_rbm.inference.messages.adjoint import gradients_of_sweeps, with_gradient
from keras_rbm.inference.messages.beliefs import (
    Beliefs,
    BinaryModels,
    batch_of_models,
    pairwise_products,
    stopped,
    without_batch,
)
from keras_rbm.inference.messages.blocks import gradients_in_blocks, in_blocks
from keras_rbm.inference.messages.categorical_messages import (
    CategoricalLogs,
    CategoricalRatios,
)
from keras_rbm.inference.messages.categorical_models import ByCategory
from keras_rbm.inference.messages.sweeps import until_converged
from keras_rbm.inference.potentials import Potentials, own_log_weight
from keras_rbm.inference.traces import compiled, traced


def categorical_sum_product(
    potentials: Potentials,
    weights: tf.Tensor | None,
    limits: tuple[tf.Tensor, tf.Tensor],
    damping: float,
    pairwise: str | None,
) -> Beliefs:
    """Returns `sum_product` of a model with categorical visible units.

    Args:
        potentials: `Potentials`, kernel (units · q, H).
        weights: tensor (B,) or `None`.
        limits: scalar tensors, the maximum number of sweeps and the tolerance.
        damping, pairwise: as in `sum_product`.

    Returns:
        `Beliefs` with rows of the kernel as columns of `visible`, (B, units · q), and
        pairs (units · q, H): probabilities of a category and h = 1.
    """
    return _propagate(potentials, weights, *limits, True, damping, pairwise)


def categorical_max_product(
    potentials: Potentials,
    weights: tf.Tensor | None,
    limits: tuple[tf.Tensor, tf.Tensor],
    damping: float,
    pairwise: str | None,
) -> Beliefs:
    """Returns `max_product` of a model with categorical visible units.

    Args:
        potentials, weights, limits, damping, pairwise: as for
            `categorical_sum_product`.

    Returns:
        `Beliefs`: `visible` is the decoded state, one-hot, (B, units · q); `hidden` are
        normalized max-marginals, which decode to 1 above 1/2.
    """
    found = _propagate(potentials, None, *limits, False, damping, None)
    batch = potentials.batch_size is not None
    models, weights = batch_of_models(potentials, weights)
    rows, h = found.visible, tf.cast(found.hidden > 0.5, tf.float32)
    if not batch:
        rows, h = rows[tf.newaxis], h[tf.newaxis]
    states = models.visible.mode(rows)
    v = models.visible.encode(states)
    coupling = tf.reduce_sum(tf.matmul(v, models.kernel) * h, -1)
    weight = own_log_weight(models.visible, states) + coupling
    weight += own_log_weight(models.hidden, h)
    pairs = pairwise_products(v, h, weights, pairwise)
    if not batch:
        v, weight = v[0], weight[0]
        pairs = pairs[0] if pairwise == "each" else pairs
    return found._replace(visible=v, log_partition=weight, pairwise=pairs)


@traced
def _propagate(potentials, weights, max_iterations, tolerance, sums, damping, pairwise):
    order = ByCategory.of(potentials)
    models = order.models(potentials, weights)
    options = {"sums": sums, "damping": damping, "num_states": order.num_states}
    options["pairwise"] = pairwise

    def chunk(part, odds, block):
        model, limits = _model(part, odds, block), (max_iterations, tolerance)
        return _chunk(model, part.weights, *limits, block=block, **options)

    fixed = BinaryModels(*map(tf.stop_gradient, models))
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
    beliefs = order.restored(beliefs, pairwise)
    if potentials.batch_size is None:
        return without_batch(beliefs, pairwise)
    return beliefs


def _model(part, odds, block):
    """Returns what messages are computed from: exp(W), or W for logarithms."""
    return odds if block else part.kernel, *part[1:3]


def _messages(model, sums, damping, block, num_states):
    """Returns the messages that are safe with the weights, and the model for them."""
    if block:
        return CategoricalRatios(sums, damping, block, num_states), model
    double = tuple(tf.cast(part, tf.float64) for part in model)
    return CategoricalLogs(sums, damping, num_states), double


@compiled
def _chunk(
    model,
    weights,
    max_iterations,
    tolerance,
    *,
    sums,
    damping,
    block,
    num_states,
    pairwise,
):
    """Runs belief propagation on a few models.

    Args:
        model: tensors exp(W) (q · U, H), or W itself for logarithms; b (n, q · U);
            c (n, H).
        weights: tensor (n,).
        max_iterations, tolerance: scalar tensors.
        sums: bool, whether messages sum over a state, or take the maximum.
        damping, pairwise: as in `sum_product`.
        block: int, how many ratios to multiply before taking a logarithm; 0 for
            logarithms of each.
        num_states: int, q.

    Returns:
        `Beliefs`.
    """
    messages, model = _messages(model, sums, damping, block, num_states)

    def sweep(*state):
        new = messages.sweep(model, state)
        return new, _change(new[-2:], state[-2:])

    state, iterations, residual = until_converged(
        sweep, messages.start(model), max_iterations, tolerance
    )
    visible, hidden, log_partition, pairs = _beliefs_at(
        messages, model, state, weights, pairwise
    )
    converged = residual < tolerance
    return Beliefs(
        visible, hidden, pairs, log_partition, iterations, converged, residual
    )


def _change(new, old):
    """Returns the largest change of a belief, (n,), infinite if one is not a number."""
    changes = [
        tf.abs(tf.nn.softmax(new[0], 1) - tf.nn.softmax(old[0], 1)),
        tf.abs(tf.sigmoid(new[1]) - tf.sigmoid(old[1])),
    ]
    change = tf.maximum(tf.reduce_max(changes[0], (1, 2)), tf.reduce_max(changes[1], 1))
    # XLA's maximum ignores NaN, which has not converged.
    is_number = tf.reduce_all(new[0] == new[0], (1, 2))
    return tf.where(is_number, tf.cast(change, tf.float32), float("inf"))


def _beliefs_at(messages, model, state, weights, pairwise):
    """Returns the float32 results of a few models' last states."""
    visible, hidden, pairs, log_partition = messages.read(model, state)
    rows = model[0].shape[0]
    if pairwise is None:
        pairs = None
    else:
        pairs = tf.reshape(tf.cast(pairs, tf.float32), (-1, *model[0].shape))
    if pairwise == "mean":
        pairs = tf.reduce_sum(pairs * weights[:, tf.newaxis, tf.newaxis], 0)
    return (
        tf.reshape(tf.cast(tf.nn.softmax(visible, 1), tf.float32), (-1, rows)),
        tf.cast(tf.sigmoid(hidden), tf.float32),
        tf.cast(log_partition, tf.float32),
        pairs,
    )


@compiled
def _chunk_gradients(
    model, weights, rows, pairs, *, sums, damping, block, num_states, pairwise
):
    """Returns gradients with respect to a model of `_chunk`.

    Args:
        model, weights, sums, damping, block, num_states, pairwise: as for `_chunk`.
        rows: tensors (n, …): the sweeps that were made, and the gradients with respect
            to visible and hidden beliefs, log Z and, for `"each"`, pairs.
        pairs: tensor (q · U, H), the gradient with respect to the mean of the pairs, or
            zeros.
    """
    iterations, *upstream = rows
    if pairwise == "mean":
        upstream.append(pairs)
    messages, _ = _messages(model, sums, damping, block, num_states)

    def prepared(model):
        return _messages(model, sums, damping, block, num_states)[1]

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
