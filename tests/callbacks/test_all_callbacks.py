"""What callbacks refuse, before the first step, and that watching changes nothing."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from comparisons import refused
from same import assert_same

import keras_rbm
from keras_rbm import inference, units
from keras_rbm.callbacks import (
    BPConvergence,
    FreeEnergyGap,
    IterationSchedule,
    LogLikelihood,
)

RNG = np.random.default_rng(0)
X, Y = (RNG.integers(0, 2, (34, size)).astype("float32") for size in (5, 6))
ZEROS = np.zeros((34, 6), "float32")


class NoBeliefs(inference.Inference):
    """Inference that returns something else."""

    def __call__(self, potentials, weights=None, pairwise="mean"):
        return tf.sigmoid(potentials.visible_bias)


class OneBelief(inference.Inference):
    """Inference that forgets the examples."""

    def __call__(self, potentials, weights=None, pairwise="mean"):
        beliefs = inference.mean_field(potentials, pairwise=pairwise)
        return beliefs._replace(converged=tf.reduce_all(beliefs.converged))


def compiled(model, *data, rule="cd"):
    model.compile(keras.optimizers.SGD(0.1), rule=rule)
    return model, data


def crbm(infer="sum_product"):
    model = keras_rbm.CRBM(4, inference=infer, num_visible=6, num_features=5, seed=0)
    return compiled(model, X, Y)


def rbm(visible="bernoulli", data=Y, hidden_units=4):
    return compiled(keras_rbm.RBM(hidden_units, visible=visible, seed=0), data)


def network():
    model = keras.Sequential([keras.Input((5,)), keras.layers.Dense(6)])
    model.compile(loss="mse")
    return model, (X, Y)


def large(visible="bernoulli"):
    return rbm(visible, WIDE, 30)


WIDE = np.zeros((8, 30), "float32")
#: The model and its data, the callback, what is said.
REFUSED = [
    (crbm, lambda: BPConvergence(X[:, :3]), r"x of shape \(examples, 5\)"),
    (crbm, lambda: BPConvergence(X[0]), r"x of shape \(examples, 5\)"),
    (crbm, lambda: BPConvergence(np.where(X > 0, np.nan, X)), "finite x"),
    (crbm, lambda: BPConvergence(X[:0]), "at least one example"),
    (crbm, lambda: BPConvergence("train"), "Expected an array of numbers"),
    (rbm, lambda: BPConvergence(Y), r"Received: RBM .* keras_rbm\.CRBM"),
    (lambda: crbm(NoBeliefs()), lambda: BPConvergence(X), r"EagerTensor.*NoBeliefs\("),
    (
        lambda: crbm(OneBelief()),
        lambda: BPConvergence(X),
        r"shape \(\), from OneBelief",
    ),
    (lambda: crbm("exact"), lambda: IterationSchedule(int), "inference that iterates"),
    (rbm, lambda: IterationSchedule(int), "inference that iterates"),
    (network, lambda: IterationSchedule(int), "inference that iterates"),
    (rbm, lambda: FreeEnergyGap(Y[:, :5], Y), r"train of shape \(examples, 6\)"),
    (rbm, lambda: FreeEnergyGap(Y, ZEROS + 2.0), "validation, states of Ber"),
    (rbm, lambda: FreeEnergyGap(ZEROS * np.nan, Y), "finite train"),
    (rbm, lambda: FreeEnergyGap(Y, Y[:0]), "at least one example"),
    (rbm, lambda: FreeEnergyGap("train", Y), "Expected an array of numbers"),
    (network, lambda: FreeEnergyGap(X, X), "a model of p"),
    (crbm, lambda: FreeEnergyGap(Y, Y), "a model of p"),
    (rbm, lambda: LogLikelihood(Y, every=0), "Received: every=0"),
    (rbm, lambda: LogLikelihood(Y, num_chains=1), "Received: num_chains=1"),
    (rbm, lambda: LogLikelihood(Y, name=""), "Received: name=''"),
    (rbm, lambda: LogLikelihood(Y, seed="x"), "seed"),
    (rbm, lambda: LogLikelihood(Y[:, :4]), r"data of shape \(examples, 6\)"),
    (large, lambda: LogLikelihood(WIDE, method="exact"), "binary units"),
    (
        lambda: large(units.Binomial(2)),
        lambda: LogLikelihood(WIDE, method="bethe"),
        "binary units",
    ),
]


@pytest.mark.parametrize(("make", "callback", "word"), REFUSED)
def test_refused_before_the_first_step(make, callback, word):
    model, data = make()
    if not model.built:
        model.build(data[0].shape)

    def fit():
        model.fit(*data, epochs=2, callbacks=[callback()], verbose=0)

    refused(model, fit, word, (TypeError, ValueError))
    assert int(model.optimizer.iterations) == 0


@pytest.mark.parametrize(
    ("make", "callback"),
    [
        (rbm, lambda: FreeEnergyGap(Y[:20], Y[20:])),
        (rbm, lambda: LogLikelihood(Y, precision=9.0)),
        (crbm, lambda: BPConvergence(X)),
    ],
)
def test_watching_changes_nothing(make, callback):
    (watched, data), (alone, _) = make(), make()
    for model, callbacks in ((watched, [callback()]), (alone, [])):
        model.fit(*data, epochs=3, callbacks=callbacks, verbose=0)
    assert_same(watched, alone)
