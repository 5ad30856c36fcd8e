"""Message passing and mean field in float64 NumPy, one plain line per formula.

Written for reading, not for speed, and in other forms than the library's: the
published equations with messages as probabilities, messages as differences of
log-odds, mixed-product as flips of single units.
"""

import gc
import json
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf
from scipy.special import expit, logsumexp, xlogy

from keras_rbm.inference import Potentials


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


def random_batch(num_visible, num_hidden, batch_size, seed=0, scale=1.0):
    """Returns potentials with one normal kernel and a batch of normal biases."""
    rng = np.random.default_rng(seed)
    kernel = rng.normal(0, scale, (num_visible, num_hidden))
    return with_random_biases(kernel, batch_size, rng)


def with_random_biases(kernel, batch_size, rng):
    """Returns potentials of a kernel with a batch of normal biases."""
    biases = [rng.normal(0, 1, (batch_size, size)) for size in kernel.shape]
    return Potentials(*(tf.constant(a, tf.float32) for a in (kernel, *biases)))


def random_trees(num_visible, num_hidden, batch_size, seed=0, scale=2.0):
    """Returns potentials whose non-zero weights form a random tree over all units."""
    rng = np.random.default_rng(seed)
    kernel = np.zeros((num_visible, num_hidden))
    visible, hidden = rng.permutation(num_visible), rng.permutation(num_hidden)
    joined = ([visible[0]], [hidden[0]])
    kernel[visible[0], hidden[0]] = rng.normal(0, scale)
    waiting = [(0, i) for i in visible[1:]] + [(1, j) for j in hidden[1:]]
    for side, unit in rng.permutation(waiting):
        other = rng.choice(joined[1 - side])
        edge = (unit, other) if side == 0 else (other, unit)
        kernel[edge] = rng.normal(0, scale)
        joined[side].append(unit)
    return with_random_biases(kernel, batch_size, rng)


def diameter(kernel):
    """Returns the largest number of edges between two units of a tree."""
    num_visible, num_hidden = kernel.shape
    size = num_visible + num_hidden
    distance = np.full((size, size), np.inf)
    np.fill_diagonal(distance, 0)
    for i, j in zip(*np.nonzero(kernel), strict=True):
        distance[i, num_visible + j] = distance[num_visible + j, i] = 1
    for middle in range(size):
        through = distance[:, [middle]] + distance[[middle]]
        distance = np.minimum(distance, through)
    return int(distance.max())


def rows(potentials):
    """Returns the models of a batch, each without a batch dimension."""
    visible, hidden = potentials.visible_bias, potentials.hidden_bias
    shared = [bias.shape.rank == 1 for bias in (visible, hidden)]
    return [
        Potentials(
            potentials.kernel,
            visible if shared[0] else visible[n],
            hidden if shared[1] else hidden[n],
        )
        for n in range((hidden if shared[0] else visible).shape[0])
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


def message_passing(potentials, num_iterations, maximum=False, damping=0.0):
    """Lists the beliefs after each sweep of sum-product or max-product.

    Damping keeps a part of the old messages to visible units, in log-odds.

    A message's log-odds are `plus(0, a + W) - plus(0, a)`, where `plus` is log-add-exp
    or the maximum, and `a` the sender's log-odds without what it heard from the
    receiver. Takes biases with or without a batch dimension.
    """
    kernel, visible_bias, hidden_bias = arrays(potentials)
    plus = np.maximum if maximum else np.logaddexp
    batch = np.broadcast_shapes(visible_bias.shape[:-1], hidden_bias.shape[:-1])
    to_visible = to_hidden = np.zeros((*batch, *kernel.shape))
    visible = np.broadcast_to(visible_bias, (*batch, kernel.shape[0]))
    hidden = np.broadcast_to(hidden_bias, (*batch, kernel.shape[1]))
    sweeps = []
    for _ in range(num_iterations):
        before = visible, hidden
        cavity = hidden[..., None, :] - to_hidden
        message = plus(0, cavity + kernel) - plus(0, cavity)
        to_visible = damping * to_visible + (1 - damping) * message
        visible = visible_bias + to_visible.sum(-1)
        cavity = visible[..., :, None] - to_visible
        message = plus(0, cavity + kernel) - plus(0, cavity)
        to_hidden = message
        hidden = hidden_bias + to_hidden.sum(-2)

        residual = _largest_change(map(expit, before), (expit(visible), expit(hidden)))
        if maximum:
            pairwise, log_partition = _decoded(potentials, visible > 0, hidden > 0)
        else:
            pairwise, log_partition = _bethe(
                potentials, visible, hidden, to_visible, to_hidden
            )
        sweeps.append(
            Beliefs(expit(visible), expit(hidden), pairwise, log_partition, residual)
        )
    return sweeps


def _largest_change(before, after):
    changes = [
        np.abs(new - old).max(-1) for old, new in zip(before, after, strict=True)
    ]
    return np.maximum(*changes)


def _bethe(potentials, visible, hidden, to_visible, to_hidden):
    """Returns pairwise beliefs and Bethe log Z from log-odds of units and messages."""
    kernel, visible_bias, hidden_bias = arrays(potentials)
    on, off = (-np.logaddexp(0, -sign * visible)[..., None] for sign in (1, -1))
    up, down = (-np.logaddexp(0, -sign * hidden)[..., None, :] for sign in (1, -1))
    joint = np.stack(
        [
            kernel + on + up,
            on + down + to_hidden,
            off + up + to_visible,
            off + to_visible + down + to_hidden,
        ]
    )
    total = logsumexp(joint, axis=0)
    log_partition = (
        (np.logaddexp(0, visible) - (visible - visible_bias)).sum(-1)
        + (np.logaddexp(0, hidden) - (hidden - hidden_bias)).sum(-1)
        + total.sum((-2, -1))
    )
    return np.exp(joint[0] - total), log_partition


def bethe_of_beliefs(potentials, visible, hidden, pairwise):
    """Returns Bethe log Z as average energy plus entropies of the beliefs."""
    kernel, visible_bias, hidden_bias = arrays(potentials)
    v, h, both = (np.asarray(a, np.float64) for a in (visible, hidden, pairwise))
    energy = (visible_bias * v).sum(-1) + (hidden_bias * h).sum(-1)
    energy = energy + (kernel * both).sum((-2, -1))
    joint = np.stack(
        [
            both,
            v[..., :, None] - both,
            h[..., None, :] - both,
            1 + both - v[..., :, None] - h[..., None, :],
        ]
    )
    joint = np.maximum(joint, 0)  # rounding of float32 beliefs near 0 and 1
    pair_entropy = -xlogy(joint, joint).sum((0, -2, -1))
    counts = (kernel.shape[1] - 1, kernel.shape[0] - 1)
    return energy + pair_entropy - counts[0] * entropy(v) - counts[1] * entropy(h)


def entropy(mean):
    """Returns the entropy of independent binary units, summed, in nats."""
    return -(xlogy(mean, mean) + xlogy(1 - mean, 1 - mean)).sum(-1)


def _decoded(potentials, visible, hidden):
    """Returns v h' and -E(v, h)."""
    kernel, visible_bias, hidden_bias = arrays(potentials)
    pairwise = visible[..., :, None] * hidden[..., None, :].astype(float)
    energy = (kernel * pairwise).sum((-2, -1))
    energy = energy + (visible_bias * visible).sum(-1) + (hidden_bias * hidden).sum(-1)
    return pairwise, energy


class Decoded(NamedTuple):
    """A mixed-product result of one model."""

    visible: np.ndarray
    free_energy: float
    num_iterations: int
    converged: bool


def free_energy(potentials, visible):
    """Returns F(v) of one model for states of shape (..., V)."""
    kernel, visible_bias, hidden_bias = arrays(potentials)
    natural = visible @ kernel + hidden_bias
    return -visible @ visible_bias - np.logaddexp(0, natural).sum(-1)


def flip_gains(potentials, visible):
    """Returns F(v with v_i = 0) - F(v with v_i = 1) for every visible unit i."""
    identity = np.eye(len(visible))
    off, on = visible * (1 - identity), visible * (1 - identity) + identity
    return free_energy(potentials, off) - free_energy(potentials, on)


def mixed_product(potentials, max_iterations):
    """Decodes one model by setting every unit to its better value at once."""
    visible = np.zeros(potentials.num_visible)
    visited = [visible]
    converged = False
    for _ in range(max_iterations):
        visible = (flip_gains(potentials, visible) > 0).astype(float)
        visited.append(visible)
        converged = np.array_equal(visible, visited[-2])
        if converged or (len(visited) > 2 and np.array_equal(visible, visited[-3])):
            break
    best = min(visited, key=lambda state: free_energy(potentials, state))
    return Decoded(best, free_energy(potentials, best), len(visited) - 1, converged)


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
        pairwise, energy = _decoded(potentials, visible, hidden)
        bound = energy + entropy(visible) + entropy(hidden)
        residual = _largest_change(before, (visible, hidden))
        sweeps.append(Beliefs(visible, hidden, pairwise, bound, residual))
    return sweeps


# What every method promises alike: called from each method's test file. `infer` is a
# function or object `(potentials, weights=None, pairwise="mean") -> Beliefs`.


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


def stack(results):
    """Returns one batched result of the results of single models."""
    return tf.nest.map_structure(lambda *leaves: tf.stack(leaves), *results)


def assert_rows_do_not_depend_on_the_batch(infer, sizes=(1, 3, 5, 17, 40)):
    potentials = random_batch(12, 8, max(sizes))
    alone = stack([infer(row, pairwise="each") for row in rows(potentials)])
    assert len(set(alone.num_iterations.numpy())) > 1  # some rows stop earlier
    for size in sizes:
        some = Potentials(
            potentials.kernel,
            potentials.visible_bias[:size],
            potentials.hidden_bias[:size],
        )
        want = tf.nest.map_structure(lambda leaf, size=size: leaf[:size], alone)
        assert_same(infer(some, pairwise="each"), want)


def assert_either_bias_may_have_the_batch(infer):
    kernel, visible, hidden = random_batch(12, 8, 5)
    for potentials in (
        Potentials(kernel, visible.bias, hidden.bias[0]),
        Potentials(kernel, visible.bias[0], hidden.bias),
    ):
        want = stack([infer(row, pairwise="each") for row in rows(potentials)])
        assert_same(infer(potentials, pairwise="each"), want)


def assert_shapes(infer):
    potentials = random_batch(12, 8, 5)
    batched, alone = infer(potentials), infer(rows(potentials)[0], pairwise="each")
    for result, batch in ((batched, (5,)), (alone, ())):
        assert result.visible.shape == (*batch, 12)
        assert result.hidden.shape == (*batch, 8)
        assert result.pairwise.shape == (12, 8)
        for scalar in (
            result.log_partition,
            result.num_iterations,
            result.converged,
            result.residual,
        ):
            assert scalar.shape == batch
        assert result.num_iterations.dtype.is_integer
        assert result.converged.dtype == tf.bool
    assert infer(potentials, pairwise="each").pairwise.shape == (5, 12, 8)
    assert infer(potentials, pairwise=None).pairwise is None


def assert_pairwise_is_weighted(infer):
    potentials = random_batch(12, 8, 5)
    each = infer(potentials, pairwise="each").pairwise.numpy()
    mean = infer(potentials).pairwise
    np.testing.assert_allclose(mean, each.mean(0), atol=1e-6)
    for weights in ([0.1, 0.4, 0.0, 0.3, 0.2], [0, 0, 2.0, 0, 0], [0.0] * 5):
        got = infer(potentials, weights=tf.constant(weights, tf.float32))
        want = np.einsum("n,nij->ij", weights, each)
        np.testing.assert_allclose(got.pairwise, want, atol=1e-6)
        np.testing.assert_array_equal(got.visible, infer(potentials).visible)


def assert_compiles_for_any_batch_size(infer, jit_compile=(True,)):
    # Weakly coupled: no max-marginal is so near a tie that rounding decides.
    kernel, visible, hidden = random_batch(12, 8, 5, scale=0.3)
    specs = [tf.TensorSpec([None, size]) for size in (12, 8)]
    want = infer(Potentials(kernel, visible, hidden))
    for jit in jit_compile:  # without, it is what a `tf.function` around it gives
        compiled = tf.function(
            lambda b, c: infer(Potentials(kernel, b, c)),
            input_signature=specs,
            jit_compile=jit,
        )
        assert_same(compiled(visible.bias, hidden.bias), want)
        many = compiled(*(tf.tile(units.bias, (30, 1)) for units in (visible, hidden)))
        np.testing.assert_allclose(many.visible[-5:], want.visible, atol=1e-5)


def assert_max_iterations_is_no_constant(infer):
    """Changes an object's number of sweeps under a function traced once."""
    kernel, visible, hidden = random_batch(12, 8, 5)
    traces = []

    @tf.function
    def compiled(visible_bias):
        traces.append(visible_bias)
        return infer(Potentials(kernel, visible_bias, hidden))

    for num_iterations in (2, 7, 3):
        infer.max_iterations = num_iterations
        assert int(infer.max_iterations) == num_iterations
        np.testing.assert_array_equal(
            compiled(visible.bias).num_iterations, [num_iterations] * 5
        )
        assert_same(compiled(visible.bias), infer(Potentials(kernel, visible, hidden)))
    assert len(traces) == 1


def assert_max_iterations_may_be_a_tensor(function):
    potentials = random_batch(12, 8, 5)
    traces = []

    @tf.function
    def compiled(max_iterations):
        traces.append(max_iterations)
        return function(potentials, max_iterations=max_iterations, tolerance=0.0)

    for num_iterations in (2, 7, 3):
        got = compiled(tf.constant(num_iterations))
        want = function(potentials, max_iterations=num_iterations, tolerance=0.0)
        assert_same(got, want)
        np.testing.assert_array_equal(got.num_iterations, [num_iterations] * 5)
    assert len(traces) == 1


def assert_objects_share_nothing(make):
    """Uses an object inside a function after another one is gone.

    A cached trace once held the variable `max_iterations` of the object that had
    caused it: "Called a function referencing variables which have been deleted".
    """
    potentials = random_batch(12, 8, 5)
    make()(potentials)
    gc.collect()
    infer = make()
    compiled = tf.function(lambda: infer(potentials))
    assert_same(compiled(), infer(potentials))


def assert_saved_and_restored(infer):
    stored = keras.saving.serialize_keras_object(infer)
    restored = keras.saving.deserialize_keras_object(json.loads(json.dumps(stored)))
    assert type(restored) is type(infer)
    assert restored.get_config() == infer.get_config()
    potentials = random_batch(12, 8, 5)
    got, want = (each(potentials, pairwise="each") for each in (restored, infer))
    assert_same(got, want, atol=0, rtol=0)


def assert_large_batches_go_through_in_parts(infer):
    """A batch whose messages are too many for one chunk."""
    potentials = random_batch(600, 400, 6, scale=0.02)
    weights = tf.constant([0.1, 0.4, 0.0, 0.3, 0.2, 1.0])
    alone = stack([infer(row) for row in rows(potentials)])
    mean = np.einsum("n,nij->ij", weights, alone.pairwise)
    want = alone._replace(pairwise=tf.constant(mean))
    assert_same(infer(potentials, weights=weights), want, atol=1e-4)
