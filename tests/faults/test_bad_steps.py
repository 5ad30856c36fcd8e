"""A step that cannot be taken changes nothing, and the error names it."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf
from model_test_case import two_cpus
from same import assert_same, refused
from small_models import Loader, batches, binary, compiled, fitted, generator, quick

from keras_rbm import CRBM, DBM, RBM, InfiniteRBM, rules
from keras_rbm.models.data import batches as data_batches

pytestmark = pytest.mark.faults

GOOD = binary(60)
BAD = GOOD.copy()
BAD[35, 2] = np.nan  # in the fourth batch of ten
NOTHING = "step 4. The step has changed nothing"


@pytest.fixture(autouse=True)
def one_batch_is_read_before(monkeypatch):
    """Of a new model 1,000 rows are, to start at: here they would be all."""
    monkeypatch.setattr(data_batches, "_ROWS", 1)


def made(rule="pcd", model=None, **kwargs):
    keras.utils.set_random_seed(0)
    rule = rule() if callable(rule) else rule
    rbm = model() if model else RBM(4, kernel_regularizer=None, seed=0)
    return compiled(rbm, keras.optimizers.Adam(0.01), rule=rule, **kwargs)


def after_three_steps(**kwargs):
    return fitted(made(**kwargs), batches(GOOD[:30]))


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
CASES = quick(itertools.product(RULES, MODES), ("pcd", "traced"))


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_bad_data_in_a_later_batch(case):
    options = {"rule": RULES[case[0]]} | MODES[case[1]]
    model = made(**options)
    with pytest.raises(ValueError, match=f"in x of {NOTHING}"):
        model.fit(batches(BAD), verbose=0)
    assert_same(model, after_three_steps(**options))


class Diverging(rules.ContrastiveDivergence):
    """Has a gradient that is not finite from the fourth step on."""

    def negative_phase(self, step):
        moments = super().negative_phase(step)
        late = tf.reduce_all(step.visible[0] == GOOD[30])
        kernel = tf.where(late, np.inf, moments.kernel)
        return moments._replace(kernel=kernel)


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("mode", quick(MODES, "traced"))
def test_a_gradient_that_is_not_finite(mode):
    model = made(Diverging, **MODES[mode])
    message = "NaN or infinite values in the gradient of kernel of step 4. The step"
    with pytest.raises(ValueError, match=message):
        model.fit(batches(GOOD), verbose=0)
    assert_same(model, after_three_steps(rule=Diverging, **MODES[mode]))
    fitted(model, batches(GOOD[:30]))  # goes on


@pytest.mark.usefixtures("traced")
@pytest.mark.slow
@pytest.mark.parametrize(("rule", "data"), [("cd", BAD), (Diverging, GOOD)])
def test_two_replicas(rule, data):
    with two_cpus().scope():
        model, other = made(rule), made(rule)
    fitted(other, batches(GOOD[:30]))
    with pytest.raises(ValueError, match="has changed nothing"):
        model.fit(batches(data), verbose=0)
    assert_same(model, other)


def crbm():
    return CRBM(4, seed=0, inference="mean_field", kernel_regularizer=None)


#: Models, rules, and data with a bad batch.
MODELS = {
    "DBM": (lambda: DBM([4, 3], kernel_regularizer=None, seed=0), "pcd", [BAD]),
    "InfiniteRBM": (
        lambda: InfiniteRBM(8, seed=0),
        lambda: rules.FrankWolfe(num_samples=50),
        [BAD],
    ),
    "x of a CRBM": (crbm, "maximum_likelihood", [BAD, GOOD]),
    "y of a CRBM": (crbm, "maximum_likelihood", [GOOD, BAD]),
}


@pytest.mark.parametrize("name", quick(MODELS, "DBM", "x of a CRBM", "y of a CRBM"))
def test_other_models(name):
    make, rule, data = MODELS[name]
    model, other = made(rule, make), made(rule, make)
    fitted(other, batches(*[GOOD[:30]] * len(data)))
    with pytest.raises(ValueError, match=NOTHING):
        model.fit(batches(*data), verbose=0)
    assert_same(model, other)


@pytest.mark.parametrize("source", quick([Loader, generator], Loader))
def test_other_sources(source):
    model = made("cd")
    with pytest.raises(ValueError, match="in x of step 4"):
        model.fit(source(BAD), shuffle=False, verbose=0)
    assert_same(model, after_three_steps(rule="cd"))
    for call in (model.evaluate, model.predict):
        with refused("finite x.*in x of a batch", model):
            call(source(BAD), verbose=0)


def test_single_batches():
    model = fitted(made(), GOOD)
    for call in (model.train_on_batch, model.test_on_batch, model.predict_on_batch):
        with refused("finite x", model):
            call(BAD)
    with refused("sample_weight", model):
        model.train_on_batch(GOOD, sample_weight=-np.ones(60))
    assert np.isfinite(model.train_on_batch(GOOD))


def test_a_backup_is_of_the_last_good_step(tmp_path):
    model, again = made(), made()
    options = {"save_freq": 1, "delete_checkpoint": False}
    backup = keras.callbacks.BackupAndRestore(tmp_path, **options)
    with pytest.raises(ValueError, match="step 4"):
        model.fit(batches(BAD), callbacks=[backup], verbose=0)
    again.build((None, 6))
    again.load_weights(tmp_path / "latest.weights.h5")
    assert_same(model, again)


@pytest.mark.parametrize("source", [Loader, generator, batches])
def test_adapt_takes_what_fit_takes(source):
    rbm, other = RBM(4, seed=0), RBM(4, seed=0)
    rbm.adapt(source(GOOD))
    other.adapt(GOOD)
    np.testing.assert_allclose(rbm.visible_bias, other.visible_bias, rtol=1e-5)
    with refused("finite data", rbm):
        rbm.adapt(source(BAD))


@pytest.mark.parametrize("graph", [False, True])
def test_a_loop_of_ones_own_goes_on_after_a_bad_batch(graph):
    """Later steps changed nothing, in silence, and the next fit failed on good data."""
    rbm = after_three_steps()

    def step(rows):
        return rbm.train_step((rows,))

    step = tf.function(step, autograph=False) if graph else step
    with refused("cannot be taken", rbm, error=tf.errors.InvalidArgumentError):
        step(tf.constant(BAD[30:40]))
    before = rbm.kernel.numpy()
    assert np.isfinite(step(tf.constant(GOOD[:10]))["loss"])
    assert not np.array_equal(rbm.kernel, before)
    fitted(rbm, GOOD)


class OwnLogs(RBM):
    """Returns only some of the logs."""

    def train_step(self, data):
        return {"loss": super().train_step(data)["loss"]}


def test_a_train_step_that_drops_logs():
    """The bad step was not seen, and nothing was learned from then on."""
    model = made(model=lambda: OwnLogs(4, seed=0))
    with pytest.raises(ValueError, match="step 4"):
        model.fit(batches(BAD), verbose=0)
    before = model.kernel.numpy()
    assert not np.array_equal(fitted(model, GOOD).kernel, before)


def test_divergence_is_named_once():
    model = compiled(RBM(4, seed=0), keras.optimizers.SGD(1e6))
    with pytest.warns(UserWarning, match="has diverged.*1e\\+06") as caught:
        model.fit(GOOD, epochs=3, verbose=0)
    assert len([w for w in caught if "diverged" in str(w.message)]) == 1


class DivergingInside(rules.SDCP):
    """Has a gradient that is not finite in the second of three inner steps."""

    def inner_phase(self, potentials, chains, weights, noise, first):
        chains, moments = super().inner_phase(potentials, chains, weights, noise, first)
        late = tf.reduce_all(chains.visible >= 0.0) & (first > 0)
        kernel = tf.where(late, np.inf, moments.kernel)
        return chains, moments._replace(kernel=kernel)


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("devices", quick([1, 2], 1))
def test_an_inner_step_of_sdcp(devices):
    """On two devices the inner steps before the bad one stayed."""
    strategy = two_cpus() if devices == 2 else tf.distribute.get_strategy()
    with strategy.scope():
        model = made(DivergingInside(inner_steps=3, gibbs_steps=1))
    model.adapt(GOOD)
    model._build_training()
    with refused("gradient of kernel of step 1. The step has", model):
        model.fit(batches(GOOD[:20]), verbose=0)


def test_an_error_between_two_steps_is_not_taken_for_a_bad_step():
    """The reason of a step, hidden by an error of the pipeline, came a fit late."""
    model = made("cd", steps_per_execution=4)
    fitted(model, batches(GOOD[:40]))

    def rows():
        yield GOOD[:10]
        yield BAD[30:40]
        raise RuntimeError("the disk is gone")

    spec = tf.TensorSpec((10, 6), tf.float32)
    broken = tf.data.Dataset.from_generator(rows, output_signature=spec)
    with pytest.raises((tf.errors.OpError, ValueError, RuntimeError)):
        model.fit(broken, verbose=0)
    fitted(model, batches(GOOD[:40]))
