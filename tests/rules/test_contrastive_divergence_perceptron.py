"""The perceptron loss: its rivals by enumeration, its gradient by differentiation."""

import numpy as np
import pytest
import tensorflow as tf
from brute_force import Enumerated, random_potentials, tempered_sweep
from comparisons import assert_close
from random_models import SEED, random_crbm, rule_gradients, weighted_pairs
from steps import step_of

from keras_rbm import inference, rules

ROWS = 20_000


def make(gibbs_steps=3, count=300):
    """Returns a CRBM of five units, its potentials, and examples."""
    crbm = random_crbm(rules.ContrastiveDivergencePerceptron(gibbs_steps))
    examples = weighted_pairs(count=count)
    return crbm, crbm.potentials(examples[0]), examples


def rivals_of(rule, potentials, v):
    """Returns the states that the rule finds, and the losses."""
    rivals, losses = rule._rival(step_of(potentials, v, seed=SEED))
    return rivals.visible, losses


def of_rows(potentials, count):
    """Returns a batch of one and the same model."""
    return inference.Potentials(
        potentials.kernel,
        tf.repeat(potentials.visible_bias[None], count, 0),
        tf.repeat(potentials.hidden_bias[None], count, 0),
    )


def distribution_of_rivals(potentials, gibbs_steps):
    """Returns p(v*) over all states: the best on a chain from sigmoid(b)."""
    model = Enumerated(potentials)
    start = Enumerated(
        potentials._replace(kernel=tf.zeros_like(potentials.kernel))
    ).p_visible
    _, sweep = tempered_sweep(potentials, np.zeros(len(model.v[0])), 1.0)
    energy = -np.log(model.p_visible)
    # Of chains at state i that were best at j: p[i, j].
    p = np.diag(start)
    for _ in range(gibbs_steps):
        moved = np.zeros_like(p)
        for new in range(len(p)):
            arriving = sweep[:, new] @ p
            stays = energy <= energy[new]
            moved[new, stays] += arriving[stays]
            moved[new, new] += arriving[~stays].sum()
        p = moved
    return p.sum(0)


@pytest.mark.parametrize("gibbs_steps", [1, 6])
def test_rivals_are_the_best_states_of_gibbs_chains(gibbs_steps):
    """Also of chains that leave a good state: these are not a greedy search."""
    potentials = random_potentials(4, 3, scale=2.0)
    model = Enumerated(potentials)
    rule = rules.ContrastiveDivergencePerceptron(gibbs_steps)
    # The data matter neither to the start nor to the chain.
    row = model.p_visible.argsort()[-2]
    v = tf.repeat(tf.constant(model.v[[row]], tf.float32), ROWS, 0)
    rivals, losses = rivals_of(rule, of_rows(potentials, ROWS), v)
    p = distribution_of_rivals(potentials, gibbs_steps)
    error = abs(model.frequencies(rivals) - p)
    assert (error < 5 * np.sqrt(p / ROWS) + 1e-4).all()
    log_p = np.log(model.p_visible)
    expected = np.maximum(0.0, log_p - log_p[row])
    stderr = np.sqrt(p @ (expected - p @ expected) ** 2 / ROWS)
    assert abs(np.mean(losses) - p @ expected) < 5 * stderr


def test_gradient_is_that_of_the_perceptron_loss():
    crbm, potentials, (x, v, weights) = make(gibbs_steps=1)
    got, phases = rule_gradients(crbm, x, v, weights)
    rivals, same = rivals_of(crbm.rule, potentials, v)
    np.testing.assert_array_equal(same, phases.losses)
    parameters = {v.name: v.value for v in crbm.trainable_variables}
    with tf.GradientTape() as tape:
        tape.watch(parameters)
        potentials = crbm.potentials(x)
        gaps = potentials.free_energy(v) - potentials.free_energy(rivals)
        loss = tf.reduce_sum(weights * tf.maximum(0.0, gaps))
    assert min(np.sum(gaps < 0.0), np.sum(gaps > 0.0)) > 5
    np.testing.assert_allclose(phases.losses, tf.maximum(0.0, gaps), atol=1e-5)
    assert len(got) == 5
    assert_close(got, tape.gradient(loss, parameters))
