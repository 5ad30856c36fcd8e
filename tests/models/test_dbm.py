import keras
import numpy as np
import pytest
import tensorflow as tf
from brute_force import binary_states
from same import assert_same, refused, unchanged
from small_models import binary, compiled, fitted, quick, randomized, reloaded
from steps import step_of

import keras_rbm
from keras_rbm import DBM, inference, rules
from keras_rbm.models.deep.dbm_layers import (
    TiedRBM,
    both_sides,
)
from keras_rbm.rules.forward_pass import ForwardPass

DATA = binary(34, 5)
SIZES = [(4, 3, 2), (3, 2, 3, 2), (3, 2, 2, 2, 2)]
SOME_SIZES = pytest.mark.parametrize("sizes", quick(SIZES, SIZES[1]))
BELIEF_PROPAGATION = inference.BeliefPropagation(tolerance=1e-7)
MEAN_FIELD = inference.MeanField(max_iterations=500, tolerance=1e-7)


def random_dbm(*sizes, **kwargs):
    return randomized(DBM(sizes[1:], num_visible=sizes[0], seed=0, **kwargs), 0.7, 0)


def enumerated(dbm):
    """Returns all states of each layer, and the log-weight of each joint state."""
    sizes = [dbm.kernel.shape[0], *dbm.hidden_units]
    states = [binary_states(size) for size in sizes]
    biases = [dbm.visible_bias, *dbm.hidden_biases]
    log_weight = 0.0
    for layer, (s, bias) in enumerate(zip(states, biases, strict=True)):
        shape = [1] * len(sizes)
        shape[layer] = len(s)
        log_weight = log_weight + (s @ np.asarray(bias, float)).reshape(shape)
    for layer, kernel in enumerate(dbm.kernels):
        shape = [1] * len(sizes)
        shape[layer : layer + 2] = len(states[layer]), len(states[layer + 1])
        product = states[layer] @ np.asarray(kernel, float) @ states[layer + 1].T
        log_weight = log_weight + product.reshape(shape)
    return states, log_weight


def log_sum(log_weight, axis=None):
    return np.logaddexp.reduce(log_weight, axis=axis)


def exact_log_likelihood(dbm):
    states, log_weight = enumerated(dbm)
    rows = log_weight.reshape(len(states[0]), -1)
    return states[0], log_sum(rows, 1) - log_sum(rows.reshape(-1))


def number_of(rows):
    """Returns which of all states each row is."""
    return (rows @ (2 ** np.arange(rows.shape[1])[::-1])).astype(int)


def mean_bound(dbm, data):
    return np.mean(dbm.log_likelihood_bound(data, "exact"))


@SOME_SIZES
def test_potentials_are_the_energy(sizes):
    dbm = random_dbm(*sizes)
    _, log_weight = enumerated(dbm)
    z = dbm.log_partition("exact").value
    assert float(z) == pytest.approx(log_sum(log_weight.reshape(-1)), abs=1e-5)
    for method in ("ais", "tempering")[: 2 if sizes == SIZES[0] else 1]:
        estimate = dbm.log_partition(method, num_chains=300)
        assert abs(estimate.value - z) < 4 * estimate.stderr + 0.02, method


@SOME_SIZES
def test_bound_is_below_the_likelihood(sizes):
    dbm = random_dbm(*sizes)
    visible, truth = exact_log_likelihood(dbm)
    bound = dbm.log_likelihood_bound(visible, "exact").numpy()
    assert (bound < truth + 1e-5).all()
    assert (bound > truth - 1.0).all()
    energy = dbm.variational_free_energy(visible)
    z = float(dbm.log_partition("exact").value)
    np.testing.assert_allclose(-energy - z, bound, atol=1e-5)
    # Without coupling between the hidden layers the posterior factorizes.
    for kernel in dbm.kernels[1:]:
        kernel.assign(tf.zeros_like(kernel))
    bound = dbm.log_likelihood_bound(visible, "exact")
    np.testing.assert_allclose(bound, exact_log_likelihood(dbm)[1], atol=1e-5)


def exact_positive_moments(dbm, data, weights):
    """Returns E[h | v] layer by layer, and the mean of neighbors' products."""
    states, log_weight = enumerated(dbm)
    p = np.exp(log_weight[number_of(data)])
    p /= p.reshape(len(p), -1).sum(1).reshape([-1] + [1] * (p.ndim - 1))
    letters = "abcdef"[: p.ndim - 1]
    means = [data] + [
        np.einsum(f"z{letters},{letters[i]}k->zk", p, states[i + 1])
        for i in range(len(letters))
    ]
    products = [np.einsum("z,zi,zj->ij", weights, data, means[1])]
    for i in range(len(letters) - 1):
        pair = states[i + 1], states[i + 2]
        formula = f"y,y{letters},{letters[i]}s,{letters[i + 1]}t->st"
        products.append(np.einsum(formula, weights, p, *pair))
    return means, products


def positive_phase(dbm, weights):
    """Returns completed states, and their `Moments`."""
    data = tf.constant(DATA), tf.constant(weights)
    states, _, moments = dbm._positive_phase(dbm.potentials(), *data, 0)
    return states, moments


def layer_kernels(kernel, sizes):
    """Returns the kernels between neighboring layers: undoes `joint_kernel`."""
    starts = [sum(sizes[layer % 2 : layer : 2]) for layer in range(len(sizes))]
    parts = []
    for below in range(len(sizes) - 1):
        even, odd = sorted([below, below + 1], key=lambda layer: layer % 2)
        rows, columns = (slice(starts[i], starts[i] + sizes[i]) for i in (even, odd))
        part = kernel[rows, columns]
        parts.append(part if even < odd else tf.transpose(part))
    return parts


@pytest.mark.parametrize(
    "sizes", quick([(5, 1, 1, 1), (5, 3, 1), (5, 1, 4)], (5, 1, 1, 1))
)
def test_belief_propagation_is_exact_on_trees(sizes):
    dbm = random_dbm(*sizes, inference=BELIEF_PROPAGATION)
    weights = np.random.default_rng(1).uniform(0, 1, len(DATA))
    weights = (weights / weights.sum()).astype("float32")
    means, products = exact_positive_moments(dbm, DATA, weights)
    features = np.concatenate(means[1:], 1)
    np.testing.assert_allclose(dbm.predict(DATA, verbose=0), features, atol=1e-5)
    _, moments = positive_phase(dbm, weights)
    assert_same(layer_kernels(moments.kernel, sizes), products, atol=1e-5)
    layers = both_sides(moments.visible.bias, moments.hidden.bias, list(sizes))
    assert_same(layers, means, atol=1e-5)


def test_mean_field_moments_are_those_of_its_fixed_point():
    dbm = random_dbm(5, 3, 2, 2, inference=MEAN_FIELD)
    states, moments = positive_phase(dbm, tf.fill([34], 1 / 34))
    features = np.split(dbm.predict(DATA, verbose=0), [3, 5], 1)
    hidden = np.concatenate(features[::2], 1)
    np.testing.assert_allclose(moments.hidden.bias, hidden, atol=1e-5)
    np.testing.assert_allclose(states[:, 5:], features[1], atol=1e-5)


@pytest.mark.parametrize("centered", quick([False, True], True))
def test_training_climbs_the_likelihood(centered):
    patterns = [[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]]
    data = np.tile(patterns, (200, 1)).astype("float32")
    start = keras.initializers.RandomNormal(0, 0.1, seed=0)
    dbm = DBM([4, 3], seed=0, kernel_initializer=start)
    dbm.adapt(data)
    rule = rules.PersistentContrastiveDivergence(2, 200, centered=centered)
    rate = keras.optimizers.schedules.PolynomialDecay(0.2, 400, 0.0)
    compiled(dbm, keras.optimizers.SGD(rate), rule=rule)
    before = mean_bound(dbm, data)
    history = dbm.fit(data, batch_size=40, epochs=40, shuffle=False, verbose=0).history
    assert before < -4 and mean_bound(dbm, data) > -1.2  # the best is -log 2
    assert history["loss"][-1] < 0.5 * history["loss"][0]


def test_samples_have_the_models_distribution():
    dbm = random_dbm(3, 2, 2)
    _, truth = exact_log_likelihood(dbm)
    samples = dbm.sample(20_000, steps=60, seed=1).numpy()
    counts = np.bincount(number_of(samples), minlength=8)
    expected = np.exp(truth) * len(samples)
    assert (np.square(counts - expected) / expected).sum() < 30  # 7 degrees, 1e-4
    start = np.tile([[1.0, np.nan, np.nan]], (20_000, 1))
    clamped = dbm.sample(20_000, steps=60, initial_visible=start, seed=2).numpy()
    assert (clamped[:, 0] == 1).all()
    counts = np.bincount(number_of(clamped), minlength=8)[4:]
    expected = np.exp(truth[4:]) / np.exp(truth[4:]).sum() * len(samples)
    assert (np.square(counts - expected) / expected).sum() < 25


@pytest.mark.parametrize(
    "rule", quick(["sdcp", "parallel_tempering", "cd"], "sdcp", "parallel_tempering")
)
def test_any_sampling_rule(rule):
    dbm = compiled(DBM([4, 3, 2], num_visible=5, seed=1), "sgd", rule=rule)
    history = dbm.fit(DATA, validation_data=DATA, verbose=0).history
    assert np.isfinite(history["loss"] + history["val_loss"]).all()


def test_centered_gradient_is_that_of_each_layer():
    sizes = (5, 4, 3, 2, 2)
    rule = rules.ContrastiveDivergence(centered=True)
    dbm = compiled(random_dbm(*sizes), "sgd", rule=rule)
    dbm.learner.build()
    rng = np.random.default_rng(1)
    offsets = [rng.uniform(0, 1, size) for size in sizes]
    rule.centering.visible_offset.assign(np.concatenate(offsets[0::2]))
    rule.centering.hidden_offset.assign(np.concatenate(offsets[1::2]))
    potentials, weights = dbm.potentials(), tf.fill([20], 1 / 20)
    phases, means = [], []
    for _ in range(2):
        states = tf.constant(rng.integers(0, 2, (20, 10)), tf.float32)
        phases.append(inference.conditional_moments(potentials, states, weights))
        odd = tf.sigmoid(potentials.hidden_natural(states))
        layers = both_sides(states, odd, list(sizes))
        means.append([np.asarray(layer) for layer in layers])
    gradients = potentials.gradients(*phases)
    positive, negative = map(rule.centering.kernel, phases)
    kernel = (negative - positive) * dbm._kernel_mask
    gradients = rule.centering.ordinary(gradients | {"kernel": kernel})
    kernels = layer_kernels(gradients["kernel"], sizes)
    biases = gradients["visible_bias"], gradients["hidden_bias"]
    biases = both_sides(*biases, list(sizes))
    positive, negative = means

    def centered(layers, low):
        below, above = (layers[i] - offsets[i] for i in (low, low + 1))
        return below.T @ above / 20

    wanted = [centered(negative, i) - centered(positive, i) for i in range(4)]
    assert_same(kernels, wanted, atol=1e-5)
    for layer, got in enumerate(biases):
        want = negative[layer].mean(0) - positive[layer].mean(0)
        if layer < 4:
            want = want - wanted[layer] @ offsets[layer + 1]
        if layer:
            want = want - wanted[layer - 1].T @ offsets[layer - 1]
        np.testing.assert_allclose(got, want, atol=1e-5)


def test_callbacks_score_the_bound():
    dbm = compiled(DBM([4, 3], num_visible=9, seed=0), "sgd", rule="pcd")
    data = np.eye(9, dtype="float32")
    score = keras_rbm.callbacks.LogLikelihood(data)
    history = dbm.fit(data, callbacks=[score], verbose=0).history
    z = dbm.log_partition("bidirectional")
    bound = np.mean(dbm.log_likelihood_bound(data, z))
    assert history["log_likelihood"][0] == pytest.approx(bound, abs=1e-5)


def test_unconnected_layers_stay_so():
    rule = rules.FastPersistentContrastiveDivergence(2, 7, centered=True)
    dbm = DBM([4, 3, 2], num_visible=5, seed=1)
    fitted(compiled(dbm, "sgd", rule=rule), DATA)
    apart = dbm._kernel_mask.numpy() == 0
    assert apart.any() and not rule.fast["kernel"].numpy()[apart].any()
    assert rule.fast["kernel"].numpy()[~apart].all()


def test_pretraining_counts_twice():
    dbm = DBM([4, 3, 2], seed=0)
    optimizer = keras.optimizers.SGD(0.1)
    histories = dbm.pretrain(DATA, optimizer=optimizer, epochs=[2, 1, 1], verbose=0)
    assert [len(history.epoch) for history in histories] == [2, 1, 1]
    # Layers between two others count twice; their bias is the mean of both estimates.
    rbms = [history.model for history in histories]
    copies = [(rbm.visible_copies, rbm.hidden_copies) for rbm in rbms]
    assert copies == [(2, 1), (2, 2), (1, 2)]
    for layer, rbm in enumerate(rbms):
        np.testing.assert_array_equal(dbm.kernels[layer], rbm.kernel)
        above = rbms[layer + 1].visible_bias if layer < 2 else rbm.hidden_bias
        mean = 0.5 * (rbm.hidden_bias + above)
        np.testing.assert_allclose(dbm.hidden_biases[layer], mean, atol=1e-7)
    assert dbm.built and np.isfinite(mean_bound(dbm, DATA))
    assert (dbm.kernel.numpy() != DBM([4, 3, 2], num_visible=5, seed=0).kernel).any()


def random_tied(copies):
    """Returns an RBM of 5 visible and 3 hidden units, so many times each."""
    sides = {"visible_copies": copies[0], "hidden_copies": copies[1]}
    return randomized(TiedRBM(3, num_visible=5, seed=0, **sides), seed=0)


COPIES = pytest.mark.parametrize("copies", [(2, 1), (1, 2), (2, 2)])


@COPIES
def test_tied_rbm_is_an_rbm_of_copies(copies):
    tied = random_tied(copies)
    features = tied.predict(DATA, verbose=0)
    want = 1 / (1 + np.exp(-(copies[0] * DATA @ tied.kernel + tied.hidden_bias)))
    np.testing.assert_allclose(features, want, atol=1e-6)
    potentials = tied.potentials()
    assert potentials.kernel.shape == (5 * copies[0], 3 * copies[1])
    down = potentials.visible_natural(tf.tile(features, (1, copies[1])))[:, :5]
    want = copies[1] * features @ tied.kernel.numpy().T + tied.visible_bias
    np.testing.assert_allclose(down, want, atol=1e-4)
    rng = np.random.default_rng(1)
    parts = {
        "kernel": rng.normal(size=(copies[0], 5, copies[1], 3)),
        "visible_bias": rng.normal(size=(copies[0], 5)),
        "hidden_bias": rng.normal(size=(copies[1], 3)),
    }
    shapes = potentials.kernel.shape, (-1,), (-1,)
    gradients = {
        name: tf.constant(part.reshape(shape), tf.float32)
        for (name, part), shape in zip(parts.items(), shapes, strict=True)
    }
    total = [parts["kernel"].sum((0, 2)), *(parts[n].sum(0) for n in [*parts][1:])]
    found = ForwardPass(tied, None).gradients(gradients)
    names = [variable.name for variable in tied.trainable_variables]
    assert_same([found[names.index(name)] for name in parts], total, atol=1e-5)


@COPIES
def test_loss_of_pretraining_flips_all_copies_of_a_unit(copies):
    tied = random_tied(copies)
    joint, states = tied.potentials(), tied._copied(DATA)
    merged, visible, count = tied._scored(joint, states)
    assert count == 5
    np.testing.assert_array_equal(visible, DATA)
    energies = merged.free_energy(visible), joint.free_energy(states)
    np.testing.assert_allclose(*energies, rtol=1e-5)
    compiled(tied, "sgd", rule="cd")
    rows = np.repeat(DATA[:1], 20_000, axis=0)
    step = step_of(joint, tied._copied(rows), model=tied)
    losses = tied.rule.losses(step)[0].numpy()
    error = losses.std() / np.sqrt(len(losses))
    want = -inference.pseudo_log_likelihood(merged, DATA[:1])[0]
    assert abs(losses.mean() - want) < 4 * error


def test_saved_layer_of_pretraining_keeps_its_copies(tmp_path):
    rbm = DBM([4, 3], seed=0).pretrain(DATA, verbose=0)[0].model
    again = reloaded(rbm, tmp_path)
    found = [each.predict(DATA, verbose=0) for each in (rbm, again)]
    np.testing.assert_array_equal(*found)
    score = keras_rbm.callbacks.LogLikelihood(DATA)
    with refused("a model of p", error=TypeError):
        DBM([4, 3], seed=0).pretrain(DATA, callbacks=[score], verbose=0)
    assert rbm.sample is None and rbm.log_partition is None


def test_initializer_may_be_a_function():
    dbm = DBM([4, 3], num_visible=5, kernel_initializer=lambda shape, dtype: 2.0)
    assert all((np.asarray(kernel) == 2.0).all() for kernel in dbm.kernels)


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(5, 4, 3), (5, 4, 3, 2)])
def test_classifier_starts_with_the_model(sizes):
    dbm = random_dbm(*sizes, inference=MEAN_FIELD)
    network = dbm.to_classifier(3)
    top = keras.Model(network.inputs, network.layers[-1].input)
    features = dbm.predict(DATA, verbose=0)[:, -sizes[-1] :]
    np.testing.assert_allclose(top.predict(DATA, verbose=0), features, atol=1e-4)
    compiled(network, "sgd", "sparse_categorical_crossentropy")
    with unchanged(dbm):
        network.fit(DATA, DATA[:, 0].astype(int), verbose=0)
