import pytest

from keras_rbm import RBM


@pytest.mark.parametrize(
    ("rule", "rate"), [("cd", 0.03), ("acd", 0.03), ("pcd", 0.01), ("sdcp", 0.01)]
)
def test_rules_whose_samples_must_keep_up_learn_slower(rule, rate):
    """PCD at the rate of CD ended below the base rate of digits."""
    rbm = RBM(2, num_visible=64)
    rbm.compile(rule=rule)
    assert float(rbm.optimizer.learning_rate.numpy()) == pytest.approx(rate)
