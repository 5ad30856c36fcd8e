"""Steps of `fit` on arrays, many in one program."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_rbm as kr
from keras_rbm.models.training.many_steps import looks_at_batches

ROWS = np.random.default_rng(0).integers(0, 2, (75, 6)).astype("float32")


class Look(keras.callbacks.Callback):
    """Wants to be called at each batch."""

    def __init__(self):
        super().__init__()
        self.steps, self.kernels = [], []

    def on_train_batch_end(self, batch, logs=None):
        self.steps.append(batch)
        self.kernels.append(self.model.get_weights()[0].sum())


def rbm(rule="pcd", **options):
    model = kr.RBM(4, kernel_regularizer=None, seed=0)
    model.compile(keras.optimizers.SGD(0.1), rule=rule, **options)
    return model


def crbm(**options):
    model = kr.CRBM(4, seed=0)
    model.compile(keras.optimizers.Adam(0.1), **options)
    return model


def dbm(**options):
    model = kr.DBM([4, 3], seed=0)
    model.compile(keras.optimizers.SGD(0.1), **options)
    return model


MODELS = {
    "pcd": rbm,
    "cd": lambda **options: rbm("cd", **options),
    "s-dcp": lambda **options: rbm("sdcp", **options),
    "crbm": crbm,
    "dbm": dbm,
}


def fitted(make, lengths=(3,), callbacks=(), weights=None, **options):
    """Returns all weights and optimizer variables after one or more calls of `fit`."""
    keras.utils.set_random_seed(0)
    model, done = make(**options), 0
    x = (1.0 - ROWS, ROWS) if model.conditional else (ROWS, None)
    for length in lengths:
        model.fit(
            *x,
            batch_size=10,
            initial_epoch=done,
            epochs=done + length,
            callbacks=list(callbacks),
            sample_weight=weights,
            verbose=0,
        )
        done += length
    variables = model.weights + model.optimizer.variables
    return np.concatenate([np.ravel(variable) for variable in variables])


@pytest.mark.parametrize(
    "name",
    [
        name if name == "pcd" else pytest.param(name, marks=pytest.mark.slow)
        for name in MODELS
    ],
)
def test_weights_do_not_depend_on_how_many_steps_a_program_takes(name, traced):
    make = MODELS[name]
    many = fitted(make)
    np.testing.assert_array_equal(fitted(make, steps_per_execution=1), many)
    np.testing.assert_array_equal(fitted(make, steps_per_execution=3), many)
    np.testing.assert_array_equal(fitted(make, callbacks=[Look()]), many)
    np.testing.assert_array_equal(fitted(make, lengths=(1, 2)), many)


@pytest.mark.slow
def test_weights_do_not_depend_on_it_with_xla(as_users_run):
    weights = np.random.default_rng(1).random(75).astype("float32")
    many = fitted(rbm, weights=weights)
    one = fitted(rbm, weights=weights, callbacks=[Look()])
    np.testing.assert_array_equal(one, many)
    assert (fitted(rbm) != many).any()


def test_a_callback_gets_each_batch_it_asks_for(traced):
    look = Look()
    fitted(rbm, callbacks=[look])
    assert look.steps == [*range(8)] * 3
    assert len(set(look.kernels)) == 24  # it sees each step's weights


def test_files_of_whole_epochs_are_no_reason_to_stop_at_each_batch(tmp_path):
    path = tmp_path / "model.keras"
    assert not looks_at_batches(keras.callbacks.ModelCheckpoint(path))
    assert looks_at_batches(keras.callbacks.ModelCheckpoint(path, save_freq=5))
    assert looks_at_batches(keras.callbacks.BackupAndRestore(tmp_path, save_freq=5))
    assert not looks_at_batches(keras.callbacks.BackupAndRestore(tmp_path))
    assert not looks_at_batches(keras.callbacks.TensorBoard(tmp_path))
    assert looks_at_batches(keras.callbacks.TensorBoard(tmp_path, update_freq=5))
    assert not looks_at_batches(keras.callbacks.EarlyStopping())
    on_end = keras.callbacks.LambdaCallback(on_train_batch_end=lambda *_: None)
    assert looks_at_batches(on_end)


def test_rows_that_fill_the_last_batch_count_nothing(traced):
    """Eight batches of ten hold 75 rows and five of weight 0."""
    full = np.concatenate([ROWS, ROWS[:5]])
    weights = np.repeat([1.0, 0.0], [75, 5]).astype("float32")
    losses = []
    for rows, own in ((ROWS, None), (full, weights)):
        model = rbm()
        model.adapt(ROWS)
        history = model.fit(
            rows, sample_weight=own, batch_size=10, shuffle=False, verbose=0
        )
        losses.append((history.history["loss"], model.kernel.numpy()))
    np.testing.assert_allclose(losses[0][0], losses[1][0], rtol=1e-6)
    np.testing.assert_allclose(losses[0][1], losses[1][1], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    "options", [{}, pytest.param({"steps_per_execution": 3}, marks=pytest.mark.slow)]
)
def test_metrics_are_of_the_rows_alone(options, traced):
    """The last batch is a small one then: none of its rows is counted twice."""
    seen = []

    class Count(keras.metrics.Metric):
        def update_state(self, y_true, y_pred, sample_weight=None):
            tf.py_function(lambda y: seen.append(len(y)), [y_true], [])

        def result(self):
            return tf.constant(0.0)

    fitted(rbm, lengths=(2,), metrics=[Count()], **options)
    assert seen == ([10] * 7 + [5]) * 2


def test_a_bad_step_among_many_is_named_and_the_last(traced):
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


def test_a_batch_is_not_larger_than_the_data(traced):
    rule = kr.rules.ContrastiveDivergence()
    model, sizes = rbm(rule), []
    phases = rule.phases
    rule.phases = lambda step: sizes.append(step.visible.shape[0]) or phases(step)
    model.fit(ROWS, batch_size=1000, epochs=7, verbose=0)
    assert set(sizes) == {75}


def test_a_callback_may_train_on_a_batch_of_its_own(traced):
    model = rbm()

    def train(*_):
        before = int(model.optimizer.iterations)
        model.train_on_batch(ROWS[:20])
        assert int(model.optimizer.iterations) == before + 1

    own = keras.callbacks.LambdaCallback(on_epoch_end=train)
    model.fit(ROWS, batch_size=10, epochs=2, callbacks=[[own]], verbose=0)
    assert int(model.optimizer.iterations) == 2 * 8 + 2


def test_batches_of_validation_are_as_large_as_those_of_training(traced):
    sizes = []

    class Sizes(keras.callbacks.Callback):
        def on_test_batch_end(self, batch, logs=None):
            sizes.append(batch)

    rbm().fit(
        ROWS, batch_size=25, validation_data=(ROWS,), callbacks=[Sizes()], verbose=0
    )
    assert sizes == [0, 1, 2]


def test_a_train_step_of_a_subclass_gets_the_rows_alone(traced):
    class Own(kr.RBM):
        def train_step(self, data):
            assert tf.is_tensor(data)
            return super().train_step(data)

    model = Own(4, seed=0)
    model.compile(keras.optimizers.SGD(0.1))
    model.fit(ROWS, batch_size=10, verbose=0)
    assert int(model.optimizer.iterations) == 8


def test_fit_in_the_scope_of_a_strategy_of_one_device(traced):
    with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
        model = rbm()
        model.fit(ROWS, batch_size=10, verbose=0)
    assert int(model.optimizer.iterations.numpy()) == 8


def test_a_train_function_of_a_subclass():
    class Own(kr.RBM):
        def make_train_function(self, force=False):
            keras.Model.make_train_function(self, force)

    rbm = Own(3, seed=0)
    rbm.compile("sgd")
    assert len(rbm.fit(ROWS, epochs=2, verbose=0).history["loss"]) == 2
