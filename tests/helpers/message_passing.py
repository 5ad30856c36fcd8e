"""Message passing and mean field in float64 NumPy, one plain line per formula.

Written for reading, not for speed, and in other forms than the library's: the
published equations with messages as probabilities, all messages as logarithms, and
mixed-product as the best replies of single units.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf
from scipy.special import expit, logsumexp, softmax, xlogy

from keras_rbm.inference import Potentials
from keras_rbm.units import Categorical


class Beliefs(NamedTuple):
    """Beliefs as the library returns them, of one model or of a batch."""

    visible: np.ndarray
    hidden: np.ndarray
    pairwise: np.ndarray
    log_partition: np.ndarray
    residual: np.ndarray


def arrays(potentials):
    """Returns kernel, visible and hidden bias in float64."""
    leaves = (potentials.kernel, potentials.visible_bias, potentials.hidden_bias)
    return tuple(np.asarray(leaf, np.float64) for leaf in leaves)


def potentials_of(kernel, b, c, q=1):
    """Returns a model of binary units, or of visible units with q categories."""
    kernel, b, c = (tf.cast(part, tf.float32) for part in (kernel, b, c))
    return Potentials(kernel, Categorical(q).parameters(b) if q > 1 else b, c)


def random_batch(num_visible, num_hidden, batch_size, seed=0, scale=1.0, q=1):
    """Returns potentials with one normal kernel and a batch of normal biases."""
    rng = np.random.default_rng(seed)
    kernel = rng.normal(0, scale, (num_visible * q, num_hidden))
    return with_random_biases(kernel, batch_size, rng, q)


def with_random_biases(kernel, batch_size, rng, q=1):
    """Returns potentials of a kernel with a batch of normal biases."""
    biases = [rng.normal(0, 1, (batch_size, size)) for size in kernel.shape]
    return potentials_of(kernel, *biases, q)


def random_trees(num_visible, num_hidden, batch_size, seed=0, scale=2.0, q=1):
    """Returns potentials whose units form a random tree, and which ones are joined."""
    rng = np.random.default_rng(seed)
    edges = np.zeros((num_visible, num_hidden), bool)
    visible, hidden = rng.permutation(num_visible), rng.permutation(num_hidden)
    joined = ([visible[0]], [hidden[0]])
    edges[visible[0], hidden[0]] = True
    waiting = [(0, i) for i in visible[1:]] + [(1, j) for j in hidden[1:]]
    for side, unit in rng.permutation(waiting):
        other = rng.choice(joined[1 - side])
        edges[(unit, other) if side == 0 else (other, unit)] = True
        joined[side].append(unit)
    edges = np.repeat(edges, q, 0)
    kernel = edges * rng.normal(0, scale, edges.shape)
    return with_random_biases(kernel, batch_size, rng, q), edges


def rows(potentials):
    """Returns the models of a batch, each without a batch dimension."""
    layers = potentials.visible, potentials.hidden
    count = max(len(units.bias) for units in layers if units.bias.shape.rank == 2)

    def alone(units, n):
        shared = units.bias.shape.rank == 1
        return units if shared else units._replace(bias=units.bias[n])

    return [
        Potentials(potentials.kernel, *(alone(units, n) for units in layers))
        for n in range(count)
    ]


def published_sum_product(potentials, num_iterations):
    """Lists the beliefs after each sweep of one model, as published.

    Ping and Ihler (2017), Algorithm 1: equations 13, 16, 14, 17 and at the end 18,
    term by term. Without log Z, which they do not compute.
    """
    kernel, visible_bias, hidden_bias = arrays(potentials)
    to_hidden = np.full(kernel.T.shape, 0.5)
    visible, hidden = expit(visible_bias), expit(hidden_bias)
    sweeps = []
    for _ in range(num_iterations):
        before = visible, hidden
        to_visible = _published_messages(kernel, to_hidden, hidden)
        odds = to_visible / (1 - to_visible)
        visible = expit(visible_bias + np.log(odds) @ np.ones(len(hidden)))
        to_hidden = _published_messages(kernel.T, to_visible, visible)
        odds = to_hidden / (1 - to_hidden)
        hidden = expit(hidden_bias + np.log(odds) @ np.ones(len(visible)))

        both, neither = np.outer(visible, hidden), np.outer(1 - visible, 1 - hidden)
        only_visible = np.outer(visible, 1 - hidden)
        only_hidden = np.outer(1 - visible, hidden)
        joint = np.stack(
            [
                np.exp(kernel) * both * (1 - to_visible) * (1 - to_hidden).T,
                only_hidden * to_visible * (1 - to_hidden).T,
                only_visible * (1 - to_visible) * to_hidden.T,
                neither * to_visible * to_hidden.T,
            ]
        )
        pairwise = joint[0] / joint.sum(0)
        residual = _largest_change(before, (visible, hidden))
        sweeps.append(Beliefs(visible, hidden, pairwise, None, residual))
    return sweeps


def _published_messages(kernel, incoming, sender):
    """Returns equation 13 (or 14): probabilities, (receivers, senders)."""
    ones = (1 - incoming).T @ np.diag(sender)
    zeros = incoming.T @ np.diag(1 - sender)
    return expit(np.log((np.exp(kernel) * ones + zeros) / (ones + zeros)))


def num_categories(potentials):
    """Returns q of categorical visible units, and 1 of binary ones."""
    return len(getattr(potentials.visible, "categories", [0]))


def message_passing(potentials, num_iterations, maximum=False, damping=0.0):
    """Lists the beliefs of a batch after each sweep of sum-product or max-product.

    Binary units are those of two categories, the first without weights and bias.
    Damping keeps a part of the old messages to visible units, in logarithms.
    """
    kernel, b, c = arrays(potentials)
    q, size = num_categories(potentials), (len(b), -1, c.shape[1])
    kernel, b = kernel.reshape(-1, q, size[2]), b.reshape(len(b), -1, q)
    if q == 1:
        kernel, b = np.insert(kernel, 0, 0.0, 1), np.insert(b, 0, 0.0, 2)
    plus, total = (np.maximum, np.max) if maximum else (np.logaddexp, logsumexp)
    log_r, log_s = 0.0 * kernel, 0.0 * kernel[:, 0]
    visible, hidden = b, c
    sweeps = []
    for _ in range(num_iterations):
        before = softmax(visible, 2).reshape(len(b), -1), expit(hidden)
        new = plus(0, (hidden[:, None] - log_s)[:, :, None] + kernel)
        log_r = damping * log_r + (1 - damping) * new
        visible = b + log_r.sum(3)
        cavity = visible[..., None] - log_r
        on, off = total(kernel + cavity, axis=2), total(cavity, axis=2)
        log_s = on - off
        hidden = c + log_s.sum(1)

        shares = softmax(visible, 2).reshape(len(b), -1), expit(hidden)
        residual = _largest_change(before, shares)
        pairs = np.exp(kernel + cavity - on[:, :, None]) * shares[1][:, None, None]
        units, switches = logsumexp(visible, 2), np.logaddexp(0, hidden)
        log_partition = (off + switches[:, None]).sum((1, 2))
        log_partition -= (size[2] - 1) * units.sum(1)
        log_partition -= (kernel.shape[0] - 1) * switches.sum(1)
        visible_beliefs = shares[0].reshape(b.shape)[..., -q:].reshape(len(b), -1)
        pairs = pairs[:, :, -q:].reshape(size)
        sweeps.append(
            Beliefs(visible_beliefs, shares[1], pairs, log_partition, residual)
        )
    return sweeps


def decoded(potentials, beliefs):
    """Returns likeliest states (v, h), v h' and -E(v, h), and which have no ties."""
    q, c = num_categories(potentials), beliefs.hidden
    on = np.concatenate([beliefs.visible if q == 1 else c, c], 1)
    clear = (abs(on - 0.5) > 1e-3).all(1)
    v, h = (beliefs.visible > 0.5).astype(float), (c > 0.5).astype(float)
    if q > 1:
        shares = beliefs.visible.reshape(len(c), -1, q)
        v = np.eye(q)[shares.argmax(-1)].reshape(v.shape)
        gaps = np.diff(np.sort(shares))[..., -1]
        clear &= (gaps > 1e-3).all(1)
    return v, h, *_products(potentials, v, h), clear


def _largest_change(before, after):
    changes = [
        np.abs(new - old).max(-1) for old, new in zip(before, after, strict=True)
    ]
    return np.maximum(*changes)


def entropy(mean):
    """Returns the entropy of independent binary units, summed, in nats."""
    return -(xlogy(mean, mean) + xlogy(1 - mean, 1 - mean)).sum(-1)


def _products(potentials, visible, hidden):
    """Returns v h' and -E(v, h)."""
    kernel, visible_bias, hidden_bias = arrays(potentials)
    pairwise = visible[..., :, None] * hidden[..., None, :]
    energy = (kernel * pairwise).sum((-2, -1))
    energy = energy + (visible_bias * visible).sum(-1) + (hidden_bias * hidden).sum(-1)
    return pairwise, energy


class Decoded(NamedTuple):
    """A mixed-product result of one model."""

    visible: np.ndarray
    log_weight: float
    num_iterations: int
    converged: bool


def free_energy(potentials, visible):
    """Returns F(v) of one model for states of shape (..., V)."""
    kernel, visible_bias, hidden_bias = arrays(potentials)
    natural = visible @ kernel + hidden_bias
    return -visible @ visible_bias - np.logaddexp(0, natural).sum(-1)


def best_replies(potentials, visible):
    """Returns the best state of each visible unit of one model, given the others'."""
    q = num_categories(potentials)
    choices = np.eye(q) if q > 1 else np.array([[0.0], [1.0]])
    replies = []
    for first in range(0, len(visible), q):
        states = np.tile(visible, (len(choices), 1))
        states[:, first : first + q] = choices
        replies.append(choices[free_energy(potentials, states).argmin()])
    return np.concatenate(replies)


def mixed_product(potentials, max_iterations):
    """Decodes one model by setting every unit to its better value at once.

    Binary units start at 0, categorical ones in all categories alike.
    """
    q, size = num_categories(potentials), len(potentials.visible_bias)
    visited = [np.full(size, 0.0 if q == 1 else 1 / q)]
    converged = False
    for _ in range(max_iterations):
        visited.append(best_replies(potentials, visited[-1]))
        converged = np.array_equal(visited[-1], visited[-2])
        if converged or (len(visited) > 2 and np.array_equal(visited[-1], visited[-3])):
            break
    states = np.stack(visited[q > 1 :])
    energies = free_energy(potentials, states)
    best, lowest = states[energies.argmin()], energies.min()
    return Decoded(best, -lowest, len(visited) - 1, converged)


def published_mixed_product(potentials, num_iterations):
    """Returns v after each sweep of Algorithm 1 with equation 15, of one model."""
    kernel, visible_bias, hidden_bias = arrays(potentials)
    to_hidden = np.full(kernel.T.shape, 0.5)
    hidden = expit(hidden_bias)
    states = []
    for _ in range(num_iterations):
        to_visible = _published_messages(kernel, to_hidden, hidden)
        odds = to_visible / (1 - to_visible)
        visible = expit(visible_bias + np.log(odds) @ np.ones(len(hidden)))
        states.append((visible > 0.5).astype(float))
        to_hidden = expit(kernel.T @ np.diag(states[-1]))
        odds = to_hidden / (1 - to_hidden)
        hidden = expit(hidden_bias + np.log(odds) @ np.ones(len(visible)))
    return states


def mean_field(potentials, num_iterations, damping=0.0):
    """Lists the means and the bound on log Z after each sweep.

    Damping keeps a part of the old log-odds.
    """
    kernel, visible_bias, hidden_bias = arrays(potentials)
    odds_v, odds_h = visible_bias, hidden_bias
    visible, hidden = expit(odds_v), expit(odds_h)
    sweeps = []
    for _ in range(num_iterations):
        before = visible, hidden
        new = hidden @ kernel.T + visible_bias
        odds_v = damping * odds_v + (1 - damping) * new
        visible = expit(odds_v)
        new = visible @ kernel + hidden_bias
        odds_h = damping * odds_h + (1 - damping) * new
        hidden = expit(odds_h)
        pairwise, energy = _products(potentials, visible, hidden)
        bound = energy + entropy(visible) + entropy(hidden)
        residual = _largest_change(before, (visible, hidden))
        sweeps.append(Beliefs(visible, hidden, pairwise, bound, residual))
    return sweeps


def assert_same(got, want, atol=1e-5, rtol=1e-5):
    """Compares two results of the library field by field."""
    for name in want._fields:
        expected, received = getattr(want, name), getattr(got, name)
        if expected is None:
            assert received is None
        elif expected.dtype.is_floating:
            np.testing.assert_allclose(
                received, expected, atol=atol, rtol=rtol, err_msg=name
            )
        else:
            np.testing.assert_array_equal(received, expected, err_msg=name)
