"""Mixed-product belief propagation with categorical visible units.

As for binary units, messages to hidden units depend only on the decoded state: unit i
in category `v_i` sends `s = exp(W)` of that category, and hears of each category a
`r_a = s beta' + E_a beta`. Then `b_a + sum log r_a` is, but for a constant of unit i,
`-F(v with v_i = a)`, and a sweep sets all units to their best category at once.

The first sweep is sent `s = exp(mean over a of W_a)`, as if each unit were in all
categories alike. So a constant that is added to the rows of a unit, which does not
change the model, does not change what is found. From category 0 of each unit, as binary
units start, random models end in a worse state more often.
"""

import tensorflow as tf

from keras_rbm.inference.messages.beliefs import (
    Beliefs,
    batch_of_models,
    pairwise_products,
    stopped,
    without_batch,
)
from keras_rbm.inference.messages.blocks import in_blocks
from keras_rbm.inference.messages.categorical_messages import by_category
from keras_rbm.inference.messages.categorical_models import ByCategory
from keras_rbm.inference.messages.sums_of_logs import sum_of_logs
from keras_rbm.inference.potentials import Potentials
from keras_rbm.inference.traces import compiled, traced


def categorical_mixed_product(
    potentials: Potentials,
    weights: tf.Tensor | None,
    max_iterations: tf.Tensor,
    pairwise: str | None,
) -> Beliefs:
    """Returns `mixed_product` of a model with categorical visible units.

    Args:
        potentials: `Potentials`, kernel (units · q, H).
        weights: tensor (B,) or `None`.
        max_iterations: int tensor ().
        pairwise: as in `mixed_product`.

    Returns:
        `Beliefs`: `visible` is the state found, one-hot, (B, units · q).
    """
    beliefs = _search(potentials, max_iterations)
    _, weights = batch_of_models(potentials, weights)
    pairs = pairwise_products(beliefs.visible, beliefs.hidden, weights, pairwise)
    beliefs = beliefs._replace(pairwise=pairs)
    if potentials.batch_size is None:
        return without_batch(beliefs, pairwise)
    return beliefs


@traced
def _search(potentials, max_iterations):
    order = ByCategory.of(potentials)
    models = order.models(potentials, None)

    def chunk(part, odds, block):
        model = part.kernel, *part[1:3]
        q = order.num_states
        return _chunk(model, odds, max_iterations, block=block, num_states=q)

    found = order.restored(in_blocks(chunk, models, None), None)
    return stopped(found)  # states have no gradient


@compiled
def _chunk(model, odds, max_iterations, *, block, num_states):
    """Searches for the states of a few models.

    Args:
        model: kernel (q · U, H), b (n, q · U), c (n, H), by category.
        odds: tensor (q · U, H), exp(kernel).
        max_iterations: int tensor ().
        block: int, as for `CategoricalRatios`.
        num_states: int, q.
    """
    if not block:  # large weights: use logarithms, exactly
        model = tuple(tf.cast(part, tf.float64) for part in model)
    odds = tf.reshape(odds, (num_states, -1, odds.shape[1]))
    flat, (kernel, b, c) = model[0], by_category(model, num_states)
    rows, _, num_units = b.shape

    def one_hot(states):
        return tf.one_hot(states, num_states, axis=1, dtype=b.dtype)

    def hidden_log_odds(v):
        return c + tf.matmul(tf.reshape(v, (rows, -1)), flat)

    def free_energy(v):
        own = tf.reduce_sum(v * b, (1, 2))
        return -own - tf.reduce_sum(tf.math.softplus(hidden_log_odds(v)), -1)

    def best_categories(sent, v):
        """Returns every unit's best category, given s, or its logarithm, and v."""
        hidden = hidden_log_odds(v)
        if not block:
            cavity = (hidden[:, tf.newaxis] - sent)[:, tf.newaxis]
            return _argmax(b + tf.reduce_sum(tf.math.softplus(kernel + cavity), 3))
        sent = (sent * tf.sigmoid(-hidden)[:, tf.newaxis])[:, tf.newaxis]
        on = odds * tf.sigmoid(hidden)[:, tf.newaxis, tf.newaxis]
        return _argmax(b + sum_of_logs(sent + on, block, 3))

    def next_states(states):
        return best_categories(
            _chosen(states, odds if block else kernel), one_hot(states)
        )

    def first_states():
        mean = tf.reduce_mean(kernel, 0)
        sent = tf.exp(mean) if block else mean
        return best_categories(sent, tf.ones_like(b) / num_states)

    def active(iterations, fixed, cycling):
        return (iterations < max_iterations) & ~fixed & ~cycling

    def step(states, before, best, lowest, iterations, fixed, cycling):
        going = active(iterations, fixed, cycling)
        new = tf.where(going[:, tf.newaxis], next_states(states), states)
        energy = free_energy(one_hot(new))
        best = tf.where((energy < lowest)[:, tf.newaxis], new, best)
        lowest = tf.minimum(energy, lowest)
        fixed |= going & tf.reduce_all(new == states, -1)
        cycling |= going & ~fixed & tf.reduce_all(new == before, -1)
        iterations += tf.cast(going, tf.int32)
        return new, states, best, lowest, iterations, fixed, cycling

    start = first_states()
    never = tf.zeros(rows, tf.bool)
    states, _, best, lowest, iterations, fixed, _ = tf.while_loop(
        lambda states, before, best, lowest, *progress: tf.reduce_any(
            active(*progress)
        ),
        step,
        (
            start,
            tf.fill((rows, num_units), -1),  # no state comes before
            start,
            free_energy(one_hot(start)),
            tf.ones(rows, tf.int32),
            never,
            never,
        ),
    )
    v = one_hot(best)
    visible, hidden, log_weight = (
        tf.cast(x, tf.float32)
        for x in (
            tf.reshape(v, (rows, -1)),
            tf.sigmoid(hidden_log_odds(v)),
            -lowest,
        )
    )
    converged = fixed & tf.reduce_all(best == states, -1)
    residual = tf.cast(~fixed, tf.float32)
    return Beliefs(visible, hidden, None, log_weight, iterations, converged, residual)


def _chosen(states, array):
    """Returns rows of an array (q, U, H) for each unit's category, (n, U, H)."""
    units = tf.broadcast_to(tf.range(array.shape[1]), states.shape)
    return tf.gather_nd(array, tf.stack([states, units], -1))


def _argmax(scores):
    return tf.argmax(scores, 1, output_type=tf.int32)
