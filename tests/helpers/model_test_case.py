"""What every model must pass, with every rule: `run_model_test`."""

import functools
import pathlib
import tempfile

import keras
import numpy as np
import pytest
import tensorflow as tf
from same import assert_same
from small_models import batches, compiled, fitted, reloaded

from keras_rbm import InfiniteRBM


def run_rule_test(make_model, make_rule, x, y=None, stochastic=True):
    """Checks what a rule adds to a model: its step in each mode, and its state.

    Args:
        make_model: function that returns a new model with a fixed seed.
        make_rule: function that returns a new learning rule.
        x, y: training data, arrays of at least 24 rows.
        stochastic: whether the rule draws random numbers.
    """
    case = _Case(make_model, make_rule, x, y)
    case.weights_count_and_are_normalized()
    case.jit_on_equals_off()
    single = case.eager()
    case.fit(single, shuffle=False)
    case.two_logical_cpus(single, stochastic)
    if single.learner.variables:
        case.state_is_resumed()


def run_model_test(
    make_model, make_rule, x, y=None, stochastic=True, weights_everywhere=False
):
    """Checks all that a model does, with one rule.

    Args:
        make_model, make_rule, x, y, stochastic: as of `run_rule_test`.
        weights_everywhere: whether to check weights of examples also when shuffled,
            on two replicas and in `evaluate`: with a rule that draws nothing.
    """
    case = _Case(make_model, make_rule, x, y)
    case.config_round_trip()
    whole, part = case.fit_evaluate_predict()
    case.weights_count_and_are_normalized()
    if isinstance(make_model(), InfiniteRBM):
        case.refuses_jit_and_strategies()
    else:
        case.jit_on_equals_off()
        case.two_logical_cpus(part, stochastic)
    if weights_everywhere:
        case.weights_reach_every_way(part)
    case.resumed_with_a_dataset(whole, part)


def run_file_test(model, *data, folder, **options):
    """Checks that the file of a model answers, and goes on, as the model itself.

    Args:
        model: compiled, is fitted here.
        *data: x, or x and y.
        folder: path.
        **options: of `fit`.

    Returns:
        the loaded model.
    """
    fitted(model, *data, **options)
    again = reloaded(model, folder)
    configs = [each.get_config() for each in (again, model)]
    for config in configs:  # Keras writes a built backbone with more entries
        config.pop("backbone", None)
    assert configs[0] == configs[1]
    start = data[0] if len(data) > 1 else 5
    for _ in range(2):
        assert_same(again, model)
        pair = [
            [
                each.predict(data[0], verbose=0),
                each.sample(start, steps=3, seed=1),
                each.sample(start, steps=3),  # by the model's own generator
            ]
            for each in (model, again)
        ]
        assert_same(*pair)
        for each in (model, again):
            fitted(each, *data, **options)
    return again


@functools.cache
def two_cpus():
    """Returns one strategy for all tests: TensorFlow's collectives outlive theirs."""
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


class _Case:
    def __init__(self, make_model, make_rule, x, y):
        self.make_model, self.make_rule = make_model, make_rule
        self.x, self.y = x, y
        self.data = {"x": x, "y": y}

    def compiled(self, **kwargs):
        optimizer = keras.optimizers.SGD(0.05, momentum=0.5)
        return compiled(self.make_model(), optimizer, rule=self.make_rule(), **kwargs)

    def eager(self):  # tracing takes longer than one step
        return self.compiled(run_eagerly=True)

    def fit(self, model, **kwargs):
        return model.fit(batch_size=10, verbose=0, **self.data, **kwargs)

    def config_round_trip(self):
        model = self.make_model()
        again = type(model).from_config(model.get_config())
        assert again.get_config() == model.get_config()

    def fit_evaluate_predict(self):
        """Returns a fitted model, and how it was loaded after its first epoch."""
        model, loaded = self.compiled(), []

        def save_and_load(epoch, logs):
            if epoch == 0:
                loaded.append(_saved_and_loaded(model))
                assert_same_state(model, loaded[0])

        between = keras.callbacks.LambdaCallback(on_epoch_end=save_and_load)
        traces, step = [], model.train_step
        model.train_step = lambda data: traces.append(1) or step(data)
        validation = (self.x,) if self.y is None else (self.x, self.y)
        history = self.fit(
            model,
            epochs=3,
            shuffle=False,
            validation_data=validation,
            callbacks=[between],
        ).history
        assert np.isfinite(history["loss"]).all()
        assert len(traces) <= (2 if len(self.x) % 10 else 1)
        once = model.evaluate(**self.data, verbose=0)
        assert np.isfinite(once) and once == model.evaluate(**self.data, verbose=0)
        assert len(model.predict(self.x, verbose=0)) == len(self.x)
        return model, loaded[0]

    def state_is_resumed(self):
        """Saved after an epoch, a model goes on as if never stopped."""
        whole, loaded = self.eager(), []
        save = keras.callbacks.LambdaCallback(
            on_epoch_end=lambda epoch, logs: loaded.append(_saved_and_loaded(whole))
        )
        self.fit(whole, epochs=2, shuffle=False, callbacks=[save])
        part = loaded[0]
        self.fit(part, initial_epoch=1, epochs=2, shuffle=False)
        assert_same_state(whole, part)

    def resumed_with_a_dataset(self, whole, part):
        dataset = batches(*([self.x] if self.y is None else [self.x, self.y]))
        part.fit(dataset, initial_epoch=1, epochs=3, verbose=0)
        # Rows of weight 0 fill the last batch of arrays: sums are rounded otherwise.
        tolerance = {"rtol": 1e-4, "atol": 1e-6}
        assert_same_state(whole, part, **tolerance)
        found = [model.predict(self.x, verbose=0) for model in (whole, part)]
        np.testing.assert_allclose(*found, **tolerance)

    def jit_on_equals_off(self):
        plain, compiled = self.eager(), self.compiled(jit_compile=True)
        for model in (plain, compiled):
            model.train_on_batch(**self.data)
        assert_same(plain.weights, compiled.weights, rtol=1e-3, atol=1e-5)

    def refuses_jit_and_strategies(self):
        with pytest.raises(ValueError, match="jit_compile=False"):
            self.compiled(jit_compile=True)
        with two_cpus().scope(), pytest.raises(ValueError, match="single device"):
            self.compiled()

    def weights_count_and_are_normalized(self):
        half = (np.arange(len(self.x)) % 2).astype("float32")
        a, b, even = self.eager(), self.eager(), self.eager()
        a.train_on_batch(**self.data, sample_weight=half)
        b.train_on_batch(**self.data, sample_weight=7.0 * half)
        if hasattr(b, "examples_seen"):  # which adds up weights as they are given
            b.examples_seen.assign(a.examples_seen)
        assert_same_state(a, b, rtol=1e-4, atol=1e-6)
        even.train_on_batch(**self.data)
        assert _differ(a, even)

    def weights_reach_every_way(self, plain):
        weights = np.arange(len(self.x), dtype="float32") + 1.0
        shuffled = self.compiled()
        self.fit(shuffled)
        for shuffle, unweighted in ((True, shuffled), (False, plain)):
            weighted = self.compiled()
            self.fit(weighted, shuffle=shuffle, sample_weight=weights)
            assert _differ(unweighted, weighted)
        with two_cpus().scope():
            double = self.compiled()
        self.fit(double, shuffle=False, sample_weight=weights)
        assert_close_weights(weighted, double)
        score = plain.evaluate(**self.data, sample_weight=weights, verbose=0)
        assert score != plain.evaluate(**self.data, verbose=0)

    def two_logical_cpus(self, single, stochastic):
        with two_cpus().scope():
            double = self.compiled()
        self.fit(double, shuffle=False)
        for alone, variable in zip(
            single.learner.variables, double.learner.variables, strict=True
        ):
            a, b = (v.numpy() for v in variable.value.values)
            assert a.shape == b.shape
            if variable.name in ("betas", "swap_rates"):  # tempering: either
                continue
            if not _is_global(variable):
                assert (a != b).any(), variable.name
                continue
            np.testing.assert_array_equal(a, b, err_msg=variable.name)
            if variable.name == "visible_offset":  # of the data
                a, alone = (np.asarray(v)[: self.x.shape[1]] for v in (a, alone))
            elif stochastic:
                continue
            np.testing.assert_allclose(a, alone, rtol=1e-4, atol=1e-6)
        if not stochastic:
            assert_close_weights(single, double)
            assert np.isfinite(double.evaluate(**self.data, verbose=0))


def _is_global(variable):
    """Returns whether a rule's variable is one for all replicas, not chains."""
    named = variable.name.endswith("offset") or variable.name.startswith("fast")
    return named or not variable.shape  # such as a number of steps


def assert_close_weights(a, b):
    """Compares the weights of two models up to the order of float32 sums."""
    assert_same(a.weights, b.weights, rtol=1e-4, atol=1e-6)


def assert_same_state(a, b, **tolerance):
    """Compares all that two models are: weights, optimizer, rule, random state."""
    assert_same(a, b, **tolerance)


def _differ(a, b):
    pairs = zip(a.weights, b.weights, strict=True)
    return any((v.numpy() != w.numpy()).any() for v, w in pairs)


def _saved_and_loaded(model):
    with tempfile.TemporaryDirectory() as folder:
        return reloaded(model, pathlib.Path(folder))
