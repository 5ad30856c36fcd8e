import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf
from brute_force import binary_states
from model_test_case import run_model_test, two_cpus
from steps import gradients_of, step_of

import keras_rbm
from keras_rbm import DBM, inference, rules
from keras_rbm.models.deep import layered
from keras_rbm.models.deep.pretraining import TiedRBM
from keras_rbm.rules.forward_pass import ForwardPass

DATA = np.random.default_rng(0).integers(0, 2, (34, 5)).astype("float32")


def random_dbm(*sizes, seed=0, scale=0.7, **kwargs):
    dbm = DBM(list(sizes[1:]), num_visible=sizes[0], seed=0, **kwargs)
    rng = np.random.default_rng(seed)
    for variable in dbm.trainable_variables:
        variable.assign(rng.normal(0, scale, variable.shape))
    return dbm


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


SIZES = [(4, 3, 2), (3, 2, 3, 2), (3, 2, 2, 2, 2)]


@pytest.mark.parametrize("sizes", SIZES)
def test_joint_kernel_and_layers_are_inverse(sizes):
    rng = np.random.default_rng(0)
    kernels = [
        tf.constant(rng.normal(size=pair), tf.float32)
        for pair in itertools.pairwise(sizes)
    ]
    joint = layered.joint_kernel(kernels)
    assert joint.shape == (sum(sizes[0::2]), sum(sizes[1::2]))
    for a, b in zip(kernels, layer_kernels(joint, sizes), strict=True):
        np.testing.assert_array_equal(a, b)
    mask = layered.connections(sizes)
    if len(sizes) == 3:
        assert mask is None
    else:
        np.testing.assert_array_equal(mask != 0, joint != 0)


SOME_SIZES = pytest.mark.parametrize(
    "sizes", [*(pytest.param(s, marks=pytest.mark.slow) for s in SIZES[::2]), SIZES[1]]
)


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
    z = dbm.log_partition("exact")
    np.testing.assert_allclose(-energy - float(z.value), bound, atol=1e-5)
    # Without coupling between the hidden layers the posterior factorizes.
    for kernel in dbm.kernels[1:]:
        kernel.assign(tf.zeros_like(kernel))
    _, truth = exact_log_likelihood(dbm)
    np.testing.assert_allclose(
        dbm.log_likelihood_bound(visible, "exact"), truth, atol=1e-5
    )


def exact_positive_moments(dbm, data, weights):
    """Returns E[h | v] layer by layer, and the mean of neighbors' products."""
    states, log_weight = enumerated(dbm)
    index = (data @ (2 ** np.arange(data.shape[1])[::-1])).astype(int)
    p = np.exp(log_weight[index])
    p /= p.reshape(len(p), -1).sum(1).reshape([-1] + [1] * (p.ndim - 1))
    letters = "abcdef"[: p.ndim - 1]
    means = [data] + [
        np.einsum(f"z{letters},{letters[i]}k->zk", p, states[i + 1])
        for i in range(len(letters))
    ]
    products = [np.einsum("z,zi,zj->ij", weights, data, means[1])]
    for i in range(len(letters) - 1):
        a, b = letters[i : i + 2]
        products.append(
            np.einsum(
                f"y,y{letters},{a}s,{b}t->st", weights, p, states[i + 1], states[i + 2]
            )
        )
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
    "sizes",
    [
        (5, 1, 1, 1),
        *(pytest.param(s, marks=pytest.mark.slow) for s in ((5, 3, 1), (5, 1, 4))),
    ],
)
def test_belief_propagation_is_exact_on_trees(sizes):
    dbm = random_dbm(*sizes, inference=inference.BeliefPropagation(tolerance=1e-7))
    weights = np.random.default_rng(1).uniform(0, 1, len(DATA))
    weights = (weights / weights.sum()).astype("float32")
    means, products = exact_positive_moments(dbm, DATA, weights)
    np.testing.assert_allclose(
        dbm.predict(DATA, verbose=0), np.concatenate(means[1:], 1), atol=1e-5
    )
    _, moments = positive_phase(dbm, weights)
    kernels = layer_kernels(moments.kernel, sizes)
    for got, want in zip(kernels, products, strict=True):
        np.testing.assert_allclose(got, want, atol=1e-5)
    layers = layered.both_sides(moments.visible.bias, moments.hidden.bias, list(sizes))
    for got, want in zip(layers, means, strict=True):
        np.testing.assert_allclose(got, want, atol=1e-5)


def test_mean_field_moments_are_those_of_its_fixed_point():
    mean_field = inference.MeanField(max_iterations=500, tolerance=1e-7)
    dbm = random_dbm(5, 3, 2, 2, inference=mean_field)
    states, moments = positive_phase(dbm, tf.fill([34], 1 / 34))
    features = np.split(dbm.predict(DATA, verbose=0), [3, 5], 1)
    np.testing.assert_allclose(
        moments.hidden.bias, np.concatenate(features[::2], 1), atol=1e-5
    )
    np.testing.assert_allclose(states[:, 5:], features[1], atol=1e-5)


@pytest.mark.parametrize(
    "centered", [pytest.param(False, marks=pytest.mark.slow), True]
)
def test_training_climbs_the_likelihood(centered):
    patterns = [[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]]
    data = np.tile(patterns, (200, 1)).astype("float32")
    dbm = DBM(
        [4, 3],
        seed=0,
        kernel_initializer=keras.initializers.RandomNormal(0, 0.1, seed=0),
    )
    dbm.adapt(data)
    rule = rules.PersistentContrastiveDivergence(2, 200, centered=centered)
    rate = keras.optimizers.schedules.PolynomialDecay(0.2, 400, 0.0)
    dbm.compile(keras.optimizers.SGD(rate), rule=rule)
    before = np.mean(dbm.log_likelihood_bound(data, "exact"))
    history = dbm.fit(data, batch_size=40, epochs=40, shuffle=False, verbose=0).history
    after = np.mean(dbm.log_likelihood_bound(data, "exact"))
    assert before < -4 and after > -1.2  # the best is -log 2
    assert history["loss"][-1] < 0.5 * history["loss"][0]


def test_exact_gradient_is_the_likelihoods():
    dbm = random_dbm(5, 1, 3, inference=inference.BeliefPropagation(tolerance=1e-7))
    weights = tf.fill([34], 1 / 34)
    potentials = dbm.potentials()
    _, positive = positive_phase(dbm, weights)
    states = tf.constant(binary_states(potentials.num_visible), tf.float32)
    p = tf.nn.softmax(-potentials.free_energy(states))
    negative = inference.conditional_moments(potentials, states, p)
    variables = {v.name: v for v in dbm.trainable_variables}
    before = {name: v.numpy() for name, v in variables.items()}
    dbm.compile(keras.optimizers.SGD(1.0), rule="pcd")
    dbm.optimizer.build(dbm.trainable_variables)
    dbm.guard.build()
    dbm.learner.descend([*gradients_of(dbm, positive, negative).values()])
    steps = {name: v.numpy() - before[name] for name, v in variables.items()}
    for name, v in variables.items():
        v.assign(before[name])

    def likelihood():
        visible, log_p = exact_log_likelihood(dbm)
        index = (DATA @ (2 ** np.arange(5)[::-1])).astype(int)
        return log_p[index].mean()

    for name, variable in variables.items():
        place = tuple(size - 1 for size in variable.shape)
        slope = []
        for change in (1e-2, -1e-2):
            value = before[name].copy()
            value[place] += change
            variable.assign(value)
            slope.append(likelihood())
        variable.assign(before[name])
        want = (slope[0] - slope[1]) / 2e-2
        assert steps[name][place] == pytest.approx(want, abs=2e-4), name


def test_samples_have_the_models_distribution():
    dbm = random_dbm(3, 2, 2)
    _, truth = exact_log_likelihood(dbm)
    samples = dbm.sample(20_000, steps=60, seed=1).numpy()
    counts = np.bincount((samples @ [4, 2, 1]).astype(int), minlength=8)
    expected = np.exp(truth) * len(samples)
    assert (np.square(counts - expected) / expected).sum() < 30  # 7 degrees, 1e-4
    start = np.tile([[1.0, np.nan, np.nan]], (20_000, 1))
    clamped = dbm.sample(20_000, steps=60, initial_visible=start, seed=2).numpy()
    assert (clamped[:, 0] == 1).all()
    counts = np.bincount((clamped @ [4, 2, 1]).astype(int), minlength=8)[4:]
    expected = np.exp(truth[4:]) / np.exp(truth[4:]).sum() * len(samples)
    assert (np.square(counts - expected) / expected).sum() < 25


@pytest.mark.slow
def test_models_of_two_hidden_layers():
    run_model_test(
        lambda: DBM([4, 3], num_visible=5, kernel_regularizer=None, seed=1),
        lambda: rules.PersistentContrastiveDivergence(2, 7, centered=True),
        DATA,
    )


@pytest.mark.parametrize(
    "rule",
    [
        "sdcp",
        "parallel_tempering",
        pytest.param("cd", marks=pytest.mark.slow),
    ],
)
def test_any_sampling_rule(rule):
    dbm = DBM([4, 3, 2], num_visible=5, seed=1)
    dbm.compile("sgd", rule=rule)
    history = dbm.fit(DATA, validation_data=DATA, verbose=0).history
    assert np.isfinite(history["loss"] + history["val_loss"]).all()


@pytest.mark.slow
def test_belief_propagation_trains_and_is_saved(tmp_path):
    dbm = DBM([4, 3, 2], inference="belief_propagation", num_visible=5, seed=1)
    dbm.compile("sgd", rule="pcd")
    before = dbm.get_weights()
    dbm.fit(DATA, verbose=0)
    assert all(
        (a != b).any() for a, b in zip(before[:-1], dbm.get_weights(), strict=False)
    )
    dbm.save(tmp_path / "dbm.keras")
    again = keras.saving.load_model(tmp_path / "dbm.keras")
    assert again.get_config() == dbm.get_config()
    np.testing.assert_array_equal(
        dbm.predict(DATA, verbose=0), again.predict(DATA, verbose=0)
    )


def test_centered_gradient_is_that_of_each_layer():
    sizes = (5, 4, 3, 2, 2)
    dbm = random_dbm(*sizes)
    rule = rules.ContrastiveDivergence(centered=True)
    dbm.compile("sgd", rule=rule)
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
        means.append(
            [np.asarray(m) for m in layered.both_sides(states, odd, list(sizes))]
        )
    gradients = potentials.gradients(*phases)
    positive, negative = map(rule.centering.kernel, phases)
    kernel = (negative - positive) * dbm._kernel_mask
    gradients = rule.centering.ordinary(gradients | {"kernel": kernel})
    kernels = layer_kernels(gradients["kernel"], sizes)
    biases = layered.both_sides(
        gradients["visible_bias"], gradients["hidden_bias"], list(sizes)
    )
    positive, negative = means

    def centered(layers, low):
        below, above = (layers[i] - offsets[i] for i in (low, low + 1))
        return below.T @ above / 20

    wanted = [centered(negative, i) - centered(positive, i) for i in range(4)]
    for got, want in zip(kernels, wanted, strict=True):
        np.testing.assert_allclose(got, want, atol=1e-5)
    for layer, got in enumerate(biases):
        want = negative[layer].mean(0) - positive[layer].mean(0)
        if layer < 4:
            want = want - wanted[layer] @ offsets[layer + 1]
        if layer:
            want = want - wanted[layer - 1].T @ offsets[layer - 1]
        np.testing.assert_allclose(got, want, atol=1e-5)


def test_library_callbacks_and_plots(tmp_path):
    dbm = DBM([4, 3], num_visible=9, seed=0)
    dbm.compile("sgd", rule="pcd")
    data = np.eye(9, dtype="float32")
    score = keras_rbm.callbacks.LogLikelihood(data)
    history = dbm.fit(data, callbacks=[score], verbose=0).history
    z = dbm.log_partition("bidirectional")
    bound = np.mean(dbm.log_likelihood_bound(data, z))
    assert history["log_likelihood"][0] == pytest.approx(bound, abs=1e-5)
    title = keras_rbm.plots.filters(dbm).axes[0].get_title()
    assert title == "Filters of 4 hidden units"


def test_unconnected_layers_stay_so():
    dbm = DBM([4, 3, 2], num_visible=5, seed=1)
    rule = rules.FastPersistentContrastiveDivergence(2, 7, centered=True)
    dbm.compile("sgd", rule=rule)
    dbm.fit(DATA, verbose=0)
    apart = dbm._kernel_mask.numpy() == 0
    assert apart.any() and not rule.fast["kernel"].numpy()[apart].any()
    assert rule.fast["kernel"].numpy()[~apart].all()


def test_pretraining_counts_twice():
    dbm = DBM([4, 3, 2], seed=0)
    histories = dbm.pretrain(
        DATA, optimizer=keras.optimizers.SGD(0.1), epochs=[2, 1, 1], verbose=0
    )
    assert [len(history.epoch) for history in histories] == [2, 1, 1]
    # Layers between two others count twice; their bias is the mean of both estimates.
    tied = [history.model for history in histories]
    copies = [(each.visible_copies, each.hidden_copies) for each in tied]
    rbms = [each for each in tied]
    assert copies == [(2, 1), (2, 2), (1, 2)]
    for layer, rbm in enumerate(rbms):
        np.testing.assert_array_equal(dbm.kernels[layer], rbm.kernel)
        above = rbms[layer + 1].visible_bias if layer < 2 else rbm.hidden_bias
        np.testing.assert_allclose(
            dbm.hidden_biases[layer], 0.5 * (rbm.hidden_bias + above), atol=1e-7
        )
    assert dbm.built and np.isfinite(dbm.log_likelihood_bound(DATA, "exact")).all()
    assert (dbm.kernel.numpy() != DBM([4, 3, 2], num_visible=5, seed=0).kernel).any()


def random_tied(copies):
    """Returns an RBM of 5 visible and 3 hidden units, so many times each."""
    sides = {"visible_copies": copies[0], "hidden_copies": copies[1]}
    tied = TiedRBM(3, num_visible=5, seed=0, **sides)
    for variable in tied.trainable_variables:
        variable.assign(np.random.default_rng(0).normal(0, 1, variable.shape))
    return tied


@pytest.mark.parametrize("copies", [(2, 1), (1, 2), (2, 2)])
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
    tied.compile(keras.optimizers.SGD(1.0), rule="cd")
    tied.optimizer.build(tied.trainable_variables)
    tied.guard.build()
    before = tied.kernel.numpy()
    after = (tied.visible_bias, tied.hidden_bias)
    biases = [variable.numpy() for variable in after]
    rng = np.random.default_rng(1)
    gradient = rng.normal(size=potentials.kernel.shape)
    of_biases = [rng.normal(size=(copies[0], 5)), rng.normal(size=(copies[1], 3))]
    gradients = {
        "kernel": gradient,
        "visible_bias": of_biases[0].reshape(-1),
        "hidden_bias": of_biases[1].reshape(-1),
    }
    gradients = {k: tf.constant(v, tf.float32) for k, v in gradients.items()}
    tied.learner.descend(ForwardPass(tied, None).gradients(gradients))
    for old, new, parts in zip(biases, after, of_biases, strict=True):
        np.testing.assert_allclose(old - new, parts.sum(0), atol=1e-5)
    total = sum(
        gradient[5 * i : 5 * i + 5, 3 * j : 3 * j + 3]
        for i in range(copies[0])
        for j in range(copies[1])
    )
    np.testing.assert_allclose(before - tied.kernel, total, atol=1e-5)


@pytest.mark.parametrize("copies", [(2, 1), (1, 2), (2, 2)])
def test_loss_of_pretraining_flips_all_copies_of_a_unit(copies):
    tied = random_tied(copies)
    joint, states = tied.potentials(), tied._copied(DATA)
    merged, visible, count = tied._scored(joint, states)
    assert count == 5
    np.testing.assert_array_equal(visible, DATA)
    np.testing.assert_allclose(
        merged.free_energy(visible), joint.free_energy(states), rtol=1e-5
    )
    tied.compile("sgd", rule="cd")
    rows = np.repeat(DATA[:1], 20_000, axis=0)
    step = step_of(joint, tied._copied(rows), model=tied)
    losses = tied.rule.losses(step)[0].numpy()
    error = losses.std() / np.sqrt(len(losses))
    want = -inference.pseudo_log_likelihood(merged, DATA[:1])[0]
    assert abs(losses.mean() - want) < 4 * error


def test_saved_layer_of_pretraining_keeps_its_copies(tmp_path):
    histories = DBM([4, 3], seed=0).pretrain(DATA, verbose=0)
    rbm = histories[0].model
    rbm.save(tmp_path / "layer.keras")
    again = keras.saving.load_model(tmp_path / "layer.keras")
    np.testing.assert_array_equal(
        rbm.predict(DATA, verbose=0), again.predict(DATA, verbose=0)
    )
    score = keras_rbm.callbacks.LogLikelihood(DATA)
    with pytest.raises(TypeError, match="a model of p"):
        DBM([4, 3], seed=0).pretrain(DATA, callbacks=[score], verbose=0)
    assert rbm.sample is None and rbm.log_partition is None


@pytest.mark.slow
def test_pretraining_under_a_strategy():
    with two_cpus().scope():
        dbm = DBM([4, 3], num_visible=5)
        dbm.compile("sgd", rule="pcd")
    dbm.pretrain(DATA, verbose=0)
    for variable in dbm.trainable_variables:
        first, second = (v.numpy() for v in variable.value.values)
        np.testing.assert_array_equal(first, second)


def test_inference_is_exchanged():
    dbm = random_dbm(5, 4, 3)
    before = dbm.predict(DATA, verbose=0)
    dbm.inference = "sum_product"
    after = dbm.predict(DATA, verbose=0)
    assert (abs(after - before) > 1e-4).any()
    np.testing.assert_allclose(after, dbm(DATA), atol=1e-6)
    with pytest.raises(ValueError, match="yields marginals"):
        dbm.inference = "max_product"
    assert isinstance(dbm.inference, inference.BeliefPropagation)
    np.testing.assert_allclose(after, dbm(DATA), atol=1e-6)


def test_mixed_precision():
    dbm = DBM([4, 3], num_visible=5, seed=0, dtype="mixed_bfloat16")
    dbm.compile("sgd", rule="pcd", metrics=["mse"])
    assert np.isfinite(dbm.fit(DATA, verbose=0).history["mse"]).all()
    exact = DBM([4, 3], num_visible=5, seed=0)
    exact.set_weights(dbm.get_weights())
    np.testing.assert_allclose(
        dbm.reconstruct(DATA), exact.reconstruct(DATA), atol=0.02
    )


def test_initializer_may_be_a_function():
    dbm = DBM([4, 3], num_visible=5, kernel_initializer=lambda shape, dtype: 2.0)
    assert all((np.asarray(kernel) == 2.0).all() for kernel in dbm.kernels)


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(5, 4, 3), (5, 4, 3, 2)])
def test_classifier_starts_with_the_model(sizes):
    mean_field = inference.MeanField(max_iterations=500, tolerance=1e-7)
    dbm = random_dbm(*sizes, inference=mean_field)
    network = dbm.to_classifier(3)
    top = keras.Model(network.inputs, network.layers[-1].input)
    features = dbm.predict(DATA, verbose=0)
    np.testing.assert_allclose(
        top.predict(DATA, verbose=0), features[:, -sizes[-1] :], atol=1e-4
    )
    labels = DATA[:, 0].astype(int)
    loss = "sparse_categorical_crossentropy"
    network.compile(keras.optimizers.Adam(0.03), loss)
    before = dbm.get_weights()
    history = network.fit(DATA, labels, epochs=20, verbose=0).history
    assert history["loss"][-1] < 0.8 * history["loss"][0]
    for a, b in zip(before, dbm.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: DBM([3]), ValueError, "at least two"),
        (lambda: DBM(3), ValueError, "at least two"),
        (lambda: DBM([3, 0]), ValueError, "int hidden_units ≥ 1"),
        (
            lambda: DBM([3, 2], inference=inference.BeliefPropagation("max_product")),
            ValueError,
            "yields marginals",
        ),
        (lambda: DBM([3, 2]).sample(2), ValueError, "built model in sample"),
        (lambda: DBM([3, 2]).export("no"), ValueError, "built model in export"),
        (
            lambda: random_dbm(4, 2, 2).log_likelihood_bound(DATA),
            ValueError,
            r"shape \(examples, 4\)",
        ),
        (
            lambda: random_dbm(5, 2, 2).compile(rule="maximum_likelihood"),
            ValueError,
            "DBM",
        ),
        (lambda: random_dbm(5, 2, 2).compile(rule="max_margin"), ValueError, "input"),
        (
            lambda: random_dbm(5, 2, 2).compile(
                rule=rules.ContrastiveDivergence(sparsity_target=0.1, sparsity_cost=1.0)
            ),
            ValueError,
            "deep model",
        ),
        (
            lambda: random_dbm(4, 2, 2).pretrain(DATA, verbose=0),
            ValueError,
            r"shape \(examples, 4\)",
        ),
        (
            lambda: random_dbm(5, 2, 2).pretrain(DATA, epochs=[0, 1]),
            ValueError,
            "int epochs ≥ 1",
        ),
        (lambda: random_dbm(5, 2, 2).build((None, 6)), ValueError, "width 5"),
        (
            lambda: random_dbm(5, 2, 2).to_classifier(2, dropout=2),
            ValueError,
            "dropout",
        ),
    ],
)
def test_bad_input(make, error, message):
    with pytest.raises(error, match=message):
        make()
