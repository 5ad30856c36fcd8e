"""What `fit` remembers of its data, for annealing and sampling to start from."""

import keras
import numpy as np
import pytest
import scipy.sparse
import tensorflow as tf
from model_test_case import two_cpus

import keras_rbm
from keras_rbm import rules

DATA = (np.random.default_rng(0).random((60, 6)) < 0.2).astype("float32")


def fitted(model, x=DATA, **kwargs):
    model.compile(keras.optimizers.SGD(0.01), **kwargs.pop("compile", {}))
    model.fit(x, batch_size=16, verbose=0, **kwargs)
    return model


def test_fit_records_the_mean_of_the_data():
    rbm = fitted(keras_rbm.RBM(3, seed=0), epochs=2)
    np.testing.assert_allclose(rbm.base_rate, DATA.mean(0), rtol=1e-5)
    assert rbm.examples_seen == 120
    names = [weight.name for weight in rbm.weights]
    parameters = ["kernel", "visible_bias", "hidden_bias"]
    assert names == [*parameters, "base_rate", "examples_seen"]


def test_by_the_weights_of_examples():
    weights = np.random.default_rng(1).random(60).astype("float32")
    rbm = fitted(keras_rbm.RBM(3, seed=0), sample_weight=weights)
    mean = np.average(DATA, 0, weights)
    np.testing.assert_allclose(rbm.base_rate, mean, rtol=1e-5)
    rbm = fitted(keras_rbm.RBM(3, seed=0), sample_weight=np.zeros(60))
    np.testing.assert_array_equal(rbm.base_rate, 0.5)


def test_adapt_weighs_examples():
    """Weights that a dataset has were ignored."""
    weights = np.random.default_rng(1).random(60).astype("float32") * (DATA[:, 0] > 0)
    batches = tf.data.Dataset.from_tensor_slices((DATA, (), weights)).batch(7)
    for arguments in (
        (DATA, weights),
        (batches,),
        (scipy.sparse.csr_array(DATA), weights),
    ):
        rbm = keras_rbm.RBM(3, seed=0)
        rbm.adapt(*arguments)
        mean = np.average(DATA, 0, weights)
        np.testing.assert_allclose(rbm.base_rate, mean, rtol=1e-5)
    new = keras_rbm.RBM(3, seed=0)
    for arguments, message in (
        ((batches, weights), "only with arrays"),
        ((DATA, weights[:5]), "of one length"),
        ((DATA, -weights), "sample_weight ≥ 0"),
        ((DATA, 0.0 * weights), "a weight above 0"),
    ):
        with pytest.raises(ValueError, match=message):
            new.adapt(*arguments)
    assert not new.built


def test_adapt_has_said_it_already():
    rbm = keras_rbm.RBM(3, seed=0)
    rbm.adapt(DATA[:20])
    rate = rbm.base_rate.numpy()
    fitted(rbm)
    np.testing.assert_array_equal(rbm.base_rate, rate)


@pytest.mark.parametrize(
    "make",
    [
        lambda: keras_rbm.DBM([4, 3], seed=0),
        lambda: keras_rbm.RBM(3, visible="gaussian", seed=0),
    ],
    ids=["dbm", "gaussian"],
)
def test_other_models(make):
    np.testing.assert_allclose(fitted(make()).base_rate, DATA.mean(0), rtol=1e-5)


@pytest.mark.slow
def test_a_growing_model_hands_it_on():
    data = np.repeat([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 0]], 100, 0)
    grown = keras_rbm.InfiniteRBM(2, seed=0)
    grown.compile(rule=rules.FrankWolfe(l2=0.05, num_samples=200), run_eagerly=True)
    grown.fit(data, epochs=1, verbose=0)
    np.testing.assert_allclose(grown.base_rate, data.mean(0), rtol=1e-5)
    assert grown.to_rbm().examples_seen == 200


@pytest.mark.slow
def test_replicas_record_together():
    with two_cpus().scope():
        rbm = keras_rbm.RBM(3, seed=0)
    fitted(rbm)
    np.testing.assert_allclose(rbm.base_rate, DATA.mean(0), rtol=1e-5)


def test_a_file_holds_it_and_no_example(tmp_path):
    rbm = fitted(keras_rbm.RBM(3, seed=0))
    rbm.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded.base_rate, rbm.base_rate)
    assert loaded.examples_seen == 60
    for model in (rbm, loaded):
        model.fit(DATA[:30], batch_size=30, verbose=0)
    np.testing.assert_array_equal(loaded.base_rate, rbm.base_rate)


def test_fit_alone_is_enough_for_the_likelihood():
    """The habit of every Keras user: log Z was 73 nats too low, in its interval too."""
    from sklearn.datasets import load_digits

    digits = (load_digits().data > 7).astype("float32")
    rbm = fitted(keras_rbm.RBM(10, seed=0), digits, epochs=5, compile={"rule": "pcd"})
    truth = float(rbm.log_partition("exact").value)
    for method in ("ais", "bidirectional"):
        z = rbm.log_partition(method)
        assert z.lower < truth < z.upper and z.upper - z.lower < 1


def test_a_variable_that_is_no_number_is_named():
    rbm = fitted(keras_rbm.RBM(3, seed=0))
    rbm.hidden_bias.assign(np.full(3, np.nan))
    with pytest.raises(ValueError, match="NaN .* hidden_bias"):
        rbm.log_partition("exact")
    with pytest.raises(ValueError, match="NaN .* hidden_bias"):
        rbm.log_likelihood(DATA)


def test_likelihoods_above_0_are_flagged():
    """Mean field bounds log Z from below, Bethe's estimate does not."""
    crbm = keras_rbm.CRBM(2, num_visible=2, num_features=1, seed=0)
    kernel = np.array([[6.0, -6.0], [-6.0, -6.0]], np.float32)
    crbm.kernel.assign(kernel)
    crbm.visible_bias.assign(-kernel.sum(1) / 2)
    crbm.hidden_bias.assign(-kernel.sum(0) / 2)
    x = tf.zeros((4, 1))
    v = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float32)
    exact = crbm.log_likelihood(x, v, "exact").numpy()
    bound = crbm.log_likelihood(x, v, "mean_field").numpy()
    assert (bound <= 0).all() and (bound >= exact - 1e-5).all()
    z = crbm.log_partition(x, "bethe")
    low = z._replace(value=z.value - 50.0)
    assert (crbm.log_likelihood(x, v, low).numpy() > 0).any()  # its maker's business
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(crbm), "log_partition", lambda *_, **__: low)
        with pytest.warns(UserWarning, match="4 of 4 examples .* above 0, up to 4"):
            crbm.log_likelihood(x, v, "bethe")
