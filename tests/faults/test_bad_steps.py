"""A step that cannot be taken changes nothing, and the error names it."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf
from model_test_case import two_cpus

import keras_rbm
from keras_rbm import CRBM, DBM, RBM, InfiniteRBM, rules
from keras_rbm.models.data import batches as data_batches

pytestmark = pytest.mark.faults

RNG = np.random.default_rng(0)
GOOD = RNG.integers(0, 2, (60, 6)).astype("float32")
BAD = GOOD.copy()
BAD[35, 2] = np.nan  # in the fourth batch of ten


@pytest.fixture(autouse=True)
def one_batch_is_read_before(monkeypatch):
    """Of a new model 1,000 rows are, to start at: here they would be all."""
    monkeypatch.setattr(data_batches, "_ROWS", 1)


def batches(x, *rest):
    return tf.data.Dataset.from_tensor_slices((x, *rest) if rest else x).batch(10)


def state(model):
    """Returns the values of all that a step may change."""
    variables = [*model.weights, *model.learner.variables, model.seed_generator.state]
    variables += model.optimizer.variables
    return [np.array(variable) for variable in variables]


def assert_same(one, other):
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


def made(rule="pcd", model=None, **kwargs):
    keras.utils.set_random_seed(0)
    rule = rule() if callable(rule) else rule
    rbm = model() if model else RBM(4, kernel_regularizer=None, seed=0)
    rbm.compile(keras.optimizers.Adam(0.01), rule=rule, **kwargs)
    return rbm


def after_three_steps(**kwargs):
    model = made(**kwargs)
    model.fit(batches(GOOD[:30]), verbose=0)
    return model


RULES = {
    "cd": "cd",
    "pcd": lambda: rules.PersistentContrastiveDivergence(centered=True),
    "parallel_tempering": "parallel_tempering",
    "fpcd": "fpcd",
    "sdcp": "sdcp",
    "maximum_likelihood": lambda: rules.MaximumLikelihood("exact"),
}
MODES = {
    "traced": {},
    "compiled": {"jit_compile": True},
    "eager": {"run_eagerly": True},
    "four at once": {"steps_per_execution": 4},
}
QUICK = [("pcd", "traced")]
CASES = [
    case if case in QUICK else pytest.param(*case, marks=pytest.mark.slow)
    for case in itertools.product(RULES, MODES)
]


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize(("rule", "mode"), CASES)
def test_bad_data_in_a_later_batch(rule, mode):
    options = MODES[mode]
    model = made(RULES[rule], **options)
    with pytest.raises(
        ValueError, match="in x of step 4. The step has changed nothing"
    ):
        model.fit(batches(BAD), verbose=0)
    assert_same(state(model), state(after_three_steps(rule=RULES[rule], **options)))


class Diverging(rules.ContrastiveDivergence):
    """Has a gradient that is not finite from the fourth step on."""

    def negative_phase(self, step):
        moments = super().negative_phase(step)
        late = tf.reduce_all(step.visible[0] == GOOD[30])
        kernel = tf.where(late, np.inf, moments.kernel)
        return moments._replace(kernel=kernel)


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize(
    "mode",
    [
        "traced",
        pytest.param("compiled", marks=pytest.mark.slow),
        pytest.param("eager", marks=pytest.mark.slow),
        pytest.param("four at once", marks=pytest.mark.slow),
    ],
)
def test_a_gradient_that_is_not_finite(mode):
    model = made(Diverging, **MODES[mode])
    message = "NaN or infinite values in the gradient of kernel of step 4. The step"
    with pytest.raises(ValueError, match=message):
        model.fit(batches(GOOD), verbose=0)
    assert_same(state(model), state(after_three_steps(rule=Diverging, **MODES[mode])))
    model.fit(batches(GOOD[:30]), verbose=0)  # goes on


@pytest.mark.usefixtures("traced")
@pytest.mark.slow
@pytest.mark.parametrize("bad", ["data", "gradient"])
def test_two_replicas(bad):
    rule = Diverging if bad == "gradient" else "cd"
    with two_cpus().scope():
        model, other = made(rule), made(rule)
    other.fit(batches(GOOD[:30]), verbose=0)
    with pytest.raises(ValueError, match="has changed nothing"):
        model.fit(batches(BAD if bad == "data" else GOOD), verbose=0)
    assert_same(state(model), state(other))


MODELS = {
    "DBM": (lambda: DBM([4, 3], kernel_regularizer=None, seed=0), "pcd"),
    "InfiniteRBM": (
        lambda: InfiniteRBM(8, seed=0),
        lambda: rules.FrankWolfe(num_samples=50),
    ),
}


@pytest.mark.parametrize(
    "name", ["DBM", pytest.param("InfiniteRBM", marks=pytest.mark.slow)]
)
def test_other_models(name):
    make, rule = MODELS[name]
    model, other = made(rule, make), made(rule, make)
    other.fit(batches(GOOD[:30]), verbose=0)
    with pytest.raises(ValueError, match="step 4. The step has changed nothing"):
        model.fit(batches(BAD), verbose=0)
    assert_same(state(model), state(other))


def test_conditional_model():
    def make():
        options = {"inference": "mean_field", "kernel_regularizer": None}
        return CRBM(4, seed=0, **options)

    for x, y in ((BAD, GOOD), (GOOD, BAD)):
        model, other = (
            made("maximum_likelihood", make),
            made("maximum_likelihood", make),
        )
        other.fit(batches(GOOD[:30], GOOD[:30]), verbose=0)
        with pytest.raises(ValueError, match="step 4. The step has changed nothing"):
            model.fit(batches(x, y), verbose=0)
        assert_same(state(model), state(other))


class Loader(keras.utils.PyDataset):
    def __init__(self, rows):
        super().__init__()
        self.rows = rows

    def __len__(self):
        return len(self.rows) // 10

    def __getitem__(self, index):
        return self.rows[10 * index : 10 * index + 10]


def generator(rows):
    for start in range(0, len(rows), 10):
        yield (rows[start : start + 10],)


@pytest.mark.parametrize(
    "source", [Loader, pytest.param(generator, marks=pytest.mark.slow)]
)
def test_other_sources(source):
    model = made("cd")
    with pytest.raises(ValueError, match="in x of step 4"):
        model.fit(source(BAD), shuffle=False, verbose=0)
    assert_same(state(model), state(after_three_steps(rule="cd")))
    before = state(model)
    for call in (model.evaluate, model.predict):
        with pytest.raises(ValueError, match="finite x.*in x of a batch"):
            call(source(BAD), verbose=0)
    assert_same(before, state(model))


@pytest.mark.slow
def test_values_outside_and_weights():
    weights = np.ones(60, "float32")
    weights[35] = -1.0
    weighted = batches(GOOD, weights).map(lambda x, w: (x, (), w))
    outside = batches(np.where(np.isnan(BAD), 255.0, GOOD))
    for data, name, message in (
        (outside, "x", "x, 0 or 1, or means between 0 and 1.*from 0 to 255"),
        (weighted, "sample_weight", "sample_weight ≥ 0"),
    ):
        model = made()
        with pytest.raises(ValueError, match=f"outside.* in {name} of step 4"):
            model.fit(data, verbose=0)
        with pytest.raises(ValueError, match=message):
            model.evaluate(data, verbose=0)
    with pytest.raises(ValueError, match="finite x"):
        model.predict(batches(BAD), verbose=0)


def test_single_batches():
    model = made()
    model.fit(GOOD, verbose=0)
    before = state(model)
    for call in (model.train_on_batch, model.test_on_batch, model.predict_on_batch):
        with pytest.raises(ValueError, match="finite x"):
            call(BAD)
    with pytest.raises(ValueError, match="sample_weight"):
        model.train_on_batch(GOOD, sample_weight=-np.ones(60))
    assert_same(before, state(model))
    assert np.isfinite(model.train_on_batch(GOOD))


def test_a_backup_is_of_the_last_good_step(tmp_path):
    model = made()
    backup = keras.callbacks.BackupAndRestore(
        tmp_path, save_freq=1, delete_checkpoint=False
    )
    with pytest.raises(ValueError, match="step 4"):
        model.fit(batches(BAD), callbacks=[backup], verbose=0)
    again = made()
    again.build((None, 6))
    again.load_weights(tmp_path / "latest.weights.h5")
    assert_same(state(model), state(again))


@pytest.mark.parametrize("source", [Loader, generator, batches])
def test_adapt_takes_what_fit_takes(source):
    rbm, other = RBM(4, seed=0), RBM(4, seed=0)
    rbm.adapt(source(GOOD))
    other.adapt(GOOD)
    np.testing.assert_allclose(rbm.visible_bias, other.visible_bias, rtol=1e-5)
    with pytest.raises(ValueError, match="finite data"):
        rbm.adapt(source(BAD))
    np.testing.assert_allclose(rbm.visible_bias, other.visible_bias, rtol=1e-5)


@pytest.mark.parametrize("graph", [False, True])
def test_a_loop_of_ones_own_goes_on_after_a_bad_batch(graph):
    """Later steps changed nothing, in silence, and the next fit failed on good data."""
    rbm = after_three_steps()

    def step(rows):
        return rbm.train_step((rows,))

    step = tf.function(step, autograph=False) if graph else step
    before = state(rbm)
    with pytest.raises(tf.errors.InvalidArgumentError, match="cannot be taken"):
        step(tf.constant(BAD[30:40]))
    assert_same(state(rbm), before)
    assert np.isfinite(step(tf.constant(GOOD[:10]))["loss"])
    assert not np.array_equal(rbm.kernel, before[0])
    rbm.fit(GOOD, verbose=0)


class OwnLogs(RBM):
    """Returns only some of the logs."""

    def train_step(self, data):
        return {"loss": super().train_step(data)["loss"]}


def test_a_train_step_that_drops_logs():
    """The bad step was not seen, and nothing was learned from then on."""
    model = made(model=lambda: OwnLogs(4, seed=0))
    with pytest.raises(ValueError, match="step 4"):
        model.fit(batches(BAD), verbose=0)
    before = np.array(model.kernel)
    model.fit(GOOD, verbose=0)
    assert not np.array_equal(model.kernel, before)


def test_divergence_is_named_once():
    model = RBM(4, seed=0)
    model.compile(keras.optimizers.SGD(1e6))
    with pytest.warns(UserWarning, match="has diverged.*1e\\+06") as caught:
        model.fit(GOOD, epochs=3, verbose=0)
    assert len([w for w in caught if "diverged" in str(w.message)]) == 1


@pytest.mark.slow
def test_no_false_alarm():
    for visible, data in (("bernoulli", GOOD), ("gaussian", 1e4 * GOOD + 3.0)):
        model = RBM(4, visible=visible, seed=0)
        model.compile()
        model.fit(data, epochs=10, verbose=0)
    assert keras_rbm.__version__


class DivergingInside(rules.SDCP):
    """Has a gradient that is not finite in the second of three inner steps."""

    def inner_phase(self, potentials, chains, weights, noise, first):
        chains, moments = super().inner_phase(potentials, chains, weights, noise, first)
        late = tf.reduce_all(chains.visible >= 0.0) & (first > 0)
        kernel = tf.where(late, np.inf, moments.kernel)
        return chains, moments._replace(kernel=kernel)


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("devices", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_an_inner_step_of_sdcp(devices):
    """On two devices the inner steps before the bad one stayed."""
    rule = DivergingInside(inner_steps=3, gibbs_steps=1)
    if devices == 2:
        with two_cpus().scope():
            model = made(rule)
    else:
        model = made(rule)
    model.adapt(GOOD)
    model._build_training()
    before = state(model)
    with pytest.raises(ValueError, match="gradient of kernel of step 1. The step has"):
        model.fit(batches(GOOD[:20]), verbose=0)
    assert_same(before, state(model))


def test_an_error_between_two_steps_is_not_taken_for_a_bad_step():
    """The reason of a step, hidden by an error of the pipeline, came a fit late."""
    model = made("cd", steps_per_execution=4)
    model.fit(batches(GOOD[:40]), verbose=0)

    def rows():
        yield GOOD[:10]
        yield BAD[30:40]
        raise RuntimeError("the disk is gone")

    spec = tf.TensorSpec((10, 6), tf.float32)
    broken = tf.data.Dataset.from_generator(rows, output_signature=spec)
    with pytest.raises((tf.errors.OpError, ValueError, RuntimeError)):
        model.fit(broken, verbose=0)
    model.fit(batches(GOOD[:40]), verbose=0)
