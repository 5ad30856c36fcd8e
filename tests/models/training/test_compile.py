"""What `compile` chooses: rates, momentum, priors, and what XLA compiles."""

import keras
import numpy as np
import pytest
from model_test_case import two_cpus
from same import assert_same
from small_models import batches, compiled, fitted, reloaded

from keras_rbm import CRBM, DBM, RBM, InfiniteRBM

ROWS = np.eye(4, dtype="float32")


def rate_of(model):
    return float(model.optimizer.learning_rate)


@pytest.mark.parametrize("make", [RBM, CRBM, lambda n: DBM([n, n])])
def test_fit_compiles_with_the_defaults(make, tmp_path):
    """And a file says so; what is compiled later is kept."""
    model = make(2)
    data = [ROWS, ROWS][: 1 + model.conditional]
    loaded = reloaded(fitted(model, *data), tmp_path)
    assert type(loaded.rule) is type(compiled(make(2)).rule)
    assert_same(loaded, model)
    fitted(compiled(loaded, keras.optimizers.SGD(0.1)), *data)
    assert type(loaded.optimizer) is keras.optimizers.SGD


@pytest.mark.parametrize(("width", "rate"), [(16, 0.05), (64, 0.03), (1024, 0.00375)])
def test_wide_data_learn_slower(width, rate):
    assert rate_of(compiled(RBM(2, num_visible=width))) == pytest.approx(rate)


def columns(share):
    """Returns 50 rows of 180 columns, each of which is on in a share of the rows."""
    rows = (np.arange(50)[:, np.newaxis] + np.arange(180)) % 50 < 50 * share
    return rows.astype("float32")


@pytest.mark.parametrize(
    ("share", "rate"), [(0.5, 0.0138), (0.2, 0.0193), (0.1, 0.02), (0.96, 0.02)]
)
def test_columns_that_hardly_vary_count_less(share, rate):
    """But as many as 110 at least; in each form of the data, and after `adapt`."""
    rows = columns(share)
    adapted = RBM(2, seed=0)
    adapted.adapt(rows)
    spins = RBM(2, visible="spin", seed=0)
    for model, data in (
        (RBM(2, seed=0), rows),
        (RBM(2, seed=0, num_visible=180), rows),
        (RBM(2, seed=0), batches(rows)),
        (adapted, rows),
        (spins, 2.0 * rows - 1.0),
    ):
        fitted(compiled(model), data)
        assert rate_of(model) == pytest.approx(rate, rel=0.01)


def test_a_rate_is_chosen_at_the_first_data_that_are_learned(tmp_path):
    """Not those of a `fit` that fails; a saved model keeps it."""
    rbm = compiled(RBM(2, num_visible=180, seed=0))
    rbm.save(tmp_path / "new.keras")
    rbm = keras.saving.load_model(tmp_path / "new.keras")
    with pytest.raises(ValueError, match="validation_split"):
        fitted(rbm, columns(0.5), validation_split=2.0)
    fitted(rbm, columns(0.2))
    rbm.save(tmp_path / "fitted.keras")
    for model in (rbm, keras.saving.load_model(tmp_path / "fitted.keras")):
        fitted(model, columns(0.5))
        assert rate_of(model) == pytest.approx(0.0193, rel=0.01)


def test_a_model_from_its_config_chooses_its_rate_too():
    rbm = compiled(RBM(3, seed=0))
    copy = RBM.from_config(rbm.get_config())
    copy.compile_from_config(rbm.get_compile_config())
    rates = [rate_of(fitted(model, ROWS)) for model in (rbm, copy)]
    assert rates[0] == rates[1] == pytest.approx(0.05)


def test_a_default_rate_is_not_set():
    """Keras says what to do; a rate that was set is that of an optimizer object."""
    rbm = compiled(RBM(3, seed=0))
    for _ in range(2):
        with pytest.raises(TypeError, match="with a float"):
            rbm.optimizer.learning_rate = 1e-4
        fitted(rbm, ROWS)


@pytest.mark.filterwarnings("default")
def test_other_names_keep_keras_rate_and_say_so():
    with pytest.warns(UserWarning, match="'lion' has Keras' learning rate, 0.001"):
        rbm = compiled(RBM(3, seed=0), "lion")
    assert rate_of(rbm) == pytest.approx(0.001)
    for name, rate in (("sgd", 0.2), ("rmsprop", 0.05), ("adam", 0.05)):
        rbm = compiled(RBM(3, num_visible=4, seed=0), name)
        assert rate_of(rbm) == pytest.approx(rate)


def test_in_half_precision():
    """Keras wraps the optimizer then, to scale the loss."""
    rbm = compiled(RBM(3, num_visible=64, dtype="mixed_float16", seed=0))
    assert rate_of(rbm) == pytest.approx(0.03)
    fitted(rbm, np.eye(64, dtype="float32"), epochs=2)
    assert rate_of(rbm) == pytest.approx(0.03)  # after its fall


@pytest.mark.parametrize(
    "callback",
    [
        keras.callbacks.ReduceLROnPlateau(monitor="loss"),
        keras.callbacks.LearningRateScheduler(lambda epoch: 0.1),
    ],
)
def test_callbacks_that_set_the_rate_need_one_that_can_be_set(callback):
    rbm = compiled(RBM(3, seed=0))
    with pytest.raises(ValueError, match=r"Adam\(0\.01\)"):
        rbm.fit(ROWS, callbacks=callback)
    assert not rbm.built
    fitted(compiled(rbm, keras.optimizers.Adam(0.01)), ROWS, callbacks=[callback])


@pytest.mark.parametrize("optimizer", [None, "adam", "nadam"])
def test_less_momentum_where_gradients_are_of_samples(optimizer):
    for model, momentum in ((RBM(2), 0.5), (DBM([2, 2]), 0.5), (CRBM(2), 0.9)):
        assert compiled(model, optimizer).optimizer.beta_1 == momentum


def test_the_prior_of_each_model():
    assert RBM(2, num_visible=3).kernel_regularizer.strength == 0.05
    assert CRBM(2).kernel_regularizer.stddev == 0.55
    grown = InfiniteRBM(2, num_visible=3)
    assert grown.kernel.regularizer is None  # which the rule penalizes
    assert RBM(2, num_visible=3, kernel_regularizer=None).kernel.regularizer is None


def by_cd(**kwargs):
    model = RBM(4, num_visible=6, seed=1)
    return compiled(model, keras.optimizers.SGD(0.1), rule="cd", **kwargs)


@pytest.mark.usefixtures("as_users_run")
def test_what_cannot_be_compiled_is_left_alone():
    """Belief propagation compiles itself."""
    assert not by_cd(run_eagerly=True).jit_compile
    with two_cpus().scope():
        assert not by_cd().jit_compile
    assert not compiled(InfiniteRBM(4, num_visible=6)).jit_compile
    crbm = CRBM(4, num_visible=6, num_features=6, inference="sum_product")
    assert not compiled(crbm, rule="maximum_likelihood").jit_compile
    crbm.inference = "mean_field"
    assert crbm.jit_compile


@pytest.mark.usefixtures("as_users_run")
def test_deep_models_are_compiled():
    assert compiled(DBM([4, 3], num_visible=6, seed=1), rule="pcd").jit_compile
