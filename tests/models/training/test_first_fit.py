"""What `fit` takes from its data: where it starts, what it remembers, gray levels."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from model_test_case import two_cpus
from sklearn.datasets import load_digits
from small_models import all_states, binary, compiled, fitted, quick

import keras_rbm as kr

RNG = np.random.default_rng(0)
TWO = np.concatenate([RNG.normal(0, 1, (50, 1)), RNG.normal(100, 1, (50, 1))])


def started(data, rbm=None, **kwargs):
    """Returns an RBM after a first fit that trains nothing."""
    width = data.shape[1]
    rbm = rbm or kr.RBM(2, visible="gaussian", num_visible=width, seed=0)
    compiled(rbm, keras.optimizers.SGD(0.0), run_eagerly=True)
    return fitted(rbm, data, batch_size=len(data), **kwargs)


def test_periodic_data():
    data = np.zeros((20_000, 1), "float32")
    data[1::2] = 100.0
    rbm = started(data)
    np.testing.assert_allclose(rbm.visible_shift, [50.0], atol=2.0)
    np.testing.assert_allclose(rbm.visible_scale, [50.0], atol=1.0)


def test_weights_count():
    weights = np.repeat([1.0, 0.25], 50)
    rbm = started(TWO, sample_weight=weights)
    mean = np.average(TWO, 0, weights)
    deviation = np.sqrt(np.average(np.square(TWO - mean), 0, weights))
    np.testing.assert_allclose(rbm.visible_shift, mean, rtol=1e-5)
    np.testing.assert_allclose(rbm.visible_scale, deviation, rtol=1e-5)
    np.testing.assert_allclose(started(TWO).visible_shift, TWO.mean(0), rtol=1e-5)


@pytest.mark.parametrize("frozen", ["bias", "log_precision"])
def test_frozen_variables_stay(frozen):
    data = RNG.normal(1.0, 3.0, (50, 2))
    visible = kr.units.Gaussian(standardize=False)
    rbm = kr.RBM(2, visible=visible, num_visible=2, seed=0)
    getattr(rbm, f"visible_{frozen}").trainable = False
    started(data, rbm)
    np.testing.assert_array_equal(getattr(rbm, f"visible_{frozen}"), [0.0, 0.0])
    if frozen == "log_precision":  # the units' means are right at this precision
        np.testing.assert_allclose(rbm.visible_bias, data.mean(0), rtol=1e-5)


@pytest.mark.parametrize("size", [1.0, 0.001])
def test_a_zero_bias_of_weights_that_were_set_stays(size):
    """Only weights that no initializer draws are known to be set."""
    data = np.tile([[1.0, 1.0, 0.0]], (50, 1)).astype("float32")
    rbm = kr.RBM(2, num_visible=3, seed=0)
    rbm.kernel.assign(size * np.ones((3, 2)))
    assert np.any(started(data, rbm).visible_bias) == (size < 0.01)


def test_an_initializer_may_be_a_function():
    """Keras calls it with a dtype, which need not have a default."""
    ones = lambda shape, dtype: np.ones(shape, dtype)  # noqa: E731
    rbm = kr.RBM(2, kernel_initializer=ones, num_visible=3)
    bias = started(np.eye(3, dtype="float32"), rbm).visible_bias
    assert np.all(np.asarray(bias) != 0.0)


DATA = (np.random.default_rng(0).random((60, 6)) < 0.2).astype("float32")


def slowly(model, x=DATA, rule=None, **kwargs):
    compiled(model, keras.optimizers.SGD(0.01), rule=rule)
    return fitted(model, x, batch_size=16, **kwargs)


MODELS = {
    "RBM": lambda: kr.RBM(3, seed=0),
    "DBM": lambda: kr.DBM([4, 3], seed=0),
    "gaussian": lambda: kr.RBM(3, visible="gaussian", seed=0),
    "replicas": lambda: kr.RBM(3, seed=0),
}


@pytest.mark.parametrize("name", quick(MODELS, "RBM", "DBM", "gaussian"))
def test_fit_records_the_mean_of_the_data(name):
    strategy = two_cpus() if name == "replicas" else tf.distribute.get_strategy()
    with strategy.scope():
        model = MODELS[name]()
    slowly(model, epochs=2)
    np.testing.assert_allclose(model.base_rate, DATA.mean(0), rtol=1e-5)
    assert model.examples_seen == 120
    assert [w.name for w in model.weights][-2:] == ["base_rate", "examples_seen"]


def test_by_the_weights_of_examples():
    some = np.random.default_rng(1).random(60).astype("float32")
    none = np.zeros(60), np.full(6, 0.5)
    for weights, mean in ((some, np.average(DATA, 0, some)), none):
        rbm = slowly(kr.RBM(3, seed=0), sample_weight=weights)
        np.testing.assert_allclose(rbm.base_rate, mean, rtol=1e-5)


def test_adapt_has_said_it_already():
    rbm = kr.RBM(3, seed=0)
    rbm.adapt(DATA[:20])
    rate = rbm.base_rate.numpy()
    np.testing.assert_array_equal(slowly(rbm).base_rate, rate)


def test_fit_alone_is_enough_for_the_likelihood():
    """The habit of every Keras user: log Z was 73 nats too low, in its interval too."""
    digits = (load_digits().data > 7).astype("float32")
    rbm = slowly(kr.RBM(10, seed=0), digits, "pcd", epochs=5)
    truth = float(rbm.log_partition("exact").value)
    for method in ("ais", "bidirectional"):
        z = rbm.log_partition(method)
        assert z.lower < truth < z.upper and z.upper - z.lower < 1


GRAY = np.tile(np.array([[0.0, 0.25, 0.5, 0.9, 1.0]], "float32"), (2000, 1))


def states_of_fit(model, *data, epochs=1):
    """Returns the training states of each step."""
    seen = []
    compiled(model, rule=kr.rules.ContrastiveDivergence(1), run_eagerly=True)
    phases = model.rule.phases
    model.rule.phases = lambda step: seen.append(step.visible.numpy()) or phases(step)
    fitted(model, *data, batch_size=2000, epochs=epochs, shuffle=False)
    return seen


def test_training_draws_states_with_the_gray_levels_as_probabilities():
    first, second = states_of_fit(kr.RBM(3, seed=0), GRAY, epochs=2)
    assert set(np.unique(first)) == {0.0, 1.0}
    error = np.sqrt(GRAY[0] * (1.0 - GRAY[0]) / len(GRAY))
    assert (abs(first.mean(0) - GRAY[0]) <= 4.0 * error).all()
    assert (first != second).any()  # drawn again


def test_states_and_targets_of_a_conditional_model_enter_as_they_are():
    bits = binary(50, 5)
    np.testing.assert_array_equal(*states_of_fit(kr.RBM(3, seed=0), bits), bits)
    (targets,) = states_of_fit(kr.CRBM(3, seed=0), GRAY[:50], GRAY[:50])
    np.testing.assert_array_equal(targets, GRAY[:50])


def test_only_gray_columns_of_a_table_are_drawn():
    table = kr.units.Joined([("gaussian", 1), ("bernoulli", 5)])
    x = np.concatenate([np.full((2000, 1), 0.3, "float32"), GRAY], 1)
    (states,) = states_of_fit(kr.RBM(3, visible=table, seed=0), x)
    np.testing.assert_array_equal(states[:, 0], x[:, 0])
    assert set(np.unique(states[:, 1:])) == {0.0, 1.0}


@pytest.mark.slow
@pytest.mark.parametrize("as_bits", [False, True])
def test_a_pair_of_pixels_is_learned_from_gray_levels(as_bits, as_users_run):
    """With means as states the pair came out less dependent: 0.35 instead of 0.41."""
    rng = np.random.default_rng(0)
    x = np.tile(rng.choice([0.1, 0.9], (2000, 1)).astype("float32"), (1, 2))
    if as_bits:
        x = (rng.random(x.shape) < x).astype("float32")
    model = compiled(kr.RBM(2, kernel_regularizer=None, seed=0))
    fitted(model, x, epochs=30)
    p = np.exp(model.log_likelihood(all_states(2, 2), "exact"))
    np.testing.assert_allclose(p, [0.41, 0.09, 0.09, 0.41], atol=0.04)


def test_independent_gray_pixels_are_not_called_worse_than_independent(recwarn):
    """Before, 5 of 12 such fits were."""
    rng = np.random.default_rng(0)
    for seed in range(6):
        x = np.clip(rng.normal(0.1, 0.02, (300, 20)), 0, 1).astype("float32")
        fitted(compiled(kr.RBM(2, seed=seed)), x, batch_size=100, epochs=2)
    assert not [each for each in recwarn if "independent" in str(each.message)]
