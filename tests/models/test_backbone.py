"""A CRBM on a network."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from model_test_case import two_cpus

import keras_rbm as kr
from keras_rbm.units.bernoulli import BernoulliParameters

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3, 3, 1)).astype("float32")
Y = RNG.integers(0, 2, (40, 4)).astype("float32")
LAYERS = keras.layers


def network(pair=False, extra=(), seed=0):
    """Returns a small network: features, or visible biases and features."""
    keras.utils.set_random_seed(seed)
    inputs = keras.Input((3, 3, 1))
    hidden = LAYERS.Conv2D(2, 2, activation="tanh")(inputs)
    for layer in extra:
        hidden = layer(hidden)
    flat = LAYERS.Flatten()(hidden)
    features = LAYERS.Dense(5, activation="tanh")(flat)
    outputs = [LAYERS.Conv2D(1, 1)(hidden), features] if pair else features
    return keras.Model(inputs, outputs)


def made(backbone=None, **kwargs):
    options = {"inference": "exact", "kernel_regularizer": None, "seed": 0} | kwargs
    backbone = network() if backbone is None else backbone
    return kr.CRBM(3, backbone=backbone, **options)


def randomized(crbm):
    crbm.build(X.shape)
    for index, variable in enumerate(crbm.trainable_variables):
        values = np.random.default_rng(index).normal(size=variable.shape)
        variable.assign(0.5 * values)
    return crbm


def exact_gradients(crbm, x, y, training=False):
    """Returns gradients of minus the exact mean conditional log-likelihood."""
    with tf.GradientTape() as tape:
        shifts, features = None, crbm.backbone(x, training=training)
        if isinstance(features, (list, tuple)):
            shifts, features = features
            visible = tf.reshape(shifts, (len(x), -1)) + crbm.visible_bias
        else:
            visible = features @ crbm.visible_kernel + crbm.visible_bias
        hidden = features @ crbm.hidden_kernel + crbm.hidden_bias
        potentials = kr.inference.Potentials(
            tf.convert_to_tensor(crbm.kernel),
            BernoulliParameters(visible),
            BernoulliParameters(hidden),
        )
        log_z = tf.cast(kr.inference.exact_log_partition(potentials), "float32")
        loss = tf.reduce_mean(potentials.free_energy(y) + log_z)
    return tape.gradient(loss, [v.value for v in crbm.trainable_variables])


@pytest.mark.parametrize("pair", [False, True])
def test_a_step_follows_the_exact_gradient(pair):
    crbm = randomized(made(network(pair), num_visible=4))
    crbm.compile(keras.optimizers.SGD(1.0))
    wanted = exact_gradients(crbm, X, Y)
    before = [v.numpy() for v in crbm.trainable_variables]
    crbm.fit(X, Y, batch_size=40, verbose=0)
    assert len(before) == (10 if pair else 9)
    for variable, old, gradient in zip(
        crbm.trainable_variables, before, wanted, strict=True
    ):
        np.testing.assert_allclose(old - variable, gradient, atol=1e-5)


def test_sampled_gradients_agree_in_expectation():
    x, y = np.repeat(X[:4], 3000, 0), np.repeat(Y[:4], 3000, 0)
    crbm = randomized(made(num_visible=4))
    rule = kr.rules.ContrastiveDivergence(100, centered=False)
    crbm.compile(keras.optimizers.SGD(1.0), rule=rule)
    wanted = exact_gradients(crbm, X[:4], Y[:4])
    before = [v.numpy() for v in crbm.trainable_variables]
    crbm.fit(x, y, batch_size=len(x), verbose=0)
    for variable, old, gradient in zip(
        crbm.trainable_variables, before, wanted, strict=True
    ):
        np.testing.assert_allclose(old - variable, gradient, atol=5 / np.sqrt(len(x)))


@pytest.mark.parametrize("rule", ["cd", "sdcp", "max_margin", "pcd"])
def test_rules_train_it(rule):
    crbm = made(inference="max_product" if rule == "max_margin" else None)
    crbm.compile("sgd", rule=rule) if rule != "pcd" else None
    if rule == "pcd":
        with pytest.raises(ValueError, match="without input"):
            crbm.compile("sgd", rule=rule)
        return
    crbm.fit(X, Y, verbose=0)
    before = [v.numpy() for v in crbm.backbone.trainable_variables]
    crbm.fit(X, Y, verbose=0)
    for variable, old in zip(crbm.backbone.trainable_variables, before, strict=True):
        assert (variable.numpy() != old).any()


def with_dropout():
    return network(extra=[LAYERS.BatchNormalization(), LAYERS.Dropout(0.5, seed=1)])


@pytest.mark.parametrize(
    "whole",
    [True, pytest.param(False, marks=pytest.mark.slow)],
    ids=["keras", "weights"],
)
def test_resumes_bit_for_bit(whole, tmp_path):
    """With statistics and random states of the backbone."""
    crbm = made(with_dropout())
    crbm.compile()
    crbm.fit(X, Y, epochs=2, verbose=0)
    path = tmp_path / ("crbm.keras" if whole else "crbm.weights.h5")
    crbm.save(path) if whole else crbm.save_weights(path)
    if whole:
        again = keras.saving.load_model(path)
    else:
        again = made(with_dropout(), num_visible=4)
        again.build(X.shape)
        again.compile()
        again.load_weights(path)
    for model in (crbm, again):
        model.fit(X, Y, epochs=3, initial_epoch=2, verbose=0)
    for own, other in zip(crbm.variables, again.variables, strict=True):
        np.testing.assert_array_equal(own, other)
    np.testing.assert_array_equal(
        crbm.predict(X, verbose=0), again.predict(X, verbose=0)
    )


def test_training_and_prediction_are_two_modes():
    crbm = made(with_dropout())
    crbm.compile(keras.optimizers.SGD(0.0))
    crbm.fit(X, Y, verbose=0)
    moved = crbm.backbone.layers[2].moving_mean
    assert (moved.numpy() != 0.0).any()
    before = [v.numpy() for v in crbm.variables]
    crbm.evaluate(X, Y, verbose=0)
    np.testing.assert_array_equal(
        crbm.predict(X, verbose=0), crbm.predict(X, verbose=0)
    )
    for variable, old in zip(crbm.variables, before, strict=True):
        np.testing.assert_array_equal(variable, old)


def test_a_frozen_backbone_stays():
    backbone = network()
    backbone.trainable = False
    crbm = made(backbone)
    crbm.compile("sgd")
    before = [v.numpy() for v in backbone.weights]
    crbm.fit(X, Y, verbose=0)
    for variable, old in zip(backbone.weights, before, strict=True):
        np.testing.assert_array_equal(variable, old)
    assert len(crbm.trainable_variables) == 5


def test_penalties_of_the_backbone_count():
    backbone = keras.Sequential(
        [
            LAYERS.Flatten(),
            LAYERS.Dense(5, kernel_regularizer=keras.regularizers.L2(1.0)),
        ]
    )
    crbm = randomized(made(backbone, num_visible=4))
    crbm.compile(keras.optimizers.SGD(1.0))
    kernel = backbone.layers[1].kernel
    wanted = exact_gradients(crbm, X, Y)[-2] + 2.0 * kernel
    before = kernel.numpy()
    crbm.fit(X, Y, batch_size=40, verbose=0)
    np.testing.assert_allclose(before - kernel, wanted, atol=1e-5)


@pytest.mark.parametrize(
    "mode", [None, pytest.param("as_users_run", marks=pytest.mark.slow)]
)
def test_scores_samples_and_export(mode, tmp_path, request):
    if mode:
        request.getfixturevalue(mode)
    crbm = made()
    crbm.compile()
    crbm.fit(X, Y, validation_data=(X, Y), epochs=2, verbose=0)
    pipeline = tf.data.Dataset.from_tensor_slices((X, Y)).batch(10)
    crbm.fit(pipeline, verbose=0)
    assert crbm.predict(pipeline, verbose=0).shape == (40, 4)
    assert crbm.sample(X, steps=2, seed=0).shape == (40, 4)
    scores = crbm.log_likelihood(X, Y, "exact")
    features = crbm.backbone(X)
    plain = kr.CRBM(3, num_visible=4, num_features=5, inference="exact")
    for name in ("kernel", "visible_kernel", "hidden_kernel"):
        getattr(plain, name).assign(getattr(crbm, name))
    for name in ("visible_bias", "hidden_bias"):
        getattr(plain, name).assign(getattr(crbm, name))
    want = plain.log_likelihood(features, Y, "exact")
    np.testing.assert_allclose(scores, want, rtol=1e-5)
    crbm.export(tmp_path / "crbm", verbose=False)
    served = tf.saved_model.load(tmp_path / "crbm")
    np.testing.assert_allclose(served.serve(X), crbm.predict(X, verbose=0), atol=1e-5)


def test_a_bad_batch_changes_nothing():
    crbm = made(with_dropout())
    crbm.compile()
    crbm.fit(X, Y, verbose=0)
    bad = X.copy()
    bad[30] = np.nan
    pipeline = tf.data.Dataset.from_tensor_slices((bad, Y)).batch(20)
    with pytest.raises(ValueError, match="x of step"):
        crbm.fit(pipeline, verbose=0)
    crbm.fit(pipeline.take(1), verbose=0)  # as if the second batch had not been

    assert all(np.isfinite(v.numpy()).all() for v in crbm.variables)


def test_a_network_that_is_not_finite_changes_nothing():
    root = keras.Sequential([LAYERS.Flatten(), LAYERS.Lambda(tf.sqrt), LAYERS.Dense(5)])
    crbm = made(root)
    crbm.compile()
    with pytest.raises(ValueError, match="finite"):
        crbm.fit(X, Y, verbose=0)
    assert all(np.isfinite(v.numpy()).all() for v in crbm.trainable_variables)


@pytest.mark.parametrize(
    "backbone, words",
    [
        (LAYERS.Conv2D(2, 2), "Flatten"),
        (network(pair=True), "4 numbers|5 numbers"),
    ],
)
def test_outputs_that_do_not_fit(backbone, words):
    crbm = made(backbone)
    crbm.compile()
    with pytest.raises(ValueError, match=words):
        crbm.fit(X, np.concatenate([Y, Y[:, :1]], 1), verbose=0)


def test_other_bad_arguments():
    with pytest.raises(TypeError, match="backbone"):
        kr.CRBM(3, backbone=lambda x: x)
    crbm = made()
    crbm.compile()
    crbm.fit(X, Y, verbose=0)
    with pytest.raises(ValueError, match="shape"):
        crbm.predict(X[:, :2], verbose=0)
    with pytest.raises(ValueError, match="shape"):
        crbm.fit(X[:, :2], Y, verbose=0)


@pytest.mark.slow
def test_two_replicas_learn_what_one_does():
    weights = []
    for strategy in (
        tf.distribute.get_strategy(),
        two_cpus(),
    ):
        with strategy.scope():
            crbm = made(num_visible=4)
            crbm.compile(keras.optimizers.SGD(0.1))
        crbm.fit(X, Y, batch_size=20, shuffle=False, verbose=0)
        weights.append([v.numpy() for v in crbm.trainable_variables])
    for own, other in zip(*weights, strict=True):
        np.testing.assert_allclose(own, other, atol=1e-5)


def test_layers_of_one_name():
    """Gradients were found by the variables' paths, which were equal."""

    def tower(index):
        inputs = keras.Input((4,))
        layer = LAYERS.Dense(2, activation="tanh", name="kernel")
        return keras.Model(inputs, layer(inputs), name=f"tower_{index}")

    inputs = keras.Input((3, 3, 1))
    flat = LAYERS.Flatten()(inputs)
    parts = [tower(0)(flat[:, :4]), tower(1)(flat[:, 4:8])]
    crbm = randomized(
        made(keras.Model(inputs, LAYERS.Concatenate()(parts)), num_visible=4)
    )
    crbm.compile(keras.optimizers.SGD(1.0))
    wanted = exact_gradients(crbm, X, Y)
    before = [v.numpy() for v in crbm.trainable_variables]
    crbm.fit(X, Y, batch_size=40, verbose=0)
    for variable, old, gradient in zip(
        crbm.trainable_variables, before, wanted, strict=True
    ):
        np.testing.assert_allclose(old - variable, gradient, atol=1e-5)


def test_metrics_change_no_weight():
    """They ran the network once more, with another mask and new statistics."""
    weights = []
    for metrics in (None, ["mse"]):
        crbm = made(with_dropout(), num_visible=4)
        crbm.compile("sgd", rule="cd", metrics=metrics)
        crbm.fit(X, Y, batch_size=20, verbose=0)
        weights.append([v.numpy() for v in crbm.variables])
    for own, other in zip(*weights, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-6)


@pytest.mark.slow
def test_a_last_batch_is_not_filled():
    """Rows of weight 0 had a share in BatchNormalization's statistics."""
    x = X.copy()
    x[0] = 100.0
    means = []
    for as_pipeline in (False, True):
        normal = LAYERS.BatchNormalization(momentum=0.0)
        backbone = keras.Sequential([LAYERS.Flatten(), normal])
        crbm = made(backbone)
        crbm.compile(keras.optimizers.SGD(0.0))
        if as_pipeline:
            crbm.fit(tf.data.Dataset.from_tensor_slices((x, Y)).batch(32), verbose=0)
        else:
            crbm.fit(x, Y, batch_size=32, shuffle=False, verbose=0)
        means.append(normal.moving_mean.numpy())
    np.testing.assert_allclose(*means, rtol=1e-6)


def test_losses_of_its_layers_count():
    backbone = keras.Sequential(
        [LAYERS.Flatten(), LAYERS.Dense(5, activity_regularizer="l2")]
    )
    crbm = randomized(made(backbone, num_visible=4))
    crbm.compile(keras.optimizers.SGD(1.0))
    kernel = backbone.layers[1].kernel
    with tf.GradientTape() as tape:
        backbone(X)
        activity = sum(backbone.losses)
    wanted = exact_gradients(crbm, X, Y)[-2] + tape.gradient(activity, kernel.value)
    before = kernel.numpy()
    crbm.fit(X, Y, batch_size=40, verbose=0)
    np.testing.assert_allclose(before - kernel, wanted, atol=1e-5)


@pytest.mark.slow
def test_reports_and_any_size():
    crbm = made(LAYERS.GlobalAveragePooling2D(), num_visible=4)
    crbm.build((None, None, None, 1))
    assert "exact" in str(kr.score_report(crbm, X, Y))
    for size in (3, 5):
        assert crbm.predict(np.zeros((2, size, size, 1)), verbose=0).shape == (2, 4)
    with pytest.raises(ValueError, match="num_features"):
        made(num_features=5)
    with pytest.raises(ValueError, match="pair"):
        made(LAYERS.Lambda(lambda x: {"a": x}), num_visible=4).build(X.shape)


@pytest.mark.slow
def test_targets_may_be_pictures():
    """They are flattened wherever they are taken; datasets with either are alike."""
    x, y = X, Y.reshape(-1, 2, 2, 1)
    models = [made(seed=0), made(seed=0)]
    models[1].backbone.set_weights(models[0].backbone.get_weights())
    for crbm, targets in zip(models, (Y, y), strict=True):
        crbm.compile("sgd", metrics=["binary_accuracy"])
        pairs = tf.data.Dataset.from_tensor_slices((x, targets)).batch(10)
        crbm.fit(pairs, validation_data=(x, targets), verbose=0)
        crbm.fit(x, targets, shuffle=False, verbose=0)
    flat, pictures = models
    for one, two in zip(flat.weights, pictures.weights, strict=True):
        np.testing.assert_array_equal(one, two)
    assert flat.evaluate(x, Y, verbose=0) == pictures.evaluate(x, y, verbose=0)
    crbm = made()
    crbm.compile("sgd")
    crbm.fit(x, y, validation_data=(x, Y), verbose=0)
    unknown = tf.data.Dataset.from_generator(
        lambda: zip([x[:20], x[20:]], [y[:20], y[20:]], strict=True),
        output_signature=(
            tf.TensorSpec((None, 3, 3, 1)),
            tf.TensorSpec((None, None, None, 1)),
        ),
    )
    crbm.fit(unknown, steps_per_epoch=2, verbose=0)
    # Keras traces the two ranks as one.
    assert flat.evaluate(x, Y, verbose=0) == flat.evaluate(x, y, verbose=0)
    for method in ("free_energy", "log_likelihood"):
        one, two = getattr(flat, method)(x, Y), getattr(pictures, method)(x, y)
        np.testing.assert_array_equal(one, two)
    drawn = flat.sample(
        x, steps=3, initial_visible=np.where(y > 0.5, y, np.nan), seed=0
    )
    assert drawn.shape == Y.shape
    assert (drawn.numpy()[Y > 0.5] == 1.0).all()


def test_a_picture_of_another_size_is_an_error():
    crbm = made()
    crbm.compile("sgd")
    crbm.fit(X, Y, verbose=0)
    with pytest.raises(ValueError, match="Expected y of 4 numbers"):
        crbm.fit(X, np.zeros((40, 3, 3)), verbose=0)


def test_several_inputs_are_an_error_with_a_cure():
    crbm = made()
    crbm.compile("sgd")
    inputs = {"a": X, "b": X}
    batches = tf.data.Dataset.from_tensor_slices((inputs, Y)).batch(8)
    for data in ((inputs, Y), (batches,)):
        with pytest.raises(TypeError, match="keras_rbm.layers.Marginals"):
            crbm.fit(*data, verbose=0)
