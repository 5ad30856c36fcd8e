"""The rule that learns a label, against derivatives of log p(y | x)."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from comparisons import assert_equal
from random_models import randomize

import keras_rbm as kr
from keras_rbm import units
from keras_rbm.rules import HybridDiscriminative

UNIT = units.Joined([("bernoulli", 4), (units.Categorical(3), 1)])


def model(rule, unit=UNIT, **kwargs):
    """Returns a small model with random weights, compiled with a rule."""
    kwargs |= {"num_visible": 5, "kernel_regularizer": None, "seed": 0}
    rbm = randomize(kr.RBM(3, visible=unit, **kwargs))
    rbm.compile(keras.optimizers.SGD(1.0), rule=rule)
    return rbm


def data(label_missing=False):
    rng = np.random.default_rng(1)
    rows = np.c_[rng.integers(0, 2, (8, 4)), rng.integers(0, 3, 8)].astype("float32")
    if label_missing:
        rows[::2, 4] = np.nan
    return rows


def derivatives(rbm, rows):
    """Returns the gradient of the mean of log p(y | x) of labelled rows."""
    rows = rows[~np.isnan(rows[:, 4])]
    with tf.GradientTape() as tape:
        potentials, log_weights = rbm.potentials(), []
        for state in range(3):
            changed = rows.copy()
            changed[:, 4] = state
            log_weights.append(-potentials.free_energy(tf.constant(changed)))
        log_p = tf.nn.log_softmax(tf.stack(log_weights, 1))
        chosen = tf.gather(log_p, rows[:, 4].astype(int), batch_dims=1)
        mean = tf.reduce_mean(chosen)
    return tape.gradient(mean, rbm.trainable_variables), -chosen.numpy()


def changes(rbm, rows):
    """Returns how a step changes the trained variables, and its logs."""
    before = [variable.numpy() for variable in rbm.trainable_variables]
    logs = rbm.train_on_batch(rows, return_dict=True)
    after = rbm.trainable_variables
    return [b.numpy() - a for a, b in zip(before, after, strict=True)], logs


@pytest.mark.parametrize("label_missing", [False, True])
def test_discriminative_gradient_is_exact(label_missing):
    rule = HybridDiscriminative(0.0, centered=False)
    rbm, rows = model(rule, missing="latent"), data(label_missing)
    exact, losses = derivatives(rbm, rows)
    moved, logs = changes(rbm, rows)
    assert_equal(moved, exact, atol=1e-6)
    assert logs["loss"] == pytest.approx(losses.sum() / len(rows), abs=1e-5)


def test_any_unit_may_be_the_label():
    unit = units.Joined([(units.Categorical(3), 1), ("bernoulli", 4)])
    first = model(HybridDiscriminative(0.0, label=0, centered=False), unit)
    last = model(HybridDiscriminative(0.0, centered=False))
    order = [3, 4, 5, 6, 0, 1, 2]  # rows of the last one in the first one
    for name in ("kernel", "visible_bias"):
        getattr(last, name).assign(getattr(first, name).numpy()[order])
    last.hidden_bias.assign(first.hidden_bias)
    rows = data()
    first.train_on_batch(rows[:, [4, 0, 1, 2, 3]])
    last.train_on_batch(rows)
    np.testing.assert_allclose(first.kernel.numpy()[order], last.kernel, atol=1e-6)


def test_generative_part_is_the_other_rules():
    """Steps are the mean of both gradients with weights 1 and 0.5, whose sum is 1.5."""
    both, own, other = (
        changes(model(rule), data())[0]
        for rule in (
            HybridDiscriminative(0.5, "cd", centered=False),
            HybridDiscriminative(0.0, "cd", centered=False),
            kr.rules.ContrastiveDivergence(centered=False),
        )
    )
    mean = [(a + 0.5 * b) / 1.5 for a, b in zip(own, other, strict=True)]
    assert_equal(both, mean, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "unit", "word"),
    [({"label": 7}, UNIT, "label=7"), ({}, "gaussian", "finitely many")],
)
def test_labels_that_are_refused(options, unit, word):
    with pytest.raises(ValueError, match=word):
        model(HybridDiscriminative(**options), unit)
