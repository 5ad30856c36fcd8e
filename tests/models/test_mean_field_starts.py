"""Where mean field of a conditional model starts."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from small_models import binary, compiled, reloaded

import keras_rbm as kr
from keras_rbm.inference import MeanField, mean_field

RNG = np.random.default_rng(0)
X = binary(20, 12)
Y = np.abs(X - (RNG.random(X.shape) < 0.1))


def made(inference, num_features=12):
    """Returns a CRBM whose weights are strong enough for several fixed points."""
    sizes = {"num_visible": 12, "num_features": num_features, "seed": 0}
    crbm = kr.CRBM(8, inference=inference, **sizes)
    crbm.kernel.assign(np.random.default_rng(1).normal(0.0, 4.0, crbm.kernel.shape))
    return crbm


def categorical(width):
    unit, inference = kr.units.Categorical(3), MeanField(starts=["input"])
    sizes = {"num_visible": 4, "num_features": width, "seed": 0}
    return kr.CRBM(2, visible=unit, inference=inference, **sizes)


def bounds(crbm, x=X):
    infer = crbm.inference.given(tf.constant(x))
    return infer(crbm.potentials(x), pairwise=None).log_partition.numpy()


@keras.saving.register_keras_serializable("tests")
def halves(x):
    return tf.fill(tf.shape(x), 0.5)


def test_by_default_the_input_is_the_start():
    crbm = made(MeanField())
    options = {"max_iterations": 50, "pairwise": None}
    at_input, independent = (
        mean_field(crbm.potentials(X), starts=[start], **options).visible
        for start in (X, None)
    )
    found = crbm.predict(X, verbose=0)
    np.testing.assert_allclose(found, at_input, atol=1e-5)
    assert np.abs(found - independent).max() > 0.5
    np.testing.assert_array_equal(crbm.predict_map(X), at_input > 0.5)
    assert MeanField.from_config(MeanField().get_config()).starts is None
    of_unknown_width = tf.function(crbm, [tf.TensorSpec((None, None))])
    np.testing.assert_allclose(of_unknown_width(tf.constant(X)), crbm(X), atol=1e-6)


def test_input_of_another_width_is_no_start():
    crbm = made(MeanField(), num_features=5)
    want = mean_field(crbm.potentials(X[:, :5]), pairwise=None).visible
    np.testing.assert_allclose(crbm.predict(X[:, :5], verbose=0), want, atol=1e-3)
    crbm.inference = MeanField(starts=["input"])
    with pytest.raises(ValueError, match="a column for each visible unit, 12"):
        crbm.predict(X[:, :5], verbose=0)


def test_the_highest_bound_of_several_is_kept(tmp_path):
    alone = [bounds(made(MeanField(starts=[s]))) for s in ("input", "independent")]
    three = made(MeanField(starts=["input", "independent", halves]))
    assert np.all(bounds(three) >= np.max(alone, 0) - 1e-4)
    again = reloaded(three, tmp_path)
    assert again.inference.starts == ["input", "independent", halves]
    np.testing.assert_array_equal(bounds(again), bounds(three))


@pytest.mark.parametrize("inference", [MeanField(), None])
def test_maximum_likelihood_learns_from_the_same_start(inference):
    crbm = made(MeanField())
    compiled(crbm, "sgd", rule=kr.rules.MaximumLikelihood(inference))
    loss = crbm.evaluate(X, Y, batch_size=20, verbose=0)
    want = np.mean(bounds(crbm) + crbm.potentials(X).free_energy(tf.constant(Y)))
    np.testing.assert_allclose(loss, want, rtol=1e-5)


def test_categories_start_at_the_states_of_the_input():
    x = RNG.integers(0, 3, (6, 4)).astype("float32")
    crbm = categorical(4)
    starts = [np.eye(3)[x.astype(int)].reshape(6, 12)]
    want = mean_field(crbm.potentials(x), max_iterations=50, starts=starts)
    np.testing.assert_allclose(crbm.predict(x, verbose=0), want.visible, atol=1e-5)
    one_hot = categorical(12)
    one_hot.inference = MeanField()  # which takes it for no state
    assert one_hot.predict(np.eye(12), verbose=0).shape == (12, 12)


@pytest.mark.parametrize("dtype", ["int32", "bool", "float64"])
def test_input_of_any_dtype(dtype):
    crbm = kr.CRBM(3, visible="gaussian", num_visible=4, num_features=4, seed=0)
    x = RNG.integers(0, 2, (5, 4))
    want = crbm.predict(x.astype("float32"), verbose=0)
    np.testing.assert_allclose(crbm(tf.constant(x.astype(dtype))), want, atol=1e-6)
    np.testing.assert_allclose(crbm.predict(x.astype(dtype), verbose=0), want, 1e-6)


def test_starts_out_of_range_keep_the_bound():
    crbm = made(MeanField(damping=0.5, max_iterations=100))
    for kernel in (crbm.visible_kernel, crbm.hidden_kernel):
        kernel.assign(tf.zeros_like(kernel))
    exact = crbm.log_partition(X * 1e30, "exact").value
    assert np.all(bounds(crbm, X * 1e30) <= exact + 1e-3)


def test_the_bound_of_log_z_is_the_higher_of_two():
    crbm = made(MeanField())
    found = crbm.log_partition(X, "mean_field").value
    assert np.all(found >= bounds(crbm) - 1e-3)
    assert np.all(found <= crbm.log_partition(X, "exact").value)
    # A start that is not finite loses.
    potentials = crbm.potentials(X)
    want = mean_field(potentials, pairwise=None).log_partition
    both = mean_field(potentials, pairwise=None, starts=[np.nan * X, None])
    np.testing.assert_allclose(both.log_partition, want)
