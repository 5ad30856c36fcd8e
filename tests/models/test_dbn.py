import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf
from brute_force import Enumerated, binary_states, random_potentials, rbm_like
from model_test_case import two_cpus

import keras_rbm
from keras_rbm import DBN, RBM, rules, units

DATA = np.random.default_rng(0).integers(0, 2, (40, 6)).astype("float32")


def make_dbn(*sizes, **kwargs):
    return DBN([RBM(size, seed=i, **kwargs) for i, size in enumerate(sizes)])


def compiled(*sizes, **kwargs):
    dbn = make_dbn(*sizes)
    dbn.compile(keras.optimizers.SGD(0.1), **kwargs)
    return dbn


SIZES = [(5, 4, 3), (5, 4, 3, 2)]


def random_dbn(sizes=SIZES[0]):
    pairs = enumerate(itertools.pairwise(sizes))
    return DBN([rbm_like(random_potentials(*pair, seed)) for seed, pair in pairs])


def exact_log_likelihood(dbn):
    """Returns log p(v) of all states, by summing over layer after layer."""
    *below, top = (rbm.potentials() for rbm in dbn.rbms)
    log_p = np.log(Enumerated(top).p_visible)
    for potentials in reversed(below):
        visible, hidden = map(binary_states, potentials.kernel.shape)
        natural = potentials.visible_natural(tf.constant(hidden, tf.float32)).numpy()
        given = visible @ natural.T - np.logaddexp(0, natural).sum(1)
        log_p = np.logaddexp.reduce(given + log_p, axis=1)
    return visible, log_p


@pytest.mark.parametrize("sizes", SIZES)
def test_bound_is_below_the_likelihood(sizes):
    dbn = random_dbn(sizes)
    visible, truth = exact_log_likelihood(dbn)
    assert np.exp(truth).sum() == pytest.approx(1.0, abs=1e-5)
    copies = np.tile(visible, (300, 1))  # each row goes up by itself
    samples = dbn.log_likelihood_bound(copies, "exact", num_samples=1, seed=0)
    samples = samples.numpy().reshape(300, len(visible))
    bound, error = samples.mean(0), samples.std(0) / np.sqrt(len(samples))
    assert (bound < truth + 4 * error).all()
    # Each sample's weight p / q has the likelihood as its mean.
    weights = np.exp(samples - truth)
    error = weights.std(0) / np.sqrt(len(weights))
    assert (abs(weights.mean(0) - 1) < 4.5 * error).all()
    again = dbn.log_likelihood_bound(visible, "exact", num_samples=2, seed=5)
    assert again.shape == (32,) and again.dtype == tf.float64


def test_bound_is_tight_where_the_way_up_is_the_posterior():
    below = random_potentials(5, 4)
    dbn = DBN([rbm_like(below), rbm_like(below.transpose())])
    visible = binary_states(5)
    bound = dbn.log_likelihood_bound(visible, "exact", num_samples=1)
    np.testing.assert_allclose(bound, np.log(Enumerated(below).p_visible), atol=1e-5)
    alone = DBN([rbm_like(below)])
    np.testing.assert_allclose(
        alone.log_likelihood_bound(visible, "exact"), bound, atol=1e-5
    )


@pytest.mark.parametrize("sizes", SIZES)
def test_samples_have_the_networks_distribution(sizes):
    dbn = random_dbn(sizes)
    visible, truth = exact_log_likelihood(dbn)
    samples = dbn.sample(20_000, steps=50, seed=1).numpy()
    index = (samples @ (2 ** np.arange(4, -1, -1))).astype(int)
    counts = np.bincount(index, minlength=32)
    expected = np.exp(truth) * len(samples)
    assert (np.square(counts - expected) / expected).sum() < 70  # 31 degrees, 1e-4
    np.testing.assert_array_equal(samples, dbn.sample(20_000, steps=50, seed=1))
    assert (visible[index] == samples).all()


@pytest.mark.parametrize(
    "as_dataset",
    [pytest.param(False, marks=pytest.mark.slow), True],
    ids=["array", "dataset"],
)
@pytest.mark.slow
def test_layers_are_trained_one_after_the_other(as_dataset):
    data = DATA
    if as_dataset:
        data = tf.data.Dataset.from_tensor_slices(DATA).batch(10)
    dbn = compiled(5, 4, 3)
    histories = dbn.pretrain(
        data, epochs=[3, 0, 2], batch_size=None, validation_data=data, verbose=0
    )
    assert [h and len(h.epoch) for h in histories] == [3, None, 2]
    assert np.isfinite(histories[2].history["val_loss"]).all()
    assert [int(rbm.optimizer.iterations) > 0 for rbm in dbn.rbms] == [
        True,
        False,
        True,
    ]
    below = [rbm.get_weights() for rbm in dbn.rbms[:2]]
    top = dbn.rbms[2].get_weights()
    dbn.fit(data, epochs=[0, 0, 1], verbose=0)
    for rbm, weights in zip(dbn.rbms, below, strict=False):
        for new, old in zip(rbm.get_weights(), weights, strict=True):
            np.testing.assert_array_equal(new, old)
    assert (dbn.rbms[2].get_weights()[0] != top[0]).any()
    assert dbn.predict(data, verbose=0).shape == (40, 3)


def test_training_is_that_of_rbms_on_drawn_states():
    dbn = compiled(5, 4)
    dbn.fit(DATA, epochs=[2, 0], batch_size=10, verbose=0)
    seen = []
    upper = dbn.rbms[1]
    step = upper.train_step
    upper.train_step = lambda x: seen.append(x) or step(x)
    upper.compile("sgd", run_eagerly=True)
    dbn.fit(DATA, epochs=[0, 2], batch_size=10, verbose=0)
    seen = np.array(seen)
    assert set(np.unique(seen)) == {0.0, 1.0}
    means = dbn.rbms[0].predict(DATA, verbose=0)
    first, second = seen.reshape(2, 40, 5)
    assert not np.array_equal(first, second)
    rate = keras_rbm.RBM(1, num_visible=5)
    rate.adapt(means)
    np.testing.assert_allclose(upper.base_rate, rate.base_rate, rtol=1e-5)
    # Where the features are certain, the states are known.
    dbn.rbms[0].kernel.assign(1e6 * dbn.rbms[0].kernel)
    dbn.rbms[0].hidden_bias.assign([100.0, -100.0, 100.0, -100.0, 100.0])
    drawn = []
    upper.train_step = lambda x: drawn.append(x) or step(x)
    upper.compile("sgd", run_eagerly=True)
    dbn.fit(DATA, epochs=[0, 1], batch_size=10, verbose=0)
    certain = dbn.rbms[0].predict(DATA, verbose=0) > 0.5
    rows = [sorted(map(tuple, part)) for part in (np.concatenate(drawn), certain)]
    np.testing.assert_array_equal(*rows)


@pytest.mark.slow
def test_a_cut_script_goes_on_where_it_was(tmp_path):
    class Cut(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            if epoch == 1:
                raise KeyboardInterrupt

    def backup(index):
        folder = tmp_path / str(index)
        return keras.callbacks.BackupAndRestore(folder, delete_checkpoint=False)

    def train(callbacks):
        dbn = DBN([RBM(5), RBM(4)])  # other numbers each time
        dbn.compile(keras.optimizers.SGD(0.1))
        return dbn, dbn.pretrain(DATA, epochs=[2, 4], callbacks=callbacks, verbose=0)

    cut = []
    with pytest.raises(KeyboardInterrupt):
        train(lambda index: [backup(index), *([Cut()] if index else [])])
    dbn, histories = train(lambda index: cut.append(index) or [backup(index)])
    assert [len(history.epoch) for history in histories] == [0, 2]
    again, histories = train(lambda index: [backup(index)])
    assert [len(history.epoch) for history in histories] == [0, 0]
    for a, b in zip(dbn.rbms, again.rbms, strict=True):
        np.testing.assert_array_equal(a.kernel, b.kernel)


def test_rbms_that_are_skipped_need_no_rule():
    dbn = DBN([RBM(5, num_visible=6, seed=0), RBM(4, seed=1)])
    dbn.rbms[1].compile("sgd")
    assert dbn.pretrain(DATA, epochs=[0, 1], verbose=0)[0] is None


def test_first_rbm_trained_on_its_own():
    dbn = compiled(5, 4)
    dbn.rbms[0].adapt(DATA)
    assert dbn.sample(2, steps=1, seed=0).shape == (2, 6)
    assert dbn.built


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "epochs"),
    [
        (tf.data.Dataset.from_tensor_slices(DATA).batch(10), 1),
        pytest.param(DATA, 2, marks=pytest.mark.slow),
    ],
    ids=["dataset", "array"],
)
def test_two_replicas(data, epochs):
    with two_cpus().scope():
        dbn = compiled(5, 4)
    histories = dbn.pretrain(data, epochs=epochs, validation_data=data, verbose=0)
    assert all(np.isfinite(h.history["val_loss"]).all() for h in histories)
    for variable in dbn.rbms[1].trainable_variables:
        first, second = (v.numpy() for v in variable.value.values)
        np.testing.assert_array_equal(first, second)


def test_upper_rbms_see_the_weights_and_the_batches():
    dbn = compiled(5, 4)
    seen = []
    upper = dbn.rbms[1]
    step = upper.train_step
    upper.train_step = lambda batch: seen.append(batch) or step(batch)
    upper.compile("sgd", run_eagerly=True)
    weights = np.arange(40.0)
    validation = (DATA, (), weights)
    dbn.fit(
        DATA,
        batch_size=8,
        sample_weight=weights.tolist(),
        validation_data=validation,
        verbose=0,
    )
    assert [len(x) for x, _, _ in seen] == [8] * 5
    np.testing.assert_array_equal(
        np.sort(np.concatenate([w for _, _, w in seen])), weights
    )


@pytest.mark.slow
def test_trained_biases_are_kept():
    dbn = compiled(5, 4)
    dbn.fit(DATA, epochs=[1, 5], verbose=0)
    bias = dbn.rbms[1].visible_bias.numpy()
    dbn.compile(keras.optimizers.SGD(1e-9))
    dbn.fit(DATA, epochs=[0, 1], verbose=0)
    np.testing.assert_allclose(dbn.rbms[1].visible_bias, bias, atol=1e-6)


def test_way_down_has_noise_of_its_own():
    dbn = DBN([RBM(4, num_visible=4, seed=0), RBM(4, seed=1)])
    for rbm in dbn.rbms:
        rbm.kernel.assign(tf.zeros((4, 4)))
    states = dbn.sample(1000, steps=1, seed=0).numpy()
    top = dbn.rbms[1].sample(1000, steps=1, seed=0).numpy()
    assert abs(np.mean(states[0::2] == top[:500]) - 0.5) < 0.1
    assert abs(np.mean(states == top) - 0.5) < 0.1


def test_reconstruction_is_one_way_up_and_down():
    dbn = random_dbn()
    visible = binary_states(5).astype("float32")
    below, top = dbn.rbms
    features = dbn.predict(visible, verbose=0)
    middle = 1 / (1 + np.exp(-(features @ top.kernel.numpy().T + top.visible_bias)))
    natural = middle @ below.kernel.numpy().T + below.visible_bias
    np.testing.assert_allclose(
        dbn.reconstruct(visible), 1 / (1 + np.exp(-natural)), atol=1e-5
    )


def test_weights_leave_examples_out():
    half = (np.arange(40) < 20).astype("float32")
    data = np.repeat([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]], 20, 0).astype("float32")
    dbn = DBN([RBM(2, seed=0)])
    dbn.compile(keras.optimizers.SGD(0.5))
    dbn.fit(data, sample_weight=half, epochs=30, verbose=0)
    bias = dbn.rbms[0].visible_bias.numpy()
    assert bias[:3].min() > 0 > bias[3:].max()


def test_file_round_trip_goes_on_alike(tmp_path):
    dbn = compiled(5, 4, rule=rules.PersistentContrastiveDivergence(num_chains=7))
    dbn.fit(DATA, verbose=0)
    dbn.save(tmp_path / "dbn.keras")
    again = keras.saving.load_model(tmp_path / "dbn.keras")
    assert again.get_config() == dbn.get_config()
    np.testing.assert_array_equal(
        dbn.predict(DATA, verbose=0), again.predict(DATA, verbose=0)
    )
    for model in (dbn, again):
        model.fit(DATA, verbose=0)
    for a, b in zip(dbn.rbms, again.rbms, strict=True):
        for v, w in zip(a.get_weights(), b.get_weights(), strict=True):
            np.testing.assert_array_equal(v, w)
        np.testing.assert_array_equal(a.rule.chains, b.rule.chains)
    bare = keras.saving.load_model(tmp_path / "dbn.keras", compile=False)
    assert not any(rbm.compiled for rbm in bare.rbms)
    assert not any(rbm.compiled for rbm in DBN.from_config(dbn.get_config()).rbms)


def test_dtype_and_trainable_are_kept():
    dbn = DBN([5, 4], dtype="mixed_bfloat16", seed=0)
    dbn.trainable = False
    again = DBN.from_config(dbn.get_config())
    assert {m.compute_dtype for m in (again, *again.rbms)} == {"bfloat16"}
    assert not again.trainable


def test_mixed_precision_does_not_round_the_data():
    """bfloat16 has no 257: it was taken for category 256."""
    normal = keras.initializers.RandomNormal(stddev=1.0, seed=0)
    options = {"kernel_initializer": normal, "dtype": "mixed_bfloat16"}
    low = RBM(3, visible=units.Categorical(300), num_visible=2, **options)
    top = RBM(2, **options)
    dbn, x = DBN([low, top], dtype="mixed_bfloat16"), np.array([[257, 3], [256, 3]])
    found = dbn.predict(x, verbose=0)
    np.testing.assert_array_equal(found, top(low(x)))
    assert not np.array_equal(found[0], found[1])


def test_each_rbm_has_its_own_rule_optimizer_and_callbacks():
    dbn = make_dbn(5, 4)
    dbn.compile(["sgd", "adam"], rule=["cd", rules.SDCP(2)])
    assert isinstance(dbn.rbms[0].rule, rules.ContrastiveDivergence)
    assert isinstance(dbn.rbms[1].optimizer, keras.optimizers.Adam)
    seen = []

    def callbacks(index):
        return [keras.callbacks.LambdaCallback(lambda epoch, logs: seen.append(index))]

    dbn.fit(DATA, epochs=[1, 2], callbacks=callbacks, verbose=0)
    assert seen == [0, 1, 1]


@pytest.mark.slow
def test_classifier_starts_with_the_stack():
    dbn = compiled(5, 4)
    dbn.fit(DATA, verbose=0)
    network = dbn.to_classifier(3, dropout=0.1)
    features = keras.Sequential(network.layers[:-2])(DATA)
    np.testing.assert_allclose(features, dbn.predict(DATA, verbose=0), atol=1e-6)
    labels = DATA[:, 0].astype(int)
    loss = "sparse_categorical_crossentropy"
    network.compile(keras.optimizers.Adam(0.1), loss, metrics=["accuracy"])
    before = dbn.rbms[0].get_weights()
    network.fit(DATA, labels, epochs=25, verbose=0)
    assert network.evaluate(DATA, labels, verbose=0)[1] > 0.9
    np.testing.assert_array_equal(before[0], dbn.rbms[0].kernel)


def test_gaussian_data():
    data = np.random.default_rng(1).normal(2, 1, (40, 6)).astype("float32")
    dbn = DBN([RBM(5, visible="gaussian", seed=0), RBM(4, seed=1)])
    dbn.compile("sgd")
    dbn.adapt(data)
    dbn.fit(data, verbose=0)
    assert dbn.sample(3, steps=2, seed=0).shape == (3, 6)
    assert np.isfinite(dbn.log_likelihood_bound(data, "exact")).all()

    standardized = keras_rbm.units.Gaussian(standardize=True)
    dbn = DBN([RBM(5, visible=standardized, seed=0), RBM(4, seed=1)])
    dbn.adapt(7 * data)
    for rbm in dbn.rbms:
        rbm.kernel.assign(np.random.default_rng(0).normal(0, 1, rbm.kernel.shape))
    features = keras.Sequential(dbn.to_classifier(2).layers[:-1])(7 * data)
    np.testing.assert_allclose(features, dbn.predict(7 * data, verbose=0), atol=1e-5)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: DBN([]), ValueError, "at least one RBM"),
        (lambda: DBN([RBM(3)] * 2), ValueError, "each only once"),
        (lambda: DBN([RBM(3), keras.layers.Dense(3)]), TypeError, "list of RBM"),
        (lambda: DBN(RBM(3)), TypeError, "list of RBM"),
        (lambda: DBN(None), TypeError, "list of RBM"),
        (lambda: DBN([RBM(3), RBM(2, num_visible=4)]), ValueError, "3 visible units"),
        (
            lambda: DBN([RBM(3), RBM(2, visible="gaussian")]),
            ValueError,
            r"hidden units below, Bernoulli\(\)",
        ),
        (lambda: make_dbn(3).predict(DATA), ValueError, "built model in predict"),
        (lambda: make_dbn(3, 2).sample(2), ValueError, "built model in sample"),
        (lambda: make_dbn(3, 2).to_classifier(2), ValueError, "in to_classifier"),
        (lambda: compiled(3, 2).fit(DATA, epochs=[1]), ValueError, "a list of 2"),
        (lambda: compiled(3, 2).fit(DATA, epochs=1.5), ValueError, "int epochs"),
        (lambda: compiled(3, 2, rule=["cd"]), ValueError, "one rule"),
        (lambda: compiled(3, 2).fit(iter([DATA])), TypeError, "from their beginning"),
        (lambda: compiled(3, 2).evaluate(DATA), ValueError, "in evaluate"),
        (
            lambda: random_dbn().evaluate(3 * DATA[:, :5]),
            ValueError,
            "x, states of Ber",
        ),
        (lambda: compiled(3, 2).fit(DATA * 3), ValueError, "x, states of Ber"),
        (lambda: compiled(3, 2).fit(DATA, epochs=[0, 1]), ValueError, "in fit"),
        (lambda: compiled(3, 2).fit(DATA, batch_size=0), ValueError, "batch_size ≥ 1"),
        (
            lambda: compiled(3, 2).fit(DATA, validation_data=DATA * 3),
            ValueError,
            "x, states of Ber",
        ),
        (lambda: compiled(3, 2, rule=["cd", "max_margin"]), ValueError, "with input"),
        (lambda: random_dbn().to_classifier(1), ValueError, "num_classes ≥ 2"),
        (
            lambda: make_dbn(3, num_visible=6).to_classifier(2, dropout="a"),
            ValueError,
            "dropout in",
        ),
        (
            lambda: make_dbn(3, num_visible=6, hidden="gaussian").to_classifier(2),
            ValueError,
            "binary hidden units",
        ),
        (
            lambda: random_dbn().log_likelihood_bound(DATA),
            ValueError,
            r"shape \(examples, 5\)",
        ),
        (
            lambda: random_dbn().log_likelihood_bound(DATA[:, :5], [1.0, 2.0]),
            ValueError,
            "LogPartition or one number",
        ),
        (
            lambda: compiled(3, 2).fit(DATA, callbacks=lambda index: [index]),
            TypeError,
            "function of the RBM's index",
        ),
    ],
)
def test_bad_input(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_samples_that_are_refused_draw_no_seed():
    dbn = DBN([RBM(3, num_visible=4, seed=0), RBM(2, seed=1)])
    before = np.array(dbn.rbms[-1].seed_generator.state)
    with pytest.raises(ValueError, match="betas that increase"):
        dbn.sample(2, steps=2, method="tempering", betas=2**40)
    np.testing.assert_array_equal(dbn.rbms[-1].seed_generator.state, before)


def test_many_rows_are_scored_in_parts():
    dbn = make_dbn(5, 4)
    dbn.build((None, 6))
    rows = np.tile(DATA, (40, 1))[:1500]
    z = dbn.rbms[-1].log_partition("exact")
    bounds = dbn.log_likelihood_bound(rows, z, num_samples=50).numpy()
    again = dbn.log_likelihood_bound(rows[1000:], z, num_samples=50).numpy()
    error = np.std(bounds[1000:] - again) / np.sqrt(len(again))
    assert bounds.shape == (1500,)
    assert abs(np.mean(bounds[1000:] - again)) < 5 * error
    np.testing.assert_allclose(
        dbn.reconstruct(rows)[1000:], dbn.reconstruct(rows[1000:]), rtol=1e-5
    )


@pytest.mark.slow
def test_validation_split_is_the_end_of_the_data():
    dbn, same = compiled(5, 4), compiled(5, 4)
    split = dbn.fit(DATA, validation_split=0.25, verbose=0).history
    whole = same.fit(DATA[:30], validation_data=DATA[30:], verbose=0).history
    assert split["val_loss"] == pytest.approx(whole["val_loss"])
    assert len(split["val_loss"]) == 2


def test_history_of_all_layers():
    """Logs of some epochs only ended the fit in an error."""
    dbn = compiled(5, 4)

    def every_second(index):
        def log(epoch, logs):
            if index == 0 and epoch % 2:
                logs["own"] = float(epoch)

        return [keras.callbacks.LambdaCallback(on_epoch_end=log)]

    history = dbn.fit(DATA, epochs=[3, 2], callbacks=every_second, verbose=0)
    assert history.epoch == [0, 1, 2, 3, 4]
    assert history.history["rbm"] == [0, 0, 0, 1, 1]
    assert np.isfinite(history.history["loss"]).all()
    nan = float("nan")
    np.testing.assert_array_equal(history.history["own"], [nan, 1.0, nan, nan, nan])
