import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf
from brute_force import Enumerated, binary_states, random_potentials, rbm_like
from model_test_case import two_cpus
from same import assert_same
from small_models import batches, binary, compiled, fitted

from keras_rbm import DBN, RBM, rules, units

DATA = binary()
SIZES = [(5, 4, 3), (5, 4, 3, 2)]


def made(*sizes, **kwargs):
    return DBN([RBM(size, seed=i, **kwargs) for i, size in enumerate(sizes)])


def by_sgd(*sizes):
    return compiled(made(*sizes), keras.optimizers.SGD(0.1))


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


def batches_of(rbm):
    """Returns a list of what a compiled RBM will be trained on."""
    seen, step = [], rbm.train_step
    rbm.train_step = lambda batch: seen.append(batch) or step(batch)
    compiled(rbm, "sgd", run_eagerly=True)
    return seen


def sigmoid(natural):
    return 1 / (1 + np.exp(-natural))


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
    below, visible = random_potentials(5, 4), binary_states(5)
    truth = np.log(Enumerated(below).p_visible)
    for above in ([rbm_like(below.transpose())], []):
        dbn = DBN([rbm_like(below), *above])
        bound = dbn.log_likelihood_bound(visible, "exact", num_samples=1)
        np.testing.assert_allclose(bound, truth, atol=1e-5)


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


@pytest.mark.slow
@pytest.mark.parametrize("data", [DATA, batches(DATA)], ids=["array", "dataset"])
def test_layers_are_trained_one_after_the_other(data):
    dbn = by_sgd(5, 4, 3)
    options = {"batch_size": None, "validation_data": data, "verbose": 0}
    histories = dbn.pretrain(data, epochs=[3, 0, 2], **options)
    assert [h and len(h.epoch) for h in histories] == [3, None, 2]
    assert np.isfinite(histories[2].history["val_loss"]).all()
    iterations = [int(rbm.optimizer.iterations) for rbm in dbn.rbms]
    assert [number > 0 for number in iterations] == [True, False, True]
    before = [rbm.get_weights() for rbm in dbn.rbms]
    fitted(dbn, data, epochs=[0, 0, 1])
    for rbm, weights in zip(dbn.rbms[:2], before, strict=False):
        assert_same(rbm.weights, weights)
    assert (dbn.rbms[2].get_weights()[0] != before[2][0]).any()
    assert dbn.predict(data, verbose=0).shape == (40, 3)


def test_training_is_that_of_rbms_on_drawn_states():
    dbn = fitted(by_sgd(5, 4), DATA, epochs=[2, 0], batch_size=10)
    below, upper = dbn.rbms
    seen = batches_of(upper)
    fitted(dbn, batches(DATA, size=10), epochs=[0, 2])
    assert set(np.unique(seen)) == {0.0, 1.0}
    means = below.predict(DATA, verbose=0)
    first, second = np.array(seen).reshape(2, 40, 5)
    assert not np.array_equal(first, second)
    rate = RBM(1, num_visible=5)
    rate.adapt(means)
    np.testing.assert_allclose(upper.base_rate, rate.base_rate, rtol=1e-5)
    # Where the features are certain, the states are known.
    below.kernel.assign(1e6 * below.kernel)
    below.hidden_bias.assign([100.0, -100.0, 100.0, -100.0, 100.0])
    seen.clear()
    fitted(dbn, batches(DATA, size=10), epochs=[0, 1])
    certain = below.predict(DATA, verbose=0) > 0.5
    rows = [sorted(map(tuple, part)) for part in (np.concatenate(seen), certain)]
    np.testing.assert_array_equal(*rows)


def test_steps_on_arrays_draw_states_from_means():
    dbn = fitted(by_sgd(5, 4), DATA, epochs=[2, 0], batch_size=10)
    below, upper = dbn.rbms
    seen = batches_of(upper)
    fitted(dbn, DATA, epochs=[0, 1], batch_size=10)
    means = below.predict(DATA, verbose=0)
    seen = np.concatenate([x for x, *_ in seen])
    rows = [sorted(map(tuple, part)) for part in (seen, means)]
    np.testing.assert_allclose(*rows, rtol=1e-5)


def test_layers_of_several_kinds_learn_from_states():
    unit = units.Joined([("bernoulli", 3), ("spin", 2)])
    dbn = DBN([RBM(5, hidden=unit, seed=0), RBM(3, visible=unit, seed=1)])
    fitted(compiled(dbn, "sgd", rule="cd"), DATA, batch_size=10)


def test_metrics_are_of_states():
    dbn = compiled(DBN([5, 4], seed=0), "sgd", rule="cd", metrics=["mse"])
    histories = dbn.pretrain(DATA, epochs=2, validation_data=DATA, verbose=0)
    history = histories[1].history
    np.testing.assert_allclose(history["mse"], history["val_mse"], atol=0.1)


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
        dbn = compiled(DBN([RBM(5), RBM(4)]), keras.optimizers.SGD(0.1))
        return dbn, dbn.pretrain(DATA, epochs=[2, 4], callbacks=callbacks, verbose=0)

    with pytest.raises(KeyboardInterrupt):
        train(lambda index: [backup(index), *([Cut()] if index else [])])
    dbn, histories = train(lambda index: [backup(index)])  # begun with other numbers
    assert [len(history.epoch) for history in histories] == [0, 2]
    again, histories = train(lambda index: [backup(index)])
    assert [len(history.epoch) for history in histories] == [0, 0]
    assert_same(*[[rbm.kernel for rbm in each.rbms] for each in (dbn, again)])


def test_rbms_that_are_skipped_need_no_rule():
    dbn = DBN([RBM(5, num_visible=6, seed=0), compiled(RBM(4, seed=1), "sgd")])
    assert dbn.pretrain(DATA, epochs=[0, 1], verbose=0)[0] is None


def test_first_rbm_trained_on_its_own():
    dbn = by_sgd(5, 4)
    dbn.rbms[0].adapt(DATA)
    assert dbn.sample(2, steps=1, seed=0).shape == (2, 6)
    assert dbn.built


@pytest.mark.slow
def test_two_replicas():
    data = batches(DATA)
    with two_cpus().scope():
        dbn = by_sgd(5, 4)
    histories = dbn.pretrain(data, epochs=2, validation_data=data, verbose=0)
    assert all(np.isfinite(h.history["val_loss"]).all() for h in histories)
    for variable in dbn.rbms[1].trainable_variables:
        first, second = (v.numpy() for v in variable.value.values)
        np.testing.assert_array_equal(first, second)


def test_upper_rbms_see_the_weights_and_the_batches():
    dbn, weights = by_sgd(5, 4), np.arange(40.0)
    seen = batches_of(dbn.rbms[1])
    options = {"sample_weight": weights.tolist(), "batch_size": 8}
    fitted(dbn, DATA, validation_data=(DATA, (), weights), **options)
    assert [len(x) for x, _, _ in seen] == [8] * 5
    sorted_weights = np.sort(np.concatenate([w for _, _, w in seen]))
    np.testing.assert_array_equal(sorted_weights, weights)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Hidden units do not vary")
def test_trained_biases_are_kept():
    dbn = fitted(by_sgd(5, 4), DATA, epochs=[1, 5])
    bias = dbn.rbms[1].visible_bias.numpy()
    fitted(compiled(dbn, keras.optimizers.SGD(1e-9)), DATA, epochs=[0, 1])
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
    means = dbn.predict(visible, verbose=0)
    for rbm in reversed(dbn.rbms):
        means = sigmoid(means @ rbm.kernel.numpy().T + rbm.visible_bias)
    np.testing.assert_allclose(dbn.reconstruct(visible), means, atol=1e-5)


def test_weights_leave_examples_out():
    half = (np.arange(40) < 20).astype("float32")
    data = np.repeat([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]], 20, 0).astype("float32")
    dbn = compiled(made(2), keras.optimizers.SGD(0.5))
    bias = fitted(dbn, data, sample_weight=half, epochs=30).rbms[0].visible_bias.numpy()
    assert bias[:3].min() > 0 > bias[3:].max()


def test_dtype_trainable_and_training_in_configs():
    dbn = DBN([5, 4], dtype="mixed_bfloat16", seed=0)
    dbn.trainable = False
    again = DBN.from_config(compiled(dbn).get_config())
    assert {m.compute_dtype for m in (again, *again.rbms)} == {"bfloat16"}
    assert not again.trainable
    assert not any(rbm.compiled for rbm in again.rbms)


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
    dbn = compiled(made(5, 4), ["sgd", "adam"], rule=["cd", rules.SDCP(2)])
    assert isinstance(dbn.rbms[0].rule, rules.ContrastiveDivergence)
    assert isinstance(dbn.rbms[1].optimizer, keras.optimizers.Adam)
    seen = []

    def callbacks(index):
        return [keras.callbacks.LambdaCallback(lambda epoch, logs: seen.append(index))]

    fitted(dbn, DATA, epochs=[1, 2], callbacks=callbacks)
    assert seen == [0, 1, 1]


@pytest.mark.parametrize(
    "visible", ["gaussian", units.Gaussian(standardize=True)], ids=["plain", "scaled"]
)
def test_gaussian_data(visible):
    data = np.random.default_rng(1).normal(14, 7, (40, 6)).astype("float32")
    dbn = DBN([RBM(5, visible=visible, seed=0), RBM(4, seed=1)])
    dbn.adapt(data)
    fitted(compiled(dbn, "sgd"), data)
    assert dbn.sample(3, steps=2, seed=0).shape == (3, 6)
    assert np.isfinite(dbn.log_likelihood_bound(data, "exact")).all()
    for rbm in dbn.rbms:
        rbm.kernel.assign(np.random.default_rng(0).normal(0, 1, rbm.kernel.shape))
    *layers, last, _ = dbn.to_classifier(2, dropout=0.1).layers
    assert [layer.rate for layer in (*layers[::2], last)] == [0.1] * 3
    features = keras.Sequential(layers)(data)
    np.testing.assert_allclose(features, dbn.predict(data, verbose=0), atol=1e-5)


def test_many_rows_are_scored_in_parts():
    dbn = made(5, 4)
    dbn.build((None, 6))
    rows = np.tile(DATA, (40, 1))[:1500]
    z = dbn.rbms[-1].log_partition("exact")
    bounds = dbn.log_likelihood_bound(rows, z, num_samples=50).numpy()
    again = dbn.log_likelihood_bound(rows[1000:], z, num_samples=50).numpy()
    error = np.std(bounds[1000:] - again) / np.sqrt(len(again))
    assert bounds.shape == (1500,)
    assert abs(np.mean(bounds[1000:] - again)) < 5 * error
    whole, part = dbn.reconstruct(rows)[1000:], dbn.reconstruct(rows[1000:])
    np.testing.assert_allclose(whole, part, rtol=1e-5)


def test_history_of_all_layers():
    """Logs of some epochs only ended the fit in an error."""

    def every_second(index):
        def log(epoch, logs):
            if index == 0 and epoch % 2:
                logs["own"] = float(epoch)

        return [keras.callbacks.LambdaCallback(on_epoch_end=log)]

    options = {"epochs": [3, 2], "callbacks": every_second, "verbose": 0}
    history = by_sgd(5, 4).fit(DATA, **options)
    assert history.epoch == [0, 1, 2, 3, 4]
    assert history.history["rbm"] == [0, 0, 0, 1, 1]
    assert np.isfinite(history.history["loss"]).all()
    nan = float("nan")
    np.testing.assert_array_equal(history.history["own"], [nan, 1.0, nan, nan, nan])
