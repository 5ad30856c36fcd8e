import keras
import numpy as np
import pytest

from keras_rbm import CRBM, DBM, RBM, InfiniteRBM


@pytest.mark.parametrize(("width", "rate"), [(16, 0.05), (64, 0.03), (1024, 0.00375)])
def test_wide_data_learn_slower(width, rate):
    rbm = RBM(2, num_visible=width)
    rbm.compile()
    assert float(rbm.optimizer.learning_rate) == pytest.approx(rate)


def test_a_model_from_its_config_chooses_its_rate_too():
    rbm = RBM(3, seed=0)
    rbm.compile()
    copy = RBM.from_config(rbm.get_config())
    copy.compile_from_config(rbm.get_compile_config())
    for own in (rbm, copy):
        own.fit(np.eye(4, dtype="float32"), verbose=0)
    assert float(copy.optimizer.learning_rate) == float(rbm.optimizer.learning_rate)
    assert float(copy.optimizer.learning_rate) == pytest.approx(0.05)


def test_a_default_rate_is_not_set():
    """Keras says what to do; a rate that was set is that of an optimizer object."""
    rbm = RBM(3, seed=0)
    rbm.compile()
    for _ in range(2):
        with pytest.raises(TypeError, match="with a float"):
            rbm.optimizer.learning_rate = 1e-4
        rbm.fit(np.eye(4, dtype="float32"), verbose=0)


@pytest.mark.filterwarnings("default")
def test_other_names_keep_keras_rate_and_say_so():
    rbm = RBM(3, seed=0)
    with pytest.warns(UserWarning, match="'lion' has Keras' learning rate, 0.001"):
        rbm.compile("lion")
    assert float(rbm.optimizer.learning_rate) == pytest.approx(0.001)
    for name, rate in (("sgd", 0.2), ("rmsprop", 0.05), ("adam", 0.05)):
        rbm = RBM(3, num_visible=4, seed=0)
        rbm.compile(name)
        assert float(rbm.optimizer.learning_rate) == pytest.approx(rate)


def test_in_half_precision():
    """Keras wraps the optimizer then, to scale the loss."""
    rbm = RBM(3, num_visible=64, dtype="mixed_float16", seed=0)
    rbm.compile()
    assert float(rbm.optimizer.learning_rate) == pytest.approx(0.03)
    rbm.fit(np.eye(64, dtype="float32"), epochs=2, verbose=0)
    assert float(rbm.optimizer.learning_rate) == pytest.approx(0.03)  # after its fall


@pytest.mark.parametrize(
    "callback",
    [
        keras.callbacks.ReduceLROnPlateau(monitor="loss"),
        keras.callbacks.LearningRateScheduler(lambda epoch: 0.1),
    ],
)
def test_callbacks_that_set_the_rate_need_one_that_can_be_set(callback):
    rbm = RBM(3, seed=0)
    rbm.compile()
    with pytest.raises(ValueError, match=r"Adam\(0\.01\)"):
        rbm.fit(np.eye(4, dtype="float32"), callbacks=callback)
    assert not rbm.built
    rbm.compile(keras.optimizers.Adam(0.01))
    rbm.fit(np.eye(4, dtype="float32"), callbacks=[callback], verbose=0)


@pytest.mark.parametrize("optimizer", [None, "adam", "nadam"])
def test_less_momentum_where_gradients_are_of_samples(optimizer):
    for model, momentum in ((RBM(2), 0.5), (DBM([2, 2]), 0.5), (CRBM(2), 0.9)):
        model.compile(optimizer)
        assert model.optimizer.beta_1 == momentum


def test_the_prior_of_each_model():
    for model, stddev in ((RBM(2, num_visible=3), 1.0), (CRBM(2), 0.55)):
        assert model.kernel_regularizer.stddev == stddev
    grown = InfiniteRBM(2, num_visible=3)
    assert grown.kernel.regularizer is None  # which the rule penalizes
    assert RBM(2, num_visible=3, kernel_regularizer=None).kernel.regularizer is None
