"""The centered gradient, against a model that is written in centered parameters."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from brute_force import (
    binary_states,
    random_gaussian_potentials,
    random_potentials,
    rbm_like,
)
from comparisons import assert_close, assert_equal
from steps import step_of, take_step

import keras_rbm
from keras_rbm import inference, rules, units
from keras_rbm.rules.centering import Centering

NAMES = ("kernel", "visible_bias", "hidden_bias")
RNG = np.random.default_rng(0)
DATA = (RNG.random((40, 5)) < [0.9, 0.7, 0.5, 0.2, 0.8]).astype("float32")
DATA64 = DATA.astype("float64")
WEIGHTS = tf.constant(RNG.dirichlet(np.ones(40)), tf.float32)
WEIGHTS64 = tf.cast(WEIGHTS, tf.float64)


@keras.saving.register_keras_serializable("tests")
class ExactGradient(rules.LearningRule):
    """The exact negative phase, by enumeration of the hidden states."""

    def negative_phase(self, step):
        exact = inference.exact_moments(step.potentials)
        exact = tf.nest.map_structure(lambda t: tf.cast(t, tf.float32)[None], exact)
        return exact._replace(kernel=exact.kernel[0])


def with_rule(rbm, rule, rate=1.0):
    """Compiles an RBM: with plain SGD of rate 1 a step is minus the gradient."""
    rbm.compile(keras.optimizers.SGD(rate), rule=rule)
    return rbm


def ruled(rule, seed=0, rate=1.0):
    return with_rule(rbm_like(random_potentials(5, 3, seed)), rule, rate)


def parameters(rbm, names=NAMES):
    return {name: getattr(rbm, name).numpy() for name in names}


def ascent(rbm, data=DATA, weights=WEIGHTS):
    """Returns how a step of rate 1 changes the parameters."""
    names = [variable.name for variable in rbm.trainable_variables]
    before = parameters(rbm, names)
    take_step(rbm, tf.constant(data, tf.float32), weights)
    after = parameters(rbm, names)
    return {name: after[name] - before[name] for name in names}


@pytest.fixture
def slides(monkeypatch):
    """Returns a function that sets how fast the offsets follow the batches."""
    return lambda nu: monkeypatch.setattr(Centering, "sliding_factor", nu)


def centered_cd():
    return rules.ContrastiveDivergence(centered=True)


def offsets(rule):
    centering = rule.centering
    return [v.numpy() for v in (centering.visible_offset, centering.hidden_offset)]


def set_offsets(rule, mu, lam):
    rule.centering.visible_offset.assign(mu)
    rule.centering.hidden_offset.assign(lam)


def assert_offsets(rule, *want, atol=1e-6):
    assert_equal(offsets(rule), want, rtol=1e-6, atol=atol)


def centered_log_likelihood(kernel, b, c, mu, lam, visible):
    """Returns log p(v) of -E = (v-mu)' W (h-lam) + b'(v-mu) + c'(h-lam), float64."""

    def minus_energy(v):
        v, h = v - mu, tf.constant(binary_states(len(lam))) - lam
        hidden = tf.linalg.matvec(h, c)
        return v @ kernel @ tf.transpose(h) + tf.linalg.matvec(v, b)[:, None] + hidden

    log_z = tf.reduce_logsumexp(minus_energy(tf.constant(binary_states(len(mu)))))
    return tf.reduce_logsumexp(minus_energy(visible), 1) - log_z


def centered_model(rbm, mu, lam):
    """Returns the centered parameters of an RBM, float64."""
    w, b, c = (tf.constant(p, tf.float64) for p in parameters(rbm).values())
    return (
        w,
        b + tf.linalg.matvec(w, lam),
        c + tf.linalg.matvec(w, mu, transpose_a=True),
    )


def ordinary(kernel, b, c, mu, lam):
    """Returns the ordinary parameters of a centered model, by name."""
    b = b - tf.linalg.matvec(kernel, lam)
    c = c - tf.linalg.matvec(kernel, mu, transpose_a=True)
    return dict(zip(NAMES, (kernel, b, c), strict=True))


@pytest.mark.parametrize("frozen", [(), ("visible_bias",), ("hidden_bias",)])
def test_steps_of_a_model_with_input_are_those_of_the_centered_model(frozen, slides):
    slides(0.0)
    rng = np.random.default_rng(0)
    features = rng.normal(size=(40, 2))
    crbm = keras_rbm.CRBM(
        3, num_visible=5, num_features=2, kernel_regularizer=None, seed=0
    )
    for variable in crbm.trainable_variables:
        variable.assign(rng.normal(size=variable.shape))
    for name in frozen:
        getattr(crbm, name).trainable = False
    rule = rules.MaximumLikelihood(centered=True)
    crbm.compile(keras.optimizers.SGD(0.3), rule=rule)
    crbm._build_training()
    mu, lam = rng.random(5), rng.random(3)
    set_offsets(crbm.rule, mu, lam)
    mu, lam = mu * ("hidden_bias" not in frozen), lam * ("visible_bias" not in frozen)
    inputs = [tf.constant(crbm.visible_kernel), tf.constant(crbm.hidden_kernel)]
    parts = [tf.cast(part, tf.float64) for part in inputs]
    parts += centered_model(crbm, mu, lam)
    with tf.GradientTape() as tape:
        tape.watch(parts)
        a, r, w, b, c = parts
        losses = []
        for x, v in zip(features, DATA64, strict=True):
            biases = (
                bias + tf.linalg.matvec(k, x, True) for bias, k in ((b, a), (c, r))
            )
            losses.append(centered_log_likelihood(w, *biases, mu, lam, v[None])[0])
        total = tf.reduce_mean(tf.stack(losses))
    steps = tape.gradient(total, parts)
    visible, features = tf.constant(DATA), tf.constant(features, tf.float32)
    take_step(crbm, visible, tf.fill([40], 1 / 40), features)
    w, b, c = (p + 0.3 * s for p, s in zip(parts[2:], steps[2:], strict=True))
    want = ordinary(w, b, c, mu, lam)
    want["visible_kernel"], want["hidden_kernel"] = (
        part + 0.3 * step for part, step in zip(parts[:2], steps[:2], strict=True)
    )
    want = {name: value for name, value in want.items() if name not in frozen}
    assert_close(parameters(crbm, want), want)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "optimizer",
    [lambda: keras.optimizers.SGD(1.0), lambda: keras.optimizers.Adam(0.05)],
)
def test_steps_are_those_of_the_centered_model(seed, optimizer, slides):
    """Of any size: ordinary biases are linear in W.

    Adam took steps of equal size in W and b, and b could not make up for W.
    """
    slides(0.0)
    rng = np.random.default_rng(seed)
    rbm, plain = (rbm_like(random_potentials(5, 3, seed)) for _ in range(2))
    rbm.compile(optimizer(), rule=ExactGradient(centered=True))
    plain.compile(optimizer(), rule=ExactGradient(centered=False))
    mu, lam = rng.random(5), rng.random(3)
    set_offsets(rbm.rule, mu, lam)
    variables = [
        keras.Variable(part, dtype="float64") for part in centered_model(rbm, mu, lam)
    ]
    own = optimizer()
    for _ in range(5):
        with tf.GradientTape() as tape:
            parts = [variable.value for variable in variables]
            tape.watch(parts)
            log_p = centered_log_likelihood(*parts, mu, lam, tf.constant(DATA64))
            loss = -tf.reduce_sum(WEIGHTS64 * log_p)
        own.apply(tape.gradient(loss, parts), variables)
        for model in (rbm, plain):
            take_step(model, tf.constant(DATA), WEIGHTS)
        want = ordinary(*(variable.value for variable in variables), mu, lam)
        assert_close(parameters(rbm), want, atol=1e-4)
    for name, value in parameters(plain).items():
        assert np.max(abs(value - want[name])) > 1e-2


@pytest.mark.parametrize("standardize", [False, True])
def test_gaussian_visible_units(standardize, slides):
    """The offset is that of the first statistic; the precision's gradient stays."""
    slides(0.0)
    rng = np.random.default_rng(1)
    unit = units.Gaussian(standardize=standardize)
    rule = ExactGradient(centered=True)
    rbm = keras_rbm.RBM(3, visible=unit, num_visible=4, seed=0)
    data = rng.normal(2.0, 1.5, (30, 4)).astype("float32")
    rbm.adapt(data)
    with_rule(rbm, rule)
    mean = data.mean(0)
    start = np.zeros(4) if standardize else mean
    np.testing.assert_allclose(offsets(rule)[0], start, atol=1e-5)
    like = random_gaussian_potentials(4, 3)
    rbm.kernel.assign(like.kernel)
    rbm.visible_bias.assign(like.visible.bias)
    rbm.visible_log_precision.assign(like.visible.log_precision)
    rbm.hidden_bias.assign(like.hidden_bias)
    mu, lam = rng.normal(0, 1, 4), rng.random(3)
    set_offsets(rule, mu, lam)
    double = tf.nest.map_structure(
        lambda t: tf.cast(t, tf.float64), rbm.potentials().visible
    )
    precision = double.log_precision
    before, model = parameters(rbm), centered_model(rbm, mu, lam)
    with tf.GradientTape() as tape:
        tape.watch((model, precision))
        kernel, b, c = ordinary(*model, mu, lam).values()
        visible = double._replace(bias=b, log_precision=precision)
        potentials = inference.Potentials(kernel, visible, c)
        energy = potentials.free_energy(tf.constant(data, tf.float64))
        log_p = -tf.reduce_mean(energy) - inference.exact_log_partition(potentials)
    gradients, of_precision = tape.gradient(log_p, (model, precision))
    want = ordinary(*tf.nest.map_structure(tf.add, model, gradients), mu, lam)
    want = {name: want[name] - before[name] for name in NAMES}
    got = ascent(rbm, data, tf.fill([30], 1 / 30))
    assert_close(got, want | {"visible_log_precision": of_precision}, atol=2e-5)


def test_offsets_of_gaussian_units_slide_in_their_statistic(slides):
    unit = units.Gaussian(standardize=True)
    rbm = keras_rbm.RBM(3, visible=unit, num_visible=2, seed=0)
    data = np.random.default_rng(0).normal(50.0, 3.0, (30, 2)).astype("float32")
    slides(0.5)
    rule = ExactGradient(centered=True)
    with_rule(rbm, rule).adapt(data)
    np.testing.assert_allclose(offsets(rule)[0], 0.0, atol=1e-4)
    ascent(rbm, data[:10] + 3.0, tf.fill([10], 0.1))
    target = (data[:10].mean(0) + 3.0 - data.mean(0)) / data.std(0)
    np.testing.assert_allclose(offsets(rule)[0], 0.5 * target, rtol=1e-3)


RULES = {
    "cd": lambda **k: rules.ContrastiveDivergence(2, **k),
    "pcd": lambda **k: rules.PersistentContrastiveDivergence(2, num_chains=7, **k),
    "parallel tempering": lambda **k: rules.ParallelTempering(
        2, num_chains=7, num_replicas=3, num_ladders=2, **k
    ),
    "fpcd": lambda **k: rules.FastPersistentContrastiveDivergence(num_chains=7, **k),
    "sdcp": lambda **k: rules.SDCP(1, 2, **k),
    "maximum likelihood": lambda **k: rules.MaximumLikelihood("exact", **k),
}


@pytest.mark.parametrize("name", RULES)
def test_every_rule_is_centered_by_its_raw_gradient(name, slides):
    """G_W = W - b lambda' - mu c' of the raw one, with offsets that moved before."""
    slides(0.2)
    rule = RULES[name]()
    a, b = ruled(RULES[name](centered=False)), ruled(rule)
    set_offsets(rule, np.linspace(0, 1, 5), [0.2, 0.7, 0.4])
    mean = step_of(a.potentials(), DATA, WEIGHTS).positive.mean()
    targets = (mean.visible.bias.numpy(), mean.hidden.bias.numpy())
    mu, lam = (
        0.8 * start + 0.2 * target
        for start, target in zip(offsets(rule), targets, strict=True)
    )
    raw, centered = ascent(a), ascent(b)
    assert_offsets(rule, mu, lam)
    kernel = raw["kernel"] - np.outer(raw["visible_bias"], lam)
    kernel -= np.outer(mu, raw["hidden_bias"])
    want = {
        "kernel": kernel,
        "visible_bias": raw["visible_bias"] - kernel @ lam,
        "hidden_bias": raw["hidden_bias"] - mu @ kernel,
    }
    assert_close(centered, want, atol=1e-6)
    assert np.max(abs(raw["kernel"] - kernel)) > 1e-2


def test_sparsity_is_a_term_of_its_own(slides):
    slides(0.0)
    sparse = {"sparsity_target": 0.2, "sparsity_cost": 3.0}
    a, b = (ruled(ExactGradient(centered=True, **options)) for options in ({}, sparse))
    mean = step_of(a.potentials(), DATA, WEIGHTS).positive.mean()
    want = ascent(a)
    want["hidden_bias"] += 3.0 * (0.2 - mean.hidden.bias.numpy())
    assert_close(ascent(b), want, atol=1e-6)


def test_offsets_start_at_the_means():
    """Whatever comes first: adapt, compile, or the first batch.

    Those of a trained model start at its free hidden units.
    """
    early, late, unbuilt = (keras_rbm.RBM(3, seed=0) for _ in range(3))
    early.adapt(DATA)
    with_rule(early, centered_cd())
    with_rule(late, centered_cd()).build((None, 5))
    np.testing.assert_array_equal(offsets(late.rule)[0], np.full(5, 0.5))
    late.adapt(DATA)
    with_rule(unbuilt, centered_cd()).adapt(DATA)
    for rbm in (early, late, unbuilt):
        assert_offsets(rbm.rule, DATA.mean(0), np.full(3, 0.5), atol=0.0)
    trained = ruled(centered_cd())
    want = tf.sigmoid(trained.hidden_bias)
    np.testing.assert_allclose(offsets(trained.rule)[1], want, rtol=1e-6)


@pytest.mark.parametrize(
    "frozen", [["visible_bias"], ["hidden_bias"], ["visible_bias", "hidden_bias"]]
)
def test_frozen_biases_are_not_moved_for(frozen):
    """The step of what is trained ascends: its product with the gradient is ≥ |G|²."""
    plain, centered = (ruled(ExactGradient(centered=f)) for f in (False, True))
    for rbm in (plain, centered):
        for name in frozen:
            getattr(rbm, name).trainable = False
        rbm.compile(rbm.optimizer, rule=rbm.rule)
    set_offsets(centered.rule, np.full(5, 0.8), np.full(3, 0.9))
    gradient, step = ascent(plain), ascent(centered)
    assert step.keys() == gradient.keys() == set(NAMES) - set(frozen)
    for name in frozen:
        np.testing.assert_array_equal(getattr(centered, name), getattr(plain, name))
    product = sum(np.sum(step[name] * gradient[name]) for name in step)
    assert product > np.sum(np.square(step["kernel"])) - 1e-6
    if len(frozen) == 2:
        np.testing.assert_allclose(step["kernel"], gradient["kernel"], atol=1e-6)


@pytest.mark.parametrize("layers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_default_training_on_inverted_data_is_the_same(layers):
    """All hidden units died: as good as independent units."""
    data = (np.random.default_rng(0).random((400, 8)) < 0.1).astype("float32")
    data[:, 4:] = data[:, :4]
    scores = []
    for rows in (data, 1.0 - data):
        one = layers == 1
        model = keras_rbm.RBM(4, seed=0) if one else keras_rbm.DBM([4, 2], seed=0)
        model.compile()
        model.fit(rows, epochs=30, verbose=0)
        z = model.log_partition("exact")
        score = model.log_likelihood if one else model.log_likelihood_bound
        scores.append(np.mean(score(rows, z)))
    assert abs(scores[0] - scores[1]) < 0.3
    assert min(scores) > -2.0  # independent units: -2.6
