import numpy as np
import pytest

from keras_rbm import RBM


@pytest.mark.parametrize(("width", "rate"), [(16, 0.05), (64, 0.05), (1024, 0.0075)])
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


def test_a_rate_set_before_the_first_fit_stays():
    rbm = RBM(3, seed=0)
    rbm.compile()
    rbm.optimizer.learning_rate = 1e-4
    rbm.fit(np.eye(4, dtype="float32"), verbose=0)
    assert float(rbm.optimizer.learning_rate) == pytest.approx(1e-4)
