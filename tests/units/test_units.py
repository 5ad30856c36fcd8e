"""Each unit type alone: draws, means, statistics, and what it refuses."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from comparisons import assert_mean, assert_restored

import keras_rbm
from keras_rbm import random, units
from keras_rbm.units.bernoulli import BernoulliParameters
from keras_rbm.units.double_rectified import DoubleRectifiedParameters
from keras_rbm.units.gaussian import GaussianParameters
from keras_rbm.units.rectified import HalfGaussian, RectifiedParameters
from keras_rbm.units.unit import shrunk

BIAS, LOG_PRECISION = tf.constant([0.3, -0.2]), tf.constant([0.4, -0.5])
PARAMETERS = {
    "bernoulli": BernoulliParameters(BIAS),
    "spin": units.Spin().parameters(BIAS),
    "binomial": units.Binomial(5).parameters(BIAS),
    "categorical": units.Categorical(3).parameters(
        tf.constant([0.3, -0.2, 0.1, 0.0, 0.4, -1.0])
    ),
    "rectified": RectifiedParameters(BIAS, LOG_PRECISION),
    "double_rectified": DoubleRectifiedParameters(
        BIAS, tf.constant([0.5, -0.5]), LOG_PRECISION, tf.constant([0.0, 0.3])
    ),
    "gaussian": GaussianParameters(
        bias=BIAS,
        log_precision=LOG_PRECISION,
        shift=tf.constant([1.0, 0.0]),
        scale=tf.constant([2.0, 0.5]),
    ),
}


def test_certain_means_have_finite_natural_parameters():
    natural = PARAMETERS["bernoulli"].natural_for_mean(tf.constant([0.0, 1.0]))
    assert np.isfinite(natural).all()
    fitted = units.Bernoulli().fitted(np.array([0.0, 1.0]), np.zeros(2))
    assert np.isfinite(fitted["bias"]).all()


@pytest.mark.parametrize("standardize", [False, True])
def test_fitted_gaussian_units_have_the_datas_moments(standardize):
    mean, variance = np.array([1.0, -2.0, 0.5]), np.array([0.5, 2.0, 0.0])
    unit = units.Gaussian(standardize=standardize)
    values = {name: np.zeros(3) for name in unit.variables()} | {"scale": np.ones(3)}
    values |= unit.fitted(mean, variance)
    layer = unit.parameters(
        **{k: tf.constant(v, tf.float32) for k, v in values.items()}
    )
    np.testing.assert_allclose(layer.mean(layer.natural(0.0)), mean, rtol=1e-5)
    natural = tf.repeat(layer.natural(tf.zeros((1, 3))), 20_000, 0)
    samples = layer.sample(natural, random.uniform(natural.shape, 0))
    np.testing.assert_allclose(np.var(samples, 0), [0.5, 2.0, 1.0], rtol=0.05)


def test_offset_data_is_warned_about():
    with pytest.warns(UserWarning, match="standardize=True"):
        units.Gaussian(standardize=False).fitted(np.array([100.0]), np.array([1.0]))


@pytest.mark.parametrize("unit", [units.Bernoulli(), units.Gaussian(standardize=True)])
def test_config_round_trip(unit):
    assert_restored(units, unit)
    assert units.get(unit) is unit
    assert isinstance(units.get(units.serialize(unit)), type(unit))
    keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(unit))


@pytest.mark.parametrize("name", PARAMETERS)
def test_inputs_up_to_ten_thousand_stay_finite(name):
    layer = PARAMETERS[name]
    rows = layer.num_rows
    natural = tf.constant([[1e4] * rows, [-1e4] * rows, [0.0] * rows])
    noise = tf.constant([[2.0**-24, 1.0 - 2.0**-24]] * 3)
    values = [layer.log_partition(natural), layer.mean(natural), layer.mode(natural)]
    values += [layer.sample(natural, noise), *layer.expected_statistics(natural)]
    for value in values:
        assert np.isfinite(value).all()


@pytest.mark.parametrize("name", PARAMETERS)
def test_draws_have_the_mean_and_the_statistics(name):
    layer, count = PARAMETERS[name], 40_000
    rng = np.random.default_rng(0)
    for shift in (-6.0, 0.0, 2.0):
        one = tf.constant(rng.normal(shift, 1.0, (1, layer.num_rows)), tf.float32)
        noise = random.uniform((count, 2), seed=int(shift))
        states = layer.sample(tf.repeat(one, count, 0), noise)
        pairs = [(layer.encode(states), layer.mean(one))]
        pairs += zip(
            layer.statistics(states), layer.expected_statistics(one), strict=True
        )
        for drawn, expected in pairs:
            assert_mean(drawn, expected[0], 1e-4)


@pytest.mark.parametrize("name", PARAMETERS)
def test_mean_and_statistics_are_derivatives_of_the_log_partition(name):
    layer = PARAMETERS[name]
    natural = tf.constant(np.random.default_rng(0).normal(0, 2, (5, layer.num_rows)))
    layer = tf.nest.map_structure(lambda x: tf.cast(x, tf.float64), layer)
    with tf.GradientTape() as tape:
        tape.watch(natural)
        value = tf.reduce_sum(layer.log_partition(natural))
    want = tape.gradient(value, natural)
    first = layer.expected_statistics(natural)[0]
    np.testing.assert_allclose(first, want, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(
        layer.first(layer.mean(natural)), want, rtol=1e-6, atol=1e-7
    )


@pytest.mark.parametrize(
    "name", ["bernoulli", "spin", "binomial", "categorical", "gaussian"]
)
def test_isolated_units_have_the_datas_mean(name):
    layer = PARAMETERS[name]
    mean = layer.mean(tf.constant(np.linspace(-1, 1, layer.num_rows), tf.float32))
    natural = layer.natural_for_mean(mean)
    np.testing.assert_allclose(layer.mean(natural), mean, rtol=1e-4)


def test_joined_names_its_variables_by_part():
    assert set(JOINED.variables()) == {"bias", "log_precision_0", "shift_0", "scale_0"}
    assert JOINED.shape_of("bias", 3) == (7,) and JOINED.shape_of("scale_0", 3) == (1,)
    assert repr(assert_restored(units, JOINED)) == repr(JOINED)


JOINED = units.Joined([("gaussian", 1), (units.Categorical(3), 2)])


@pytest.mark.parametrize(
    ("call", "argument", "word"),
    [
        (units.Categorical, 1, "num_states ≥ 2"),
        (units.Binomial, 0, "num_trials ≥ 1"),
        (units.Binomial, 2.5, "num_trials ≥ 1"),
        (units.Rectified, 0.0, "0 < min_precision ≤ 1"),
        (units.DoubleRectified, 2.0, "0 < min_precision ≤ 1"),
        (units.get, "binary", "Expected a unit type.*bernoulli.*Received"),
        (units.get, 3, "Expected a unit type.*bernoulli.*Received"),
        (units.get, None, "Expected a unit type.*bernoulli.*Received"),
        (units.get, units.Bernoulli, "Expected a unit type.*bernoulli.*Received"),
        (JOINED.num_rows, 4, "layer of 3 units"),
        (units.Joined, [], "Received: parts|not joined"),
        (units.Joined, [("gaussian", 0)], "Received: parts|not joined"),
        (units.Joined, ["gaussian"], "Received: parts|not joined"),
        (units.Joined, [(JOINED, 1)], "Received: parts|not joined"),
    ],
)
def test_what_is_no_unit_type_is_refused(call, argument, word):
    with pytest.raises(ValueError, match=word):
        call(argument)


def test_joined_rows_belong_to_the_units_in_their_order():
    """A mixed table is searched unit by unit: two with one number would be one unit."""
    joined = units.Joined([(units.Categorical(3), 2), ("bernoulli", 2)])
    layer = keras_rbm.RBM(1, visible=joined, num_visible=4).potentials().visible
    assert layer.unit_of_row.tolist() == [0, 0, 0, 1, 1, 1, 2, 3]


@pytest.mark.parametrize("name", ["rectified", "double_rectified", "joined"])
def test_precisions_stay_above_the_least_one(name):
    parts = [("bernoulli", 1), (units.Rectified(0.5), 1)]
    hidden = {
        "rectified": units.Rectified(0.5),
        "double_rectified": units.DoubleRectified(0.5),
        "joined": units.Joined(parts),
    }[name]
    rbm = keras_rbm.RBM(2, num_visible=2, hidden=hidden, seed=0)
    precisions = [v for v in rbm.variables if "log_precision" in v.name]
    for precision in precisions:
        precision.assign(precision - 5.0)
    rbm.compile("sgd", rule="cd")
    rbm.fit(tf.ones((4, 2)), verbose=0)
    for precision in precisions:
        np.testing.assert_allclose(np.exp(precision), 0.5, rtol=1e-6)
    assert repr(assert_restored(units, hidden)) == repr(hidden)


def test_columns_that_float32_hardly_resolves_are_named():
    model = keras_rbm.RBM(2, visible="gaussian", seed=0)
    rows = np.random.default_rng(0).normal(0.0, 1.0, (500, 2))
    with pytest.warns(UserWarning, match="1 visible units vary by less .* 1e\\+07"):
        model.adapt(rows + [1e7, 0.0])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [0.1, 1e8, 0.0])
def test_constant_columns_are_not_named(value):
    rows = np.full((10_000, 1), value)
    keras_rbm.RBM(2, visible="gaussian", seed=0).adapt(rows)


@pytest.mark.parametrize("spread", [0.0, 0.5, 5.0])
def test_shrunk_means_are_nearer_to_the_truth(spread):
    """Means of 2000 units with 1 to 20 normal examples each."""
    rng = np.random.default_rng(0)
    truth = rng.normal(3.0, spread, 2000)
    counts = rng.integers(1, 21, 2000)
    rows = [rng.normal(m, 1.0, n) for m, n in zip(truth, counts, strict=True)]
    mean, variance = (
        np.array([f(row) for row in rows])[:, np.newaxis] for f in (np.mean, np.var)
    )
    count = counts[:, np.newaxis].astype(float)
    found, pooled = shrunk(mean, variance, count)
    own = counts * spread**2 / (counts * spread**2 + 1.0)
    best = own * mean[:, 0] + (1.0 - own) * 3.0
    error, least, before = (
        np.mean((each - truth) ** 2) for each in (found[:, 0], best, mean[:, 0])
    )
    assert error < before
    assert error == pytest.approx(least, rel=0.05, abs=2e-3)
    if not spread:
        np.testing.assert_allclose(pooled, 1.0, atol=0.15)


def test_units_with_many_examples_keep_their_moments():
    mean, variance = np.array([[0.1], [0.9]]), np.array([[0.09], [0.09]])
    count = np.full((2, 1), 1e6)
    found = shrunk(mean, variance, count)
    np.testing.assert_allclose(found, [mean, variance], rtol=1e-4)


def test_a_unit_alone_keeps_its_moments():
    """What units have in common is not known of one: it was 0 / 0."""
    one = np.array([[0.1]]), np.array([[0.2]])
    np.testing.assert_array_equal(shrunk(*one, np.array([[3.0]])), one)


def test_probabilities_of_categories_stay_so():
    rng = np.random.default_rng(0)
    mean = rng.dirichlet([1.0, 1.0, 1.0], 50).ravel()
    count = np.repeat(rng.integers(0, 4, 50), 3).astype(float)
    unit = keras_rbm.units.Joined(
        [(keras_rbm.units.Categorical(3), 50), ("gaussian", 1)]
    )
    found, _ = unit.pooled(
        np.append(mean, 7.0), np.append(mean * (1 - mean), 2.0), np.append(count, 1.0)
    )
    assert found[-1] == 7.0  # standardized: its scale is its own
    np.testing.assert_allclose(found[:-1].reshape(50, 3).sum(1), 1.0, atol=1e-6)
    empty = found[:-1][count == 0].reshape(-1, 3)
    np.testing.assert_array_equal(empty, np.broadcast_to(empty[0], empty.shape))


@pytest.mark.parametrize("fit", [True, False])
def test_an_absent_unit_starts_at_the_others(fit):
    """An item that one user rates begins near all of them, full rows as they are."""
    rng = np.random.default_rng(0)
    data = rng.integers(0, 2, (60, 8)).astype("float32")
    gaps = data.copy()
    gaps[1:, 3] = np.nan

    def biases(rows, missing):
        rbm = keras_rbm.RBM(2, num_visible=8, missing=missing, seed=0)
        if fit:
            rbm.compile(keras.optimizers.SGD(0.0))
            rbm.fit(rows, verbose=0)
        else:
            rbm.adapt(rows)
        return rbm.visible_bias.numpy()

    np.testing.assert_array_equal(biases(data, "absent"), biases(data, None))
    assert abs(biases(gaps, "absent")[3]) < 1.0  # 1 of 1 alone: log-odds beyond 5


@pytest.mark.parametrize("jit_compile", [False, True])
def test_extreme_noise_gives_finite_states(jit_compile):
    """Compiled, one draw in ten million was infinite, and ended long fits with NaN."""
    ends = 2.0 ** -np.arange(1.0, 25.0)
    noise = np.float32(np.concatenate([ends, 1.0 - ends[:-1]]))[:, np.newaxis]
    locations = np.linspace(-8.0, 8.0, 161, dtype="float32")

    @tf.function(jit_compile=jit_compile)
    def drawn():
        return HalfGaussian(tf.constant(locations), tf.ones(161)).sample(noise)

    states = drawn().numpy()
    assert np.isfinite(states).all() and (states >= 0.0).all()
    assert (np.diff(states[:24], axis=0) > -1e-3).all()  # less noise, larger states
