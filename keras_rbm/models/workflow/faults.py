"""A step that cannot be taken changes nothing, and `fit` says why."""

import contextlib
import re
import threading
from typing import NamedTuple

import keras
import tensorflow as tf

from keras_rbm.models.workflow.resume import steps_taken
from keras_rbm.replicas import all_sum, num_replicas

#: Marks of the beginning and the end of an error from inside a `tf.function`.
MARK, END = "This step cannot be taken:", "(end)"
#: First bits of a step's faults: of its data, its loss and its gradients.
DATA_BIT, LOSS_BIT, GRADIENT_BIT = 0, 3, 4
_NOTHING = "The step has changed nothing: the model is as it was before."
_IN_A_LOOP = (
    f"{MARK} Expected states of the units, sample_weight >= 0, a finite loss, and "
    f"finite gradients. Received: something else. {_NOTHING} Call train_on_batch() on "
    f"this batch to learn what. {END}"
)


class _Step(NamedTuple):
    """What is known of a step that has begun.

    Attributes:
        before: list of pairs of a variable and its value.
        reported: bool, whether the caller of the step looks for its fault.
        checks: list of operations that fail in a bad step.
    """

    before: list
    reported: bool
    checks: list


class StepFault:
    """The faults that were found in a step: a bit for each bad part."""

    def __init__(self):
        # Not a weight of the model: Keras does not track this object.
        self.variable = keras.Variable(
            0,
            dtype="int32",
            trainable=False,
            aggregation="only_first_replica",
            synchronization="on_read",
            name="step_fault",
        )
        self._steps = {}  # by thread: each replica traces the step in its own

    @property
    def found(self):
        """Tensor, int32: the bits."""
        return tf.convert_to_tensor(self.variable)

    @property
    def sound(self):
        """Tensor, bool: whether nothing was found so far."""
        return tf.equal(self.found, 0)

    def begin(self, variables, reported):
        """Keeps the values of variables that a step changes before it is checked.

        Args:
            variables: list of them.
            reported: bool, whether the caller of the step looks for its fault, as `fit`
                does. If not, faults of earlier steps are forgotten, and a bad step
                raises an error. Compiled by XLA it cannot: it only changes nothing.
        """
        if not reported:
            self.variable.assign(0)
        before = [(v, tf.convert_to_tensor(v)) for v in variables]
        self._steps[threading.get_ident()] = _Step(before, reported, [])

    def look_at(self, *parts, first_bit):
        """Records which parts, bools (), are not sound in any replica."""
        counts = all_sum([tf.cast(~sound, tf.int32) for sound in parts])
        found = self.found
        for bit, count in enumerate(counts, first_bit):
            found |= tf.minimum(count, 1) * 2 ** min(bit, 30)
        self.variable.assign(found)

    def unless_found(self, change):
        """Calls `change()`, a change of variables, if the step is sound so far."""
        sound = self.sound
        if num_replicas() == 1:
            tf.cond(sound, lambda: _none_of(change()), lambda: None)
            return
        # Under a strategy an optimizer cannot run in a branch: the step ends here,
        # after all its changes are reverted.
        step = self._steps[threading.get_ident()]
        taken_back = [
            variable.assign(tf.where(sound, variable, value))
            for variable, value in step.before
        ]
        words = [MARK, self.found, END] if step.reported else [_IN_A_LOOP]
        with tf.control_dependencies([each for each in taken_back if each is not None]):
            step.checks.append(tf.debugging.Assert(sound, words))
        with tf.control_dependencies(step.checks):
            change()

    def unless_bad(self, *tensors):
        """Returns tensors; zeros in a bad step of replicas, because it ends early."""
        if num_replicas() == 1:
            return tensors
        return [tf.where(self.sound, tensor, 0.0) for tensor in tensors]

    def end(self):
        """Reverts a bad step; returns operations that fail in one, to wait for."""
        step = self._steps.pop(threading.get_ident())
        if num_replicas() > 1:
            return step.checks
        found = self.found

        def revert():
            for variable, value in step.before:
                variable.assign(value)
            return found

        found = tf.cond(tf.equal(found, 0), lambda: found, revert)
        if step.reported:
            return []
        with tf.control_dependencies([found]):
            self.variable.assign(0)
            check = tf.debugging.Assert(tf.equal(found, 0), [_IN_A_LOOP])
        return [] if check is None else [check]  # eagerly there is no operation


def lies_in(part, low=None, high=None):
    """Returns a bool (): whether all values are finite and within the limits."""
    large = part.dtype.max
    low, high = -large if low is None else low, large if high is None else high
    return tf.reduce_all((part >= low) & (part <= high))  # false for NaN


def _none_of(_):
    """Returns `None`, because both branches must return the same."""


def reporting(model, function):
    """Returns a function of an iterator that raises a ValueError after a bad step."""

    def run(iterator):
        model._reports_faults = True
        try:
            with explained(model):
                logs = function(iterator)
        finally:
            model._reports_faults = False
        found = 0 if model._fault is None else int(model._fault.found)
        if found:
            raise _step_error(model, found)
        return logs

    return run


@contextlib.contextmanager
def explained(model=None):
    """Turns a TensorFlow error about bad data or a bad step into a ValueError."""
    try:
        yield
    except tf.errors.OpError as error:
        text = re.search(f"{re.escape(MARK)}(.*?){re.escape(END)}", str(error), re.S)
        if text is None:
            raise
        reason = re.sub(r"[\s\[\]'\"]+", " ", text[1]).strip()
        if reason.isdecimal():
            raise _step_error(model, int(reason)) from error
        raise ValueError(reason) from error


def _step_error(model, found):
    """Returns the ValueError that names what was wrong with a step."""
    model._fault.variable.assign(0)

    def named(first_bit, names):
        return [name for bit, name in enumerate(names, first_bit) if found >> bit & 1]

    bad = named(DATA_BIT, [*model._data_names(), "sample_weight"])
    not_finite = named(LOSS_BIT, ["the loss"])
    gradients = [f"the gradient of {v.name}" for v in model.trainable_variables]
    not_finite += named(GRADIENT_BIT, gradients)
    step = steps_taken(model.optimizer) // model.rule.updates_per_step + 1
    if bad:
        states = model.visible.description
        return ValueError(
            f"Expected states, {states}, and sample_weight ≥ 0. Received: NaN, "
            f"infinite values or values outside in {', '.join(bad)} of step {step}. "
            f"{_NOTHING}"
        )
    return ValueError(
        "Expected a finite loss and finite gradients. Received: NaN or infinite values "
        f"in {', '.join(not_finite)} of step {step}. {_NOTHING} Lower the learning "
        "rate, scale the data, or go back to earlier weights."
    )
