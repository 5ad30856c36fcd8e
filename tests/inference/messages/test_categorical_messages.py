"""Belief propagation with categorical visible units."""

import itertools
from typing import NamedTuple

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy.special import expit, logsumexp
from steps import gradients_of, step_of

import keras_rbm as kr
from keras_rbm import inference
from keras_rbm.inference import Potentials, max_product, mixed_product, sum_product


def models(num_units, q, num_hidden, batch=3, seed=0, scale=1.0):
    """Returns potentials with one normal kernel and a batch of normal biases."""
    rng = np.random.default_rng(seed)
    kernel = rng.normal(0, scale, (num_units * q, num_hidden))
    return with_biases(kernel, q, batch, rng)


def with_biases(kernel, q, batch, rng):
    rows, num_hidden = kernel.shape
    return potentials_of(
        kernel, q, rng.normal(size=(batch, rows)), rng.normal(size=(batch, num_hidden))
    )


def potentials_of(kernel, q, b, c):
    kernel, b, c = (tf.cast(part, tf.float32) for part in (kernel, b, c))
    return Potentials(kernel, kr.units.Categorical(q).parameters(b), c)


def trees(num_units, q, num_hidden, batch=3, seed=0, scale=1.5):
    """Returns potentials whose units form a chain: each is joined to two others."""
    rng = np.random.default_rng(seed)
    kernel = rng.normal(0, scale, (num_units, q, num_hidden))
    joined = np.zeros((num_units, num_hidden), bool)
    for i, j in itertools.product(range(num_units), range(num_hidden)):
        end = (j == num_hidden - 1 and i > j) or (i == num_units - 1 and j > i)
        joined[i, j] = i - j in (0, 1) or end
    kernel *= joined[:, None]
    return with_biases(kernel.reshape(-1, num_hidden), q, batch, rng), joined


def rows_of(potentials):
    """Returns kernel, b and c of each model of a batch, in float64."""
    kernel, b, c = (
        np.asarray(part, np.float64)
        for part in (
            potentials.kernel,
            potentials.visible_bias,
            potentials.hidden_bias,
        )
    )
    return [(kernel, *pair) for pair in zip(b, c, strict=True)]


class Enumerated:
    """All states of a small model: one-hot v, h, and their log-weights."""

    def __init__(self, model, q):
        kernel, b, c = model
        categories = np.array(list(itertools.product(range(q), repeat=len(b) // q)))
        self.v = np.eye(q)[categories].reshape(len(categories), -1)
        self.h = np.array(list(itertools.product([0.0, 1.0], repeat=len(c))))
        self.log_joint = self.v @ kernel @ self.h.T
        self.log_joint += (self.v @ b)[:, None] + self.h @ c
        self.log_partition = logsumexp(self.log_joint)
        self.joint = np.exp(self.log_joint - self.log_partition)

    def moments(self):
        """Returns means of v, h and v h'."""
        pairs = self.v.T @ self.joint @ self.h
        return self.joint.sum(1) @ self.v, self.joint.sum(0) @ self.h, pairs


class Sweep(NamedTuple):
    visible: np.ndarray
    hidden: np.ndarray
    pairs: np.ndarray
    log_partition: float


def equations(model, q, count, damping=0.0, maximum=False):
    """Lists what each sweep of one model yields, in plain products of odds."""
    kernel, b, c = model
    odds = np.exp(kernel).reshape(-1, q, len(c))
    b = b.reshape(-1, q)
    total = np.max if maximum else np.sum
    s = np.ones((len(b), len(c)))
    r = np.ones_like(odds)
    hidden = np.exp(c)
    sweeps = []
    for _ in range(count):
        cavity = (hidden / s)[:, None]
        new = np.maximum(1, cavity * odds) if maximum else 1 + cavity * odds
        r = r**damping * new ** (1 - damping)
        weights = np.exp(b) * r.prod(-1)
        tau = weights / weights.sum(-1, keepdims=True)
        on = total(odds * tau[..., None] / r, axis=1)
        off = total(tau[..., None] / r, axis=1)
        s = on / off
        hidden = np.exp(c) * s.prod(0)
        pairs = _pairs(odds, tau, r, s, hidden)
        sweeps.append(
            Sweep(
                tau.ravel(),
                hidden / (1 + hidden),
                pairs[1].reshape(kernel.shape),
                _bethe(odds, weights, r, c, s),
            )
        )
    return sweeps


def _pairs(odds, tau, r, s, hidden):
    """Returns beliefs of (h = 0, category a) and (h = 1, category a), (2, U, q, H)."""
    cavity = tau[..., None] / r
    joint = np.stack([cavity, odds * cavity * (hidden / s)[:, None]])
    return joint / joint.sum((0, 2), keepdims=True)


def _bethe(odds, weights, r, c, s):
    """Returns log Z: of units and pairs, as products of messages that lead there."""
    units = weights.sum(-1)  # exp(b) prod r, summed
    hidden = np.stack([np.ones_like(c), np.exp(c) * s.prod(0)])
    cavity = weights[..., None] / r
    other = hidden[:, None] / np.stack([np.ones_like(s), s])
    joint = other[0] * cavity.sum(1) + other[1] * (odds * cavity).sum(1)
    degrees = np.array(s.shape)[::-1] - 1
    return (
        np.log(joint).sum()
        - degrees[0] * np.log(units).sum()
        - degrees[1] * np.log(hidden.sum(0)).sum()
    )


def assert_sweep(beliefs, n, want, atol=1e-5):
    np.testing.assert_allclose(beliefs.visible[n], want.visible, atol=atol)
    np.testing.assert_allclose(beliefs.hidden[n], want.hidden, atol=atol)
    np.testing.assert_allclose(beliefs.pairwise[n], want.pairs, atol=atol)
    np.testing.assert_allclose(
        beliefs.log_partition[n], want.log_partition, rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("q", [2, 3, 4])
@pytest.mark.parametrize("sizes", [(4, 1), (1, 5), (4, 3)], ids=str)
def test_exact_on_trees(q, sizes):
    """Unit marginals, log Z, and pairs that are joined by an edge."""
    potentials, joined = trees(sizes[0], q, sizes[1])
    beliefs = sum_product(potentials, max_iterations=8, tolerance=0.0, pairwise="each")
    for n, model in enumerate(rows_of(potentials)):
        truth = Enumerated(model, q)
        visible, hidden, pairs = truth.moments()
        edges = np.repeat(joined, q, 0)
        pairs = np.where(edges, pairs, np.outer(visible, hidden))
        want = Sweep(visible, hidden, pairs, truth.log_partition)
        assert_sweep(beliefs, n, want)


@pytest.mark.parametrize("damping", [0.0, 0.4])
def test_equals_the_equations_sweep_by_sweep(damping):
    potentials = models(5, 3, 4)
    want = [equations(model, 3, 6, damping) for model in rows_of(potentials)]
    for sweep in (1, 2, 6):
        beliefs = sum_product(
            potentials,
            max_iterations=sweep,
            tolerance=0.0,
            damping=damping,
            pairwise="each",
        )
        for n in range(3):
            assert_sweep(beliefs, n, want[n][sweep - 1])


@pytest.mark.parametrize("largest", [2.0, 20.0, 60.0])
def test_all_forms_of_messages_agree_with_the_equations(largest):
    """As weights grow: products of eight ratios, single ratios, logarithms."""
    rng = np.random.default_rng(1)
    kernel = rng.normal(size=(9, 2))
    kernel *= largest / np.abs(kernel).max()
    potentials = with_biases(kernel, 3, 3, rng)
    beliefs = sum_product(potentials, max_iterations=3, tolerance=0.0, pairwise="each")
    for n, model in enumerate(rows_of(potentials)):
        assert_sweep(beliefs, n, equations(model, 3, 3)[-1], atol=1e-4)


@pytest.mark.parametrize("method", [sum_product, max_product])
def test_damping_by_logarithms_is_that_of_ratios(method):
    potentials = models(4, 3, 3, seed=2)
    options = {"max_iterations": 5, "tolerance": 0.0, "damping": 0.3}
    usual = method(potentials, **options, pairwise="each")
    # One strong edge to a unit that is off has all go by logarithms.
    kernel = np.pad(potentials.kernel, [[0, 0], [0, 1]])
    kernel[4, 3] = 50.0
    c = np.pad(potentials.hidden_bias, [[0, 0], [0, 1]], constant_values=-200.0)
    wide = potentials_of(kernel, 3, potentials.visible_bias, c)
    logs = method(wide, **options, pairwise="each")
    np.testing.assert_allclose(logs.visible, usual.visible, atol=2e-5)
    np.testing.assert_allclose(logs.pairwise[:, :, :3], usual.pairwise, atol=2e-5)
    np.testing.assert_allclose(logs.log_partition, usual.log_partition, rtol=1e-5)


def two_categories(kernel, b, c):
    """Returns the binary model and the same one with categories 0 and 1."""
    binary = Potentials(*(tf.constant(part, tf.float32) for part in (kernel, b, c)))

    def interleaved(array):
        array = np.stack([np.zeros_like(array), array], -1)
        return array.reshape(*array.shape[:-2], -1)

    rows = interleaved(np.asarray(kernel).T).T
    return binary, potentials_of(rows, 2, interleaved(np.asarray(b)), c)


@pytest.mark.parametrize("damping", [0.0, 0.4])
def test_two_categories_are_a_binary_unit(damping):
    rng = np.random.default_rng(3)
    kernel, b, c = (rng.normal(size=size) for size in ((7, 4), (3, 7), (3, 4)))
    binary, potentials = two_categories(kernel, b, c)
    for count in (1, 4):
        options = {"max_iterations": count, "tolerance": 0.0, "damping": damping}
        want = sum_product(binary, **options)
        found = sum_product(potentials, **options)
        np.testing.assert_allclose(found.visible[:, 1::2], want.visible, atol=1e-5)
        np.testing.assert_allclose(found.hidden, want.hidden, atol=1e-5)
        np.testing.assert_allclose(found.pairwise[1::2], want.pairwise, atol=1e-5)
        np.testing.assert_allclose(
            found.log_partition, want.log_partition, rtol=1e-5, atol=1e-5
        )
        np.testing.assert_allclose(found.residual, want.residual, atol=1e-5)


def test_two_categories_are_decoded_like_a_binary_unit():
    rng = np.random.default_rng(4)
    kernel, b, c = (rng.normal(size=size) for size in ((8, 5), (40, 8), (40, 5)))
    binary, potentials = two_categories(kernel, b, c)
    want, found = (
        max_product(model, max_iterations=4, tolerance=0.0)
        for model in (binary, potentials)
    )
    np.testing.assert_allclose(found.hidden, want.hidden, atol=1e-5)
    beliefs = np.concatenate([want.visible, want.hidden], 1)
    clear = (np.abs(beliefs - 0.5) > 1e-3).all(1)  # ties are decoded as it rounds
    assert clear.mean() > 0.5
    np.testing.assert_array_equal(
        found.visible.numpy()[clear, 1::2], want.visible.numpy()[clear] > 0.5
    )
    np.testing.assert_allclose(
        found.log_partition[clear], want.log_partition[clear], rtol=1e-5
    )


@pytest.mark.parametrize("q", [2, 3, 4])
@pytest.mark.parametrize("sizes", [(4, 1), (1, 4), (4, 3)], ids=str)
def test_max_product_finds_the_best_state_of_trees(q, sizes):
    potentials, _ = trees(sizes[0], q, sizes[1], batch=6, seed=q)
    beliefs = max_product(potentials, max_iterations=8, tolerance=0.0, pairwise="each")
    for n, model in enumerate(rows_of(potentials)):
        truth = Enumerated(model, q)
        i, j = np.unravel_index(truth.log_joint.argmax(), truth.log_joint.shape)
        np.testing.assert_array_equal(beliefs.visible[n], truth.v[i])
        np.testing.assert_array_equal(beliefs.hidden[n] > 0.5, truth.h[j])
        np.testing.assert_array_equal(
            beliefs.pairwise[n], np.outer(truth.v[i], truth.h[j])
        )
        np.testing.assert_allclose(
            beliefs.log_partition[n], truth.log_joint.max(), rtol=1e-5, atol=1e-5
        )


def test_max_product_equals_the_equations():
    potentials = models(5, 3, 4, seed=5)
    for damping in (0.0, 0.4):
        beliefs = max_product(
            potentials, max_iterations=4, tolerance=0.0, damping=damping
        )
        for n, model in enumerate(rows_of(potentials)):
            want = equations(model, 3, 4, damping, maximum=True)[-1]
            np.testing.assert_allclose(beliefs.hidden[n], want.hidden, atol=1e-5)
            best = want.visible.reshape(-1, 3).argmax(-1)
            np.testing.assert_array_equal(beliefs.visible[n], np.eye(3)[best].ravel())


def free_energies(model, v):
    kernel, b, c = model
    return -v @ b - np.logaddexp(0, v @ kernel + c).sum(-1)


def best_replies(model, q, v):
    """Returns each unit's best category, if the others' rows are as in v."""
    energies = []
    for unit, category in itertools.product(range(len(v) // q), range(q)):
        changed = v.reshape(-1, q).copy()
        changed[unit] = np.eye(q)[category]
        energies.append(free_energies(model, changed.ravel()))
    return np.eye(q)[np.reshape(energies, (-1, q)).argmin(-1)].ravel()


@pytest.mark.parametrize("q", [2, 3, 4])
def test_mixed_product_finds_the_best_state_of_one_visible_unit(q):
    potentials = models(1, q, 5, batch=10, seed=q, scale=2.0)
    beliefs = mixed_product(potentials, pairwise="each")
    assert np.all(beliefs.converged)
    for n, model in enumerate(rows_of(potentials)):
        energies = free_energies(model, np.eye(q))
        np.testing.assert_array_equal(beliefs.visible[n], np.eye(q)[energies.argmin()])
        np.testing.assert_allclose(
            beliefs.log_partition[n], -energies.min(), rtol=1e-5, atol=1e-5
        )


@pytest.mark.parametrize("scale", [1.0, 4.0, 30.0])
def test_mixed_product_sets_all_units_to_their_best_category(scale):
    potentials = models(5, 3, 4, batch=8, seed=6, scale=scale)
    for count in (1, 2, 5):
        beliefs = mixed_product(potentials, max_iterations=count, pairwise="each")
        for n, model in enumerate(rows_of(potentials)):
            states = [best_replies(model, 3, np.full(15, 1 / 3))]
            for _ in range(count - 1):
                states.append(best_replies(model, 3, states[-1]))
            energies = [free_energies(model, v) for v in states]
            best = states[int(np.argmin(energies))]
            np.testing.assert_array_equal(beliefs.visible[n], best)
            np.testing.assert_allclose(
                beliefs.log_partition[n], -min(energies), rtol=1e-5
            )
            hidden = expit(best @ model[0] + model[2])
            np.testing.assert_allclose(beliefs.hidden[n], hidden, atol=1e-5)
            np.testing.assert_allclose(
                beliefs.pairwise[n], np.outer(best, hidden), atol=1e-5
            )


def test_fixed_points_of_mixed_product_are_optimal_for_each_unit():
    potentials = models(6, 3, 5, batch=40, seed=7)
    beliefs = mixed_product(potentials)
    assert np.mean(beliefs.converged) > 0.7
    everything = np.array(list(itertools.product(np.eye(3), repeat=6))).reshape(-1, 18)
    optimal = 0
    for n, model in enumerate(rows_of(potentials)):
        visible = np.float64(beliefs.visible[n])
        if beliefs.converged[n]:
            np.testing.assert_array_equal(best_replies(model, 3, visible), visible)
        lowest = free_energies(model, everything).min()
        optimal += int(-beliefs.log_partition[n] < lowest + 1e-4)
    assert 30 < optimal < 40


def test_mixed_product_does_not_depend_on_constants_of_a_unit():
    """Of the kernel's rows: the hidden biases undo them."""
    potentials = models(6, 3, 5, batch=20, seed=14)
    shift = np.random.default_rng(14).normal(size=(6, 5))
    moved = potentials_of(
        potentials.kernel + np.repeat(shift, 3, 0),
        3,
        potentials.visible_bias,
        potentials.hidden_bias - shift.sum(0),
    )
    want, found = mixed_product(potentials), mixed_product(moved)
    np.testing.assert_array_equal(found.visible, want.visible)
    np.testing.assert_array_equal(found.num_iterations, want.num_iterations)


@pytest.mark.parametrize("largest", [10.0, 30.0, 500.0])
@pytest.mark.parametrize("method", [sum_product, max_product, mixed_product])
def test_strong_weights_stay_finite(method, largest):
    rng = np.random.default_rng(8)
    kernel = largest * np.sign(rng.normal(size=(24, 9)))
    b = 100.0 * rng.integers(-1, 2, (5, 24))
    c = 100.0 * rng.integers(-1, 2, (5, 9))
    potentials = potentials_of(kernel, 4, b, c)
    beliefs = method(potentials, pairwise="each", max_iterations=12)
    for belief in (beliefs.visible, beliefs.hidden, beliefs.pairwise):
        assert np.all((belief.numpy() >= 0) & (belief.numpy() <= 1 + 1e-6))
    totals = np.reshape(beliefs.visible, (5, 6, 4)).sum(-1)
    np.testing.assert_allclose(totals, 1, atol=1e-5)
    assert np.all(np.isfinite(beliefs.log_partition))


@pytest.mark.parametrize("scale", [8.0, 12.0, 100.0])
def test_exact_on_trees_with_strong_weights(scale):
    potentials, _ = trees(4, 3, 3, seed=9, scale=scale)
    beliefs = sum_product(potentials, max_iterations=8, tolerance=0.0)
    for n, model in enumerate(rows_of(potentials)):
        truth = Enumerated(model, 3)
        visible, hidden, _ = truth.moments()
        np.testing.assert_allclose(beliefs.visible[n], visible, atol=1e-5)
        np.testing.assert_allclose(beliefs.hidden[n], hidden, atol=1e-5)
        np.testing.assert_allclose(
            beliefs.log_partition[n], truth.log_partition, rtol=1e-6
        )


@pytest.mark.parametrize("method", [sum_product, max_product, mixed_product])
def test_models_stop_one_by_one(method):
    """What a model yields does not depend on the others of its batch."""
    potentials = models(6, 3, 5, batch=7, seed=10)
    whole = method(potentials, pairwise="each")
    assert len(set(whole.num_iterations.numpy())) > 1
    kernel, b, c = potentials.kernel, potentials.visible_bias, potentials.hidden_bias
    for n in range(3):
        alone = method(potentials_of(kernel, 3, b[n], c[n]), pairwise="each")
        assert alone.visible.shape == (18,) and alone.pairwise.shape == (18, 5)
        for one, other in zip(alone, whole, strict=True):
            np.testing.assert_allclose(one, other[n], atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("method", [sum_product, max_product, mixed_product])
def test_pairs_are_weighted(method):
    potentials = models(3, 4, 2, batch=3)
    weights = np.float32([0.2, 0.5, 0.9])
    each = method(potentials, pairwise="each").pairwise
    mean = method(potentials, weights=weights).pairwise
    np.testing.assert_allclose(mean, np.einsum("n,nvh->vh", weights, each), atol=1e-6)
    usual = method(potentials).pairwise
    np.testing.assert_allclose(usual, np.mean(each, 0), atol=1e-6)
    assert method(potentials, pairwise=None).pairwise is None


@pytest.mark.slow
@pytest.mark.parametrize("method", [sum_product, max_product, mixed_product])
def test_compiled_is_the_same(method, compiled_inference):
    """For a batch of unknown size, and a number of sweeps that may change."""
    potentials = models(5, 3, 4, seed=11)
    limit = tf.Variable(2)

    @tf.function(input_signature=[tf.TensorSpec((None, 15)), tf.TensorSpec((None, 4))])
    def run(b, c):
        same = potentials_of(potentials.kernel, 3, b, c)
        return method(same, max_iterations=limit, pairwise="each")

    for count in (2, 3):
        limit.assign(count)
        found = run(potentials.visible_bias, potentials.hidden_bias)
        want = method(potentials, max_iterations=count, pairwise="each")
        for one, other in zip(found, want, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-6)


@pytest.mark.parametrize(
    "damping, scale",
    [
        (0.0, 1.0),
        (0.3, 100.0),
        pytest.param(0.3, 1.0, marks=pytest.mark.slow),
        pytest.param(0.0, 100.0, marks=pytest.mark.slow),
    ],
    ids=["ratios", "damped logs", "damped ratios", "logs"],
)
def test_gradients_are_those_of_the_sweeps(damping, scale):
    """With respect to the kernel and both biases, by differences along directions."""
    rng = np.random.default_rng(12)
    kernel = rng.normal(size=(9, 3))
    kernel[0, 0] *= scale
    parts = [kernel, rng.normal(size=(2, 9)), rng.normal(size=(2, 3))]
    parts = [tf.constant(part, tf.float32) for part in parts]
    shapes = (2, 9), (2, 3), (2, 9, 3), (2,)
    weights = [tf.constant(rng.normal(size=shape), tf.float32) for shape in shapes]

    def total(parts):
        beliefs = sum_product(
            potentials_of(parts[0], 3, *parts[1:]),
            max_iterations=4,
            tolerance=0.0,
            damping=damping,
            pairwise="each",
        )
        return sum(
            tf.reduce_sum(weight * part)
            for weight, part in zip(weights, beliefs[:4], strict=True)
        )

    with tf.GradientTape() as tape:
        tape.watch(parts)
        value = total(parts)
    gradient = tape.gradient(value, parts)
    for index, found in enumerate(gradient):
        direction = tf.constant(rng.normal(size=found.shape), tf.float32)
        ends = []
        for step in (1e-3, -1e-3):
            moved = list(parts)
            moved[index] += step * direction
            ends.append(total(moved))
        along = float(tf.reduce_sum(found * direction))
        difference = float(ends[0] - ends[1]) / 2e-3
        assert abs(along - difference) < 1e-2 * (1 + abs(along))


@pytest.mark.parametrize("method", ["max_product", "mixed_product"])
def test_states_have_no_gradient(method):
    potentials = models(3, 3, 2)
    with tf.GradientTape() as tape:
        tape.watch(potentials.kernel)
        found = inference.BeliefPropagation(method)(potentials, pairwise=None).visible
    assert tape.gradient(found, potentials.kernel) is None


def test_other_units_are_an_error():
    """Both layers categorical, or only the hidden one."""
    visible = kr.units.Categorical(3).parameters(tf.zeros(6))
    for first, second in ((visible, visible), (tf.zeros(6), visible)):
        for method in (sum_product, max_product, mixed_product):
            with pytest.raises(
                ValueError, match=r"binary units.*CategoricalParameters"
            ):
                method(Potentials(tf.zeros((6, 6)), first, second))


def random_crbm(infer, rule):
    """Returns a CRBM with one hidden unit, a tree, and examples with weights."""
    crbm = kr.CRBM(
        1,
        visible=kr.units.Categorical(3),
        inference=infer,
        num_visible=4,
        num_features=2,
        kernel_regularizer=None,
        seed=0,
    )
    rng = np.random.default_rng(13)
    for variable in crbm.trainable_variables:
        variable.assign(rng.normal(size=variable.shape))
    crbm.compile("sgd", rule=rule, run_eagerly=True)
    weights = rng.random(5)
    arrays = rng.normal(size=(5, 2)), rng.integers(0, 3, (5, 4)), weights / sum(weights)
    return crbm, *(tf.constant(array, tf.float32) for array in arrays)


def phases_of(crbm, x, v, weights):
    seed = tf.constant([0, 1])
    return crbm.rule.phases(step_of(crbm.potentials(x), v, weights, seed, model=crbm))


def log_joints(crbm, x):
    """Returns log-weights of all (v, h) given each x, (B, 81, 2), and the states v."""
    potentials = crbm.potentials(x)
    states = tf.constant(list(itertools.product(range(3), repeat=4)), tf.float32)
    rows = potentials.visible.encode(states)
    own = tf.matmul(potentials.visible_bias, rows, transpose_b=True)
    on = tf.matmul(rows, potentials.kernel)[:, 0] + potentials.hidden_bias
    return own[..., tf.newaxis] + tf.stack([tf.zeros_like(on), on], -1), states


def test_maximum_likelihood_of_a_tree_has_the_enumerated_gradient():
    infer = inference.BeliefPropagation(tolerance=0.0, max_iterations=3)
    crbm, x, v, weights = random_crbm(infer, "maximum_likelihood")
    phases = phases_of(crbm, x, v, weights)
    found = gradients_of(crbm, phases.positive, phases.negative, x)
    with tf.GradientTape() as tape:
        joints, states = log_joints(crbm, x)
        data = tf.reduce_all(states == v[:, tf.newaxis], -1)
        own = tf.reduce_logsumexp(joints, 2)[data]
        losses = tf.reduce_logsumexp(joints, (1, 2)) - own
        total = tf.reduce_sum(weights * losses)
    want = tape.gradient(total, crbm.trainable_variables)
    np.testing.assert_allclose(phases.losses, losses, rtol=1e-5, atol=1e-5)
    for variable, gradient in zip(crbm.trainable_variables, want, strict=True):
        np.testing.assert_allclose(found[variable.name], gradient, atol=1e-5)


def test_max_margin_of_a_tree_has_the_enumerated_loss_and_gradient():
    """LSSVM: the number of wrong categories plus the score, at its maximum."""
    infer = inference.BeliefPropagation("max_product", tolerance=0.0, max_iterations=3)
    crbm, x, v, weights = random_crbm(infer, "max_margin")
    phases = phases_of(crbm, x, v, weights)
    found = gradients_of(crbm, phases.positive, phases.negative, x)
    with tf.GradientTape() as tape:
        joints, states = log_joints(crbm, x)
        wrong = tf.cast(states != v[:, tf.newaxis], tf.float32)
        distance = tf.reduce_sum(wrong, -1)[..., tf.newaxis]
        own = tf.reduce_max(joints, 2)[distance[..., 0] == 0]
        losses = tf.reduce_max(joints + distance, (1, 2)) - own
        total = tf.reduce_sum(weights * losses)
    want = tape.gradient(total, crbm.trainable_variables)
    assert np.all(phases.losses > 0.5)
    np.testing.assert_allclose(phases.losses, losses, rtol=1e-5, atol=1e-5)
    for variable, gradient in zip(crbm.trainable_variables, want, strict=True):
        np.testing.assert_allclose(found[variable.name], gradient, atol=1e-5)


def task():
    """Returns one-hot inputs, and four categories that each one determines."""
    kinds = np.arange(60) % 5
    table = np.random.default_rng(15).integers(0, 3, (5, 4))
    return np.eye(5, dtype="float32")[kinds], np.float32(table[kinds])


@pytest.mark.parametrize(
    "method, rule",
    [
        ("mixed_product", "max_margin"),
        pytest.param("max_product", "max_margin", marks=pytest.mark.slow),
        pytest.param("sum_product", "maximum_likelihood", marks=pytest.mark.slow),
    ],
)
def test_a_conditional_model_learns(method, rule):
    x, v = task()
    infer = inference.BeliefPropagation(method, max_iterations=10)
    crbm = kr.CRBM(9, visible=kr.units.Categorical(3), inference=infer, seed=0)
    crbm.compile(keras.optimizers.Adam(0.3), rule=rule)
    crbm.fit(x, v, epochs=6, batch_size=60, verbose=0)
    np.testing.assert_array_equal(crbm.predict_map(x[:5]), v[:5])
    assert crbm.predict(x[:5], verbose=0).shape == (5, 12)


def test_which_units_belief_propagation_takes():
    infer = inference.BeliefPropagation()
    bernoulli, categorical = kr.units.Bernoulli(), kr.units.Categorical(3)
    assert infer.takes(bernoulli, bernoulli)
    assert infer.takes(bernoulli, bernoulli, bernoulli)
    assert infer.takes(categorical, bernoulli)
    assert not infer.takes(bernoulli, categorical)
    assert not infer.takes(categorical, categorical)
    assert not infer.takes(categorical, bernoulli, bernoulli)
    assert not infer.takes(kr.units.Spin(), bernoulli)
    rbm = kr.RBM(2, visible=categorical, hidden=categorical)
    with pytest.raises(ValueError, match="binary units"):
        rbm.compile(rule=kr.rules.MaximumLikelihood("belief_propagation"))
