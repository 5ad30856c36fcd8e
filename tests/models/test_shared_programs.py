"""Programs of training steps that models of one kind share."""

import functools

import keras
import numpy as np
import pytest
from same import assert_same, unchanged
from small_models import binary, compiled, fitted as after_fit, quick

import keras_rbm as kr
from keras_rbm.models.training import shared_programs

ROWS = binary()


@pytest.fixture(autouse=True)
def counted(traced, monkeypatch):
    """Lists the models whose step has been traced."""
    models, step = [], kr.RBM.train_step

    @functools.wraps(step)
    def train_step(self, data):
        models.append(self.name)
        return step(self, data)

    monkeypatch.setattr(
        kr.models.boltzmann_machine.BoltzmannMachine, "train_step", train_step
    )
    return models


def fitted(model, optimizer=None, **options):
    """Returns the model after a few steps, by default of the rule compiled fastest."""
    if not model.conditional:
        options = {"rule": "pcd"} | options
    compiled(model, optimizer or keras.optimizers.Adam(0.1), **options)
    data = (1.0 - ROWS, ROWS) if model.conditional else (ROWS,)
    return after_fit(model, *data, batch_size=10, epochs=3)


def rbm(**options):
    return kr.RBM(4, **{"seed": 0} | options)


MODELS = {
    "rbm": lambda seed: kr.RBM(4, seed=seed),
    "crbm": lambda seed: kr.CRBM(4, seed=seed),
    "dbm": lambda seed: kr.DBM([4, 3], seed=seed),
}


@pytest.mark.parametrize("kind", quick(MODELS, "rbm", "crbm"))
def test_a_second_model_of_a_kind_is_not_traced_and_learns_the_same(kind, counted):
    fitted(MODELS[kind](0))
    number = len(counted)
    second = fitted(MODELS[kind](1))
    assert len(counted) == number
    shared_programs._programs.clear()
    alone = fitted(MODELS[kind](1))
    assert len(counted) == 2 * number
    assert_same(second.weights, alone.weights)


def test_a_model_changes_no_other():
    first = fitted(rbm())
    before = first.kernel.numpy()
    with unchanged(first):
        fitted(rbm(seed=1))
    after_fit(first, ROWS, batch_size=10)  # goes on with its own variables
    assert (first.kernel.numpy() != before).any()


def frozen():
    model = rbm(num_visible=6, kernel_regularizer=None)
    model.visible_bias.trainable = False
    return model


def with_kernel(**attributes):
    model = rbm(num_visible=6)
    for name, value in attributes.items():
        setattr(model.kernel, name, value)
    return model


def replaced():
    rule = kr.rules.PersistentContrastiveDivergence()
    phases = rule.phases
    rule.phases = lambda step: phases(step)
    return rule


def excluded():
    optimizer = keras.optimizers.Adam(0.1, weight_decay=0.1)
    optimizer.exclude_from_weight_decay(var_names=["kernel"])
    return optimizer


class OwnPenalty(keras.regularizers.Regularizer):
    """Has no config."""

    def __call__(self, x):
        return 0.0 * keras.ops.sum(x)


OTHERS = {
    "frozen": lambda: fitted(frozen()),
    "constraint": lambda: fitted(with_kernel(constraint=keras.constraints.NonNeg())),
    "regularizer": lambda: fitted(with_kernel(regularizer=keras.regularizers.L2(9.0))),
    "function": lambda: fitted(rbm(kernel_regularizer=lambda w: 0.0 * w[0, 0])),
    "no config": lambda: fitted(rbm(kernel_regularizer=OwnPenalty())),
    "method": lambda: fitted(rbm(), rule=replaced()),
    "excluded": lambda: fitted(rbm(), excluded()),
    "width": lambda: fitted(kr.RBM(5, seed=0)),
    "units": lambda: fitted(rbm(hidden="spin")),
    "prior": lambda: fitted(rbm(kernel_regularizer=None)),
    "optimizer": lambda: fitted(rbm(), keras.optimizers.SGD(0.1)),
    "its settings": lambda: fitted(rbm(), keras.optimizers.Adam(0.1, 0.5)),
    "rule": lambda: fitted(rbm(), rule="cd"),
    "settings of the rule": lambda: fitted(
        rbm(), rule=kr.rules.PersistentContrastiveDivergence(2)
    ),
    "metrics": lambda: fitted(rbm(), metrics=[kr.metrics.PixelError()]),
}


@pytest.mark.slow
def test_models_that_differ_share_nothing(counted):
    fitted(rbm())
    fitted(rbm(), keras.optimizers.Adam(0.1, weight_decay=0.1))
    for kind in OTHERS:
        number = len(counted)
        OTHERS[kind]()
        assert len(counted) > number, kind


def test_a_bias_frozen_after_a_fit_stays():
    model = rbm(kernel_regularizer=None)
    fitted(model, keras.optimizers.SGD(0.1))
    model.visible_bias.trainable = False
    before = model.visible_bias.numpy()
    fitted(model, keras.optimizers.SGD(0.1))
    np.testing.assert_array_equal(model.visible_bias, before)


@pytest.mark.slow
def test_rules_and_models_of_others_are_traced_each_time(counted):
    class OwnRule(kr.rules.ContrastiveDivergence):
        pass

    class OwnModel(kr.RBM):
        pass

    for make in (lambda: (kr.RBM(4), OwnRule()), lambda: (OwnModel(4), "cd")):
        for _ in range(2):
            number = len(counted)
            model, rule = make()
            fitted(model, rule=rule)
            assert len(counted) > number


def test_few_programs_are_kept(monkeypatch):
    monkeypatch.setattr(shared_programs, "_MOST", 2)
    for width in (2, 3, 4):
        fitted(kr.RBM(width, seed=0))
    assert len(shared_programs._programs) == 2
