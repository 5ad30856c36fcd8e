"""The schedule of sweeps: what it sets, when, and on which inference."""

import csv

import keras
import numpy as np
import pytest
from model_test_case import two_cpus
from small_models import slow

import keras_rbm
from keras_rbm import inference, rules
from keras_rbm.callbacks import IterationSchedule

RNG = np.random.default_rng(0)
X = RNG.integers(0, 2, (30, 5)).astype("float32")
Y = RNG.integers(0, 2, (30, 6)).astype("float32")


def paper(epoch):
    return 7 + epoch


def few(epoch):
    return 1 + epoch


def compiled(infer=None, rule="maximum_likelihood", **kwargs):
    """Returns a CRBM far from convergence, whose every sweep counts."""
    infer = infer or inference.BeliefPropagation(tolerance=0.0)
    crbm = keras_rbm.CRBM(4, inference=infer, num_visible=6, num_features=5, seed=0)
    crbm.kernel.assign(np.random.default_rng(1).normal(0, 2, (6, 4)))
    crbm.compile(keras.optimizers.SGD(0.1), rule=rule, **kwargs)
    return crbm


def fit(model, schedule, epochs, callbacks=(), **kwargs):
    callbacks = [IterationSchedule(schedule), *callbacks]
    history = model.fit(X, Y, epochs=epochs, callbacks=callbacks, verbose=0, **kwargs)
    return history.history["max_iterations"]


def test_each_epoch_trains_with_its_sweeps():
    scheduled, by_hand, constant = compiled(), compiled(), compiled()
    assert fit(scheduled, few, 3) == [1, 2, 3]
    assert scheduled.inference.max_iterations == 3
    for epoch in range(3):
        by_hand.inference.max_iterations = few(epoch)
        by_hand.fit(X, Y, initial_epoch=epoch, epochs=epoch + 1, verbose=0)
    np.testing.assert_array_equal(scheduled.kernel, by_hand.kernel)
    # Validation and prediction go on with the last ones.
    assert scheduled.evaluate(X, Y, verbose=0) == by_hand.evaluate(X, Y, verbose=0)
    np.testing.assert_array_equal(scheduled(X), by_hand(X))
    fit(constant, lambda epoch: 1, 3)
    assert (abs(scheduled.kernel - constant.kernel) > 1e-4).numpy().any()


def test_a_resumed_fit_goes_on_where_it_stopped(tmp_path):
    whole, part = compiled(), compiled()
    assert fit(whole, few, 4) == [1, 2, 3, 4]
    fit(part, few, 2)
    part.save(tmp_path / "model.keras")
    part = keras.saving.load_model(tmp_path / "model.keras")
    assert part.inference.max_iterations == 2
    assert fit(part, few, 4, initial_epoch=2) == [3, 4]
    np.testing.assert_array_equal(whole.kernel, part.kernel)


@pytest.mark.usefixtures("as_users_run")
@pytest.mark.parametrize(
    ("infer", "rule", "jit_compile"),
    [
        slow("mean_field", "maximum_likelihood", True),
        ("max_product", "max_margin", "auto"),
    ],
)
def test_no_new_trace(infer, rule, jit_compile):
    crbm = compiled(infer, rule, jit_compile=jit_compile)
    traces, step = [], crbm.train_step
    crbm.train_step = lambda data: traces.append(1) or step(data)
    assert fit(crbm, paper, 4, batch_size=10) == [7, 8, 9, 10]
    assert len(traces) == 1


def test_the_inference_of_the_rule_comes_first():
    crbm = compiled("sum_product", rules.MaximumLikelihood("mean_field"))
    fit(crbm, paper, 2)
    assert crbm.rule.inference.max_iterations == 8
    assert crbm.inference.max_iterations == 50


def test_an_rbm_and_the_inference_that_its_rule_makes():
    def trained(rule, callbacks):
        rbm = keras_rbm.RBM(4, num_visible=6, seed=0)
        rbm.kernel.assign(np.random.default_rng(1).normal(0, 2, (6, 4)))
        rbm.compile(keras.optimizers.SGD(0.1), rule=rule, run_eagerly=True)
        rbm.fit(Y, epochs=2, callbacks=callbacks, verbose=0)
        return rbm.kernel.numpy()

    infer = inference.BeliefPropagation(max_iterations=2)
    fixed = trained(rules.MaximumLikelihood(infer), [])
    scheduled = trained(rules.MaximumLikelihood(), [IterationSchedule(lambda epoch: 2)])
    np.testing.assert_array_equal(scheduled, fixed)
    assert (abs(trained("maximum_likelihood", []) - fixed) > 1e-4).any()


@pytest.mark.slow
def test_two_replicas():
    single = compiled()
    fit(single, few, 3, batch_size=10, shuffle=False)
    with two_cpus().scope():
        double = compiled()
        rbm = keras_rbm.RBM(4, num_visible=6, seed=0)
        rbm.compile("sgd", rule="maximum_likelihood")
    assert fit(double, few, 3, batch_size=10, shuffle=False) == [1, 2, 3]
    np.testing.assert_allclose(single.kernel, double.kernel, rtol=1e-4, atol=1e-6)
    # Its rule made its inference in the strategy's scope.
    callback, logs = IterationSchedule(few), {}
    callback.set_model(rbm)
    callback.on_train_begin()
    callback.on_epoch_begin(4)
    callback.on_epoch_end(4, logs)
    assert logs == {"max_iterations": 5}


def test_later_callbacks_see_numpy_integers(tmp_path):
    logger = keras.callbacks.CSVLogger(tmp_path / "log.csv")
    assert fit(compiled(), np.array([3, 5]).__getitem__, 2, [logger]) == [3, 5]
    with open(tmp_path / "log.csv") as file:
        assert [row["max_iterations"] for row in csv.DictReader(file)] == ["3", "5"]


@pytest.mark.parametrize("sweeps", [0, -1, 2.0, True, None, "7"])
def test_what_is_no_number_of_sweeps_names_the_epoch(sweeps):
    crbm = compiled()
    with pytest.raises(ValueError, match=rf"Received: schedule\(1\) = {sweeps!r}\."):
        fit(crbm, lambda epoch: sweeps if epoch else 3, 3)
    assert crbm.inference.max_iterations == 3
