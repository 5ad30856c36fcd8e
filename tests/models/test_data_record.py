"""What `fit` remembers of its data, for annealing and sampling to start from."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from model_test_case import two_cpus
from sklearn.datasets import load_digits
from small_models import compiled, fitted, quick

from keras_rbm import DBM, RBM, InfiniteRBM, rules

DATA = (np.random.default_rng(0).random((60, 6)) < 0.2).astype("float32")


def slowly(model, x=DATA, rule=None, **kwargs):
    compiled(model, keras.optimizers.SGD(0.01), rule=rule)
    return fitted(model, x, batch_size=16, **kwargs)


MODELS = {
    "RBM": lambda: RBM(3, seed=0),
    "DBM": lambda: DBM([4, 3], seed=0),
    "gaussian": lambda: RBM(3, visible="gaussian", seed=0),
    "replicas": lambda: RBM(3, seed=0),
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
        rbm = slowly(RBM(3, seed=0), sample_weight=weights)
        np.testing.assert_allclose(rbm.base_rate, mean, rtol=1e-5)


def test_adapt_has_said_it_already():
    rbm = RBM(3, seed=0)
    rbm.adapt(DATA[:20])
    rate = rbm.base_rate.numpy()
    np.testing.assert_array_equal(slowly(rbm).base_rate, rate)


@pytest.mark.slow
def test_a_growing_model_hands_it_on():
    data = np.repeat([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 0]], 100, 0)
    rule = rules.FrankWolfe(l2=0.05, num_samples=200)
    grown = fitted(compiled(InfiniteRBM(2, seed=0), rule=rule, run_eagerly=True), data)
    np.testing.assert_allclose(grown.base_rate, data.mean(0), rtol=1e-5)
    assert grown.to_rbm().examples_seen == 200


def test_fit_alone_is_enough_for_the_likelihood():
    """The habit of every Keras user: log Z was 73 nats too low, in its interval too."""
    digits = (load_digits().data > 7).astype("float32")
    rbm = slowly(RBM(10, seed=0), digits, "pcd", epochs=5)
    truth = float(rbm.log_partition("exact").value)
    for method in ("ais", "bidirectional"):
        z = rbm.log_partition(method)
        assert z.lower < truth < z.upper and z.upper - z.lower < 1
