"""An RBM as the prior of another model's codes."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from model_test_case import two_cpus
from same import assert_same, refused, unchanged
from small_models import compiled, fitted, quick, randomized, reloaded

import keras_rbm as kr
from keras_rbm.layers import RBMPrior

RNG = np.random.default_rng(0)
CODES = RNG.random((30, 5)).astype("float32")


def random_rbm(visible="bernoulli"):
    options = {"num_visible": 5, "kernel_regularizer": None, "seed": 0}
    return randomized(kr.RBM(3, visible=visible, **options), 0.7)


@pytest.mark.parametrize("visible", ["bernoulli", "gaussian"])
def test_gradients_are_those_of_the_negative_log_density(visible):
    """With respect to codes exactly, to the RBM up to the chains' sampling error."""
    prior = RBMPrior(random_rbm(visible), gibbs_steps=100, num_chains=20_000, seed=0)
    prior.build(CODES.shape)
    codes = tf.constant(CODES)
    variables = prior.rbm.trainable_variables
    with tf.GradientTape() as tape:
        tape.watch(codes)
        prior(codes, training=True)
        loss = sum(prior.losses)
    found = tape.gradient(loss, [codes, *variables])
    with tf.GradientTape() as tape:
        tape.watch(codes)
        potentials = prior.rbm.potentials()
        exact = kr.inference.exact_log_partition(potentials.transpose())
        energy = tf.reduce_mean(potentials.free_energy(codes))
        total = energy + tf.cast(exact, "float32")
    want = tape.gradient(total, [codes, *variables])
    np.testing.assert_allclose(loss, energy, rtol=1e-6)
    np.testing.assert_allclose(found[0], want[0], atol=1e-7)
    # A statistic's deviation is at most about 2 here.
    assert_same(found[1:], want[1:], atol=5 * 2 / np.sqrt(20_000))


def autoencoder(seed=0, jit_compile=False, **kwargs):
    keras.utils.set_random_seed(seed)
    prior = RBMPrior(kr.RBM(3, seed=0), num_chains=10, seed=0, **kwargs)
    dense = [keras.layers.Dense(size, "sigmoid") for size in (5, 4)]
    model = keras.Sequential([keras.Input((4,)), dense[0], prior, dense[1]])
    options = {"loss": "binary_crossentropy", "jit_compile": jit_compile}
    return compiled(model, keras.optimizers.Adam(0.05), **options), prior


ROWS = np.repeat(np.eye(4, dtype="float32"), 8, 0)


def test_trains_saves_and_goes_on_alike(tmp_path):
    model, prior = autoencoder()
    fitted(model, ROWS, ROWS, shuffle=False)
    moved = prior.chains.numpy()
    again = reloaded(model, tmp_path)
    for each in (model, again):
        fitted(each, ROWS, ROWS, shuffle=False)
    assert_same(model.variables, again.variables)
    assert (prior.chains.numpy() != moved).any()
    np.testing.assert_allclose(prior.rbm.base_rate, 0.5, atol=0.4)
    assert (prior.rbm.base_rate != 0.5).numpy().any()
    assert np.isfinite(prior.rbm.log_partition("exact").value)


@pytest.mark.slow
@pytest.mark.usefixtures("compiled_inference")
def test_the_same_with_xla_and_without():
    losses = []
    for jit_compile in (True, False):
        model, _ = autoencoder(jit_compile=jit_compile)
        history = model.fit(ROWS, ROWS, epochs=3, verbose=0, shuffle=False).history
        losses.append(history["loss"])
    np.testing.assert_allclose(*losses, rtol=1e-4)


def test_evaluating_moves_nothing():
    model, prior = autoencoder()
    with unchanged(prior):
        loss = model.evaluate(ROWS, ROWS, verbose=0)
    codes = model.layers[0](ROWS)
    crossentropy = keras.losses.binary_crossentropy(ROWS, model(ROWS))
    energy = prior.rbm.potentials().free_energy(codes)
    np.testing.assert_allclose(loss, np.mean(crossentropy + energy), rtol=1e-5)


def test_it_learns_the_codes():
    """More than that of independent columns, at 4 log 2 nats."""
    codes = np.repeat(np.float32([[1, 1, 0, 0], [0, 0, 1, 1]]), 50, 0)
    prior = RBMPrior(kr.RBM(2, kernel_regularizer=None, seed=0), seed=0)
    model = keras.Sequential([keras.Input((4,)), prior])
    falling = keras.optimizers.schedules.PolynomialDecay(0.05, 160, 0.0)
    compiled(model, keras.optimizers.Adam(falling), lambda y, p: 0.0 * p)
    fitted(model, codes, codes, epochs=40)
    scores = prior.rbm.log_likelihood(codes[[0, -1]], "exact")
    assert np.mean(scores) > -4 * np.log(2) + 1.0


def test_fresh_chains():
    _, prior = autoencoder()
    prior.chains.assign(np.ones((10, 3)))
    prior.reset_chains()
    assert 0.0 < np.mean(prior.chains) < 1.0


NEGATIVE = np.concatenate([CODES[:, :4], -np.ones((30, 1))], 1)
CATEGORICAL = kr.units.Categorical(3)
REFUSALS = [
    (lambda: RBMPrior(kr.RBM(3))(NEGATIVE), "codes between 0 and 1 .*from -1 to 0.997"),
    (lambda: RBMPrior(kr.RBM(3))(np.zeros((2, 3, 4))), "shape"),
    (lambda: RBMPrior(kr.RBM(3, visible=CATEGORICAL))(CODES), "numbers"),
    (lambda: RBMPrior(kr.RBM(3, num_visible=6))(CODES), "width"),
    (lambda: RBMPrior(kr.InfiniteRBM(3)), "to_rbm"),
    (lambda: RBMPrior("rbm"), "rbm"),
    (lambda: RBMPrior(kr.RBM(2), gibbs_steps=0), "gibbs_steps"),
    (lambda: RBMPrior(kr.RBM(2), num_chains=1.5), "num_chains"),
]


@pytest.mark.parametrize(("make", "words"), REFUSALS)
def test_refused(make, words):
    is_no_rbm = words in ("to_rbm", "rbm")
    with refused(words, error=TypeError if is_no_rbm else ValueError):
        make()


@pytest.mark.parametrize("jit_compile", quick([True, False], False))
def test_codes_beyond_the_units_leave_the_rbm_as_it_is(jit_compile):
    model, prior = autoencoder(jit_compile=jit_compile)
    fitted(model, ROWS, ROWS)
    model.layers[0].activation = lambda x: 3.0 + x
    compiled(model, "sgd", "mse", jit_compile=jit_compile)
    before = [variable.numpy() for variable in prior.rbm.weights]
    if jit_compile:
        assert np.isnan(model.fit(ROWS, ROWS, verbose=0).history["loss"]).all()
    else:
        with pytest.raises(tf.errors.InvalidArgumentError, match="between 0 and 1"):
            model.fit(ROWS, ROWS, verbose=0)
    assert_same(prior.rbm.weights, before)


@pytest.mark.parametrize("how", ["argument", "attribute", "rbm"])
def test_a_frozen_prior_stays(how):
    model, prior = autoencoder(**{"trainable": False} if how == "argument" else {})
    if how == "attribute":
        prior.trainable = False
    elif how == "rbm":
        prior.rbm.trainable = False
    compiled(model, "sgd", "mse")
    before = [variable.numpy() for variable in prior.weights]
    fitted(model, ROWS, ROWS)
    assert_same(prior.weights, before)
    assert len(model.trainable_variables) == 4


def test_half_precision_and_files_of_what_is_not_built(tmp_path):
    model, _ = autoencoder(dtype="mixed_bfloat16")
    fitted(model, ROWS, ROWS)
    lazy = keras.Sequential([keras.layers.Dense(4), RBMPrior(kr.RBM(2))])
    with pytest.warns(UserWarning, match="not yet been built"):
        lazy.save(tmp_path / "lazy.keras")
    keras.saving.load_model(tmp_path / "lazy.keras")


@pytest.mark.slow
def test_replicas_have_chains_of_their_own():
    with two_cpus().scope():
        model, prior = autoencoder()
    fitted(model, ROWS, ROWS, batch_size=16)
    one, two = prior.chains.value.values
    assert (one.numpy() != two.numpy()).any()


def test_log_partition_starts_its_search_at_the_chains():
    prior = RBMPrior(random_rbm(), num_chains=7, seed=0)
    assert prior.rbm._chains(prior.rbm.potentials()) is None  # until it is built
    prior.build(CODES.shape)
    chains = prior.rbm._chains(prior.rbm.potentials())
    assert chains.shape == (7, 5)
    assert set(np.unique(chains)) <= {0.0, 1.0}
    prior.rbm.log_partition("bidirectional", num_chains=10, precision=9.0)
