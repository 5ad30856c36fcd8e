"""A CRBM on a network."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from model_test_case import run_file_test
from same import assert_descends, assert_same, state, unchanged
from small_models import batches, binary, compiled, fitted, randomized

import keras_rbm as kr
from keras_rbm.units.bernoulli import BernoulliParameters

X = np.random.default_rng(0).normal(size=(40, 3, 3, 1)).astype("float32")
Y = binary(40, 4)
LAYERS = keras.layers


def network(pair=False, extra=()):
    """Returns a small network: features, or visible biases and features."""
    keras.utils.set_random_seed(0)
    inputs = keras.Input((3, 3, 1))
    hidden = LAYERS.Conv2D(2, 2, activation="tanh")(inputs)
    for layer in extra:
        hidden = layer(hidden)
    features = LAYERS.Dense(5, activation="tanh")(LAYERS.Flatten()(hidden))
    outputs = [LAYERS.Conv2D(1, 1)(hidden), features] if pair else features
    return keras.Model(inputs, outputs)


def with_dropout():
    return network(extra=[LAYERS.BatchNormalization(), LAYERS.Dropout(0.5, seed=1)])


def flat_dense(**options):
    return keras.Sequential([LAYERS.Flatten(), LAYERS.Dense(5, **options)])


def made(backbone=None, **kwargs):
    options = {"inference": "exact", "kernel_regularizer": None, "seed": 0} | kwargs
    backbone = network() if backbone is None else backbone
    return kr.CRBM(3, backbone=backbone, **options)


def random_crbm(backbone=None):
    crbm = made(backbone, num_visible=4)
    crbm.build(X.shape)
    return randomized(crbm, 0.5)


def exact_gradients(crbm, x, y):
    """Returns gradients of minus the exact mean conditional log-likelihood.

    With the losses of layers and regularizers of the backbone.
    """
    with tf.GradientTape() as tape:
        features = crbm.backbone(x, training=False)
        loss = sum(crbm.backbone.losses)
        if isinstance(features, (list, tuple)):
            shifts, features = features
            visible = tf.reshape(shifts, (len(x), -1)) + crbm.visible_bias
        else:
            visible = features @ crbm.visible_kernel + crbm.visible_bias
        hidden = features @ crbm.hidden_kernel + crbm.hidden_bias
        units = map(BernoulliParameters, (visible, hidden))
        potentials = kr.inference.Potentials(tf.convert_to_tensor(crbm.kernel), *units)
        log_z = tf.cast(kr.inference.exact_log_partition(potentials), "float32")
        loss += tf.reduce_mean(potentials.free_energy(y) + log_z)
    return tape.gradient(loss, [v.value for v in crbm.trainable_variables])


@pytest.mark.parametrize(
    ("backbone", "count"),
    [
        (network, 9),
        (lambda: network(pair=True), 10),
        (lambda: flat_dense(kernel_regularizer=keras.regularizers.L2(1.0)), 7),
        (lambda: flat_dense(activity_regularizer="l2"), 7),
    ],
    ids=["features", "pair", "penalties", "losses of layers"],
)
def test_a_step_follows_the_exact_gradient(backbone, count):
    rule = kr.rules.MaximumLikelihood(centered=False)
    crbm = compiled(random_crbm(backbone()), keras.optimizers.SGD(1.0), rule=rule)
    assert len(crbm.trainable_variables) == count
    assert_descends(crbm, exact_gradients(crbm, X, Y), X, Y, atol=1e-5)


def test_sampled_gradients_agree_in_expectation():
    x, y = np.repeat(X[:4], 3000, 0), np.repeat(Y[:4], 3000, 0)
    rule = kr.rules.ContrastiveDivergence(100, centered=False)
    crbm = compiled(random_crbm(), keras.optimizers.SGD(1.0), rule=rule)
    wanted = exact_gradients(crbm, X[:4], Y[:4])
    assert_descends(crbm, wanted, x, y, atol=5 / np.sqrt(len(x)))


@pytest.mark.parametrize("rule", ["cd", "sdcp", "max_margin"])
def test_rules_train_it(rule):
    crbm = made(inference="max_product" if rule == "max_margin" else None)
    fitted(compiled(crbm, "sgd", rule=rule), X, Y)
    before = [v.numpy() for v in crbm.backbone.trainable_variables]
    fitted(crbm, X, Y)
    for variable, old in zip(crbm.backbone.trainable_variables, before, strict=True):
        assert (variable.numpy() != old).any()


def test_the_file_has_statistics_and_random_states_of_the_backbone(tmp_path):
    run_file_test(compiled(made(with_dropout())), X, Y, folder=tmp_path)


def test_training_and_prediction_are_two_modes():
    crbm = made(with_dropout())
    fitted(compiled(crbm, keras.optimizers.SGD(0.0)), X, Y)
    assert (crbm.backbone.layers[2].moving_mean.numpy() != 0.0).any()
    with unchanged(crbm):
        crbm.evaluate(X, Y, verbose=0)
        predictions = [crbm.predict(X, verbose=0) for _ in range(2)]
    np.testing.assert_array_equal(*predictions)


def test_a_frozen_backbone_stays():
    backbone = network()
    backbone.trainable = False
    with unchanged(backbone):
        crbm = fitted(compiled(made(backbone), "sgd"), X, Y)
    assert len(crbm.trainable_variables) == 5


def test_scores_samples_and_export(tmp_path):
    crbm = fitted(compiled(made()), X, Y, validation_data=(X, Y), epochs=2)
    pipeline = batches(X, Y)
    fitted(crbm, pipeline)
    assert crbm.predict(pipeline, verbose=0).shape == (40, 4)
    assert crbm.sample(X, steps=2, seed=0).shape == (40, 4)
    scores = crbm.log_likelihood(X, Y, "exact")
    plain = kr.CRBM(3, num_visible=4, num_features=5, inference="exact")
    for variable in plain.trainable_variables:
        variable.assign(getattr(crbm, variable.name))
    want = plain.log_likelihood(crbm.backbone(X), Y, "exact")
    np.testing.assert_allclose(scores, want, rtol=1e-5)
    crbm.export(tmp_path / "crbm", verbose=False)
    served = tf.saved_model.load(tmp_path / "crbm")
    np.testing.assert_allclose(served.serve(X), crbm.predict(X, verbose=0), atol=1e-5)


def test_a_bad_batch_changes_nothing():
    crbm = fitted(compiled(made(with_dropout())), X, Y)
    bad = X.copy()
    bad[30] = np.nan
    pipeline = batches(bad, Y, size=20)
    with pytest.raises(ValueError, match="x of step"):
        crbm.fit(pipeline, verbose=0)
    fitted(crbm, pipeline.take(1))  # as if the second batch had not been
    assert all(np.isfinite(v.numpy()).all() for v in crbm.variables)


def test_a_network_that_is_not_finite_changes_nothing():
    root = keras.Sequential([LAYERS.Flatten(), LAYERS.Lambda(tf.sqrt), LAYERS.Dense(5)])
    crbm = compiled(made(root))
    with pytest.raises(ValueError, match="finite"):
        crbm.fit(X, Y, verbose=0)
    assert all(np.isfinite(v.numpy()).all() for v in crbm.trainable_variables)


def test_metrics_change_no_weight():
    """They ran the network once more, with another mask and new statistics."""
    weights = []
    for metrics in (None, ["mse"]):
        crbm = made(with_dropout(), num_visible=4)
        compiled(crbm, "sgd", rule="cd", metrics=metrics)
        weights.append(state(fitted(crbm, X, Y, batch_size=20)))
    assert_same(*weights, rtol=1e-6)


@pytest.mark.slow
def test_a_last_batch_is_not_filled():
    """Rows of weight 0 had a share in BatchNormalization's statistics."""
    x = X.copy()
    x[0] = 100.0
    means = []
    ordered = {"batch_size": 32, "shuffle": False}
    for data, options in (((batches(x, Y, size=32),), {}), ((x, Y), ordered)):
        normal = LAYERS.BatchNormalization(momentum=0.0)
        crbm = made(keras.Sequential([LAYERS.Flatten(), normal]))
        fitted(compiled(crbm, keras.optimizers.SGD(0.0)), *data, **options)
        means.append(normal.moving_mean.numpy())
    np.testing.assert_allclose(*means, rtol=1e-6)


@pytest.mark.slow
def test_targets_may_be_pictures():
    """They are flattened wherever they are taken; datasets with either are alike."""
    x, y = X, Y.reshape(-1, 2, 2, 1)
    models = []
    for targets in (Y, y):
        crbm = compiled(made(), "sgd", metrics=["binary_accuracy"])
        fitted(crbm, batches(x, targets), validation_data=(x, targets))
        models.append(fitted(crbm, x, targets, shuffle=False))
    flat, pictures = models
    assert_same(flat.weights, pictures.weights)
    assert flat.evaluate(x, Y, verbose=0) == pictures.evaluate(x, y, verbose=0)
    # Keras traces the two ranks as one.
    assert flat.evaluate(x, Y, verbose=0) == flat.evaluate(x, y, verbose=0)
    for method in ("free_energy", "log_likelihood"):
        one, two = getattr(flat, method)(x, Y), getattr(pictures, method)(x, y)
        np.testing.assert_array_equal(one, two)
    gaps = np.where(y > 0.5, y, np.nan)
    drawn = flat.sample(x, steps=3, initial_visible=gaps, seed=0)
    assert drawn.shape == Y.shape
    assert (drawn.numpy()[Y > 0.5] == 1.0).all()
