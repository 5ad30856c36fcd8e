"""Programs of training steps that models of one kind share."""

import functools
import gc
import weakref

import keras
import numpy as np
import pytest

import keras_rbm as kr
from keras_rbm.models.training import shared_programs

ROWS = np.random.default_rng(0).integers(0, 2, (40, 6)).astype("float32")


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
    model.compile(optimizer or keras.optimizers.Adam(0.1), **options)
    data = (1.0 - ROWS, ROWS) if model.conditional else (ROWS,)
    model.fit(*data, batch_size=10, epochs=3, verbose=0)
    return model


MODELS = {
    "rbm": lambda seed: kr.RBM(4, seed=seed),
    "crbm": lambda seed: kr.CRBM(4, seed=seed),
    "dbm": lambda seed: kr.DBM([4, 3], seed=seed),
}


@pytest.mark.parametrize(
    "kind",
    [pytest.param(k, marks=pytest.mark.slow if k == "dbm" else []) for k in MODELS],
)
def test_a_second_model_of_a_kind_is_not_traced_and_learns_the_same(kind, counted):
    fitted(MODELS[kind](0))
    number = len(counted)
    second = fitted(MODELS[kind](1))
    assert len(counted) == number
    shared_programs._programs.clear()
    alone = fitted(MODELS[kind](1))
    assert len(counted) == 2 * number
    for ours, theirs in zip(second.weights, alone.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_model_changes_no_other():
    first = fitted(kr.RBM(4, seed=0))
    before = first.get_weights()
    fitted(kr.RBM(4, seed=1))
    for ours, theirs in zip(first.get_weights(), before, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    first.fit(ROWS, batch_size=10, verbose=0)  # goes on with its own variables
    assert (first.get_weights()[0] != before[0]).any()


def frozen():
    model = kr.RBM(4, num_visible=6, kernel_regularizer=None, seed=0)
    model.visible_bias.trainable = False
    return model


def constrained():
    model = kr.RBM(4, num_visible=6, seed=0)
    model.kernel.constraint = keras.constraints.NonNeg()
    return model


def regularized():
    model = kr.RBM(4, num_visible=6, seed=0)
    model.kernel.regularizer = keras.regularizers.L2(100.0)
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
    "constraint": lambda: fitted(constrained()),
    "regularizer": lambda: fitted(regularized()),
    "function": lambda: fitted(
        kr.RBM(4, kernel_regularizer=lambda w: 0.0 * keras.ops.sum(w), seed=0)
    ),
    "no config": lambda: fitted(kr.RBM(4, kernel_regularizer=OwnPenalty(), seed=0)),
    "method": lambda: fitted(kr.RBM(4, seed=0), rule=replaced()),
    "excluded": lambda: fitted(kr.RBM(4, seed=0), excluded()),
    "width": lambda: fitted(kr.RBM(5, seed=0)),
    "units": lambda: fitted(kr.RBM(4, hidden="spin", seed=0)),
    "prior": lambda: fitted(kr.RBM(4, kernel_regularizer=None, seed=0)),
    "optimizer": lambda: fitted(kr.RBM(4, seed=0), keras.optimizers.SGD(0.1)),
    "its settings": lambda: fitted(kr.RBM(4, seed=0), keras.optimizers.Adam(0.1, 0.5)),
    "rule": lambda: fitted(kr.RBM(4, seed=0), rule="cd"),
    "its own settings": lambda: fitted(
        kr.RBM(4, seed=0), rule=kr.rules.PersistentContrastiveDivergence(2)
    ),
    "metrics": lambda: fitted(kr.RBM(4, seed=0), metrics=[kr.metrics.PixelError()]),
}


@pytest.mark.slow
def test_models_that_differ_share_nothing(counted):
    fitted(kr.RBM(4, seed=0))
    fitted(kr.RBM(4, seed=0), keras.optimizers.Adam(0.1, weight_decay=0.1))
    for kind in OTHERS:
        number = len(counted)
        OTHERS[kind]()
        assert len(counted) > number, kind


def test_a_bias_frozen_after_a_fit_stays():
    model = kr.RBM(4, kernel_regularizer=None, seed=0)
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


def test_a_program_keeps_no_model():
    model = fitted(kr.RBM(4, seed=0))
    kept = weakref.ref(model)
    del model
    gc.collect()
    assert kept() is None


def test_few_programs_are_kept(monkeypatch):
    monkeypatch.setattr(shared_programs, "_MOST", 2)
    for width in (2, 3, 4):
        fitted(kr.RBM(width, seed=0))
    assert len(shared_programs._programs) == 2
