"""Every pair of unit types, against enumeration and integration in float64."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf
from comparisons import assert_equal, assert_mean, assert_moments
from random_models import randomize

import keras_rbm
from keras_rbm import RBM, inference, units
from keras_rbm.units.gaussian import GaussianParameters
from keras_rbm.units.rectified import RectifiedParameters

RNG = np.random.default_rng(0)
SLOW = pytest.mark.slow
#: Visible layers of few units, and data of each.
VISIBLE = {
    "bernoulli": ("bernoulli", RNG.integers(0, 2, (40, 3))),
    "spin": ("spin", 2 * RNG.integers(0, 2, (40, 3)) - 1),
    "binomial": (units.Binomial(3), RNG.integers(0, 4, (40, 3))),
    "categorical": (units.Categorical(3), RNG.integers(0, 3, (40, 3))),
    "gaussian": ("gaussian", RNG.normal(1.0, 2.0, (40, 2))),
    "joined": (
        units.Joined([("bernoulli", 1), (units.Categorical(3), 1), ("gaussian", 1)]),
        np.stack(
            [RNG.integers(0, 2, 40), RNG.integers(0, 3, 40), RNG.normal(size=40)], 1
        ),
    ),
}
HIDDEN = {
    "bernoulli": "bernoulli",
    "spin": "spin",
    "binomial": units.Binomial(2),
    "categorical": units.Categorical(3),
    "gaussian": "gaussian",
    "rectified": "rectified",
    "double_rectified": "double_rectified",
    "joined": units.Joined([("spin", 1), ("double_rectified", 1)]),
}
#: Pairs of the default run: each type once or twice. The others are slow.
QUICK = [
    ("bernoulli", "rectified"),
    ("spin", "binomial"),
    ("binomial", "spin"),
    ("categorical", "double_rectified"),
    ("gaussian", "gaussian"),
    ("gaussian", "categorical"),
    ("joined", "joined"),
]
ALL = pytest.mark.parametrize(
    "pair",
    [
        pytest.param(pair, id="-".join(pair), marks=[] if pair in QUICK else SLOW)
        for pair in itertools.product(VISIBLE, HIDDEN)
    ],
)


def made(pair, scale=0.4):
    """Returns an RBM of a pair of types with random parameters, and data."""
    visible, data = VISIBLE[pair[0]]
    rbm = RBM(2, visible=visible, hidden=HIDDEN[pair[1]], seed=0)
    rbm.adapt(data.astype("float32"))
    rng = np.random.default_rng(1)
    for variable in rbm.trainable_variables:
        drawn = rng.normal(0.0, scale, variable.shape)
        variable.assign_add(0.3 * drawn if "precision" in variable.name else drawn)
    return rbm, data.astype("float32")


def grid(layer):
    """Returns a layer's states, and the logarithms of what each stands for."""
    axes = []
    parts = getattr(layer, "parts", (layer,))
    for part in parts:
        axes += [_axis(part, unit) for unit in range(part.num_units)]
    states = np.stack(np.meshgrid(*[a for a, _ in axes], indexing="ij"), -1)
    widths = np.meshgrid(*[w for _, w in axes], indexing="ij")
    return states.reshape(-1, len(axes)), sum(np.log(w).ravel() for w in widths)


def _axis(part, unit):
    """Returns one unit's states and their weights: Gauss-Legendre where it is real."""
    if part.finite:
        values = np.unique(part.values[unit])
        return values, np.ones(len(values))
    ends = [0, 12] if isinstance(part, RectifiedParameters) else [-12, 0, 12]
    if isinstance(part, GaussianParameters):
        shift, scale = float(part.shift[unit]), float(part.scale[unit])
        ends = [shift - 12 * scale, shift + 12 * scale]
    nodes, weights = np.polynomial.legendre.leggauss(40 if len(ends) == 3 else 60)
    points = [
        (0.5 * (high - low) * nodes + 0.5 * (high + low), 0.5 * (high - low) * weights)
        for low, high in itertools.pairwise(ends)
    ]
    return tuple(map(np.concatenate, zip(*points, strict=True)))


class Truth:
    """A model's numbers by the sum over both layers' states, in float64."""

    def __init__(self, potentials):
        self.p = tf.nest.map_structure(lambda x: tf.cast(x, tf.float64), potentials)
        self.v, log_dv = grid(potentials.visible)
        self.h, log_dh = grid(potentials.hidden)
        visible, hidden = self.p.visible, self.p.hidden
        self.tv, self.th = (
            layer.first(layer.encode(tf.constant(s, tf.float64))).numpy()
            for layer, s in ((visible, self.v), (hidden, self.h))
        )
        own_v = self.tv @ visible.bias.numpy() + _base(visible, self.v) + log_dv
        own_h = self.th @ hidden.bias.numpy() + _base(hidden, self.h) + log_dh
        kernel = self.p.kernel.numpy()
        self.log_joint = own_v[:, None] + self.tv @ kernel @ self.th.T + own_h
        self.own_h = own_h
        self.weights = np.exp(log_dv)[:, None] * np.exp(log_dh)
        top = self.log_joint.max()
        self.log_z = top + np.log(np.exp(self.log_joint - top).sum())

    def free_energy(self, visible):
        """Returns F of rows (n, V), the hidden layer integrated."""
        units_v, x = self.p.visible, tf.constant(visible, tf.float64)
        first = units_v.first(units_v.encode(x)).numpy()
        own = first @ units_v.bias.numpy() + _base(units_v, visible)
        joint = own[:, None] + first @ self.p.kernel.numpy() @ self.th.T + self.own_h
        return -np.log(np.exp(joint).sum(1))

    def moments(self):
        """Returns `Moments` without rows, arrays."""
        p = np.exp(self.log_joint - self.log_z)
        v = _mean_statistics(self.p.visible, self.v, p.sum(1))
        h = _mean_statistics(self.p.hidden, self.h, p.sum(0))
        return self.tv.T @ p @ self.th, v, h


def _base(layer, states):
    return layer.base_measure(tf.constant(states, tf.float64)).numpy().sum(-1)


def _mean_statistics(layer, states, weights):
    statistics = layer.statistics(tf.constant(states, tf.float64))
    return [weights @ field.numpy() for field in statistics]


@ALL
def test_numbers_are_those_of_sums_and_integrals(pair):
    rbm, data = made(pair)
    potentials = rbm.potentials()
    truth = Truth(potentials)
    want = truth.free_energy(data)
    np.testing.assert_allclose(rbm.free_energy(data), want, rtol=1e-5, atol=1e-5)
    if inference.potentials.finite_layers(potentials):
        z = rbm.log_partition("exact")
        np.testing.assert_allclose(z.value, truth.log_z, atol=1e-5)
        kernel, visible, hidden = truth.moments()
        moments = inference.exact_moments(potentials)
        np.testing.assert_allclose(moments.kernel, kernel, atol=1e-5)
        assert_equal(moments.visible, visible, rtol=1e-5, atol=1e-5)
        assert_equal(moments.hidden, hidden, rtol=1e-5, atol=1e-5)


@ALL
def test_mean_field_is_its_bound(pair):
    """`E log p - E log q` by the sum over all states, at most log Z, of independent q.

    At a fixed point the means are those given the other layer's.
    """
    rbm, _ = made(pair, scale=0.2)
    potentials = rbm.potentials()
    truth = Truth(potentials)
    beliefs = inference.mean_field(potentials, max_iterations=500, tolerance=1e-7)
    v, h = beliefs.visible[tf.newaxis], beliefs.hidden[tf.newaxis]
    eta_v = potentials.visible_natural_of_mean(h).numpy()[0]
    eta_h = potentials.transpose().visible_natural_of_mean(v)
    eta_h = eta_h.numpy()[0]
    means = potentials.visible.mean(eta_v), potentials.hidden.mean(eta_h)
    assert_equal((beliefs.visible, beliefs.hidden), means, rtol=1e-4, atol=1e-4)
    q = [
        _log_q(layer, eta, states, first)
        for layer, eta, states, first in (
            (truth.p.visible, eta_v, truth.v, truth.tv),
            (truth.p.hidden, eta_h, truth.h, truth.th),
        )
    ]
    log_q = q[0][:, None] + q[1]
    # Both hold the logarithms of the quadrature's weights: in q they are measures.
    weights = truth.weights
    mass = np.exp(log_q) * weights
    bound = (mass * (truth.log_joint - np.log(weights) - log_q)).sum()
    np.testing.assert_allclose(mass.sum(), 1.0, atol=1e-5)
    np.testing.assert_allclose(beliefs.log_partition, bound, atol=1e-4)
    assert beliefs.log_partition < truth.log_z + 1e-5


def _log_q(layer, natural, states, first):
    natural = tf.constant(natural, tf.float64)
    return (
        first @ natural.numpy()
        + _base(layer, states)
        - layer.log_partition(natural).numpy().sum(-1)
    )


@SLOW
@ALL
def test_annealing_is_within_its_error(pair):
    rbm, _ = made(pair)
    annealing = rbm.anneal(precision=9.0)
    want = Truth(rbm.potentials()).log_z
    estimates = annealing.ais, annealing.bidirectional
    for z in (*estimates, inference.temper(rbm.potentials())):
        assert abs(float(z.value) - want) < 4 * float(z.stderr) + 1e-6


@ALL
def test_sweeps_stay_at_the_models_law(pair):
    """States that are drawn from it have its moments after sweeps, too."""
    rbm, _ = made(pair)
    potentials = rbm.potentials()
    truth = Truth(potentials)
    count = 20_000
    p = np.exp(truth.log_joint - truth.log_z).sum(1)
    rows = np.random.default_rng(2).choice(len(p), count, p=p / p.sum())
    start = tf.constant(truth.v[rows], tf.float32)
    visible = inference.gibbs_chain(potentials, start, 3, num_sweeps=3)
    weights = tf.fill([count], 1.0 / count)
    moments = inference.conditional_moments(potentials, visible, weights)
    kernel, of_visible, of_hidden = truth.moments()
    assert_moments(moments, (kernel, of_visible[0], of_hidden[0]), 1e-5)
    for layer, means in ((moments.visible, of_visible), (moments.hidden, of_hidden)):
        for field, mean in zip(layer, means, strict=True):
            assert_mean(field, mean, 1e-5)


def test_half_precision_knows_every_category():
    """Inputs were cast to bfloat16, which ends at 256, before they were looked at."""
    rbm = RBM(2, visible=units.Categorical(300), num_visible=1, dtype="mixed_bfloat16")
    rbm.kernel.assign(np.random.default_rng(0).normal(0, 1, (300, 2)))
    rows = np.array([[297], [298], [299]])
    want = tf.sigmoid(rbm.kernel[297:])
    np.testing.assert_allclose(rbm.predict(rows, verbose=0), want, atol=0.02)
    np.testing.assert_allclose(tf.cast(rbm(rows), tf.float32), want, atol=0.02)


def test_functions_and_predictions_refuse_what_is_no_state():
    """Of units where other numbers have no meaning; they counted as no category."""
    rbm, data = made(("categorical", "bernoulli"))
    rows = np.concatenate([data[:1], np.full((1, 3), 7.0, "float32")])
    for function in (
        inference.pseudo_log_likelihood,
        inference.reconstruction_log_likelihood,
        lambda p, v: inference.gibbs_chain(p, v, 0, num_sweeps=1),
    ):
        with pytest.raises(ValueError, match="7 in row 1, column 0"):
            function(rbm.potentials(), rows)
    for call in (rbm.predict, rbm.predict_on_batch, rbm.free_energy):
        with pytest.raises(ValueError, match="from 0 to 2. Received: 7 in row 1"):
            call(rows)


def test_one_hot_rows_give_a_warning():
    rows = np.eye(3)[RNG.integers(0, 3, (20, 2))].reshape(20, 6)
    rbm = RBM(2, visible=units.Categorical(3), seed=0)
    rbm.compile()
    with pytest.warns(UserWarning, match="look like one-hot"):
        rbm.fit(rows, verbose=0)


def test_ordered_data_are_no_divergence(recwarn):
    rng = np.random.default_rng(0)
    data = np.r_[1e-4 * rng.normal(size=(1500, 3)), rng.normal(0, 100, (1500, 3))]
    rbm = RBM(2, visible="gaussian", seed=0)
    rbm.compile(rule="cd")
    rbm.fit(data, batch_size=500, verbose=0)
    assert not [w for w in recwarn if "diverged" in str(w.message)]


@SLOW
@pytest.mark.parametrize(
    "between",
    [units.Categorical(3), "spin", "gaussian", units.Binomial(2)],
    ids=str,
)
def test_stacks_draw_the_states_of_the_layer_below(between):
    visible, data = VISIBLE["categorical"]
    below = RBM(2, visible=visible, hidden=between, seed=0)
    dbn = keras_rbm.DBN([below, RBM(2, visible=between, seed=1)])
    dbn.compile(keras.optimizers.Adam(0.3), rule="pcd")
    dbn.fit(data, epochs=[3, 3], verbose=0)
    top = dbn.rbms[1]
    natural = below.potentials().hidden_natural(tf.constant(data, tf.float32))
    drawn = below.potentials().hidden.mean(natural)
    np.testing.assert_allclose(top.base_rate, np.mean(drawn, 0), rtol=1e-4, atol=1e-5)
    states = dbn.sample(4, steps=2, seed=0)
    assert states.shape == (4, 3) and below.visible.is_state(states.numpy()).all()
    # Each sample's weight p / q has the likelihood as its mean, whatever the units.
    finite = below.potentials().hidden.finite
    if finite:
        rows = np.stack(np.meshgrid(*[range(3)] * 3, indexing="ij"), -1).reshape(-1, 3)
        z = top.log_partition("exact")
        draws = [
            dbn.log_likelihood_bound(rows, z, num_samples=1, seed=seed).numpy()
            for seed in range(60)
        ]
        weights = np.exp(draws).sum(1)
        error = weights.std() / np.sqrt(len(weights))
        assert abs(weights.mean() - 1.0) < 4.5 * error + 1e-4


BAD = [
    ("bernoulli", 2.0, "Bernoulli units: 0 or 1"),
    ("spin", 0.0, "Spin units: -1 or 1"),
    ("binomial", -1.0, "Binomial units: whole numbers from 0 to 3"),
    ("binomial", 4.0, "Binomial"),
    ("categorical", 3.0, "Categorical units: whole numbers from 0 to 2"),
    ("categorical", 1.5, "Categorical"),
    ("categorical", np.nan, "finite"),
    ("gaussian", np.inf, "finite"),
    ("joined", 3.0, "Categorical units"),
]


@pytest.mark.parametrize(("name", "value", "message"), BAD)
def test_what_is_no_state_is_refused(name, value, message):
    visible, data = VISIBLE[name]
    rbm = RBM(2, visible=visible, seed=0)
    rbm.compile()
    bad = data.astype("float32")
    bad[7, 1] = value
    with pytest.raises(ValueError, match=message) as error:
        rbm.fit(bad, verbose=0)
    if np.isfinite(value):
        assert "row 7, column 1" in str(error.value)
    assert not rbm.built


def test_binary_models_are_one_model_in_other_words():
    """Spins, counts to 1 and two categories, with the parameters that correspond."""
    rbm = randomize(RBM(3, num_visible=4, seed=0), 3)
    kernel, b, c = (v.numpy() for v in rbm.trainable_variables)
    data = RNG.integers(0, 2, (20, 4)).astype("float32")
    want = rbm.log_likelihood(data, "exact")
    spin = RBM(3, visible="spin", hidden="spin", num_visible=4)
    spin.kernel.assign(kernel / 4)
    spin.visible_bias.assign(b / 2 + kernel.sum(1) / 4)
    spin.hidden_bias.assign(c / 2 + kernel.sum(0) / 4)
    got = spin.log_likelihood(2 * data - 1, "exact")
    np.testing.assert_allclose(got, want, atol=1e-5)
    count = RBM(3, visible=units.Binomial(1), hidden=units.Binomial(1), num_visible=4)
    count.set_weights(rbm.get_weights())
    np.testing.assert_allclose(count.log_likelihood(data, "exact"), want, atol=1e-5)
    for seed in range(3):
        np.testing.assert_array_equal(
            count.sample(50, steps=4, seed=seed), rbm.sample(50, steps=4, seed=seed)
        )
    two = RBM(3, visible=units.Categorical(2), num_visible=4)
    two.kernel.assign(np.kron(kernel, [[0.0], [1.0]]))
    two.visible_bias.assign(np.kron(b, [0.0, 1.0]))
    two.hidden_bias.assign(c)
    np.testing.assert_allclose(two.log_likelihood(data, "exact"), want, atol=1e-5)


def test_pseudo_likelihood_is_of_conditionals():
    for name in ("binomial", "categorical"):
        rbm, data = made((name, "spin"))
        potentials = rbm.potentials()
        values, total = potentials.visible.values[0], 0.0
        for unit in range(3):
            each = []
            for value in values:
                other = data.copy()
                other[:, unit] = value
                each.append(-rbm.free_energy(other).numpy())
            own = -rbm.free_energy(data).numpy()
            total = total + own - np.logaddexp.reduce(each, 0)
        np.testing.assert_allclose(rbm.pseudo_log_likelihood(data), total, atol=1e-4)
        some = [
            inference.stochastic_pseudo_log_likelihood(potentials, data, seed)
            for seed in range(50)
        ]
        error = np.std(some, 0) / np.sqrt(50)
        assert (abs(np.mean(some, 0) - total) < 5 * error + 1e-4).all()


def stack(below, above):
    return keras_rbm.DBN([RBM(3, hidden=below), RBM(2, visible=above)])


def unbounded(visible, weights):
    rbm = RBM(2, visible=visible, hidden="double_rectified", num_visible=3, seed=0)
    rbm.kernel.assign(np.repeat(weights, 2, 1))
    return rbm


def of_visible(unit):
    return RBM(2, visible=unit)


TWO, THREE = units.Categorical(2), units.Categorical(3)
GAUSSIAN = [[2.0], [2.0], [2.0]]


@pytest.mark.parametrize(
    ("call", "arguments", "word"),
    [
        (of_visible, ("rectified",), "can only be hidden"),
        (of_visible, ("double_rectified",), "can only be hidden"),
        (of_visible, ("categorical",), r"Pass keras_rbm.units.Categorical\("),
        (stack, ("rectified", "bernoulli"), "that can be visible, too"),
        (stack, (TWO, THREE), "like the hidden units below"),
        (
            lambda rows: unbounded("gaussian", rows).log_partition(),
            (GAUSSIAN,),
            "finite partition",
        ),
    ],
)
def test_types_that_do_not_go_together(call, arguments, word):
    with pytest.raises(ValueError, match=word):
        call(*arguments)


def test_few_weights_of_unbounded_units_have_a_finite_sum():
    joined = units.Joined([("spin", 2), ("gaussian", 1)])
    rbm = unbounded(joined, [[9.0], [9.0], [0.1]])
    inference.arguments.check_normalizable(rbm.potentials())
