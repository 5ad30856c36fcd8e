"""Steps of `fit` on arrays, many in one program."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from same import assert_same
from small_models import binary, compiled, fitted, quick, slow

import keras_rbm as kr
from keras_rbm.inference import traces
from keras_rbm.models.training.many_steps import looks_at_batches

ROWS = binary(75)
pytestmark = pytest.mark.usefixtures("traced")


class Look(keras.callbacks.Callback):
    """Wants to be called at each batch."""

    def __init__(self):
        super().__init__()
        self.steps, self.kernels = [], []

    def on_train_batch_end(self, batch, logs=None):
        self.steps.append(batch)
        self.kernels.append(self.model.get_weights()[0].sum())


def rbm(rule="pcd", cls=kr.RBM, missing=None, **options):
    own = {} if missing is None else {"missing": missing}
    model = cls(4, kernel_regularizer=None, seed=0, **own)
    return compiled(model, keras.optimizers.SGD(0.1), rule=rule, **options)


MODELS = {
    "pcd": rbm,
    "cd": lambda **options: rbm("cd", **options),
    "s-dcp": lambda **options: rbm("sdcp", **options),
    "crbm": lambda **options: compiled(
        kr.CRBM(4, seed=0), keras.optimizers.Adam(0.1), **options
    ),
    "classes": lambda **options: compiled(
        kr.CRBM(4, visible=kr.units.Categorical(2), seed=0),
        keras.optimizers.SGD(0.1),
        **options,
    ),
    "absent": lambda **options: rbm("cd", missing="absent", **options),
    "dbm": lambda **options: compiled(
        kr.DBM([4, 3], seed=0), keras.optimizers.SGD(0.1), **options
    ),
}


def variables_of(make, lengths=(3,), callbacks=(), weights=None, **options):
    """Returns all weights and optimizer variables after one or more calls of `fit`."""
    keras.utils.set_random_seed(0)
    model, done = make(**options), 0
    data = (1.0 - ROWS, ROWS) if model.conditional else (ROWS,)
    options = {"batch_size": 10, "callbacks": [*callbacks], "sample_weight": weights}
    for length in lengths:
        fitted(model, *data, initial_epoch=done, epochs=done + length, **options)
        done += length
    return [np.array(v) for v in model.weights + model.optimizer.variables]


@pytest.mark.parametrize("name", quick(MODELS, "pcd"))
def test_weights_do_not_depend_on_how_many_steps_a_program_takes(name):
    many = variables_of(MODELS[name])
    for options in (
        {"steps_per_execution": 1},
        {"steps_per_execution": 3},
        {"callbacks": [Look()]},
        {"lengths": (1, 2)},
    ):
        assert_same(variables_of(MODELS[name], **options), many)


def test_a_callback_gets_each_batch_it_asks_for():
    look = Look()
    variables_of(rbm, callbacks=[look])
    assert look.steps == [*range(8)] * 3
    assert len(set(look.kernels)) == 24  # it sees each step's weights


def test_files_of_whole_epochs_are_no_reason_to_stop_at_each_batch(tmp_path):
    """Callbacks with their defaults, and what has them look at batches."""
    callbacks, path = keras.callbacks, tmp_path / "model.keras"
    for callback, options in (
        (lambda **k: callbacks.ModelCheckpoint(path, **k), {"save_freq": 5}),
        (lambda **k: callbacks.BackupAndRestore(tmp_path, **k), {"save_freq": 5}),
        (lambda **k: callbacks.TensorBoard(tmp_path, **k), {"update_freq": 5}),
        (callbacks.LambdaCallback, {"on_train_batch_end": lambda *_: None}),
    ):
        assert looks_at_batches(callback(**options))
        if callback is not callbacks.LambdaCallback:
            assert not looks_at_batches(callback())
    assert not looks_at_batches(callbacks.EarlyStopping())


def test_rows_that_fill_the_last_batch_count_nothing():
    """Eight batches of ten hold 75 rows and five of weight 0."""
    full = np.concatenate([ROWS, ROWS[:5]])
    of_rows = np.repeat([1.0, 0.0], [75, 5]).astype("float32")
    results = []
    for rows, weights in ((ROWS, None), (full, of_rows)):
        model = rbm()
        model.adapt(ROWS)
        options = {"sample_weight": weights, "batch_size": 10, "shuffle": False}
        loss = model.fit(rows, verbose=0, **options).history["loss"]
        results.append([loss, model.kernel])
    assert_same(*results, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("options", [{}, slow({"steps_per_execution": 3})])
def test_metrics_are_of_the_rows_alone(options):
    """The last batch is a small one then: none of its rows is counted twice."""
    seen = []

    class Count(keras.metrics.Metric):
        def update_state(self, y_true, y_pred, sample_weight=None):
            tf.py_function(lambda y: seen.append(len(y)), [y_true], [])

        def result(self):
            return tf.constant(0.0)

    variables_of(rbm, lengths=(2,), metrics=[Count()], **options)
    assert seen == ([10] * 7 + [5]) * 2


def test_a_bad_step_among_many_is_named_and_the_last():
    class Bad(kr.rules.ContrastiveDivergence):
        """Its loss is infinite in the fourth step."""

        def phases(self, step):
            phases = super().phases(step)
            fourth = tf.equal(self.learner.optimizer.iterations, 3)
            losses = tf.where(fourth, float("inf"), phases.losses)
            return phases._replace(losses=losses)

    model = rbm(Bad())
    with pytest.raises(ValueError, match="step 4"):
        model.fit(ROWS, batch_size=10, verbose=0)
    assert int(model.optimizer.iterations) == 3
    history = rbm().fit(ROWS, batch_size=10, verbose=0)
    assert np.isfinite(history.history["loss"]).all()


def test_a_batch_is_not_larger_than_the_data():
    rule, sizes = kr.rules.ContrastiveDivergence(), []
    phases = rule.phases
    rule.phases = lambda step: sizes.append(step.visible.shape[0]) or phases(step)
    fitted(rbm(rule), ROWS, batch_size=1000, epochs=7)
    assert set(sizes) == {75}


def test_a_callback_may_train_on_a_batch_of_its_own():
    model = rbm()

    def train(*_):
        before = int(model.optimizer.iterations)
        model.train_on_batch(ROWS[:20])
        assert int(model.optimizer.iterations) == before + 1

    callbacks = [[keras.callbacks.LambdaCallback(on_epoch_end=train)]]
    fitted(model, ROWS, batch_size=10, epochs=2, callbacks=callbacks)
    assert int(model.optimizer.iterations) == 2 * 8 + 2


def test_batches_of_validation_are_as_large_as_those_of_training():
    sizes = []
    count = keras.callbacks.LambdaCallback()
    count.on_test_batch_end = lambda batch, logs=None: sizes.append(batch)
    options = {"validation_data": (ROWS,), "callbacks": [count], "batch_size": 25}
    fitted(rbm(), ROWS, **options)
    assert sizes == [0, 1, 2]


class OwnStep(kr.RBM):
    """Gets the rows alone."""

    def train_step(self, data):
        assert tf.is_tensor(data)
        return super().train_step(data)


class OwnFunction(kr.RBM):
    def make_train_function(self, force=False):
        keras.Model.make_train_function(self, force)


@pytest.mark.parametrize("cls", [OwnStep, OwnFunction])
def test_a_subclass_with_a_step_of_its_own(cls):
    model = fitted(rbm(cls=cls), ROWS, batch_size=10)
    assert int(model.optimizer.iterations) == 8


def test_xla_compiles_where_the_steps_pay_for_it(monkeypatch):
    """Those of all fits: the second begins with XLA, and the third goes on with it."""
    monkeypatch.setattr(traces, "compiles", True)
    made = compiled(kr.RBM(9, seed=0)), compiled(kr.RBM(9, seed=0), jit_compile=True)
    wanted = []
    for model in made:
        model.build((None, 25))
        for steps in (1_000, 10_000, 100_000, 1_000):
            model._choose_jit(steps)
            model.make_train_function()
            wanted.append(model._compiles_steps)
        assert model.jit_compile  # of `predict`
    assert wanted == [False, False, True, True] + 4 * [True]
    for options in ({"rule": kr.rules.SDCP(inner_steps=20)}, {}):
        deep = compiled(kr.RBM(9, seed=0), **options)
        deep.build((None, 25))
        if not options:
            deep.optimizer.iterations.assign(10**6)  # taken before
        deep._choose_jit(10_000)
        assert deep._compiles_steps
