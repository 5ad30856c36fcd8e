"""The step against NumPy's SVD, its bound on an RBM, and all that Keras wraps it in."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from brute_force import binary_states
from model_test_case import assert_close_weights, two_cpus
from same import assert_same
from small_models import binary, compiled, fitted, reloaded, slow

import keras_rbm
from keras_rbm.optimizers import StochasticSpectralDescent as SSD
from keras_rbm.optimizers.spectral_descent import DROP_TOLERANCE, polar_factor

#: Rounding of float32 products of some hundred terms, and what the iteration reaches
#: where the condition number is at most 100.
ROUNDING, ITERATION = 1e-5, 1e-3
X, Y = np.random.default_rng(0).normal(size=(2, 48, 6)).astype("float32")


def matrix(shape, condition=100.0, seed=0, rank=None):
    """Returns a float32 matrix whose singular values fall from 1 to 1 / condition."""
    rng = np.random.default_rng(seed)
    rank = rank or min(shape)
    u, v = (np.linalg.qr(rng.normal(size=(size, rank)))[0] for size in shape)
    return ((u * np.geomspace(1, 1 / condition, rank)) @ v.T).astype("float32")


def expected_step(gradient, rate):
    """Returns the step along the polar factor of the numerical range, in float64."""
    u, s, v = np.linalg.svd(np.asarray(gradient, np.float64), full_matrices=False)
    kept = s > DROP_TOLERANCE * s[0]
    return -rate * s[kept].sum() * (u * kept) @ v


def step(gradient, dtype="float32", **kwargs):
    """Returns how far one update takes a variable from zero."""
    variable = keras.Variable(np.zeros(np.shape(gradient)), dtype=dtype)
    gradient = tf.cast(gradient, dtype)
    SSD(**kwargs).apply([gradient], [variable])
    return keras.ops.convert_to_numpy(keras.ops.cast(variable, "float64"))


def relative_error(got, expected):
    return np.linalg.norm(got - expected) / np.linalg.norm(expected)


def test_polar_factor_has_no_scale():
    """Squares of such entries are 0 or infinite in float32."""
    gradient = tf.constant(matrix((5, 8)))
    one, small, large = (polar_factor(gradient * x) for x in (1.0, 1e-30, 1e30))
    for scaled in (small, large):
        np.testing.assert_allclose(scaled, one, atol=ITERATION)


def test_numerical_range():
    """What is kept, what is dropped, and what lies between."""
    s = np.array([1, 1, 1e-1, 1e-3, 1.5e-4, 0.7e-4, 1e-5, 1e-7, 0], np.float32)
    kept = np.diag(polar_factor(tf.constant(np.diag(s))).numpy())
    np.testing.assert_allclose(kept[s >= 1e-3], 1, atol=1e-2)
    assert (kept[s <= 1e-5] < 0.1).all()
    np.testing.assert_allclose(kept[[4, 5]], [0.7, 0.4], atol=0.1)


@pytest.mark.parametrize(
    ("shape", "rank"),
    [
        *(((rows, columns), None) for rows, columns in [(30, 12), (12, 30), (16, 16)]),
        *(((rows, columns), None) for rows, columns in [(1, 7), (7, 1), (1, 1)]),
        ((784, 500), None),
        ((784, 100), 40),  # as of a batch of 20
        ((100, 784), 40),
    ],
)
@pytest.mark.parametrize("condition", [1, 100])
def test_step_equals_numpys(shape, rank, condition):
    gradient = 3 * matrix(shape, condition, rank=rank)
    got = step(gradient, matrix_learning_rate=0.2)
    assert relative_error(got, expected_step(gradient, 0.2)) < ITERATION


def test_spectrum_that_runs_through_the_tolerance():
    """The worst that can be: the cosine falls, the descent does not."""
    gradient = matrix((80, 120), condition=1e6)
    want, got = expected_step(gradient, 0.01 / 80), step(gradient)
    cosine = np.sum(want * got) / np.linalg.norm(want) / np.linalg.norm(got)
    assert 0.95 < cosine < 0.99
    descent = [np.sum(gradient * way) for way in (want, got)]
    np.testing.assert_allclose(*descent, rtol=ITERATION)


@pytest.mark.parametrize("shape", [(12, 30), (1, 7), (7, 1), (1, 1)])
def test_default_rate(shape):
    """`learning_rate / min(rows, columns)`: no longer than the step of SGD."""
    gradient = matrix(shape)
    got = step(gradient, learning_rate=0.6)
    assert relative_error(got, expected_step(gradient, 0.6 / min(shape))) < ITERATION
    assert np.linalg.norm(got) <= (0.6 + 1e-6) * np.linalg.norm(gradient)
    flat = matrix(shape, condition=1)  # as all of one row or column
    got = step(flat, learning_rate=0.6)
    np.testing.assert_allclose(got, -0.6 * flat, rtol=ROUNDING, atol=ROUNDING)


@pytest.mark.parametrize("shape", [(), (5,), (3, 4, 2), (3, 3, 2, 4)])
def test_all_but_matrices_step_as_sgd(shape):
    gradient = np.random.default_rng(0).normal(size=shape).astype("float32")
    variable = keras.Variable(np.zeros(shape, "float32"))
    keras.optimizers.SGD(0.3).apply([tf.constant(gradient)], [variable])
    got = step(gradient, learning_rate=0.3, matrix_learning_rate=9.0)
    np.testing.assert_array_equal(got, variable)


def test_zeros_stay_and_what_is_not_finite_is_passed_on():
    for shape in ((4, 6), (1, 6), (6, 1), (5,)):
        assert (step(np.zeros(shape)) == 0).all()
    for bad in (np.nan, np.inf):
        gradient = matrix((4, 6))
        gradient[1, 2] = bad
        assert not np.isfinite(step(gradient)).any()


@pytest.mark.parametrize(
    ("dtype", "error"),
    [("bfloat16", 2**-8), ("float16", 2**-11), ("float64", ITERATION)],
)
def test_types(dtype, error):
    gradient = keras.ops.cast(matrix((8, 6)), dtype)
    expected = expected_step(keras.ops.cast(gradient, "float64"), 0.01 / 6)
    assert relative_error(step(gradient, dtype), expected) < error


def test_sparse_gradients():
    """An embedding's gradient comes as rows, the same row more than once."""
    rows = tf.IndexedSlices(tf.ones((3, 4)), tf.constant([0, 2, 0]), (5, 4))
    variable = keras.Variable(np.zeros((5, 4), "float32"))
    SSD(1.0).apply([rows], [variable])
    expected = step(tf.convert_to_tensor(rows), learning_rate=1.0)
    np.testing.assert_allclose(variable, expected, rtol=ROUNDING)


def tiny_rbm(num_visible, num_hidden):
    """Returns random parameters of an RBM, and its exact loss in float64, in nats."""
    rng = np.random.default_rng([num_visible, num_hidden])
    shapes = (num_visible, num_hidden), num_visible, num_hidden
    kernel, visible_bias, hidden_bias = variables = [
        keras.Variable(rng.normal(0, rng.uniform(0, 3), shape), dtype="float64")
        for shape in shapes
    ]
    states = binary_states(num_visible)
    p_data = rng.dirichlet(np.full(len(states), 0.1))

    def loss():
        hidden = tf.math.softplus(states @ kernel.value + hidden_bias)
        score = tf.linalg.matvec(states, visible_bias) + tf.reduce_sum(hidden, 1)
        return tf.reduce_logsumexp(score) - tf.reduce_sum(p_data * score)

    return variables, loss


def gradients_of(variables, loss):
    with tf.GradientTape() as tape:
        value = loss()
    return tape.gradient(value, [variable.value for variable in variables]), value


@pytest.mark.parametrize("v", range(1, 6))
@pytest.mark.parametrize("h", range(1, 5))
def test_safe_rates(v, h):
    """The loss falls by half of rate times squared dual norm, or more.

    Of one variable; if all move at a third of the rates, it does not rise.
    """
    for index, rate in enumerate((1 / (v * h), 4 / v, 4 / h)):
        variables, loss = tiny_rbm(v, h)
        gradients, before = gradients_of(variables, loss)
        norm = np.linalg.norm(gradients[index], None if index else "nuc")
        SSD(rate, rate).apply([gradients[index]], [variables[index]])
        assert loss() <= before - (0.5 - ITERATION) * rate * norm**2 + 1e-12
    variables, loss = tiny_rbm(v, h)
    gradients, before = gradients_of(variables, loss)
    SSD(4 / (3 * max(v, h)), 1 / (3 * v * h)).apply(gradients, variables)
    assert loss() <= before + 1e-12


def dense(optimizer, jit_compile=False):
    """Returns a compiled network with matrices and vectors."""
    keras.utils.set_random_seed(1)
    layers = [keras.layers.Dense(7, activation="tanh"), keras.layers.Dense(6)]
    model = keras.Sequential([keras.Input((6,)), *layers])
    return compiled(model, optimizer, loss="mse", jit_compile=jit_compile)


def losses(model, epochs=2):
    options = {"batch_size": 16, "shuffle": False, "verbose": 0}
    return model.fit(X, Y, epochs=epochs, **options).history["loss"]


@pytest.mark.parametrize("jit_compile", [slow(False), True])
def test_compiled_and_scaled_steps_are_the_same(jit_compile):
    optimizer = keras.optimizers.LossScaleOptimizer(SSD(0.2), initial_scale=8.0)
    scaled = dense(optimizer, jit_compile)
    compiled, plain = dense(SSD(0.2), jit_compile), dense(SSD(0.2))
    first, *_ = [losses(model)[0] for model in (plain, scaled, compiled)]
    assert_close_weights(plain, scaled)
    assert_close_weights(plain, compiled)
    assert losses(plain, epochs=18)[-1] < 0.8 * first


def test_saved_rbm_goes_on(tmp_path):
    decay = keras.optimizers.schedules.PiecewiseConstantDecay([2], [0.2, 0.1])
    optimizer = SSD(decay, 0.05, clipnorm=2.0)
    rbm = compiled(keras_rbm.RBM(4, num_visible=6, seed=0), optimizer, rule="cd")
    again = reloaded(fitted(rbm, binary(), batch_size=10), tmp_path)
    config = again.optimizer.get_config()
    assert config == optimizer.get_config() and config["matrix_learning_rate"] == 0.05
    for model in (rbm, again):
        fitted(model, binary(), batch_size=10)
    assert_same(rbm, again)


def test_two_replicas():
    single = dense(SSD(0.2, 0.05))
    with two_cpus().scope():
        double = dense(SSD(0.2, 0.05))
    losses(single), losses(double)
    assert_close_weights(single, double)


@pytest.mark.parametrize("rate", [-0.1, np.nan, np.inf])
def test_rates_that_are_none(rate):
    with pytest.raises(ValueError, match=f"Received: matrix_learning_rate={rate}"):
        SSD(matrix_learning_rate=rate)
