"""Where mean field of a conditional model starts."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_rbm as kr
from keras_rbm.inference import MeanField, mean_field

RNG = np.random.default_rng(0)
X = RNG.integers(0, 2, (20, 12)).astype("float32")
Y = np.abs(X - (RNG.random(X.shape) < 0.1))


def made(inference, num_features=12):
    """Returns a CRBM whose weights are strong enough for several fixed points."""
    crbm = kr.CRBM(
        8, inference=inference, num_visible=12, num_features=num_features, seed=0
    )
    crbm.kernel.assign(np.random.default_rng(1).normal(0.0, 4.0, crbm.kernel.shape))
    return crbm


def bounds(crbm, x=X):
    infer = crbm.inference.given(tf.constant(x))
    return infer(crbm.potentials(x), pairwise=None).log_partition.numpy()


@keras.saving.register_keras_serializable("tests")
def halves(x):
    return tf.fill(tf.shape(x), 0.5)


def test_by_default_the_input_is_the_start():
    crbm = made(MeanField())
    options = {"max_iterations": 50, "pairwise": None}
    want = [
        mean_field(crbm.potentials(X), starts=[start], **options).visible
        for start in (X, None)
    ]
    found = crbm.predict(X, verbose=0)
    np.testing.assert_allclose(found, want[0], atol=1e-5)
    assert np.abs(found - want[1]).max() > 0.5
    np.testing.assert_array_equal(crbm.predict_map(X), want[0] > 0.5)


def test_input_of_another_width_is_no_start():
    crbm = made(MeanField(), num_features=5)
    want = mean_field(crbm.potentials(X[:, :5]), pairwise=None).visible
    np.testing.assert_allclose(crbm.predict(X[:, :5], verbose=0), want, atol=1e-3)
    crbm.inference = MeanField(starts=["input"])
    with pytest.raises(ValueError, match="a column for each visible unit, 12"):
        crbm.predict(X[:, :5], verbose=0)


def test_the_highest_bound_of_several_is_kept():
    alone = [bounds(made(MeanField(starts=[s]))) for s in ("input", "independent")]
    three = made(MeanField(starts=["input", "independent", halves]))
    assert np.all(bounds(three) >= np.max(alone, 0) - 1e-4)


def test_starts_are_saved(tmp_path):
    crbm = made(MeanField(starts=["input", halves]))
    crbm.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert again.inference.starts == ["input", halves]
    np.testing.assert_array_equal(bounds(again), bounds(crbm))


@pytest.mark.parametrize("rule_has_it", [True, False])
def test_maximum_likelihood_learns_from_the_same_start(rule_has_it):
    crbm = made(MeanField())
    own = MeanField() if rule_has_it else None
    crbm.compile("sgd", rule=kr.rules.MaximumLikelihood(own))
    loss = crbm.evaluate(X, Y, batch_size=20, verbose=0)
    want = np.mean(bounds(crbm) + crbm.potentials(X).free_energy(tf.constant(Y)))
    np.testing.assert_allclose(loss, want, rtol=1e-5)


def test_categories_start_at_the_states_of_the_input():
    x = RNG.integers(0, 3, (6, 4)).astype("float32")
    inference = MeanField(starts=["input"])
    unit = kr.units.Categorical(3)
    crbm = kr.CRBM(
        2, visible=unit, inference=inference, num_visible=4, num_features=4, seed=0
    )
    want = mean_field(
        crbm.potentials(x),
        max_iterations=50,
        starts=[np.eye(3)[x.astype(int)].reshape(6, 12)],
    )
    np.testing.assert_allclose(crbm.predict(x, verbose=0), want.visible, atol=1e-5)


@pytest.mark.parametrize("starts", [[], "input", ["x"], [None], 3, [np.ones(3)]])
def test_unknown_starts(starts):
    with pytest.raises(ValueError, match="Expected starts"):
        MeanField(starts=starts)


@pytest.mark.parametrize("dtype", ["int32", "bool", "float64"])
def test_input_of_any_dtype(dtype):
    crbm = kr.CRBM(3, visible="gaussian", num_visible=4, num_features=4, seed=0)
    x = RNG.integers(0, 2, (5, 4))
    want = crbm.predict(x.astype("float32"), verbose=0)
    np.testing.assert_allclose(crbm(tf.constant(x.astype(dtype))), want, atol=1e-6)
    np.testing.assert_allclose(crbm.predict(x.astype(dtype), verbose=0), want, 1e-6)


def test_one_hot_input_of_categories_is_no_state():
    unit = kr.units.Categorical(3)
    crbm = kr.CRBM(2, visible=unit, num_visible=2, num_features=6, seed=0)
    assert crbm.predict(np.eye(6), verbose=0).shape == (6, 6)


def test_a_function_of_unknown_width_predicts_alike():
    crbm = made(MeanField())
    function = tf.function(crbm, input_signature=[tf.TensorSpec((None, None))])
    np.testing.assert_allclose(function(tf.constant(X)), crbm(X), atol=1e-6)


def test_starts_out_of_range_keep_the_bound():
    crbm = made(MeanField(damping=0.5, max_iterations=100))
    for kernel in (crbm.visible_kernel, crbm.hidden_kernel):
        kernel.assign(tf.zeros_like(kernel))
    exact = crbm.log_partition(X * 1e30, "exact").value
    assert np.all(bounds(crbm, X * 1e30) <= exact + 1e-3)


def test_a_start_that_is_not_finite_loses():
    potentials = made(MeanField()).potentials(X)
    want = mean_field(potentials, pairwise=None).log_partition
    both = mean_field(potentials, pairwise=None, starts=[np.nan * X, None])
    np.testing.assert_allclose(both.log_partition, want)


def test_the_bound_of_log_z_is_the_higher_of_two():
    crbm = made(MeanField())
    found = crbm.log_partition(X, "mean_field").value
    assert np.all(found >= bounds(crbm) - 1e-3)
    assert np.all(found <= crbm.log_partition(X, "exact").value)


def test_the_default_start_is_saved_as_such():
    assert MeanField.from_config(MeanField().get_config()).starts is None


@pytest.mark.parametrize(
    "make",
    [
        lambda infer: kr.DBM([3, 2], inference=infer),
        lambda infer: kr.RBM(3, num_visible=4).compile(
            rule=kr.rules.MaximumLikelihood(infer)
        ),
    ],
)
def test_models_without_input_cannot_start_there(make):
    with pytest.raises(ValueError, match="starts at the input"):
        make(MeanField(starts=["input"]))
