"""Growing: gains as they are logged, penalties, and what stops it."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from comparisons import assert_restored, refused, unchanged
from model_test_case import run_model_test

import keras_rbm
from keras_rbm import InfiniteRBM
from keras_rbm.inference.growing import growth
from keras_rbm.models.files import state_of
from keras_rbm.rules import FrankWolfe

#: Two patterns of six pixels, with noise.
PATTERNS = np.repeat([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]], 60, axis=0)
NOISE = np.random.default_rng(0).random(PATTERNS.shape) < 0.1
DATA = np.abs(PATTERNS - NOISE).astype("float32")
#: The same for most tests, which run eagerly and so share the trace of the search.
SAMPLES = 4000
QUICK, SMALL = {"num_samples": SAMPLES}, {"num_samples": 200}


def exact(model, data=DATA):
    return float(tf.reduce_mean(model.log_likelihood(data, "exact")))


def truth(model):
    return float(model.log_partition("exact").value)


def ruled(model, **options):
    """Compiles a model, with few samples or those given, and returns it."""
    model.compile(rule=FrankWolfe(**SMALL | options), run_eagerly=True)
    return model


def grown(epochs=3, capacity=20, data=DATA, **options):
    model = ruled(InfiniteRBM(capacity, seed=0), **QUICK | options)
    history = model.fit(data, batch_size=len(data), epochs=epochs, verbose=0)
    return model, history.history


@pytest.mark.slow
def test_model_test():
    data = DATA[::4]
    run_model_test(lambda: InfiniteRBM(40, seed=0), lambda: FrankWolfe(**SMALL), data)


def test_likelihood_rises_as_logged():
    model = ruled(InfiniteRBM(20, seed=0), **QUICK)
    model.adapt(DATA)
    independent = last = exact(model)
    for _ in range(3):
        logs = model.fit(DATA, batch_size=len(DATA), verbose=0).history
        now = exact(model)
        # The bridge's error, and that of chains that have not quite arrived.
        assert abs(now - last - logs["gain"][0]) < 5 * logs["gain_error"][0] + 0.02
        assert logs["log_partition"][0] == pytest.approx(truth(model), abs=0.06)
        last = now
    assert last > independent + 0.3
    assert 0.0 < logs["search_ess"][0] <= 1.0


def test_one_unit_an_epoch_and_biases_that_fit():
    model, history = grown(epochs=4)
    units = np.array(history["hidden_units"], int)
    assert units[:3].tolist() == [1, 2, 3] and (np.diff(units) <= 1).all()
    assert model.hidden_units == units[-1]
    moments = keras_rbm.inference.exact_moments(model.potentials())
    np.testing.assert_allclose(moments.visible.bias, DATA.mean(0), atol=0.04)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Expected units that gain")
def test_no_unit_without_a_gain():
    """Independent pixels need none: searches find noise, and it is rejected."""
    data = (np.random.default_rng(1).random((5000, 6)) < 0.4).astype("float32")
    model, history = grown(epochs=3, data=data, l2=0.05)
    assert sum(history["rejected"]) >= 3
    kernel = model.potentials().kernel.numpy()
    assert np.abs(kernel).max() < 0.5
    independent = InfiniteRBM(2, seed=0)
    independent.adapt(data)
    assert exact(model, data) > exact(independent, data) - 0.01


def test_penalty_by_schedule():
    decay = keras.optimizers.schedules.PiecewiseConstantDecay([0], [0.01, 1e4])
    again = assert_restored(keras_rbm.rules, FrankWolfe(decay, **QUICK))
    assert again.l2.get_config() == decay.get_config()
    model = InfiniteRBM(8, seed=0)
    model.compile(rule=again, run_eagerly=True)
    model.fit(DATA, batch_size=120, epochs=3, verbose=0)
    squares = tf.reduce_sum(model.kernel**2, 0).numpy()
    assert squares[0] > 1.0 and (squares[1:] < 1e-3).all()


@pytest.mark.parametrize(
    ("validation_ess", "factors"),
    [(0.0, [1, 3, 9]), (0.1, [1, 3, 9]), (0.9, [1, 1, 1])],
)
def test_a_unit_too_large_to_be_validated_is_followed_by_a_larger_penalty(
    monkeypatch, validation_ess, factors
):
    penalties = []

    def reject(potentials, samples, phases, mean, seed, settings, l2):
        penalties.append(float(l2))
        none = growth.Candidate.none(samples)
        return none._replace(validation_ess=tf.constant(validation_ess))

    monkeypatch.setattr(growth, "_candidate", reject)
    # In the warning, a schedule counts as its value.
    l2 = keras.optimizers.schedules.InverseTimeDecay(0.25, 50, 1.0)
    model = ruled(InfiniteRBM(4, num_visible=6, seed=0), l2=l2)
    with pytest.warns(UserWarning, match="none in this fit, with l2=0.25"):
        logs = model.fit(DATA, batch_size=120, verbose=0).history
    assert penalties == pytest.approx([0.25 * factor for factor in factors])
    assert logs["rejected"] == [3.0] and logs["hidden_units"] == [0]
    assert logs["validation_ess"] == pytest.approx([validation_ess])


@pytest.mark.slow
def test_no_unit_that_is_on_only_where_no_chain_is():
    rng = np.random.default_rng(0)
    data = (rng.random((200, 8)) < rng.random(8)) | rng.integers(0, 2, (200, 1))
    model = ruled(InfiniteRBM(6, num_visible=8, seed=0), l2=0.0, num_samples=1000)
    data = data.astype("float32")
    logs = model.fit(data, batch_size=200, epochs=2, verbose=0).history
    error = logs["log_partition"][-1] - truth(model)
    assert abs(error) < 4.0 * logs["log_partition_error"][-1] + 1e-4
    assert max(logs["unvalidated"]) > 0.0


@pytest.mark.slow
def test_early_stopping_restores_the_model_of_most_validation_likelihood():
    """15 examples are soon overfitted, and the log Z of held-out chains says when."""
    noise = np.random.default_rng(0).random(PATTERNS.shape) < 0.25
    data = np.abs(PATTERNS - noise).astype("float32")
    train, validation = data[::8], data[1::2]
    model = ruled(InfiniteRBM(20, seed=0), l2=0.002, num_samples=2000)
    model.adapt(train)
    independent = exact(model, validation)
    scores = []
    gap = keras_rbm.callbacks.FreeEnergyGap(train, validation)
    score = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: scores.append(exact(model, validation))
    )
    stop = keras.callbacks.EarlyStopping(
        "validation_log_likelihood",
        mode="max",
        patience=2,
        restore_best_weights=True,
    )
    history = model.fit(
        train, epochs=8, callbacks=[gap, score, stop], verbose=0
    ).history
    logged = np.array(history["validation_log_likelihood"])
    assert len(logged) < 8
    assert logged.max() > max(independent + 0.1, logged[-1] + 0.01)
    np.testing.assert_allclose(logged, scores, atol=0.05)
    assert model.hidden_units == history["hidden_units"][int(logged.argmax())]
    assert exact(model, validation) == pytest.approx(max(scores), abs=0.05)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Expected units that gain")
def test_chains_start_where_the_data_are():
    """From random states they missed the deep modes of a trained model, and wrecked it.

    The gain was logged as 2 nats where it was -0.7.
    """
    pattern = np.tile([1.0, 0.0], 6)
    data = np.stack([pattern] * 90 + [1.0 - pattern] * 10).astype("float32")
    rbm = keras_rbm.RBM(2, num_visible=12, seed=0)
    signs = 8.0 * (2.0 * pattern - 1.0)
    rbm.kernel.assign(np.stack([signs, -signs], 1))
    rbm.hidden_bias.assign([-22.0, -24.2])
    model = ruled(InfiniteRBM.from_rbm(rbm, 6), l2=0.02, num_samples=2000)
    before = exact(model, data)
    model.fit(data, epochs=2, verbose=0)
    assert exact(model, data) > before - 0.05


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Expected units that gain")
def test_a_model_that_something_else_changed_is_taken_up_anew():
    """Chains of the model before said that a unit gained 2 nats where it lost .4."""
    model, _ = grown(epochs=1)
    weights = model.get_weights()
    names = [variable.name for variable in model.weights]
    signs = 8.0 * (2.0 * PATTERNS[0] - 1.0)
    weights[names.index("kernel")][:, 0] = signs
    weights[names.index("hidden_bias")][0] = -22.0
    weights[names.index("visible_bias")][:] = -0.5 * signs
    model.set_weights(weights)
    before = exact(model)
    logs = model.fit(DATA, batch_size=len(DATA), verbose=0).history
    assert logs["log_partition"][0] == pytest.approx(truth(model), abs=0.1)
    error = 5 * logs["gain_error"][0] + 0.05
    assert exact(model) - before == pytest.approx(logs["gain"][0], abs=error)


@pytest.mark.slow
def test_log_z_is_not_a_number_until_fit_has_annealed_it():
    rbm = keras_rbm.RBM(2, num_visible=6, seed=0)
    rbm.visible_bias.assign([3.0, 2.0, 1.0, 0.0, 0.0, 0.0])
    model = ruled(InfiniteRBM.from_rbm(rbm, 8), **QUICK)
    logs = model.train_on_batch(DATA, return_dict=True)
    assert np.isnan(logs["log_partition"]) and np.isfinite(logs["gain"])
    logs = model.fit(DATA, batch_size=len(DATA), verbose=0).history
    assert logs["log_partition"][0] == pytest.approx(truth(model), abs=0.1)


def test_weights_are_counts():
    """Rows of weight 0 might as well be missing."""
    weights = np.arange(len(DATA)) % 3.0
    rows = np.repeat(DATA, weights.astype(int), axis=0)
    a, b = (ruled(InfiniteRBM(8, seed=0), **QUICK) for _ in range(2))
    a.fit(DATA, sample_weight=weights, shuffle=False, verbose=0)
    b.fit(rows, shuffle=False, verbose=0)
    assert abs(exact(a, rows) - exact(b, rows)) < 0.05
    assert abs(exact(a, rows) - exact(a, DATA)) > 0.001
    moments = keras_rbm.inference.exact_moments(a.potentials()).visible.bias
    np.testing.assert_allclose(moments, rows.mean(0), atol=0.04)


@pytest.mark.filterwarnings("ignore:Expected units that gain")
def test_no_batch_is_a_remnant():
    """100 rows in batches of 45 made one of 10, by which a unit was validated."""
    sizes = []

    class Sizes(InfiniteRBM):
        def train_step(self, data):
            sizes.append(len(keras.utils.unpack_x_y_sample_weight(data)[0]))
            return {"loss": tf.constant(0.0)}

    for options in ({"batch_size": 45}, {}, {"validation_split": 0.2}):
        ruled(Sizes(8, seed=0)).fit(DATA[:100], verbose=0, **options)
    assert sizes == [50, 50, 100, 80]


def test_a_batch_that_says_nothing_changes_nothing():
    model = ruled(InfiniteRBM(8, num_visible=6, seed=0))
    weights = np.zeros(len(DATA), "float32")
    with unchanged(model):
        logs = model.train_on_batch(DATA, sample_weight=weights, return_dict=True)
    assert logs["gain"] == logs["rejected"] == 0.0 and logs["validation_ess"] == 1.0


@pytest.mark.filterwarnings("ignore:Expected units that gain")
def test_what_cannot_be_grown():
    model = ruled(InfiniteRBM(4, num_visible=6, trainable=False))
    refused(model, lambda: model.fit(DATA, verbose=0), "Expected a trainable model")
    model = ruled(InfiniteRBM(4, num_visible=6))
    for data in (DATA[:0], np.array(1.0)):
        with pytest.raises(ValueError, match="Expected (?!an int batch_size)"):
            model.fit(data, verbose=0)
    model.fit(DATA[:20], None, None, 1, 0, [keras.callbacks.Callback()])


@pytest.mark.parametrize("capacity", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_growing_ends_where_there_is_no_room(capacity):
    """A model with room for one unit was full before it had one, once built."""
    model = ruled(InfiniteRBM(capacity, num_visible=6, seed=0))
    assert not model.is_full
    history = model.fit(DATA, batch_size=120, epochs=8, verbose=0).history
    assert model.hidden_units == capacity and model.is_full
    assert len(history["loss"]) < 8
    word = f"room for more than {capacity} hidden units"
    refused(model, lambda: model.fit(DATA, batch_size=120, verbose=0), word)


@pytest.mark.slow
@pytest.mark.parametrize(
    "data",
    [
        DATA[:1],
        np.concatenate([DATA, DATA * 0, DATA * 0 + 1], 1),
        np.zeros((30, 6), "float32"),
    ],
)
@pytest.mark.filterwarnings("ignore:Expected units that gain")
def test_degenerate_data_give_a_finite_model(data):
    model, history = grown(epochs=3, data=data, **SMALL)
    for variables in state_of(model):
        for name, variable in variables.items():
            assert np.isfinite(np.asarray(variable)).all(), name
    assert np.isfinite(history["loss"]).all()
