"""Max-margin learning, against an objective maximized by enumeration."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from brute_force import Enumerated, binary_states
from comparisons import assert_close
from random_models import parameters, random_crbm, rule_gradients, weighted_pairs

from keras_rbm import inference

METHODS = pytest.mark.parametrize("method", ["mixed_product", "max_product"])


class Enumeration(inference.Inference):
    """Finds the most probable v, or that of the most probable (v, h), in NumPy."""

    finds_state = True

    def __init__(self, method):
        self.method = method
        self.is_joint = method == "max_product"

    def __call__(self, potentials, weights=None, pairwise="mean"):
        rows = zip(potentials.visible_bias, potentials.hidden_bias, strict=True)
        states = [
            self.state(Enumerated(inference.Potentials(potentials.kernel, b, c)))
            for b, c in rows
        ]
        return inference.Beliefs(tf.constant(states, tf.float32), *[None] * 6)

    def state(self, model):
        joint = self.method == "max_product"
        return model.v[(model.log_joint.max(1) if joint else model.p_visible).argmax()]


class Constant(Enumeration):
    """Finds zeros, whatever the model."""

    def state(self, model):
        return 0.0 * model.v[0]


def make(infer, sizes=(5, 4), seed=0, scale=1.0):
    return random_crbm("max_margin", infer, sizes, seed, scale)


def gradients(*arguments):
    """Returns the rule's gradients and losses."""
    got, phases = rule_gradients(*arguments)
    return got, phases.losses


def scores(p, x, states, method):
    """Returns the scores of states (S, V) given x: a column for each h, float64.

    Mixed-product sums h out: a single column.
    """
    b = p["visible_bias"] + tf.linalg.matvec(p["visible_kernel"], x, True)
    c = p["hidden_bias"] + tf.linalg.matvec(p["hidden_kernel"], x, True)
    of_visible = tf.linalg.matvec(states, b)[:, tf.newaxis]
    if method == "mixed_product":
        hidden = tf.math.softplus(states @ p["kernel"] + c)
        return of_visible + tf.reduce_sum(hidden, 1, keepdims=True)
    h = binary_states(len(c))
    return of_visible + states @ p["kernel"] @ h.T + tf.linalg.matvec(h, c)


def violations(p, x, v, method):
    """Returns Hamming + score for all (v*, h), minus the data's score, sorted."""
    states = binary_states(len(v))
    distance = abs(states - v).sum(1, keepdims=True)
    data = tf.reduce_max(scores(p, x, v[None], method))
    return tf.sort(tf.reshape(distance + scores(p, x, states, method) - data, [-1]))


def objectives(p, x, v, method):
    """Returns each example's objective in float64."""
    x, v = np.float64(x), np.float64(v)
    rows = zip(x, v, strict=True)
    return tf.stack([violations(p, *row, method)[-1] for row in rows])


def has_a_margin(p, x, v, method):
    """Returns whether both maxima, over (v*, h) and over h, beat the next by 0.01."""
    data = np.sort(np.ravel(scores(p, x, v[None], method)))
    gaps = [np.diff(violations(p, x, v, method)[-2:]), np.diff(data[-2:])]
    return all((gap > 0.01).all() for gap in gaps)


@METHODS
@pytest.mark.parametrize("scale", [0.3, 1.0])
def test_gradient_is_that_of_the_objective(method, scale):
    crbm = make(Enumeration(method), scale=scale)
    p = parameters(crbm)
    rows = zip(*weighted_pairs(count=20), strict=True)
    unique = [
        row
        for row in rows
        if has_a_margin(p, *(np.float64(part) for part in row[:2]), method)
    ]
    assert len(unique) > 10
    x, v, weights = (tf.stack(parts) for parts in zip(*unique, strict=True))
    got, losses = gradients(crbm, x, v, weights)
    assert np.count_nonzero(losses) > 5
    p = {name: tf.constant(value) for name, value in p.items()}
    with tf.GradientTape() as tape:
        tape.watch(p)
        loss = tf.reduce_sum(np.float64(weights) * objectives(p, x, v, method))
    want = tape.gradient(loss, p)
    assert len(want) == 5
    assert_close(got, want)
    assert all(np.max(abs(gradient)) > 0.01 for gradient in want.values())


@METHODS
def test_loss_is_the_objective_and_bounds_the_wrong_pixels(method):
    num_wrong = 0
    for seed, scale in itertools.product(range(5), (0.1, 1.0, 3.0)):
        crbm = make(Enumeration(method), seed=seed, scale=scale)
        x, v, weights = weighted_pairs(count=10, seed=seed)
        _, losses = gradients(crbm, x, v, weights)
        want = objectives(parameters(crbm), x, v, method)
        np.testing.assert_allclose(losses, want, rtol=1e-5, atol=1e-4)
        wrong = abs(crbm.predict_map(x) - v).numpy().sum(1)
        assert (losses.numpy() > wrong - 1e-4).all()
        num_wrong += wrong.sum()
    assert num_wrong > 100


@METHODS
def test_targets_may_be_probabilities(method):
    crbm = make(Enumeration(method))
    x, v, weights = weighted_pairs()
    v = 0.2 + 0.5 * v
    want = objectives(parameters(crbm), x, v, method)
    np.testing.assert_allclose(gradients(crbm, x, v, weights)[1], want, rtol=1e-5)


def assert_nothing_learned(got, losses):
    for values in (losses, *got.values()):
        np.testing.assert_array_equal(values, tf.zeros_like(values))


@METHODS
def test_a_worse_state_than_the_data_is_no_rival(method):
    """Where inference fails there is nothing to learn from what it found."""
    crbm = make(Constant(method), scale=0.1)
    x, v, weights = weighted_pairs()
    crbm.visible_bias.assign(tf.fill((5,), 100.0))
    # Zeros lose to whatever has a 1 by 100, less at most 5 wrong pixels.
    v = tf.concat([tf.ones((7, 1)), v[:, 1:]], 1)
    assert_nothing_learned(*gradients(crbm, x, v, weights))


@pytest.mark.parametrize(
    ("method", "sizes", "exact"),
    [
        ("mixed_product", (1, 4), True),
        ("max_product", (1, 4), True),
        ("max_product", (5, 1), True),
        ("mixed_product", (5, 4), False),
        ("max_product", (5, 4), False),
    ],
)
def test_belief_propagation_reaches_the_objective_on_stars(method, sizes, exact):
    """Elsewhere it may miss the maximum, and the loss is a lower bound, never < 0."""
    for seed in range(5):
        crbm = make(method, sizes, seed=seed)
        x, v, weights = weighted_pairs(sizes[0], count=20, seed=seed)
        _, losses = gradients(crbm, x, v, weights)
        want = objectives(parameters(crbm), x, v, method)
        if exact:
            np.testing.assert_allclose(losses, want, rtol=1e-5, atol=1e-4)
        assert (losses >= 0.0).numpy().all()
        assert (losses.numpy() < want.numpy() + 1e-4).all()
