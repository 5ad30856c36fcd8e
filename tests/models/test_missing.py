"""Entries that are not known, against sums over all their states."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from sklearn.datasets import load_digits

import keras_rbm as kr
from keras_rbm import units
from keras_rbm.inference.potentials import num_states

TYPES = {
    "bernoulli": units.Bernoulli(),
    "spin": units.Spin(),
    "binomial": units.Binomial(3),
    "categorical": units.Categorical(3),
    "joined": units.Joined([("bernoulli", 2), (units.Categorical(3), 2)]),
}
NAN = np.nan
SLOW = pytest.mark.slow
FEW = pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n == "joined" else SLOW) for n in TYPES]
)


def model(unit, missing="latent", hidden_units=3, **kwargs):
    """Returns an RBM of four units with random weights of some size."""
    rbm = kr.RBM(
        hidden_units, visible=unit, num_visible=4, missing=missing, seed=0, **kwargs
    )
    rng = np.random.default_rng(1)
    for weight in rbm.trainable_variables:
        weight.assign(rng.normal(size=weight.shape))
    return rbm


def all_states(unit):
    """Returns all states of four units."""
    layer = model(unit).potentials().visible
    each = [own[:n] for own, n in zip(layer.values, num_states(layer), strict=True)]
    return np.stack(np.meshgrid(*each, indexing="ij"), -1).reshape(-1, 4)


def some_rows(states):
    """Returns rows with none to all of four states unknown."""
    rows = np.float32(states[[1, 5, 3, 7, 2]])
    rows[1, 1] = rows[2, [0, 3]] = rows[3, 1:] = rows[4] = NAN
    return rows


def logsumexp(values):
    return np.logaddexp.reduce(np.float64(values))


def given(rbm, states, row):
    """Returns the states that agree with a row, and their shares."""
    agree = np.all((states == row) | np.isnan(row), 1)
    log_weights = -np.float64(kr.RBM.free_energy(rbm, states))[agree]
    return states[agree], np.exp(log_weights - logsumexp(log_weights))


@pytest.mark.parametrize("name", TYPES)
def test_likelihood_of_what_is_known(name):
    rbm, states = model(TYPES[name]), all_states(TYPES[name])
    rows = some_rows(states)
    log_weights = -np.float64(rbm.free_energy(states))
    log_p = [
        logsumexp(log_weights[np.all((states == row) | np.isnan(row), 1)])
        for row in rows
    ] - logsumexp(log_weights)
    found = rbm.log_likelihood(rows, "exact").numpy()
    np.testing.assert_allclose(found, log_p, atol=1e-5)
    assert abs(found[4]) < 1e-5  # nothing is known


@FEW
def test_marginals_and_draws(name):
    rbm, states = model(TYPES[name]), all_states(TYPES[name])
    rows = some_rows(states)
    means, encoded = rbm.marginals(rows).numpy(), TYPES[name].encode
    count = 4000
    for row, mean in zip(rows, means, strict=True):
        agree, shares = given(rbm, states, row)
        exact = shares @ np.asarray(encoded(np.float32(agree)))
        np.testing.assert_allclose(mean, exact, atol=1e-5)
        draws = rbm.impute(np.tile(row, (count, 1)), "sample", steps=50).numpy()
        known = ~np.isnan(row)
        assert (draws[:, known] == row[known]).all()
        draws = np.asarray(encoded(draws))
        error = draws.std(0) / count**0.5
        assert (abs(draws.mean(0) - exact) <= 5.0 * error + 1e-6).all()


def test_marginals_by_chains(monkeypatch):
    monkeypatch.setattr("keras_rbm.inference.missing.MOST_STATES", 1)
    unit = TYPES["joined"]
    rbm, states = model(unit), all_states(unit)
    rows = some_rows(states)[2:]
    chains = np.mean(
        [rbm.marginals(rows, steps=1000, seed=seed) for seed in range(10)], 0
    )
    for row, mean in zip(rows, chains, strict=True):
        agree, shares = given(rbm, states, row)
        exact = shares @ np.asarray(unit.encode(np.float32(agree)))
        np.testing.assert_allclose(mean, exact, atol=0.05)


def test_label_beside_numbers_is_summed_over():
    """Real-valued units are known, so the label's q states are all there is."""
    unit = units.Joined([("gaussian", 3), (units.Categorical(3), 1)])
    rbm = model(unit)
    rows = np.float32([[0.3, -1.0, 2.0, NAN], [NAN, 0.5, 1.0, 2.0]])
    complete = np.repeat(rows[:1], 3, 0)
    complete[:, 3] = range(3)
    log_p = np.float64(rbm.log_likelihood(complete, 0.0))
    found = rbm.marginals(rows).numpy()[0, 3:]
    np.testing.assert_allclose(found, np.exp(log_p - logsumexp(log_p)), atol=1e-5)
    known = rbm.log_likelihood(rows[:1], 0.0).numpy()[0]
    assert known == pytest.approx(logsumexp(log_p), abs=1e-5)


def test_gaussian_likelihood():
    rbm = model("gaussian")
    row = np.float32([[0.3, NAN, -1.2, NAN]])
    log_partition = rbm.log_partition("exact")
    found = rbm.log_likelihood(row, log_partition).numpy()[0]
    grid = np.linspace(-60.0, 60.0, 401, dtype="float32")
    pairs = np.stack(np.meshgrid(grid, grid), -1).reshape(-1, 2)
    rows = np.tile(row, (len(pairs), 1))
    rows[:, [1, 3]] = pairs
    log_p = rbm.log_likelihood(rows, log_partition).numpy()
    total = logsumexp(log_p) + 2.0 * np.log(grid[1] - grid[0])
    assert found == pytest.approx(total, abs=1e-3)


def test_annealed_likelihood_has_an_interval():
    rbm, states = model("bernoulli"), all_states("bernoulli")
    rows = some_rows(states)
    exact = rbm.log_partition("exact", observed=rows)
    assert np.ptp(exact.upper - exact.lower) < 1e-12
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("keras_rbm.inference.missing.MOST_STATES", 1)
        annealed = rbm.log_partition("ais", observed=rows, num_chains=50)
    assert np.all(annealed.lower <= exact.value + 1e-4)
    assert np.all(annealed.upper >= exact.value - 1e-4)
    assert annealed.stderr[0] == 0.0 and annealed.stderr[4] > 0.0


@FEW
def test_gradient_of_the_likelihood(name):
    """The mean of many steps' gradients is the exact one, within their errors."""
    unit = TYPES[name]
    rbm, states = model(unit, kernel_regularizer=None), all_states(unit)
    row = some_rows(states)[2]
    rule = kr.rules.ContrastiveDivergence(centered=False)
    count = 4000
    rbm.compile(keras.optimizers.SGD(1.0), rule=rule)
    rows = tf.constant(np.tile(row, (count, 1)))
    known, rows = tf.logical_not(tf.math.is_nan(rows)), tf.where(rows == rows, rows, 0)
    weights = tf.ones(count) / count
    step = rbm._step(None, rows, known, weights, SEEDS[0], loss_seed=SEEDS[1])
    agree, shares = given(rbm, states, row)
    exact = kr.inference.conditional_moments(
        rbm.potentials(),
        tf.constant(np.float32(agree)),
        tf.constant(np.float32(shares)),
    )
    np.testing.assert_allclose(step.positive.kernel, exact.kernel, atol=0.08)


SEEDS = tf.constant([1, 2]), tf.constant([3, 4])


def test_one_unknown_unit_is_drawn_exactly():
    """A label is from p(label | rest), though a chain would hardly ever change it."""
    unit = units.Joined([("bernoulli", 3), (units.Categorical(3), 1)])
    rbm = model(unit)
    rbm.kernel.assign(30.0 * rbm.kernel)
    row = np.float32([1, 0, 1, NAN])
    exact = rbm.marginals(row[np.newaxis]).numpy()[0, 3:]
    count = 4000
    potentials = rbm.potentials()
    step = rbm.gaps.completed(
        potentials,
        tf.constant(np.tile(np.nan_to_num(row), (count, 1))),
        tf.constant(np.tile(~np.isnan(row), (count, 1))),
        rbm._base_natural(potentials),
        SEEDS[0],
    )
    shares = np.bincount(np.int32(step[:, 3]), minlength=3) / count
    assert (abs(shares - exact) <= 5.0 * np.sqrt(exact * (1 - exact) / count)).all()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=[] if n in ("joined", "gaussian") else SLOW)
        for n in (*TYPES, "gaussian")
    ],
)
def test_absent_units_are_not_part_of_the_model(name):
    """A row's likelihood is that of an RBM of the units that it has."""
    unit = TYPES.get(name, name)
    rbm = model(unit, "absent")
    row = np.float32([[1, NAN, 1, NAN]])
    part = TYPES[name].parts[0] if name == "joined" else None
    kept = (
        units.Joined([("bernoulli", 1), (part and units.Categorical(3), 1)])
        if part
        else unit
    )
    small = kr.RBM(3, visible=kept, num_visible=2, seed=0)
    rows = np.flatnonzero(np.isin(rbm.potentials().visible.unit_of_row, [0, 2]))
    small.kernel.assign(rbm.kernel.numpy()[rows])
    for weight in small.trainable_variables[1:]:
        own = getattr(rbm, weight.name).numpy()
        size = len(rows) if weight.name == "visible_bias" else 2
        keep = rows if size == len(rows) and len(own) > 4 else [0, 2]
        weight.assign(own if weight.name == "hidden_bias" else own[keep])
    expected = small.log_likelihood(row[:, [0, 2]], "exact").numpy()
    found = rbm.log_likelihood(row, "exact").numpy()
    np.testing.assert_allclose(found, expected, atol=1e-5)
    features = rbm.predict(row, verbose=0)
    np.testing.assert_allclose(
        features, small.predict(row[:, [0, 2]], verbose=0), atol=1e-5
    )


@pytest.mark.parametrize("name", TYPES)
def test_absent_units_are_predicted_one_by_one(name):
    rbm, states = model(TYPES[name], "absent"), all_states(TYPES[name])
    row = some_rows(states)[2]  # units 0 and 3 are absent
    found = rbm.marginals(row[np.newaxis]).numpy()[0]
    whole = np.array([row])
    parts = []
    for unit in (0, 3):
        values = np.unique(states[:, unit])
        rows = np.repeat(whole, len(values), 0)
        rows[:, unit] = values
        log_weights = -np.float64(rbm.free_energy(rows))
        shares = np.exp(log_weights - logsumexp(log_weights))
        encoded = np.asarray(TYPES[name].encode(np.float32(np.nan_to_num(rows))))
        parts.append((unit, shares @ encoded))
    of_row = rbm.potentials().visible.unit_of_row
    for unit, exact in parts:
        np.testing.assert_allclose(
            found[of_row == unit], exact[of_row == unit], atol=1e-5
        )


@pytest.mark.parametrize("missing", ["latent", "absent"])
def test_rows_without_gaps_learn_the_same(missing):
    data = np.random.default_rng(0).integers(0, 2, (50, 6)).astype("float32")
    weights = []
    for kind in (None, missing):
        rbm = kr.RBM(4, seed=0, missing=kind)
        rbm.compile(rule="cd", metrics=["mse"])
        history = rbm.fit(data, epochs=2, verbose=0)
        weights.append([*rbm.get_weights(), history.history["loss"]])
    for one, two in zip(*weights, strict=True):  # each unit counts its own examples
        np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-6)


def test_default_rules():
    """Chains of three sweeps lost MNIST with 80 % gone; absent units have no chains."""
    models = {kind: kr.RBM(4, missing=kind) for kind in (None, "latent", "absent")}
    for rbm in models.values():
        rbm.compile()
    own, latent, absent = (rbm.rule for rbm in models.values())
    assert own.gibbs_steps == 3 and latent.gibbs_steps == 10
    assert type(latent) is type(own) is kr.rules.ParallelTempering
    assert type(absent) is kr.rules.ContrastiveDivergence


@pytest.mark.parametrize("missing", ["latent", "absent"])
def test_rows_of_which_nothing_is_known_change_nothing(missing):
    data = np.random.default_rng(0).integers(0, 2, (40, 6)).astype("float32")
    data[::3, 2] = NAN
    empty = np.concatenate([data, np.full((5, 6), NAN, "float32")])
    weights = []
    for rows in (data, empty):
        rbm = kr.RBM(4, num_visible=6, seed=0, missing=missing)
        rule = kr.rules.ContrastiveDivergence(centered=False)
        rbm.compile(keras.optimizers.SGD(0.1), rule=rule)
        rbm.fit(rows, batch_size=len(rows), verbose=0, shuffle=False)
        weights.append(rbm.get_weights())
    for one, two in zip(*weights, strict=True):
        np.testing.assert_allclose(one, two, atol=1e-5 if missing == "absent" else 0.02)


def test_mean_and_metrics_are_of_what_is_known():
    data = np.random.default_rng(0).normal(2.0, 3.0, (300, 3)).astype("float32")
    data[np.random.default_rng(1).random(data.shape) < 0.4] = NAN
    for missing in ("latent", "absent"):
        rbm = kr.RBM(2, visible="gaussian", seed=0, missing=missing)
        rbm.compile("sgd", rule="cd", metrics=["mse"])
        rbm.fit(data, batch_size=150, verbose=0)
        np.testing.assert_allclose(rbm.base_rate, np.nanmean(data, 0), rtol=1e-4)
        found = rbm.evaluate(data, batch_size=150, verbose=0, return_dict=True)["mse"]
        assert np.isfinite(found)
        rbm.adapt(data)
        np.testing.assert_allclose(rbm.base_rate, np.nanmean(data, 0), rtol=1e-4)


def test_metric_counts_known_entries():
    data = np.float32([[1, NAN, NAN], [0, 1, NAN]])
    rbm = kr.RBM(2, num_visible=3, seed=0, missing="absent")
    rbm.compile(metrics=[keras.metrics.BinaryAccuracy()])
    rbm.visible_bias.assign([5.0, 5.0, 5.0])
    rbm.kernel.assign(0.0 * rbm.kernel)
    accuracy = rbm.evaluate(data, verbose=0, return_dict=True)["binary_accuracy"]
    assert accuracy == pytest.approx(2 / 3)


def test_conditional_model_with_unknown_targets():
    x = np.random.default_rng(0).normal(size=(60, 5)).astype("float32")
    y = (x[:, :4] > 0).astype("float32")
    crbm = kr.CRBM(3, seed=0, missing="latent")
    crbm.compile(metrics=[kr.metrics.PixelError()])
    gaps = np.where(np.random.default_rng(1).random(y.shape) < 0.3, NAN, y)
    crbm.fit(x, gaps, epochs=6, batch_size=60, verbose=0)
    wrong = np.mean(crbm.predict_map(x) != y)
    assert wrong < 0.1


@pytest.mark.parametrize(
    "rows, words",
    [
        ([[0, NAN, 1], [1, NAN, 0]], "columns \\[1\\]"),
        ([[0, np.inf, 1], [1, 0, 0]], "infinite"),
        ([[0, 2, 1], [1, NAN, 0]], "row 0, column 1"),
    ],
)
def test_bad_data(rows, words):
    rbm = kr.RBM(2, num_visible=3, seed=0, missing="latent")
    rbm.compile()
    before = rbm.get_weights()
    with pytest.raises(ValueError, match=words):
        rbm.fit(np.float32(rows), verbose=0)
    for one, two in zip(before, rbm.get_weights(), strict=True):
        np.testing.assert_array_equal(one, two)


def test_without_a_meaning_nan_is_an_error():
    rbm = kr.RBM(2, num_visible=3, seed=0)
    rbm.compile()
    with pytest.raises(ValueError, match="missing='latent'"):
        rbm.fit(np.float32([[0, NAN, 1]]), verbose=0)
    with pytest.raises(ValueError, match="Received: missing='gone'"):
        kr.RBM(2, missing="gone")
    absent = kr.RBM(2, num_visible=3, missing="absent")
    with pytest.raises(ValueError, match="without absent units"):
        absent.compile(rule="pcd")
    with pytest.raises(ValueError, match="log_likelihood"):
        kr.RBM(2, num_visible=3, missing="latent").free_energy([[0, NAN, 1]])
    for kind in ("latent", "absent"):
        rbm = kr.RBM(2, num_visible=3, missing=kind)
        with pytest.raises(ValueError, match="log_likelihood"):
            rbm.pseudo_log_likelihood([[0, NAN, 1]])


def test_samples_keep_what_is_given():
    rbm = model("bernoulli", None)
    rows = np.float32([[1, NAN, 0, NAN]] * 200 + [[1, 1, 1, 1]] * 200)
    samples = rbm.sample(400, initial_visible=rows, steps=20).numpy()
    assert (samples[:200, [0, 2]] == [1, 0]).all()
    assert 0.0 < samples[:200, 1].mean() < 1.0
    assert (samples[200:] == 1.0).all()  # known, as the rest of the others
    moved = rbm.sample(400, initial_visible=np.ones((400, 4)), steps=20).numpy()
    assert moved.min() == 0.0  # nothing was NaN, so these are states to start from


def test_saved_and_resumed(tmp_path):
    data = np.random.default_rng(0).integers(0, 2, (40, 6)).astype("float32")
    data[::3, 2] = NAN
    rbm = kr.RBM(3, seed=0, missing="latent")
    rbm.compile()
    rbm.fit(data, verbose=0)
    rbm.save(tmp_path / "rbm.keras")
    loaded = keras.models.load_model(tmp_path / "rbm.keras")
    assert loaded.missing == "latent"
    for one in (rbm, loaded):
        one.fit(data, verbose=0)
    for one, two in zip(rbm.get_weights(), loaded.get_weights(), strict=True):
        np.testing.assert_array_equal(one, two)


def test_imputation_given_x():
    crbm = kr.CRBM(3, num_visible=4, num_features=2, seed=0)
    rng = np.random.default_rng(0)
    for weight in crbm.trainable_variables:
        weight.assign(rng.normal(size=weight.shape))
    x, row = np.float32([[0.5, -1.0]]), np.float32([1, NAN, NAN, 0])
    states = np.float32(list(np.ndindex(2, 2, 2, 2)))
    agree = states[np.all((states == row) | np.isnan(row), 1)]
    log_weights = -np.float64(crbm.free_energy(np.repeat(x, 4, 0), agree))
    exact = np.exp(log_weights - logsumexp(log_weights)) @ agree
    many, rows = np.repeat(x, 1500, 0), np.tile(row, (1500, 1))
    means = crbm.impute(many, rows, steps=100).numpy()
    np.testing.assert_allclose(means.mean(0), exact, atol=0.02)
    draws = crbm.impute(many, rows.reshape(-1, 2, 2), "sample", steps=20).numpy()
    assert draws.shape == (1500, 2, 2)
    np.testing.assert_allclose(draws.reshape(-1, 4).mean(0), exact, atol=0.06)
    assert set(np.unique(crbm.impute(x, row[np.newaxis], "mode"))) <= {0.0, 1.0}


def test_deep_model_fills_gaps():
    dbm = kr.DBM([2, 2], num_visible=3, seed=0)
    rng = np.random.default_rng(0)
    for weight in dbm.trainable_variables:
        weight.assign(2.0 * rng.normal(size=weight.shape))
    states = np.float32(list(np.ndindex(2, 2, 2)))
    joint = dbm.potentials()
    above = np.float32(list(np.ndindex(2, 2)))
    log_weights = np.array(
        [
            logsumexp(-joint.free_energy(np.hstack([np.tile(v, (4, 1)), above])))
            for v in states
        ]
    )
    row = np.float32([1, NAN, NAN])
    agree = states[:, 0] == 1
    exact = np.exp(log_weights[agree] - logsumexp(log_weights[agree])) @ states[agree]
    np.testing.assert_allclose(dbm.marginals(row[np.newaxis])[0], exact, atol=1e-5)
    known = dbm.log_partition("exact", observed=row[np.newaxis]).value[0]
    assert float(known) == pytest.approx(logsumexp(log_weights[agree]), abs=1e-5)


def test_absent_categories_are_learned_centered():
    """Of rows that lack nothing, a centered step changes the model as without gaps."""
    unit = units.Categorical(3)
    rng = np.random.default_rng(0)
    rows = rng.choice(3, (20, 4), p=[0.7, 0.2, 0.1]).astype("float32")
    models = []
    for missing in (None, "absent"):
        rbm = model(unit, missing, kernel_regularizer=None)
        rbm.adapt(rows)
        rule = kr.rules.ContrastiveDivergence(centered=True)
        rbm.compile(keras.optimizers.SGD(0.5), rule=rule)
        rbm.train_on_batch(rows)
        models.append(rbm)
    kernels = [rbm.kernel.numpy() for rbm in models]
    assert abs(kernels[0] - kernels[1]).max() > 1e-3  # other parameters
    states = all_states(unit)
    one, two = (np.float64(rbm.free_energy(states)) for rbm in models)
    np.testing.assert_allclose(one - one.mean(), two - two.mean(), atol=1e-4)


def test_absent_units_of_inverted_data():
    """Steps were not centered, and most hidden units died where 1 is frequent."""
    rng = np.random.default_rng(0)
    rows = (load_digits().data[:1400] <= 7.5).astype("float32")
    rows[rng.random(rows.shape) < 0.3] = NAN
    rbm = kr.RBM(16, seed=0, missing="absent")
    rbm.compile()
    rbm.fit(rows, epochs=5, verbose=0)
    features = rbm.predict(rows, verbose=0)
    assert ((features.max(0) > 0.01) & (features.min(0) < 0.99)).all()
    with pytest.raises(ValueError, match="centered=True"):
        kr.CRBM(2).compile(rule=kr.rules.ContrastiveDivergence(centered=True))


@pytest.mark.parametrize("missing", ["latent", "absent"])
def test_reconstructed_and_exported(missing, tmp_path):
    rbm = model("bernoulli", missing)
    rows = np.float32([[1, NAN, 0, NAN], [1, 0, 1, 1]])
    found = rbm.reconstruct(rows).numpy()
    assert np.isfinite(found).all()
    whole = rbm.reconstruct(rows[1:]).numpy()
    np.testing.assert_allclose(found[1:], whole, atol=1e-6)
    rbm.export(tmp_path / "served", verbose=False)
    served = tf.saved_model.load(str(tmp_path / "served")).signatures["impute"]
    filled = served(tf.constant(rows))["visible"].numpy()
    np.testing.assert_array_equal(filled[1], rows[1])
    exact = rbm.impute(rows).numpy()
    np.testing.assert_allclose(
        filled, exact, atol=0.15 if missing == "latent" else 1e-5
    )


def test_frames_and_lists_with_gaps():
    pandas = pytest.importorskip("pandas")
    columns = {
        "a": pandas.array([1, 0, None, 1], dtype="Int64"),
        "b": [0.0, 1.0, 1.0, NAN],
        "c": pandas.array([True, None, False, True], dtype="boolean"),
    }
    expected = np.float32([[1, 0, 1], [0, 1, NAN], [NAN, 1, 0], [1, NAN, 1]])
    weights = []
    for rows in (pandas.DataFrame(columns), expected, expected.tolist()):
        rbm = kr.RBM(2, seed=0, missing="latent")
        rbm.compile("sgd")
        rbm.fit(rows, verbose=0)
        weights.append(rbm.get_weights())
        assert np.isfinite(rbm.impute(rows)).all()
    for one, two, three in zip(*weights, strict=True):
        np.testing.assert_array_equal(one, two)
        np.testing.assert_array_equal(one, three)
    objects = np.array([[1, None, 0], [0, 1, None]], object)
    assert np.isfinite(rbm.impute(objects)).all()


def test_one_batch_grown_and_adapted():
    rows = np.float32([[1, NAN, 0], [0, 1, NAN], [1, 1, 1]])
    rbm = kr.RBM(2, seed=0, missing="latent")
    rbm.compile("sgd")
    rbm.train_on_batch(rows)
    rbm.test_on_batch(rows)
    assert kr.InfiniteRBM.from_rbm(rbm, 4).hidden_units == 2
    before = rbm.base_rate.numpy()
    with pytest.raises(ValueError, match=r"columns \[1\]"):
        rbm.adapt(rows[:1])
    np.testing.assert_array_equal(rbm.base_rate, before)
    with pytest.raises(ValueError, match="method='nope'"):
        rbm.log_partition("nope", observed=rows)
