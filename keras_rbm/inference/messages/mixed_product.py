"""Mixed-product belief propagation: the most probable visible state.

Messages to hidden units depend only on the decoded state `v`, so none are stored: a
sweep sets all visible units to their best value at once. The log-odds of a binary `v_i`
are `F(v with v_i = 0) - F(v with v_i = 1)`. A categorical unit in category `v_i` sends
`s = exp(W)` of that category, and hears of each category a `r_a = s beta' + E_a beta`;
`b_a + sum log r_a` is, but for a constant of unit i, `-F(v with v_i = a)`.

The first sweep of categorical units is sent `s = exp(mean over a of W_a)`, as if each
were in all categories alike. So a constant that is added to the rows of a unit, which
does not change the model, does not change what is found. From category 0 of each unit,
as binary units start, random models end in a worse state more often.
"""

import tensorflow as tf
from numpy.typing import ArrayLike

from keras_rbm.inference.messages import blocks
from keras_rbm.inference.messages.batches import in_chunks
from keras_rbm.inference.messages.beliefs import (
    Beliefs,
    batch_of_models,
    checked_arguments,
    pairwise_products,
    without_batch,
)
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
    weights, limits = checked_arguments(potentials, weights, pairwise, max_iterations)
    beliefs = _search(potentials, limits[0])
    _, weights = batch_of_models(potentials, weights)
    pairs = pairwise_products(beliefs.visible, beliefs.hidden, weights, pairwise)
    return without_batch(beliefs._replace(pairwise=pairs), potentials, pairwise)


@traced
def _search(potentials, max_iterations):
    """Returns the `Beliefs` of B models, without those of pairs."""
    layout = blocks.Layout.of(potentials)
    models, _ = batch_of_models(potentials)
    # States have no gradient.
    kernel, *biases = map(tf.stop_gradient, layout.model(models))
    odds, row_size = blocks.odds_of(kernel), kernel.shape.num_elements()
    results = [tf.TensorSpec(bias.shape[1:]) for bias in biases]
    results += [tf.TensorSpec((), kind) for kind in (tf.float32, tf.int32, tf.bool)]

    def run(block):
        def chunk(b, c):
            kind = {"block": block, "num_states": layout.num_states}
            return _chunk((kernel, b, c), odds, max_iterations, **kind), []

        size = [*results, tf.TensorSpec(())]
        return in_chunks(chunk, biases, [], size, [], row_size)[0]

    visible, hidden, *others = blocks.with_safe_block(kernel, run)
    visible, hidden = layout.restored(visible, hidden)
    return Beliefs(visible, hidden, None, *others)


@compiled
def _chunk(model, odds, max_iterations, *, block, num_states):
    """Searches for the states of a few models.

    Args:
        model: kernel (q · U, H), b (n, q · U), c (n, H), by category.
        odds: tensor (q · U, H), exp(kernel).
        max_iterations: int tensor ().
        block: int, as for the messages.
        num_states: int, q, or 1 for binary units.

    Returns:
        list of the fields of `Beliefs` but for pairs.
    """
    if not block:  # large weights: use logarithms, exactly
        model = [tf.cast(part, tf.float64) for part in model]
    kernel, b, c = model
    start, best_values, encoded = (_binary if num_states == 1 else _categorical)(
        model, odds, block, num_states
    )

    def free_energy(states):
        v = encoded(states)
        hidden = tf.math.softplus(c + tf.matmul(v, kernel))
        return -tf.reduce_sum(v * b, -1) - tf.reduce_sum(hidden, -1)

    def active(iterations, fixed, cycling):
        return (iterations < max_iterations) & ~fixed & ~cycling

    def step(states, before, best, lowest, iterations, fixed, cycling):
        going = active(iterations, fixed, cycling)
        new = tf.where(going[:, tf.newaxis], best_values(states), states)
        energy = free_energy(new)
        best = tf.where((energy < lowest)[:, tf.newaxis], new, best)
        lowest = tf.minimum(energy, lowest)
        fixed |= going & tf.reduce_all(new == states, -1)
        cycling |= going & ~fixed & tf.reduce_all(new == before, -1)
        iterations += tf.cast(going, tf.int32)
        return new, states, best, lowest, iterations, fixed, cycling

    never = tf.zeros(b.shape[0], tf.bool)
    # Categorical units have made a first sweep; no state comes before.
    iterations = tf.fill(never.shape, min(num_states - 1, 1))
    state = start, tf.fill(start.shape, -1), start, free_energy(start)
    states, _, best, lowest, iterations, fixed, _ = tf.while_loop(
        lambda states, before, best, lowest, *progress: tf.reduce_any(
            active(*progress)
        ),
        step,
        (*state, iterations, never, never),
    )
    v = encoded(best)
    floats = v, tf.sigmoid(c + tf.matmul(v, kernel)), -lowest
    converged = fixed & tf.reduce_all(best == states, -1)
    residual = tf.cast(~fixed, tf.float32)
    floats = [tf.cast(part, tf.float32) for part in floats]
    return [*floats, iterations, converged, residual]


def _binary(model, odds, block, _):
    """Returns the first states, and functions of states: best values, and rows."""
    kernel, b, c = model
    inverse = 1.0 / odds

    def encoded(states):
        return tf.cast(states, b.dtype)

    def best_values(states):
        on = states[:, :, tf.newaxis] > 0
        hidden = (c + tf.matmul(encoded(states), kernel))[:, tf.newaxis]
        if block:
            ratio = tf.sigmoid(-hidden)
            ratio += tf.sigmoid(hidden) * tf.where(on, inverse, odds)
            gain = blocks.sum_of_logs(ratio, block, 2)
            gain = tf.where(states > 0, -gain, gain)
        else:
            without = hidden - tf.where(on, kernel, 0.0)
            gain = tf.math.softplus(without + kernel) - tf.math.softplus(without)
            gain = tf.reduce_sum(gain, 2)
        return tf.cast(b + gain > 0.0, tf.int32)

    return tf.zeros(b.shape, tf.int32), best_values, encoded


def _categorical(model, odds, block, num_states):
    """Returns the same as `_binary`, of states that are categories."""
    flat = model[0]
    kernel, b, c = blocks.by_category(model, num_states)
    odds = tf.reshape(odds, kernel.shape)

    def encoded(states):
        rows = tf.one_hot(states, num_states, axis=1, dtype=b.dtype)
        return tf.reshape(rows, model[1].shape)

    def given(sent, v):
        """Returns every unit's best category, given s, or its logarithm, and v."""
        hidden = (c + tf.matmul(v, flat))[:, tf.newaxis]
        if block:
            sent = (sent * tf.sigmoid(-hidden))[:, tf.newaxis]
            ratio = sent + odds * tf.sigmoid(hidden)[:, tf.newaxis]
            scores = b + blocks.sum_of_logs(ratio, block, 3)
        else:
            cavity = (hidden - sent)[:, tf.newaxis]
            scores = b + tf.reduce_sum(tf.math.softplus(kernel + cavity), 3)
        return tf.argmax(scores, 1, output_type=tf.int32)

    def best_values(states):
        units = tf.broadcast_to(tf.range(kernel.shape[1]), states.shape)
        chosen = tf.stack([states, units], -1)
        return given(tf.gather_nd(odds if block else kernel, chosen), encoded(states))

    mean = tf.reduce_mean(kernel, 0)
    alike = tf.ones_like(model[1]) / num_states
    return given(tf.exp(mean) if block else mean, alike), best_values, encoded
