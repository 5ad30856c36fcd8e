"""Entries that are not known, against sums over all their states."""

import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf
from model_test_case import run_file_test
from same import assert_same, unchanged
from sklearn.datasets import load_digits
from small_models import all_states, binary, compiled, fitted, quick, randomized

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
SEEDS = tf.constant([1, 2]), tf.constant([3, 4])
FEW = pytest.mark.parametrize("name", quick(TYPES, "joined"))
EITHER = pytest.mark.parametrize("missing", ["latent", "absent"])


def model(unit, missing="latent", **kwargs):
    """Returns an RBM of four units with random weights of some size."""
    rbm = kr.RBM(3, visible=unit, num_visible=4, missing=missing, seed=0, **kwargs)
    return randomized(rbm)


def states_of(unit):
    """Returns all states of four units."""
    layer = model(unit).potentials().visible
    each = [own[:n] for own, n in zip(layer.values, num_states(layer), strict=True)]
    return np.stack(np.meshgrid(*each, indexing="ij"), -1).reshape(-1, 4)


def some_rows(states):
    """Returns rows with none to all of four states unknown."""
    rows = np.float32(states[[1, 5, 3, 7, 2]])
    rows[1, 1] = rows[2, [0, 3]] = rows[3, 1:] = rows[4] = NAN
    return rows


def with_gaps():
    data = binary()
    data[::3, 2] = NAN
    return data


def logsumexp(values):
    return np.logaddexp.reduce(np.float64(values))


def shares_of(log_weights):
    return np.exp(np.float64(log_weights) - logsumexp(log_weights))


def given(rbm, states, row):
    """Returns the states that agree with a row, and their shares."""
    agree = states[np.all((states == row) | np.isnan(row), 1)]
    return agree, shares_of(-kr.RBM.free_energy(rbm, agree))


def mean_given(rbm, states, row):
    agree, shares = given(rbm, states, row)
    return shares @ np.asarray(rbm.visible.encode(np.float32(agree)))


@pytest.mark.parametrize("name", TYPES)
def test_likelihood_of_what_is_known(name):
    rbm, states = model(TYPES[name]), states_of(TYPES[name])
    rows = some_rows(states)
    weights = shares_of(-rbm.free_energy(states))
    agree = [np.all((states == row) | np.isnan(row), 1) for row in rows]
    found = rbm.log_likelihood(rows, "exact").numpy()
    np.testing.assert_allclose(found, np.log(agree @ weights), atol=1e-5)
    assert abs(found[4]) < 1e-5  # nothing is known


@FEW
def test_marginals_and_draws(name):
    rbm, states, count = model(TYPES[name]), states_of(TYPES[name]), 4000
    rows = some_rows(states)
    for row, mean in zip(rows, rbm.marginals(rows).numpy(), strict=True):
        exact = mean_given(rbm, states, row)
        np.testing.assert_allclose(mean, exact, atol=1e-5)
        draws = rbm.impute(np.tile(row, (count, 1)), "sample", steps=50).numpy()
        known = ~np.isnan(row)
        assert (draws[:, known] == row[known]).all()
        draws = np.asarray(rbm.visible.encode(draws))
        error = draws.std(0) / count**0.5
        assert (abs(draws.mean(0) - exact) <= 5.0 * error + 1e-6).all()


def test_marginals_by_chains(monkeypatch):
    monkeypatch.setattr("keras_rbm.inference.missing.MOST_STATES", 1)
    rbm, states = model(TYPES["joined"]), states_of(TYPES["joined"])
    rows = some_rows(states)[2:]
    chains = [rbm.marginals(rows, steps=1000, seed=seed) for seed in range(10)]
    exact = [mean_given(rbm, states, row) for row in rows]
    np.testing.assert_allclose(np.mean(chains, 0), exact, atol=0.05)


def test_marginals_of_chains_that_differ_are_told():
    """Two modes, all on or all off: a chain stays in one of them."""
    rbm = kr.RBM(1, num_visible=14, missing="latent", seed=0)
    rbm.kernel.assign(np.full((14, 1), 8.0))
    rbm.visible_bias.assign(np.full(14, -4.0))
    gain = np.logaddexp(0.0, 4.0) - np.logaddexp(0.0, -4.0)
    rbm.hidden_bias.assign([-14 * gain])
    rows = np.full((6, 14), NAN, np.float32)
    with pytest.warns(UserWarning, match="of 6 rows are uncertain.*steps=2000"):
        means = rbm.marginals(rows, seed=1).numpy()
    assert {round(4.0 * mean) for mean in means.ravel()} - {0, 4}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rbm.kernel.assign(np.ones((14, 1)))
        rbm.marginals(rows)
        unit = units.Binomial(255)
        counts = kr.RBM(5, visible=unit, num_visible=6, missing="latent", seed=0)
        counts.kernel.assign(np.random.default_rng(0).normal(0.0, 0.02, (6, 5)))
        counts.marginals(rows[:, :6], steps=50)


def test_label_beside_numbers_is_summed_over():
    """Real-valued units are known, so the label's q states are all there is."""
    rbm = model(units.Joined([("gaussian", 3), (units.Categorical(3), 1)]))
    rows = np.float32([[0.3, -1.0, 2.0, NAN], [NAN, 0.5, 1.0, 2.0]])
    complete = np.repeat(rows[:1], 3, 0)
    complete[:, 3] = range(3)
    log_p = rbm.log_likelihood(complete, 0.0)
    found = rbm.marginals(rows).numpy()[0, 3:]
    np.testing.assert_allclose(found, shares_of(log_p), atol=1e-5)
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


def test_annealed_likelihood_has_an_interval(monkeypatch):
    rbm = model("bernoulli")
    rows = some_rows(states_of("bernoulli"))
    exact = rbm.log_partition("exact", observed=rows)
    assert np.ptp(exact.upper - exact.lower) < 1e-12
    monkeypatch.setattr("keras_rbm.inference.missing.MOST_STATES", 1)
    annealed = rbm.log_partition("ais", observed=rows, num_chains=50)
    assert np.all(annealed.lower <= exact.value + 1e-4)
    assert np.all(annealed.upper >= exact.value - 1e-4)
    assert annealed.stderr[0] == 0.0 and annealed.stderr[4] > 0.0


@FEW
def test_gradient_of_the_likelihood(name):
    """The mean of many steps' gradients is the exact one, within their errors."""
    rbm, states = model(TYPES[name], kernel_regularizer=None), states_of(TYPES[name])
    row, count = some_rows(states)[2], 4000
    rule = kr.rules.ContrastiveDivergence(centered=False)
    compiled(rbm, keras.optimizers.SGD(1.0), rule=rule)
    rows = np.tile(row, (count, 1))
    known, weights = tf.constant(~np.isnan(rows)), tf.ones(count) / count
    rows = tf.constant(np.nan_to_num(rows))
    step = rbm._step(None, rows, known, weights, SEEDS[0], loss_seed=SEEDS[1])
    exact = map(tf.constant, map(np.float32, given(rbm, states, row)))
    exact = kr.inference.conditional_moments(rbm.potentials(), *exact)
    np.testing.assert_allclose(step.positive.kernel, exact.kernel, atol=0.08)


def test_one_unknown_unit_is_drawn_exactly():
    """A label is from p(label | rest), though a chain would hardly ever change it."""
    rbm = model(units.Joined([("bernoulli", 3), (units.Categorical(3), 1)]))
    rbm.kernel.assign(30.0 * rbm.kernel)
    row, count = np.float32([1, 0, 1, NAN]), 4000
    exact = rbm.marginals(row[np.newaxis]).numpy()[0, 3:]
    rows, known = (
        tf.constant(np.tile(part, (count, 1)))
        for part in (np.nan_to_num(row), ~np.isnan(row))
    )
    potentials = rbm.potentials()
    base = rbm._base_natural(potentials)
    drawn = rbm.gaps.completed(potentials, rows, known, base, SEEDS[0])
    shares = np.bincount(np.int32(drawn[:, 3]), minlength=3) / count
    assert (abs(shares - exact) <= 5.0 * np.sqrt(exact * (1 - exact) / count)).all()


@pytest.mark.parametrize("name", quick([*TYPES, "gaussian"], "joined", "gaussian"))
def test_absent_units_are_not_part_of_the_model(name):
    """A row's likelihood is that of an RBM of the units that it has."""
    rbm, row = model(TYPES.get(name, name), "absent"), np.float32([[1, NAN, 1, NAN]])
    kept = rbm.visible
    if name == "joined":
        kept = units.Joined([("bernoulli", 1), (units.Categorical(3), 1)])
    small = kr.RBM(3, visible=kept, num_visible=2, seed=0)
    rows = np.flatnonzero(np.isin(rbm.potentials().visible.unit_of_row, [0, 2]))
    for weight in small.trainable_variables:
        values = getattr(rbm, weight.name).numpy()
        if weight.name.startswith("visible") and len(values) == 4:
            values = values[[0, 2]]
        elif weight.name != "hidden_bias":
            values = values[rows]
        weight.assign(values)
    expected = small.log_likelihood(row[:, [0, 2]], "exact").numpy()
    found = rbm.log_likelihood(row, "exact").numpy()
    np.testing.assert_allclose(found, expected, atol=1e-5)
    features = small.predict(row[:, [0, 2]], verbose=0)
    np.testing.assert_allclose(rbm.predict(row, verbose=0), features, atol=1e-5)


@pytest.mark.parametrize("name", TYPES)
def test_absent_units_are_predicted_one_by_one(name):
    rbm, states = model(TYPES[name], "absent"), states_of(TYPES[name])
    row = some_rows(states)[2]  # units 0 and 3 are absent
    found = rbm.marginals(row[np.newaxis]).numpy()[0]
    of_row = rbm.potentials().visible.unit_of_row
    for unit in (0, 3):
        values = np.unique(states[:, unit])
        rows = np.tile(row, (len(values), 1))
        rows[:, unit] = values
        shares = shares_of(-rbm.free_energy(rows))
        exact = shares @ np.asarray(rbm.visible.encode(np.nan_to_num(rows)))
        own = of_row == unit
        np.testing.assert_allclose(found[own], exact[own], atol=1e-5)


@EITHER
def test_rows_without_gaps_learn_the_same(missing):
    data, results = binary(50), []
    for kind in (None, missing):
        rbm = compiled(kr.RBM(4, seed=0, missing=kind), rule="cd", metrics=["mse"])
        history = rbm.fit(data, epochs=2, verbose=0)
        results.append([*rbm.get_weights(), history.history["loss"]])
    assert_same(*results, rtol=1e-5, atol=1e-6)  # each unit counts its own examples


def test_default_rules():
    """Chains of three sweeps lost MNIST with 80 % gone; absent units have no chains."""
    kinds = None, "latent", "absent"
    rules = [compiled(kr.RBM(4, missing=kind)).rule for kind in kinds]
    assert rules[0].gibbs_steps == 3 and rules[1].gibbs_steps == 10
    assert type(rules[0]) is type(rules[1]) is kr.rules.ParallelTempering
    assert type(rules[2]) is kr.rules.ContrastiveDivergence


@EITHER
def test_rows_of_which_nothing_is_known_change_nothing(missing):
    data, models = with_gaps(), []
    empty = np.concatenate([data, np.full((5, 6), NAN, "float32")])
    for rows in (data, empty):
        # A prior counts the rows, those too.
        own = {"missing": missing, "kernel_regularizer": None}
        rbm = kr.RBM(4, num_visible=6, seed=0, **own)
        rule = kr.rules.ContrastiveDivergence(centered=False)
        compiled(rbm, keras.optimizers.SGD(0.1), rule=rule)
        models.append(fitted(rbm, rows, batch_size=len(rows), shuffle=False).weights)
    assert_same(*models, atol=1e-5 if missing == "absent" else 0.02)


@EITHER
def test_mean_and_metrics_are_of_what_is_known(missing):
    data = np.random.default_rng(0).normal(2.0, 3.0, (300, 3)).astype("float32")
    data[np.random.default_rng(1).random(data.shape) < 0.4] = NAN
    rbm = kr.RBM(2, visible="gaussian", seed=0, missing=missing)
    fitted(compiled(rbm, "sgd", rule="cd", metrics=["mse"]), data, batch_size=150)
    np.testing.assert_allclose(rbm.base_rate, np.nanmean(data, 0), rtol=1e-4)
    found = rbm.evaluate(data, batch_size=150, verbose=0, return_dict=True)
    assert np.isfinite(found["mse"])
    rbm.adapt(data)
    np.testing.assert_allclose(rbm.base_rate, np.nanmean(data, 0), rtol=1e-4)


def test_metric_counts_known_entries():
    data = np.float32([[1, NAN, NAN], [0, 1, NAN]])
    rbm = kr.RBM(2, num_visible=3, seed=0, missing="absent")
    compiled(rbm, metrics=[keras.metrics.BinaryAccuracy()])
    rbm.visible_bias.assign([5.0, 5.0, 5.0])
    rbm.kernel.assign(0.0 * rbm.kernel)
    accuracy = rbm.evaluate(data, verbose=0, return_dict=True)["binary_accuracy"]
    assert accuracy == pytest.approx(2 / 3)


def test_conditional_model_with_unknown_targets():
    x = np.random.default_rng(0).normal(size=(60, 5)).astype("float32")
    y = (x[:, :4] > 0).astype("float32")
    crbm = kr.CRBM(3, seed=0, missing="latent")
    compiled(crbm, metrics=[kr.metrics.PixelError()])
    gaps = np.where(np.random.default_rng(1).random(y.shape) < 0.3, NAN, y)
    fitted(crbm, x, gaps, epochs=6, batch_size=60)
    assert np.mean(crbm.predict_map(x) != y) < 0.1


def test_samples_keep_what_is_given():
    rbm = model("bernoulli", None)
    rows = np.float32([[1, NAN, 0, NAN]] * 200 + [[1, 1, 1, 1]] * 200)
    samples = rbm.sample(400, initial_visible=rows, steps=20).numpy()
    assert (samples[:200, [0, 2]] == [1, 0]).all()
    assert 0.0 < samples[:200, 1].mean() < 1.0
    options = {"initial_visible": rows, "steps": 20, "seed": 1}
    traced = tf.function(lambda: rbm.sample(400, **options))
    np.testing.assert_array_equal(traced(), rbm.sample(400, **options))
    assert (samples[200:] == 1.0).all()  # known, as the rest of the others
    moved = rbm.sample(400, initial_visible=np.ones((400, 4)), steps=20).numpy()
    assert moved.min() == 0.0  # nothing was NaN, so these are states to start from


def test_saved_and_resumed(tmp_path):
    rbm = compiled(kr.RBM(3, seed=0, missing="latent"))
    loaded = run_file_test(rbm, with_gaps(), folder=tmp_path)
    assert loaded.missing == "latent"


def test_imputation_given_x():
    crbm = randomized(kr.CRBM(3, num_visible=4, num_features=2, seed=0))
    x, row = np.float32([[0.5, -1.0]]), np.float32([1, NAN, NAN, 0])
    agree = np.float32([[1, *middle, 0] for middle in np.ndindex(2, 2)])
    exact = shares_of(-crbm.free_energy(np.repeat(x, 4, 0), agree)) @ agree
    many, rows = np.repeat(x, 1500, 0), np.tile(row, (1500, 1))
    means = crbm.impute(many, rows, steps=100).numpy()
    np.testing.assert_allclose(means.mean(0), exact, atol=0.02)
    draws = crbm.impute(many, rows.reshape(-1, 2, 2), "sample", steps=20).numpy()
    assert draws.shape == (1500, 2, 2)
    np.testing.assert_allclose(draws.reshape(-1, 4).mean(0), exact, atol=0.06)
    assert set(np.unique(crbm.impute(x, row[np.newaxis], "mode"))) <= {0.0, 1.0}


def test_deep_model_fills_gaps():
    dbm = randomized(kr.DBM([2, 2], num_visible=3, seed=0), 2.0, seed=0)
    joint, above = dbm.potentials(), all_states(2, 2)
    agree = np.float32([[1, *rest] for rest in np.ndindex(2, 2)])
    pairs = [np.hstack([np.tile(v, (4, 1)), above]) for v in agree]
    log_weights = [logsumexp(-joint.free_energy(pair)) for pair in pairs]
    row = np.float32([[1, NAN, NAN]])
    exact = shares_of(log_weights) @ agree
    np.testing.assert_allclose(dbm.marginals(row)[0], exact, atol=1e-5)
    known = dbm.log_partition("exact", observed=row).value[0]
    assert float(known) == pytest.approx(logsumexp(log_weights), abs=1e-5)


def test_chains_of_a_deep_model_fill_many_gaps():
    """Their base has the layers above, too."""
    dbm = randomized(kr.DBM([2, 2], num_visible=12, seed=0), 0.3, seed=0)
    row = np.full((1, 12), NAN, "float32")
    row[0, 0] = 1.0
    joint, states = dbm.potentials(), all_states(*[2] * 14)
    states = states[states[:, 0] == 1.0]
    shares = shares_of(-joint.free_energy(states))
    exact = shares @ states[:, :12]
    np.testing.assert_allclose(dbm.marginals(row, steps=3000)[0], exact, atol=0.05)
    assert dbm.impute(row, "sample").shape == (1, 12)


def test_absent_categories_are_learned_centered():
    """Of rows that lack nothing, a centered step changes the model as without gaps."""
    unit = units.Categorical(3)
    rng = np.random.default_rng(0)
    rows = rng.choice(3, (20, 4), p=[0.7, 0.2, 0.1]).astype("float32")
    models = [model(unit, kind, kernel_regularizer=None) for kind in (None, "absent")]
    for rbm in models:
        rbm.adapt(rows)
        rule = kr.rules.ContrastiveDivergence(centered=True)
        compiled(rbm, keras.optimizers.SGD(0.5), rule=rule).train_on_batch(rows)
    kernels = [rbm.kernel.numpy() for rbm in models]
    assert abs(kernels[0] - kernels[1]).max() > 1e-3  # other parameters
    one, two = (np.float64(rbm.free_energy(states_of(unit))) for rbm in models)
    np.testing.assert_allclose(one - one.mean(), two - two.mean(), atol=1e-4)


def test_absent_units_of_inverted_data():
    """Steps were not centered, and most hidden units died where 1 is frequent."""
    rng = np.random.default_rng(0)
    rows = (load_digits().data[:1400] <= 7.5).astype("float32")
    rows[rng.random(rows.shape) < 0.3] = NAN
    rbm = fitted(compiled(kr.RBM(16, seed=0, missing="absent")), rows, epochs=5)
    features = rbm.predict(rows, verbose=0)
    assert ((features.max(0) > 0.01) & (features.min(0) < 0.99)).all()


@EITHER
def test_reconstructed_and_exported(missing, tmp_path):
    rbm = model("bernoulli", missing)
    rows = np.float32([[1, NAN, 0, NAN], [1, 0, 1, 1]])
    found = rbm.reconstruct(rows).numpy()
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found[1:], rbm.reconstruct(rows[1:]), atol=1e-6)
    rbm.export(tmp_path / "served", verbose=False)
    served = tf.saved_model.load(str(tmp_path / "served")).signatures["impute"]
    filled = served(tf.constant(rows))["visible"].numpy()
    np.testing.assert_array_equal(filled[1], rows[1])
    near = 0.15 if missing == "latent" else 1e-5
    np.testing.assert_allclose(filled, rbm.impute(rows), atol=near)


def test_frames_and_lists_with_gaps():
    pandas = pytest.importorskip("pandas")
    columns = {
        "a": pandas.array([1, 0, None, 1], dtype="Int64"),
        "b": [0.0, 1.0, 1.0, NAN],
        "c": pandas.array([True, None, False, True], dtype="boolean"),
    }
    expected = np.float32([[1, 0, 1], [0, 1, NAN], [NAN, 1, 0], [1, NAN, 1]])
    models = []
    for rows in (pandas.DataFrame(columns), expected, expected.tolist()):
        rbm = compiled(kr.RBM(2, seed=0, missing="latent"), "sgd")
        models.append(fitted(rbm, rows))
        assert np.isfinite(rbm.impute(rows)).all()
    assert_same(models[0].weights, models[1].weights)
    assert_same(models[0].weights, models[2].weights)
    objects = np.array([[1, None, 0], [0, 1, None]], object)
    assert np.isfinite(rbm.impute(objects)).all()


def test_one_batch_and_grown():
    rows = np.float32([[1, NAN, 0], [0, 1, NAN], [1, 1, 1]])
    rbm = compiled(kr.RBM(2, seed=0, missing="latent"), "sgd")
    rbm.train_on_batch(rows)
    with unchanged(rbm):
        rbm.test_on_batch(rows)
    assert kr.InfiniteRBM.from_rbm(rbm, 4).hidden_units == 2
