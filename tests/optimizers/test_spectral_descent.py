"""The step against NumPy's SVD, its bound on an RBM, and all that Keras wraps it in."""

import itertools
from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf
from brute_force import Enumerated
from comparisons import assert_equal, assert_same_weights, refused
from model_test_case import assert_close_weights, two_cpus
from sklearn.datasets import load_digits
from steps import gradients_of as phase_gradients, step_of

import keras_rbm
from keras_rbm import rules
from keras_rbm.optimizers import StochasticSpectralDescent as SSD
from keras_rbm.optimizers.spectral_descent import (
    DROP_TOLERANCE,
    polar_factor_by_newton_schulz,
    polar_factor_by_svd,
)

BFLOAT16 = "mixed_bfloat16", "bfloat16"
SLOW = pytest.mark.slow
METHODS = ["svd", "newton_schulz"]
POLAR_FACTORS = [polar_factor_by_svd, polar_factor_by_newton_schulz]
WIDE = 784, 100
SHAPES = [(30, 12), (12, 30), (16, 16), (1, 7), (7, 1), (1, 1)]
#: Rounding of float32 products of some hundred terms.
ROUNDING = 1e-5
#: What the iteration is to reach where the condition number is at most 100.
ITERATION = 1e-3

X, Y = np.random.default_rng(0).normal(size=(2, 48, 6)).astype("float32")


def matrix(shape, condition=100.0, seed=0, rank=None):
    """Returns a float32 matrix whose singular values fall from 1 to 1 / condition."""
    rng = np.random.default_rng(seed)
    rank = rank or min(shape)
    u, v = (np.linalg.qr(rng.normal(size=(size, rank)))[0] for size in shape)
    return ((u * np.geomspace(1, 1 / condition, rank)) @ v.T).astype("float32")


def truth(gradient):
    """Returns nuclear norm and polar factor of the numerical range, in float64."""
    u, s, v = np.linalg.svd(np.asarray(gradient, np.float64), full_matrices=False)
    kept = s > DROP_TOLERANCE * s[0]
    return s[kept].sum(), (u * kept) @ v


def expected_step(gradient, rate):
    nuclear_norm, polar = truth(gradient)
    return -rate * nuclear_norm * polar


def step(gradient, dtype="float32", **kwargs):
    """Returns how far one update takes a variable from zero."""
    variable = keras.Variable(np.zeros(np.shape(gradient)), dtype=dtype)
    gradient = tf.cast(gradient, dtype)
    SSD(**kwargs).apply([gradient], [variable])
    return keras.ops.convert_to_numpy(keras.ops.cast(variable, "float64"))


def steps(gradient):
    """Returns the steps of the two methods, and their relative difference."""
    svd, iteration = (step(gradient, method=method) for method in METHODS)
    return svd, iteration, relative_error(iteration, svd)


def relative_error(got, expected):
    return np.linalg.norm(got - expected) / np.linalg.norm(expected)


def cosine(a, b):
    return np.sum(a * b) / np.linalg.norm(a) / np.linalg.norm(b)


class TestPolarFactor:
    @pytest.mark.parametrize("polar_factor", POLAR_FACTORS)
    def test_has_no_scale(self, polar_factor):
        """Squares of such entries are 0 or infinite in float32."""
        gradient = tf.constant(matrix((5, 8)))
        one, small, large = (polar_factor(gradient * x) for x in (1.0, 1e-30, 1e30))
        for scaled in (small, large):
            np.testing.assert_allclose(scaled, one, atol=ITERATION)

    @pytest.mark.parametrize("polar_factor", POLAR_FACTORS)
    def test_numerical_range(self, polar_factor):
        """Where the two methods keep and drop, and where they part."""
        s = np.array([1, 1, 1e-1, 1e-3, 1.5e-4, 0.7e-4, 1e-5, 1e-7, 0], np.float32)
        kept = np.diag(polar_factor(tf.constant(np.diag(s))).numpy())
        np.testing.assert_allclose(kept[s >= 1e-3], 1, atol=1e-2)
        assert (kept[s <= 1e-5] < 0.1).all()
        between = [1, 0] if polar_factor is polar_factor_by_svd else [0.7, 0.4]
        np.testing.assert_allclose(kept[[4, 5]], between, atol=0.1)


class TestStep:
    @pytest.mark.parametrize("shape", SHAPES)
    @pytest.mark.parametrize("method", METHODS)
    def test_equals_numpy(self, method, shape):
        gradient = 3 * matrix(shape)
        got = step(gradient, matrix_learning_rate=0.2, method=method)
        assert relative_error(got, expected_step(gradient, 0.2)) < ITERATION

    @pytest.mark.parametrize("shape", [(60, 25), (25, 60), (40, 40)])
    def test_methods_agree_on_full_rank(self, shape):
        for seed, condition in itertools.product(range(3), (1, 10, 100)):
            assert steps(matrix(shape, condition, seed))[2] < ITERATION

    @pytest.mark.parametrize(("shape", "rank"), [((784, 500), None), (WIDE, 40)])
    def test_methods_agree_at_the_size_of_mnist(self, shape, rank):
        """Of full rank, and where noise below a gap stays small."""
        for gradient in (matrix(shape, rank=rank), matrix(shape[::-1], rank=rank)):
            assert steps(gradient)[2] < ITERATION

    @pytest.mark.parametrize("shape", [(12, 30), (1, 7), (7, 1), (1, 1)])
    @pytest.mark.parametrize("method", METHODS)
    def test_default_rate(self, method, shape):
        """`learning_rate / min(rows, columns)`: no longer than the step of SGD."""
        gradient = matrix(shape)
        got = step(gradient, learning_rate=0.6, method=method)
        expected = expected_step(gradient, 0.6 / min(shape))
        assert relative_error(got, expected) < ITERATION
        assert np.linalg.norm(got) <= (0.6 + 1e-6) * np.linalg.norm(gradient)
        flat = matrix(shape, condition=1)  # as all of one row or column
        got = step(flat, learning_rate=0.6, method=method)
        np.testing.assert_allclose(got, -0.6 * flat, rtol=ROUNDING, atol=ROUNDING)

    @pytest.mark.parametrize("shape", [(), (5,), (3, 4, 2), (3, 3, 2, 4)])
    def test_all_but_matrices_step_as_sgd(self, shape):
        gradient = np.random.default_rng(0).normal(size=shape).astype("float32")
        variable = keras.Variable(np.zeros(shape, "float32"))
        keras.optimizers.SGD(0.3).apply([tf.constant(gradient)], [variable])
        got = step(gradient, learning_rate=0.3, matrix_learning_rate=9.0)
        np.testing.assert_array_equal(got, variable)

    @pytest.mark.parametrize("method", METHODS)
    def test_zeros_stay_and_what_is_not_finite_is_passed_on(self, method):
        for shape in ((4, 6), (1, 6), (6, 1), (5,)):
            assert (step(np.zeros(shape), method=method) == 0).all()
        for bad in (np.nan, np.inf):
            gradient = matrix((4, 6))
            gradient[1, 2] = bad
            assert not np.isfinite(step(gradient, method=method)).any()

    @pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
    @pytest.mark.parametrize("method", METHODS)
    def test_types(self, method, dtype):
        gradient = keras.ops.cast(matrix((8, 6)), dtype)
        expected = step(keras.ops.cast(gradient, "float64"), "float64", method="svd")
        eps = {"bfloat16": 2**-8, "float16": 2**-11, "float64": ITERATION}[dtype]
        assert relative_error(step(gradient, dtype, method=method), expected) < eps

    def test_sparse_gradients(self):
        """An embedding's gradient comes as rows, the same row more than once."""
        rows = tf.IndexedSlices(tf.ones((3, 4)), tf.constant([0, 2, 0]), (5, 4))
        variable = keras.Variable(np.zeros((5, 4), "float32"))
        SSD(1.0).apply([rows], [variable])
        expected = step(tf.convert_to_tensor(rows), learning_rate=1.0)
        np.testing.assert_allclose(variable, expected, rtol=ROUNDING)


class TestRankDeficient:
    """Rank ≤ 2B, from batches of B = 20 thresholded digits."""

    DIGITS = (load_digits().data > 8).astype("float32")

    def gradients(self, num_hidden, epochs, count=5):
        rbm = keras_rbm.RBM(num_hidden, num_visible=64, seed=0)
        rbm.adapt(self.DIGITS)
        rule = rules.ContrastiveDivergence()
        rbm.compile(keras.optimizers.SGD(0.1), rule=rule, jit_compile=False)
        rbm.fit(self.DIGITS, batch_size=20, epochs=epochs, verbose=0)
        for index in range(count):
            visible = tf.constant(self.DIGITS[20 * index :][:20])
            seed = tf.constant([index, 0])
            phases = rule.phases(step_of(rbm.potentials(), visible, seed=seed))
            gradients = phase_gradients(rbm, phases.positive, phases.negative)
            yield gradients["kernel"].numpy()

    @pytest.mark.parametrize("epochs", [0, 3])
    @pytest.mark.parametrize(
        "num_hidden",
        [16, *(pytest.param(n, marks=SLOW) for n in (50, 200))],
    )
    def test_methods_agree(self, num_hidden, epochs):
        """Some singular values lie about the tolerance: there the methods part."""
        for gradient in self.gradients(num_hidden, epochs):
            assert np.linalg.matrix_rank(gradient) <= 40
            svd, iteration, _ = steps(gradient)
            expected = expected_step(gradient, 0.01 / min(gradient.shape))
            assert relative_error(svd, expected) < ITERATION
            assert cosine(svd, iteration) > 0.98
            descent = [np.sum(gradient * way) for way in (svd, iteration)]
            np.testing.assert_allclose(*descent, rtol=2 * ITERATION)

    def test_spectrum_that_runs_through_the_tolerance(self):
        """The worst that can be: the cosine falls, the descent does not."""
        gradient = matrix((80, 120), condition=1e6)
        svd, iteration, _ = steps(gradient)
        assert 0.95 < cosine(svd, iteration) < 0.99
        descent = [np.sum(gradient * way) for way in (svd, iteration)]
        np.testing.assert_allclose(*descent, rtol=ITERATION)


class ExactRBM:
    """A tiny RBM in float64 with its exact loss and gradients, in nats.

    Args:
        parameters: arrays (V, H), (V,) and (H,).
        p_data: array (2^V,), the law of the data.
    """

    def __init__(self, parameters, p_data):
        self.variables = [keras.Variable(p, dtype="float64") for p in parameters]
        self.p_data = p_data

    @classmethod
    def random(cls, num_visible, num_hidden):
        rng = np.random.default_rng([num_visible, num_hidden])
        shapes = (num_visible, num_hidden), num_visible, num_hidden
        parameters = [rng.normal(0, rng.uniform(0, 3), shape) for shape in shapes]
        return cls(parameters, rng.dirichlet(np.full(2**num_visible, 0.1)))

    def model(self):
        names = "kernel", "visible_bias", "hidden_bias"
        values = [variable.numpy() for variable in self.variables]
        return Enumerated(SimpleNamespace(**dict(zip(names, values, strict=True))))

    def loss(self):
        return -self.p_data @ np.log(self.model().p_visible)

    def gradients(self):
        model, (kernel, _, bias) = self.model(), (v.numpy() for v in self.variables)
        hidden = tf.sigmoid(model.v @ kernel + bias).numpy()
        data = (
            model.v.T @ (self.p_data[:, None] * hidden),
            self.p_data @ model.v,
            self.p_data @ hidden,
        )
        return [m - d for m, d in zip(model.moments(), data, strict=True)]

    def rise(self, optimizer):
        """Returns by how much a step of all variables raises the loss."""
        before = self.loss()
        optimizer.apply(self.gradients(), self.variables)
        return self.loss() - before


@pytest.mark.parametrize("method", METHODS)
class TestMajorisation:
    SIZES = [(v, h) for v in range(1, 6) for h in range(1, 5)]

    def test_one_variable_at_its_safe_rate(self, method):
        """The loss falls by half of rate times squared dual norm, or more."""
        for v, h in self.SIZES:
            for index, rate in enumerate((1 / (v * h), 4 / v, 4 / h)):
                rbm = ExactRBM.random(v, h)
                before, gradient = rbm.loss(), rbm.gradients()[index]
                norm = np.linalg.norm(gradient) if index else truth(gradient)[0]
                optimizer = SSD(rate, rate, method)
                optimizer.apply([tf.constant(gradient)], [rbm.variables[index]])
                least = (0.5 - ITERATION) * rate * norm**2
                assert rbm.loss() <= before - least + 1e-12

    def test_all_variables_at_a_third_of_it(self, method):
        for v, h in self.SIZES:
            rbm = ExactRBM.random(v, h)
            optimizer = SSD(4 / (3 * max(v, h)), 1 / (3 * v * h), method)
            assert rbm.rise(optimizer) <= 1e-12

    def test_all_variables_at_the_full_rates_may_overshoot(self, method):
        """Units that are all on or all off move along one line by all three steps."""
        size, coupling = 3, 10.0
        p_data = np.full(2**size, 1e-9)
        p_data[[0, -1]] = 0.45, 0.55
        bias = np.full(size, -coupling * size / 2)
        rbm = ExactRBM([np.full((size, size), coupling), bias, bias], p_data)
        assert rbm.rise(SSD(4 / size, 1 / size**2, method)) > 1e-3


def dense(optimizer, **kwargs):
    """Returns a compiled network with matrices and vectors."""
    keras.utils.set_random_seed(1)
    layers = [keras.layers.Dense(7, activation="tanh"), keras.layers.Dense(6)]
    model = keras.Sequential([keras.Input((6,)), *layers])
    kwargs.setdefault("jit_compile", False)
    model.compile(optimizer, loss="mse", **kwargs)
    return model


def fit(model, epochs=2, **kwargs):
    history = model.fit(
        X, Y, batch_size=16, epochs=epochs, shuffle=False, verbose=0, **kwargs
    )
    return history.history["loss"]


def schedule():
    return keras.optimizers.schedules.PiecewiseConstantDecay([2], [0.2, 0.1])


def gradients_of(model):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(X) - Y))
    return tape.gradient(loss, [v.value for v in model.trainable_variables])


class TestInKeras:
    @pytest.mark.parametrize("jit_compile", [pytest.param(False, marks=SLOW), True])
    def test_compiled_and_scaled_steps_are_the_same(self, jit_compile):
        optimizer = keras.optimizers.LossScaleOptimizer(SSD(0.2), initial_scale=8.0)
        scaled = dense(optimizer, jit_compile=jit_compile)
        compiled, plain = dense(SSD(0.2), jit_compile=jit_compile), dense(SSD(0.2))
        first, *_ = [fit(model)[0] for model in (plain, scaled, compiled)]
        assert_close_weights(plain, scaled)
        assert_close_weights(plain, compiled)
        assert fit(plain, epochs=18)[-1] < 0.8 * first

    @pytest.mark.parametrize("accumulation", [None, 2])
    def test_svd_under_xla_stops_before_anything_changes(self, accumulation):
        optimizer = SSD(method="svd", gradient_accumulation_steps=accumulation)
        model = dense(optimizer, jit_compile=True)
        refused(model, lambda: fit(model), "jit_compile=False")

    def test_rbm(self, tmp_path):
        """As a user has it: compiled by XLA, saved, resumed."""
        data = np.random.default_rng(0).integers(0, 2, (40, 6)).astype("float32")
        rbm = keras_rbm.RBM(4, num_visible=6, seed=0)
        rbm.compile(SSD(0.2), rule="cd", jit_compile=False)
        rbm.fit(data, batch_size=10, verbose=0)
        rbm.save(tmp_path / "rbm.keras")
        again = keras.saving.load_model(tmp_path / "rbm.keras")
        for model in (rbm, again):
            model.fit(data, batch_size=10, verbose=0)
        assert_same_weights(rbm, again)

    @pytest.mark.parametrize(
        ("rate", "matrix_rate"),
        [
            (schedule(), 0.05),
            pytest.param(0.1, schedule(), marks=SLOW),
            pytest.param(schedule(), None, marks=SLOW),
        ],
    )
    def test_saved_model_goes_on(self, rate, matrix_rate, tmp_path):
        model = dense(SSD(rate, matrix_rate, "svd"))
        fit(model, epochs=1)
        model.save(tmp_path / "model.keras")
        again = keras.saving.load_model(tmp_path / "model.keras")
        assert again.optimizer.get_config() == model.optimizer.get_config()
        assert again.optimizer.method == "svd"
        assert fit(model) == fit(again)
        assert_same_weights(model, again)

    def test_config(self):
        optimizer = SSD(1, schedule(), "svd", clipnorm=2.0)
        config = optimizer.get_config()
        assert SSD.from_config(config).get_config() == config
        assert isinstance(config["matrix_learning_rate"], dict)  # is left as it was
        again = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
        assert again.get_config() == config

    def test_schedules_follow_the_iterations(self):
        """A piecewise rate: its boundary is in, so three steps at the first value."""
        gradients = [tf.constant([1.0]), tf.constant([[1.0]])]
        variables = [keras.Variable([0.0]), keras.Variable([[0.0]])]
        optimizer = SSD(schedule(), schedule())
        for _ in range(4):
            optimizer.apply(gradients, variables)
        for variable in variables:
            np.testing.assert_allclose(variable.numpy().item(), -0.7, rtol=ROUNDING)
        np.testing.assert_allclose(optimizer.matrix_learning_rate, 0.1)

    def test_matrix_rate_set_anew(self, tmp_path):
        model = dense(SSD(0.0, 0.1))
        kernel = model.layers[0].kernel
        fit(model, epochs=1)
        model.optimizer.matrix_learning_rate = 0.0
        before = kernel.numpy()
        fit(model, epochs=1)
        np.testing.assert_array_equal(kernel, before)
        model.save(tmp_path / "model.keras")
        again = keras.saving.load_model(tmp_path / "model.keras")
        assert float(again.optimizer.matrix_learning_rate) == 0.0

    def test_clipnorm_and_weight_decay(self):
        gradient = 5 * matrix((6, 4))
        clipped = gradient / np.linalg.norm(gradient)
        variable = keras.Variable(np.ones((6, 4), "float32"))
        optimizer = SSD(0.5, matrix_learning_rate=0.1, clipnorm=1.0, weight_decay=0.2)
        optimizer.apply([tf.constant(gradient)], [variable])
        expected = 1 - 0.5 * 0.2 + step(clipped, matrix_learning_rate=0.1)
        np.testing.assert_allclose(variable, expected, rtol=ROUNDING)

    def test_gradient_accumulation(self):
        """Two half batches make the step of the whole one."""
        a, b = matrix((6, 4), seed=1), matrix((6, 4), seed=2)
        variable = keras.Variable(np.zeros((6, 4), "float32"))
        optimizer = SSD(0.5, gradient_accumulation_steps=2)
        optimizer.apply([tf.constant(a)], [variable])
        assert (variable.numpy() == 0).all()
        optimizer.apply([tf.constant(b)], [variable])
        expected = step((a + b) / 2, learning_rate=0.5)
        np.testing.assert_allclose(variable, expected, rtol=1e-4, atol=1e-6)

    def test_moving_average(self):
        model = dense(SSD(0.2, use_ema=True, ema_momentum=0.5))
        values = []
        for _ in range(2):
            model.train_on_batch(X, Y)
            values.append(model.get_weights())
        model.optimizer.finalize_variable_values(model.trainable_variables)
        means = [(one + two) / 2 for one, two in zip(*values, strict=True)]
        assert_equal(model.get_weights(), means, rtol=1e-4, atol=1e-6)

    @pytest.mark.parametrize(
        ("method", "matrix_rate"),
        [
            pytest.param("newton_schulz", 0.05, marks=SLOW),
            ("newton_schulz", schedule()),
            pytest.param("svd", None, marks=SLOW),
        ],
    )
    def test_two_replicas(self, method, matrix_rate):
        single = dense(SSD(0.2, matrix_rate, method))
        with two_cpus().scope():
            double = dense(SSD(0.2, matrix_rate, method))
        fit(single), fit(double)
        assert_close_weights(single, double)

    def test_loss_scale_skips_what_is_not_finite(self):
        optimizer = keras.optimizers.LossScaleOptimizer(SSD())
        variable = keras.Variable(np.ones((3, 4), "float32"))
        optimizer.apply([tf.fill((3, 4), np.nan)], [variable])
        assert (variable.numpy() == 1).all()

    @pytest.mark.parametrize(
        "policy", ["mixed_float16", *(pytest.param(p, marks=SLOW) for p in BFLOAT16)]
    )
    def test_mixed_precision(self, policy):
        keras.config.set_dtype_policy(policy)
        losses = fit(dense(SSD(0.2)), epochs=10)
        assert losses[-1] < losses[0]

    @pytest.mark.parametrize(
        ("method", "jit_compile"),
        [
            ("svd", False),
            pytest.param("newton_schulz", False, marks=SLOW),
            ("newton_schulz", True),
        ],
    )
    def test_embedding(self, method, jit_compile):
        layers = [keras.layers.Embedding(9, 4), keras.layers.GlobalAveragePooling1D()]
        model = keras.Sequential([keras.Input((3,), dtype="int32"), *layers])
        optimizer = SSD(0.5, method=method)
        model.compile(optimizer, loss="mse", jit_compile=jit_compile)
        tokens = np.random.default_rng(0).integers(0, 9, (40, 3))
        history = model.fit(tokens, Y[:40, :4], epochs=10, verbose=0).history
        assert history["loss"][-1] < history["loss"][0]

    def test_a_step_that_keras_would_make(self):
        """The whole step of a network, matrix by matrix and vector by vector."""
        model = dense(SSD(0.2, 0.01))
        expected = [
            before.numpy() + step(g, learning_rate=0.2, matrix_learning_rate=0.01)
            for before, g in zip(model.weights, gradients_of(model), strict=True)
        ]
        model.train_on_batch(X, Y)
        assert_equal(model.get_weights(), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["learning_rate", "matrix_learning_rate"])
def test_rates_that_are_none(name):
    for rate in (-0.1, np.nan, np.inf, -1):
        with pytest.raises(ValueError, match=f"rate ≥ 0. Received: {name}={rate!r}"):
            SSD(**{name: rate})
    for rate in ("0.1", True, [0.1], 1j):
        with pytest.raises(TypeError, match=f"LearningRateSchedule. Received: {name}="):
            SSD(**{name: rate})
    for rate in (1, np.float32(1), np.int64(1), 1.0):
        assert SSD(rate, rate).get_config()[name] == 1.0


@pytest.mark.parametrize("method", ["SVD", "qr", None, 3, ["svd"]])
def test_unknown_methods(method):
    with pytest.raises(ValueError, match=r"\['newton_schulz', 'svd'\]. Received"):
        SSD(method=method)


def test_unknown_arguments():
    with pytest.raises(ValueError, match="momentum"):
        SSD(momentum=0.9)


@pytest.mark.parametrize(
    ("made", "rate", "error", "message"),
    [
        (0.5, -1.0, ValueError, "Received: matrix_learning_rate=-1.0"),
        (0.5, schedule(), TypeError, "Expected a float.*Make a new optimizer"),
        (None, 0.1, TypeError, "made with a float matrix_learning_rate"),
        (schedule(), 0.1, TypeError, "made with a float matrix_learning_rate"),
    ],
)
def test_matrix_rates_that_cannot_be_set(made, rate, error, message):
    optimizer = SSD(matrix_learning_rate=made)
    with pytest.raises(error, match=message):
        optimizer.matrix_learning_rate = rate
    if made == 0.5:
        assert float(optimizer.matrix_learning_rate) == 0.5
