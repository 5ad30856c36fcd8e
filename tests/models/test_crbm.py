"""The conditional RBM: every combination with rules, and its own methods."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from brute_force import Enumerated
from model_test_case import run_model_test, run_rule_test

import keras_rbm
from keras_rbm import inference, rules

RNG = np.random.default_rng(0)
X = RNG.integers(0, 2, (34, 5)).astype("float32")
Y = RNG.integers(0, 2, (34, 6)).astype("float32")


def make(infer="sum_product", scale=1.0, hidden_units=4, **options):
    """Returns a CRBM with random parameters of some size."""
    sizes = {"num_visible": 6, "num_features": 5, "seed": 0}
    crbm = keras_rbm.CRBM(hidden_units, inference=infer, **sizes, **options)
    rng = np.random.default_rng(1)
    for variable in crbm.trainable_variables:
        variable.assign(rng.normal(0, scale, variable.shape))
    return crbm


#: Inference, rule, and whether it draws.
RULES = {
    "MLE-MF": ("mean_field", rules.MaximumLikelihood, False),
    "MLE-BP": ("sum_product", rules.MaximumLikelihood, False),
    "MLE-exact": ("exact", rules.MaximumLikelihood, False),
    "MSSVM": ("mixed_product", rules.MaxMargin, False),
    "LSSVM": ("max_product", rules.MaxMargin, False),
    "CD": ("mean_field", lambda: rules.ContrastiveDivergence(2), True),
    "CD-PercLoss": (
        "mean_field",
        lambda: rules.ContrastiveDivergencePerceptron(3),
        True,
    ),
    "SDCP": ("mean_field", lambda: rules.SDCP(2, 1), True),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("infer", "make_rule", "stochastic"), RULES.values(), ids=RULES
)
def test_model_with_rule(infer, make_rule, stochastic):
    # The prior would count 40 rows in the batches of a dataset, 34 in arrays.
    data = (
        lambda: make(infer, 0.1, kernel_regularizer=None),
        make_rule,
        X,
        Y,
        stochastic,
    )
    if infer == "mean_field" and not stochastic:
        run_model_test(*data, weights_everywhere=True)
    else:
        run_rule_test(*data)


def models_of(crbm, x):
    """Returns each example's RBM, enumerated."""
    potentials = crbm.potentials(x)
    rows = zip(potentials.visible_bias, potentials.hidden_bias, strict=True)
    return [Enumerated(inference.Potentials(potentials.kernel, b, c)) for b, c in rows]


def test_potentials_are_the_definition():
    crbm = make()
    for x, v in zip(X[:3], Y[:3], strict=True):
        kernel, a, r = (
            w.numpy() for w in (crbm.kernel, crbm.visible_kernel, crbm.hidden_kernel)
        )
        hidden = v @ kernel + x @ r + crbm.hidden_bias.numpy()
        energy = -v @ (x @ a + crbm.visible_bias.numpy())
        energy -= np.logaddexp(0, hidden).sum()
        np.testing.assert_allclose(crbm.free_energy([x], [v]), [energy], rtol=1e-5)


def test_exact_prediction_and_likelihood():
    crbm = make("exact")
    truth = models_of(crbm, X)
    marginals = [model.moments()[1] for model in truth]
    np.testing.assert_allclose(crbm.predict(X, verbose=0), marginals, atol=1e-5)
    log_p = [
        np.log(model.p_visible[(model.v == v).all(1)][0])
        for model, v in zip(truth, Y, strict=True)
    ]
    exact = crbm.log_likelihood(X, Y, "exact")
    np.testing.assert_allclose(exact, log_p, rtol=1e-5)


def test_log_partition_methods():
    crbm, x = make(scale=0.5), X[:8]
    truth = np.array([model.log_partition for model in models_of(crbm, x)])
    ais = crbm.log_partition(x, "ais", precision=9.0)
    assert ais.value.shape == (8,)
    assert (abs(ais.value - truth) < 5 * ais.stderr).numpy().all()
    reverse = crbm.log_partition(x, "reverse_ais", precision=9.0)
    assert (abs(reverse.value - truth) < 5 * reverse.stderr + 0.02).numpy().all()
    bethe = crbm.log_partition(x)
    np.testing.assert_allclose(bethe.value, truth, rtol=0.02)
    assert np.isnan(bethe.stderr).all()
    bound = crbm.log_partition(x, "mean_field")
    assert (bound.value < truth).numpy().all()
    np.testing.assert_array_equal(bound.lower, bound.value)


def test_sample_follows_the_conditional_distribution():
    crbm = make(scale=0.7)
    model = models_of(crbm, X[:1])[0]
    count = 20_000
    states = crbm.sample(np.repeat(X[:1], count, 0), steps=60, seed=0)
    error = abs(model.frequencies(states) - model.p_visible)
    assert (error < 5 * np.sqrt(model.p_visible / count) + 1e-4).all()


def test_sample_keeps_clamped_units():
    crbm = make()
    gaps = np.where(np.arange(6) < 2, Y, np.nan)
    states = crbm.sample(X, steps=5, initial_visible=gaps).numpy()
    np.testing.assert_array_equal(states[:, :2], Y[:, :2])
    assert (states[:, 2:] != Y[:, 2:]).any()


@pytest.mark.parametrize("infer", ["max_product", "mixed_product", "sum_product"])
def test_predict_map(infer):
    crbm = make(infer, 0.5, hidden_units=1)  # a star: belief propagation is exact
    found = crbm.predict_map(X, batch_size=10).numpy()
    for model, state in zip(models_of(crbm, X), found, strict=True):
        best = {
            "max_product": lambda m: m.v[m.log_joint.max(1).argmax()],
            "mixed_product": lambda m: m.v[m.p_visible.argmax()],
            "sum_product": lambda m: m.moments()[1] > 0.5,
        }[infer](model)
        np.testing.assert_array_equal(state, best)


def test_metrics_see_the_prediction():
    noisy = RNG.integers(0, 2, Y.shape).astype("float32")
    crbm = keras_rbm.CRBM(4, seed=0)
    crbm.compile(
        keras.optimizers.SGD(0.1),
        rule="maximum_likelihood",
        metrics=[keras_rbm.metrics.PixelError()],
    )
    history = crbm.fit(noisy, Y, epochs=2, validation_data=(noisy, Y), verbose=0)
    wrong = (crbm.predict(noisy, verbose=0) > 0.5) != Y
    logs = crbm.evaluate(noisy, Y, return_dict=True, verbose=0)
    assert logs["pixel_error"] == pytest.approx(100 * wrong.mean(), abs=1e-3)
    assert history.history["val_pixel_error"][-1] == pytest.approx(100 * wrong.mean())


@pytest.mark.parametrize(
    ("infer", "rule"),
    [
        ("exact", "maximum_likelihood"),
        pytest.param("mixed_product", "max_margin", marks=pytest.mark.slow),
        pytest.param("exact", "cd", marks=pytest.mark.slow),
        pytest.param(
            "mixed_product", rules.MaximumLikelihood("exact"), marks=pytest.mark.slow
        ),
    ],
)
def test_metrics_are_of_the_model_before_the_step(infer, rule):
    crbm = make(infer)
    crbm.compile(keras.optimizers.SGD(2.0), rule=rule, metrics=["mae"])
    prediction = crbm.predict(X, verbose=0)
    logged = crbm.fit(X, Y, batch_size=len(X), verbose=0).history["mae"][0]
    assert logged == pytest.approx(np.abs(prediction - Y).mean(), rel=1e-5)
    after = np.abs(crbm.predict(X, verbose=0) - Y).mean()
    assert crbm.evaluate(X, Y, verbose=0)[1] == pytest.approx(after, rel=1e-5)
    assert abs(after - logged) > 1e-3


def test_a_failing_validation_set_leaves_the_model_unbuilt():
    crbm = compiled()
    with pytest.raises(ValueError, match="as wide as"):
        crbm.fit(X, Y, validation_data=(X[:, :3], Y))
    assert not crbm.built
    history = crbm.fit(X, Y, validation_data=[X, Y], verbose=0).history
    assert np.isfinite(history["val_loss"]).all()


def test_datasets_of_unknown_shape():
    types = (tf.float32, tf.float32)
    data = tf.data.Dataset.from_generator(lambda: iter([(X, Y)]), output_types=types)
    data = data.apply(tf.data.experimental.assert_cardinality(1))
    for rule in ("maximum_likelihood", "cd"):
        crbm = compiled()
        crbm.compile("sgd", rule=rule)
        assert np.isfinite(crbm.fit(data, verbose=0).history["loss"]).all()


def test_kernels_start_from_numbers_of_their_own():
    crbm = keras_rbm.CRBM(6, num_visible=6, num_features=6, seed=0)
    kernels = [crbm.kernel, crbm.visible_kernel, crbm.hidden_kernel]
    flat = np.stack([kernel.numpy().ravel() for kernel in kernels])
    assert (np.abs(np.corrcoef(flat) - np.eye(3)) < 0.5).all()
    assert len(np.unique(flat)) == flat.size


def test_targets_may_be_probabilities():
    crbm = keras_rbm.CRBM(4, seed=0)
    crbm.compile("sgd", rule="maximum_likelihood")
    assert np.isfinite(crbm.fit(X, 0.3 + 0.4 * Y, verbose=0).history["loss"]).all()


def test_mixed_precision():
    crbm = keras_rbm.CRBM(4, seed=0, dtype="mixed_bfloat16")
    crbm.compile("sgd", rule="maximum_likelihood")
    assert np.isfinite(crbm.fit(X, Y, verbose=0).history["loss"]).all()
    assert crbm.kernel.dtype == "float32"


def compiled(**kwargs):
    crbm = keras_rbm.CRBM(4, seed=0, **kwargs)
    crbm.compile("sgd", rule="maximum_likelihood")
    return crbm


def pairs(x, y):
    return tf.data.Dataset.from_tensors((x, y))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.fit(X), "fit\\(x, y\\)"),
        (lambda m: m.fit(X, Y + 0.5), "y, states of Bernoulli units"),
        (lambda m: m.fit(X, np.where(Y > 2, Y, np.nan)), "finite y"),
        (lambda m: m.fit(np.where(X > 2, X, np.inf), Y), "finite x"),
        (lambda m: m.fit(X[:, :3], Y), r"x of shape \(examples, 5\)"),
        (lambda m: m.fit(X, Y[:, :3]), r"y of shape \(examples, 6\)"),
        (lambda m: m.fit(X[:5], Y), "one length"),
        (lambda m: m.evaluate(X[:, :3], Y), r"x of shape \(examples, 5\)"),
        (lambda m: m.evaluate(X), "fit\\(x, y\\)"),
        (lambda m: m.predict_map(X[:, :3]), r"x of shape \(examples, 5\)"),
        (lambda m: m.free_energy(X, Y[:4]), "equal length"),
        (lambda m: m.log_partition(X, "magic"), "Received: method='magic'"),
        (lambda m: m.log_partition(X, "tempering"), "Received: method='tempering'"),
        (lambda m: m.log_likelihood(X, Y, m.log_partition(X[:1])), "the same x"),
        (lambda m: m.log_likelihood(X, Y + 1, "ais"), "v, states of Bernoulli units"),
        (lambda m: m.predict(np.full((3, 5), np.nan)), "finite x"),
        (lambda m: m.fit(X, Y, validation_split=1.0), "validation_split=1.0"),
        (lambda m: m.fit(X, Y, validation_split=0.99), "on either side.*0.99 of 34"),
        (lambda m: m.fit(X, Y, validation_data=(X, Y[:, :3])), "y of shape"),
        (lambda m: m.fit(X, Y, validation_data=pairs(X, 2 * Y)), "y, states"),
        (lambda m: m.evaluate(pairs(X, Y[:, :3])), "y of shape"),
        (lambda m: m.fit(X, Y, sample_weight=Y), "each example"),
        (lambda m: m.fit(X, Y, sample_weight=2.0), "each example"),
        (lambda m: m.sample(X, steps=-1), "Received: steps=-1"),
        (lambda m: m.compile("sgd", rule="max_margin"), "mixed_product"),
        (lambda m: m.compile("sgd", rule="pcd"), "its own model"),
        (lambda m: m.compile("sgd", rule="magic"), "Received: 'magic'"),
    ],
)
def test_bad_input_changes_nothing(call, message):
    crbm = compiled(num_visible=6, num_features=5)
    before = [w.numpy() for w in crbm.weights]
    with pytest.raises(ValueError, match=message):
        call(crbm)
    for w, old in zip(crbm.weights, before, strict=True):
        np.testing.assert_array_equal(w, old)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: keras_rbm.CRBM(0), "Received: hidden_units=0"),
        (lambda: keras_rbm.CRBM(4, inference="magic"), "Received: 'magic'"),
        (lambda: keras_rbm.CRBM(4, num_features=0), "Received: num_features=0"),
        (lambda: keras_rbm.CRBM(4).predict(X), "built model in predict"),
        (lambda: keras_rbm.CRBM(4).build((None, 5)), "num_visible="),
        (lambda: keras_rbm.CRBM(4, num_visible=6).build((None, 2, 2)), "Flatten"),
    ],
)
def test_bad_construction(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_other_types_are_named():
    crbm = compiled(num_visible=6, num_features=5)
    with pytest.raises(TypeError, match="dtype <U"):
        crbm.fit(X.astype(str), Y)
    with pytest.raises(TypeError, match="x as an array with y"):
        crbm.fit(tf.data.Dataset.from_tensor_slices(X).batch(5), Y)


def test_potentials_need_features():
    with pytest.raises(ValueError, match="features=None"):
        make().potentials()


def test_rules_that_need_input_say_so():
    for rule in ("max_margin", "cd_perceptron"):
        with pytest.raises(ValueError, match="Use a CRBM"):
            keras_rbm.RBM(4).compile("sgd", rule=rule)
    with pytest.raises(ValueError, match="yields marginals"):
        keras_rbm.CRBM(4, inference="max_product").compile(
            "sgd", rule="maximum_likelihood"
        )


@pytest.mark.usefixtures("traced")
def test_dataset_of_pairs():
    # A pipeline's last batch may be smaller than the prior takes it to be.
    a, b = (compiled(kernel_regularizer=None) for _ in range(2))
    a.fit(X, Y, batch_size=10, shuffle=False, verbose=0)
    b.fit(tf.data.Dataset.from_tensor_slices((X, Y)).batch(10), verbose=0)
    np.testing.assert_allclose(a.kernel, b.kernel, rtol=1e-4, atol=1e-7)


def test_features_may_have_any_width_and_sign():
    x = RNG.normal(0, 3, (34, 9))
    crbm = compiled()
    crbm.fit(x, Y, verbose=0)
    assert crbm.predict(x, verbose=0).shape == Y.shape


def test_inference_can_be_exchanged_after_training():
    crbm = make("sum_product")
    crbm.compile("sgd", rule="maximum_likelihood")
    crbm.fit(X, Y, epochs=1, verbose=0)
    crbm.predict(X, verbose=0)
    crbm.inference = "exact"
    np.testing.assert_allclose(
        crbm.predict(X, verbose=0), crbm.inference(crbm.potentials(X)).visible, 1e-5
    )
    crbm.fit(X, Y, epochs=1, verbose=0)
    with pytest.raises(ValueError, match="marginals"):
        crbm.inference = "max_product"
    assert isinstance(crbm.inference, inference.Exact)


@pytest.mark.slow
def test_an_open_interval_of_one_row():
    """The warning's text took the end of a single row for a number."""
    crbm = make()
    for count in (2, 1):
        with pytest.warns(UserWarning, match="error of log Z"):
            z = crbm.log_partition(X[:count], "ais", num_chains=5, precision=9.0)
        assert np.isinf(z.upper).all()


@pytest.mark.parametrize(
    ("hidden_units", "width", "name"),
    [(4, 12, "Exact"), (20, 6, "Exact"), (9, 9, "BeliefPropagation")],
)
def test_small_layers_are_enumerated_by_default(hidden_units, width, name):
    crbm = keras_rbm.CRBM(hidden_units, seed=0)
    again = keras_rbm.CRBM.from_config(crbm.get_config())
    for model in (crbm, again):
        model.compile()
        model.fit(X, np.tile(Y, (1, 2))[:, :width], verbose=0)
        assert type(model.inference).__name__ == name
        loaded = keras_rbm.CRBM.from_config(model.get_config())
        assert type(loaded.inference).__name__ == name


def test_chosen_inference_stays():
    crbm = keras_rbm.CRBM(4, inference="belief_propagation", seed=0)
    later = keras_rbm.CRBM(4, seed=0)
    later.inference = "sum_product"
    for model in (crbm, later):
        model.compile()
        model.fit(X, Y, verbose=0)
        assert type(model.inference).__name__ == "BeliefPropagation"
