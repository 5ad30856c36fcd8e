"""Mixed-product belief propagation: the most probable visible state.

Messages to hidden units depend only on the decoded state `v`, so none are stored:
the log-odds of `v_i` are `F(v with v_i = 0) - F(v with v_i = 1)`, and a sweep sets all
visible units to their better value at once.
"""

import tensorflow as tf
from numpy.typing import ArrayLike

from keras_rbm.inference.arguments import check_model
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
from keras_rbm.inference.messages.blocks import in_blocks
from keras_rbm.inference.messages.categorical_models import is_categorical
from keras_rbm.inference.messages.categorical_search import categorical_mixed_product
from keras_rbm.inference.messages.sums_of_logs import sum_of_logs
from keras_rbm.inference.potentials import Potentials
from keras_rbm.inference.traces import compiled, traced


def mixed_product(
    potentials: Potentials,
    *,
    max_iterations: int | tf.Tensor = 100,
    weights: ArrayLike | None = None,
    pairwise: str | None = "mean",
) -> Beliefs:
    """Approximates argmax p(v), with hidden units summed out, by message passing [1].

    Starts at v = 0, or for categorical units with all categories alike, and returns the
    state of lowest free energy that it has visited. A fixed point cannot be improved by
    changing one unit; it need not be the global optimum. A cycle of two states ends the
    search.

    Args:
        potentials: `Potentials` of binary, or categorical visible and binary hidden
            units.
        max_iterations: int ≥ 1, maximum number of sweeps; may be a tensor or variable.
        weights: tensor (B,), of the models in `pairwise="mean"`; by default 1 / B.
        pairwise: `"mean"`, `"each"` or `None`, see `Beliefs`.

    Returns:
        `Beliefs`: `visible` is the state found, of zeros and ones (one-hot), `hidden`
        E[h | v], `pairwise` their products, `log_partition` is `-F(v)`, a lower
        bound of log Z. `converged` tells whether the state is a fixed point.

    Raises:
        ValueError: if the units are others, or an option is out of range.

    Example:

    >>> model = keras_rbm.inference.Potentials([[4.0]], [-1.0], [-1.0])
    >>> print(keras_rbm.inference.mixed_product(model).visible.numpy())
    [1.]

    References:
        1. Liu, Ihler. Variational algorithms for marginal MAP. JMLR 2013; for RBMs
           Ping, Ihler. Belief propagation in conditional RBMs for structured
           prediction. AISTATS 2017, equation 15.
    """
    check_model(potentials)
    check_options(max_iterations, pairwise=pairwise)
    weights = checked_weights(weights)
    if is_categorical(potentials):
        limit, _ = as_limits(max_iterations, 0.0)
        return categorical_mixed_product(potentials, weights, limit, pairwise)
    beliefs = _search(potentials, as_limits(max_iterations, 0.0)[0])
    models = BinaryModels.of(potentials, weights)
    v, h = beliefs.visible, beliefs.hidden
    pairs = pairwise_products(v, h, models.weights, pairwise)
    beliefs = beliefs._replace(pairwise=pairs)
    if potentials.batch_size is None:
        return without_batch(beliefs, pairwise)
    return beliefs


@traced
def _search(potentials, max_iterations):
    models = BinaryModels.of(potentials)

    def chunk(part, odds, block):
        return _chunk(part.kernel, odds, *part[1:3], max_iterations, block=block)

    return stopped(in_blocks(chunk, models, None))  # states have no gradient


@compiled
def _chunk(kernel, odds, b, c, max_iterations, *, block):
    """Searches for the states of a few models; `odds` is exp(kernel)."""
    if not block:  # large weights: use logarithms, exactly
        kernel, b, c = (tf.cast(x, tf.float64) for x in (kernel, b, c))
    inverse = 1.0 / odds

    def hidden_log_odds(v):
        return c + tf.matmul(v, kernel)

    def free_energy(v, hidden):
        return -tf.reduce_sum(v * b, -1) - tf.reduce_sum(tf.math.softplus(hidden), -1)

    def better_values(v, hidden):
        """Returns every unit's better value, with the others fixed."""
        if not block:
            without = hidden[:, tf.newaxis, :] - v[:, :, tf.newaxis] * kernel
            gain = tf.math.softplus(without + kernel) - tf.math.softplus(without)
            return tf.cast(b + tf.reduce_sum(gain, 2) > 0.0, b.dtype)
        beta = tf.sigmoid(hidden)[:, tf.newaxis, :]
        on = v[:, :, tf.newaxis] > 0.5
        ratio = tf.sigmoid(-hidden)[:, tf.newaxis, :]
        ratio += beta * tf.where(on, inverse, odds)
        gain = sum_of_logs(ratio, block, 2)
        return tf.cast(b + tf.where(v > 0.5, -gain, gain) > 0.0, tf.float32)

    def active(iterations, fixed, cycling):
        return (iterations < max_iterations) & ~fixed & ~cycling

    def step(v, before, best, lowest, iterations, fixed, cycling):
        going = active(iterations, fixed, cycling)
        new = better_values(v, hidden_log_odds(v))
        new = tf.where(going[:, tf.newaxis], new, v)
        energy = free_energy(new, hidden_log_odds(new))
        best = tf.where((energy < lowest)[:, tf.newaxis], new, best)
        lowest = tf.minimum(energy, lowest)
        fixed |= going & tf.reduce_all(new == v, -1)
        cycling |= going & ~fixed & tf.reduce_all(new == before, -1)
        iterations += tf.cast(going, tf.int32)
        return new, v, best, lowest, iterations, fixed, cycling

    rows = b.shape[0]
    start = tf.zeros_like(b)
    never = tf.zeros(rows, tf.bool)
    v, before, best, lowest, iterations, fixed, _ = tf.while_loop(
        lambda v, before, best, lowest, *state: tf.reduce_any(active(*state)),
        step,
        (
            start,
            start - 1.0,  # no state comes before
            start,
            free_energy(start, hidden_log_odds(start)),
            tf.zeros(rows, tf.int32),
            never,
            never,
        ),
    )
    best, hidden, log_weight = (
        tf.cast(x, tf.float32)
        for x in (best, tf.sigmoid(hidden_log_odds(best)), -lowest)
    )
    converged = fixed & tf.reduce_all(best == tf.cast(v, tf.float32), -1)
    residual = tf.cast(~fixed, tf.float32)
    return Beliefs(best, hidden, None, log_weight, iterations, converged, residual)
