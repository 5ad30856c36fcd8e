"""Sets of labels, binary visible units that are on together, and the best for a loss.

A set is chosen from what is known of all of them: every state with its probability, or
draws. Draws of all models have the same noise, so that a set depends on no other model.
"""

import numpy as np
import tensorflow as tf

from keras_rbm import random
from keras_rbm.inference.exact import digits_of
from keras_rbm.inference.traces import traced_by_size

#: Units of a layer whose states are enumerated; draws from their probabilities, or
#: Gibbs chains and their sweeps.
MOST_UNITS, _DRAWS, _CHAINS, _SWEEPS = 10, 1000, 200, 100
#: Rounds in which single labels of the most probable set change.
_ROUNDS = 20
#: Log weight of sets that count only where all others are excluded, and of these.
_LAST, _EXCLUDED = -100.0, -1e9


def best_sets(potentials, decision, empty):
    """Returns the best sets (B, V) of B models of binary units for a loss.

    Args:
        potentials: `Potentials` of B models of binary units.
        decision: `"mode"`, the most probable set, or `"f1"`, that of the greatest
            expected F1.
        empty: bool, whether a set may be empty.
    """
    sets = likely_sets(potentials, random.as_seed(0))
    if not empty:
        sets = without_empty(potentials, *sets)
    if decision == "f1":
        return best_set_for_f1(*sets, empty)
    return most_probable_set(potentials, sets[0], empty)


@traced_by_size
def likely_sets(potentials, seed):
    """Returns sets of B models, and their log weights.

    They are all sets, if there are at most 1,024; else 1,000 draws, if the states of
    the hidden units are so few, or where 200 Gibbs chains are after 100 sweeps: sets
    that none has met, as of a far mode, are missing there.

    Args:
        potentials: `Potentials` of B models of binary units.
        seed: int tensor (2,).

    Returns:
        tensors (S, B, V), states, and (S, B), nats up to a constant of each model.
    """
    kernel, b, c = potentials.kernel, potentials.visible_bias, potentials.hidden_bias
    labels, units = kernel.shape
    batch = tf.shape(b)[0]
    if labels <= MOST_UNITS:
        states = tf.tile(_all_states(labels)[:, tf.newaxis], (1, batch, 1))
        return states, log_weights_of(potentials, states)
    seeds = [random.fold_in(seed, number) for number in range(2)]
    if units <= MOST_UNITS:
        hidden = _all_states(units)
        inputs = tf.matmul(hidden, kernel, transpose_b=True)[:, tf.newaxis]
        log_weights = tf.matmul(hidden, c, transpose_b=True)
        log_weights += tf.reduce_sum(tf.math.softplus(b + inputs), -1)
        below = tf.transpose(tf.cumsum(tf.nn.softmax(log_weights, 0)))
        # Evenly spread, as many of each as its probability says.
        places = (tf.range(float(_DRAWS)) + 0.5) / _DRAWS
        places = tf.tile(places[tf.newaxis], (batch, 1))
        number = tf.minimum(tf.searchsorted(below, places), hidden.shape[0] - 1)
        noise = random.uniform((_DRAWS, 1, labels), seeds[0])
        states = _drawn(b + tf.gather(inputs[:, 0], tf.transpose(number)), noise)
        return states, tf.zeros_like(states[..., 0])

    def sweep(number, states):
        of_hidden, of_visible = (
            random.uniform((_CHAINS, 1, size), random.fold_in(each, number))
            for each, size in zip(seeds, (units, labels), strict=True)
        )
        hidden = _drawn(c + tf.tensordot(states, kernel, 1), of_hidden)
        natural = b + tf.tensordot(hidden, tf.transpose(kernel), 1)
        return number + 1, _drawn(natural, of_visible)

    # Chains start far apart: of each another share of the hidden units is on.
    shares = (tf.range(float(_CHAINS)) + 0.5)[:, tf.newaxis, tf.newaxis] / _CHAINS
    noise = random.uniform((_CHAINS, 1, units), random.fold_in(seed, 2))
    natural = b + tf.tensordot(tf.cast(noise < shares, tf.float32), kernel, [[2], [1]])
    _, states = tf.while_loop(
        lambda number, _: number < _SWEEPS,
        sweep,
        (tf.constant(0), _drawn(natural, 0.5)),
    )
    return states, tf.zeros_like(states[..., 0])


@traced_by_size
def without_empty(potentials, states, log_weights):
    """Returns sets and log weights as `likely_sets` does, of at least one label.

    Sets of one label are added to draws, which count where all of these are empty.
    """
    log_weights = tf.where(tf.reduce_any(states > 0.0, 2), log_weights, _EXCLUDED)
    labels = states.shape[2]
    if labels <= MOST_UNITS:
        return states, log_weights
    single = tf.tile(tf.eye(labels)[:, tf.newaxis], (1, tf.shape(states)[1], 1))
    last = log_weights_of(potentials, single)
    last += _LAST - tf.reduce_max(last, 0)
    return tf.concat([states, single], 0), tf.concat([log_weights, last], 0)


@traced_by_size
def most_probable_set(potentials, states, empty):
    """Returns the most probable set of each model, (B, V).

    It is that where the states (S, B, V) are all. Else it is the most probable of them,
    in which single labels then change as long as that makes it more probable. `empty`
    says whether it may be empty.
    """
    best = _heaviest(potentials, states, empty)
    labels = best.shape[1]
    if labels <= MOST_UNITS:
        return best
    flips = tf.eye(labels)[:, tf.newaxis]

    def step(number, best, _):
        changed = tf.concat([best[tf.newaxis], tf.abs(best - flips)], 0)
        new = tf.ensure_shape(_heaviest(potentials, changed, empty), best.shape)
        return number + 1, new, tf.reduce_any(new != best)

    return tf.while_loop(
        lambda number, _, changes: changes & (number < _ROUNDS),
        step,
        (tf.constant(0), best, tf.constant(True)),
    )[1]


@traced_by_size
def best_set_for_f1(states, log_weights, empty):
    """Returns the sets (B, V) whose expected F1 is greatest.

    Of all sets of k labels the best has those of the largest `E[2 y_i / (|y| + k)]`
    [1]; the expectation is that of the given states. The empty set, if it is allowed,
    has an F1 of 1 where it is right.

    References:
        1. Dembczynski, Waegeman, Cheng, Hüllermeier. An exact algorithm for F-measure
           maximization. NIPS 2011.
    """
    labels = states.shape[2]
    shares, sizes = tf.nn.softmax(log_weights, 0), tf.reduce_sum(states, 2)
    counts = tf.range(1.0, labels + 1.0)[:, tf.newaxis, tf.newaxis]
    gains = tf.einsum("ksb,sbv->bkv", 2.0 * shares / (sizes + counts), states)
    largest = tf.sort(gains, direction="DESCENDING")
    values = tf.linalg.diag_part(tf.cumsum(largest, axis=-1))  # k labels of the k-th
    size = tf.argmax(values, 1)
    gains = tf.gather(gains, size, batch_dims=1)
    rank = tf.argsort(tf.argsort(gains, direction="DESCENDING", stable=True))
    chosen = rank <= tf.cast(size, rank.dtype)[:, tf.newaxis]
    if empty:
        none = tf.reduce_sum(tf.where(sizes == 0.0, shares, 0.0), 0)
        chosen &= (tf.reduce_max(values, 1) >= none)[:, tf.newaxis]
    return tf.cast(chosen, states.dtype)


def log_weights_of(potentials, states):
    """Returns `-F(v)`, (S, B), of states (S, B, V)."""
    natural = potentials.hidden_bias + tf.tensordot(states, potentials.kernel, 1)
    of_labels = tf.reduce_sum(potentials.visible_bias * states, -1)
    return of_labels + tf.reduce_sum(tf.math.softplus(natural), -1)


def _heaviest(potentials, states, empty):
    """Returns the first of the most probable states of each model, (B, V)."""
    log_weights = log_weights_of(potentials, states)
    if not empty:
        log_weights = tf.where(tf.reduce_any(states > 0.0, 2), log_weights, -np.inf)
    number = tf.argmax(log_weights)
    return tf.gather(tf.transpose(states, (1, 0, 2)), number, batch_dims=1)


def _drawn(natural, noise):
    return tf.cast(noise < tf.sigmoid(natural), tf.float32)


def _all_states(units):
    numbers = np.arange(2**units, dtype=np.int32)
    return tf.cast(digits_of(numbers, np.full(units, 2)), tf.float32)
