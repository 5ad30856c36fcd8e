"""The steps of `fit` on arrays, many in one program."""

import math
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_rbm.datasets.in_memory import SparseRows, gather, hold_in_memory, map_present
from keras_rbm.datasets.keyed import shuffled_rows
from keras_rbm.models.training.defaults import is_auto
from keras_rbm.models.training.progress import updates_of
from keras_rbm.models.training.shared_programs import program_for
from keras_rbm.rules.learning_rule import LearningRule

#: About how long a program may run, in seconds: until somebody looks.
_SECONDS = 0.1
#: Roughly what a step costs: seconds, and for each multiplication of its products.
_STEP, _PRODUCT = 2e-5, 1e-10
#: Steps times the root of the number of weights from which compiling pays off.
_COMPILED = 3e5
#: An iteration of an approximate inference costs as much as this many sweeps.
_ITERATION = 10
#: Most memory for the batches of a program, and for data on a device, in bytes.
_MOST_BYTES, _MOST_ON_DEVICE = 2**26, 2**31


class ManySteps:
    """Takes the steps of `fit` on arrays, many of them in one program.

    Keras asks for one step after the other. The first call takes all steps up to the
    next moment at which somebody may look; those that follow return its logs.

    A program has batches of one size: the last batch of an epoch is filled with rows
    of weight 0. If the model reports metrics, which would count them, it is smaller.

    Args:
        model: the model, whose `train_step` is called.
    """

    def __init__(self, model):
        self._model = model
        self._parts: Any = None
        self._compiled = bool(model.jit_compile)
        compiled = self._compiled or None
        self._program = tf.function(self._run, autograph=False, jit_compile=compiled)
        self._programs: dict[str, Callable[..., Any]] = {}

    def begin(self, arrays, batch_size, callbacks, read):
        """Takes the data of a `fit`; returns the number of steps of an epoch.

        Args:
            arrays: x, y and sample_weight, arrays, `SparseRows` or `None`.
            batch_size: int.
            callbacks: list of those of `fit`; if one looks at batches, a program takes
                a single step, unless the model was compiled with another number.
            read: function that returns the number of a new epoch, by which its rows are
                shuffled, or `None` to leave them in their order.
        """
        model = self._model
        batch_size = min(batch_size, len(arrays[0]))
        size = sum(4 * math.prod(each.shape) for each in arrays if each is not None)
        with tf.device("CPU:0" if size > _MOST_ON_DEVICE else None):
            self._parts = hold_in_memory(tuple(arrays))
        count = len(arrays[0])
        self._count, self._batch_size, self._read = count, batch_size, read
        self._num_steps = -(-count // batch_size)
        if not is_auto(model._requested_steps):
            self._at_once = model.steps_per_execution
        elif model.run_eagerly or any(map(looks_at_batches, callbacks)):
            self._at_once = 1
        else:
            sizes = batch_size, self._num_steps, size * batch_size / count
            self._at_once = steps_of_a_moment(model, *sizes)
        self._step = self._pending = 0
        return self._num_steps

    def end(self):
        """Lets the data go."""
        self._parts = None

    @property
    def fits_model(self):
        """Whether it does what the model's steps would: they are the library's own."""
        model = self._model
        is_ours = type(model).train_step.__module__.startswith("keras_rbm.")
        default = model.distribute_strategy is tf.distribute.get_strategy()
        is_single = default and not tf.distribute.has_strategy()
        return is_ours and is_single and isinstance(model.rule, LearningRule)

    def train_function(self, many, one):
        """Returns the function that Keras calls for each step of `fit`.

        Args:
            many: calls `take`.
            one: takes steps on batches of an iterator, for what has not begun here.
        """

        def function(iterator):
            # Not if a callback calls train_on_batch, which passes a generator.
            of_fit = isinstance(iterator, tf.data.Iterator)
            if not (of_fit and self._parts is not None):
                return one(iterator)
            return self._skip() if self._pending else many(iterator)

        return function

    @property
    def steps(self):
        """A dataset without end for Keras, which asks for steps by its elements."""
        return tf.data.Dataset.range(1).repeat()

    def _skip(self):
        """Returns the logs of a step that has been taken already."""
        self._pending -= 1
        return self._logs

    def take(self):
        """Takes the next steps; returns their logs."""
        if not self._step:
            rows = np.arange(self._count)
            if self._read is not None:
                rows = shuffled_rows(self._count, 0, self._read()).numpy()
            fill = np.zeros(self._num_steps * self._batch_size - self._count, np.int64)
            self._rows = np.concatenate([rows, fill]).reshape(-1, self._batch_size)
        rows = self._rows[self._step : self._step + self._at_once]
        self._step = (self._step + len(rows)) % self._num_steps
        self._pending = -(-len(rows) // self._model.steps_per_execution) - 1
        rest = self._count % self._batch_size
        model = self._model
        # Metrics would count filled rows, and a network could look at them.
        whole = model._reports_predictions or model.form.called.shape is not None
        if rest and not self._step and whole:
            if len(rows) > 1:
                self._call(rows[:-1], self._at_once)
            self._logs = self._call(rows[-1:, :rest], 1)
        else:
            filled = 0 if self._step else self._rows.size - self._count
            self._logs = self._call(rows, self._at_once, filled)
        return self._logs

    def _call(self, rows, most, filled=0):
        """Takes steps on batches of rows, (K, B), in a program for up to `most`.

        `filled` is how many rows at the end have weight 0.
        """
        count, ones = len(rows), np.ones(rows.size)
        ones[rows.size - filled :] = 0.0
        pad = ((0, most - count), (0, 0))
        rows, ones = np.pad(rows, pad), np.pad(ones.reshape(rows.shape), pad)
        x, y, weights = map_present(lambda part: _gathered(part, rows), self._parts)
        row_weights = tf.constant(ones, self._model.variable_dtype)
        if weights is not None:
            weights = tf.cast(weights, row_weights.dtype)
            row_weights *= tf.reshape(weights, row_weights.shape)
        stack = x, () if y is None else y, row_weights
        if self._model.run_eagerly:
            for number in range(count):
                batch = map_present(lambda part, n=number: part[n], stack)
                logs = self._model.train_step(batch)
        else:
            logs = self._program_for(stack)(stack, tf.constant(count))
        return tf.nest.map_structure(lambda value: np.asarray(value)[()], logs)

    def _program_for(self, stack):
        """Returns the program for batches like these."""
        specs = tf.nest.map_structure(lambda x: tf.TensorSpec(x.shape, x.dtype), stack)
        key = repr(specs)
        if key not in self._programs:
            count = tf.TensorSpec((), tf.int32)
            mode = self._model, self._compiled
            self._programs[key] = program_for(*mode, self._program, specs, count)
        return self._programs[key]

    def _run(self, stack, count):
        """Takes `count` ≥ 1 steps on the first of a stack of batches; returns logs."""
        one = tf.nest.map_structure(
            lambda x: tf.TensorSpec(x.shape[1:], x.dtype), stack
        )
        step = tf.function(self._model.train_step, autograph=False)
        step = step.get_concrete_function(one)
        empty = tf.nest.map_structure(
            lambda log: tf.zeros(log.shape, log.dtype), step.structured_outputs
        )

        def body(number, logs):
            with tf.control_dependencies(tf.nest.flatten(logs)):
                batch = tf.nest.map_structure(lambda part: part[number], stack)
                return number + 1, step(batch)

        def goes_on(number, logs):
            return number < count

        return tf.while_loop(goes_on, body, (tf.constant(0), empty))[1]


def _gathered(part, rows):
    if isinstance(part, SparseRows):
        return gather(part, rows)
    with tf.device(part.device):  # where the data are
        return tf.gather(part, rows)


def steps_of_a_moment(model, batch_size, num_steps, batch_bytes):
    """Returns how many steps take about a tenth of a second, a power of 2.

    It depends only on sizes, so that models of one size share what has been compiled.
    """
    rule = model.rule
    chains = [each.shape[0] for each in model.learner.variables if len(each.shape)]
    sweeps = getattr(rule, "gibbs_steps", 1)
    infers = getattr(rule, "inference", None) or model.inference
    sweeps += _ITERATION * getattr(infers, "max_iterations", 0)
    rows = 2 * batch_size + 2 * sweeps * max(batch_size, *chains, 0)
    products = rows * sum(math.prod(each.shape) for each in model.trainable_variables)
    seconds = rule.inner_steps * (_STEP + _PRODUCT * products)
    most = min(_SECONDS / seconds, num_steps, _MOST_BYTES / batch_bytes)
    return 2 ** max(0, math.ceil(math.log2(most)))


def pays_off(model, ahead):
    """Returns whether a model's steps take longer than to compile them would.

    They are those `ahead`, a number, and those that it has taken before.

    XLA takes some seconds, and saves a third to a half of each step. Measured on a CPU
    it pays off from 3,300 steps of `RBM(64)` on 64 columns, of 12,000 weights of a CRBM
    from 3,000, of `RBM(200)` on 784 columns from 850, of `RBM(500)` from 500.
    """
    updates = updates_of(model.optimizer) + model.rule.inner_steps * ahead
    weights = sum(math.prod(each.shape) for each in model.trainable_variables)
    return updates * math.sqrt(weights) >= _COMPILED


def looks_at_batches(callback):
    """Returns whether a callback wants to be called between steps."""
    files = keras.callbacks.ModelCheckpoint, keras.callbacks.BackupAndRestore
    if type(callback) in files:
        return callback.save_freq != "epoch"
    if type(callback) is keras.callbacks.TensorBoard:
        return callback.update_freq != "epoch" or callback.write_steps_per_second
    hooks = "on_batch_begin", "on_batch_end", "on_train_batch_begin"
    base = keras.callbacks.Callback
    methods = {
        name: getattr(callback, name, None) for name in (*hooks, "on_train_batch_end")
    }
    return any(
        getattr(method, "__func__", method) not in (None, getattr(base, name))
        for name, method in methods.items()
    )
