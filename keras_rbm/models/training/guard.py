"""A step that cannot be taken changes nothing; one that is taken leaves Z finite."""

import keras
import numpy as np
import tensorflow as tf

from keras_rbm._replicas import add, all_sum, must_meet, num_replicas
from keras_rbm.models.data.row_checks import SCALE, all_within
from keras_rbm.models.layer_variables import layer_parameters, visible_parameters
from keras_rbm.models.training.progress import updates_of

#: First bits of the reason: of the step's data, its loss and its gradients.
DATA_BIT, LOSS_BIT, GRADIENT_BIT = 0, 3, 4
_NOTHING = "The step has changed nothing: the model is as it was before."
_IN_A_LOOP = (
    "This step cannot be taken: Expected states of the units, sample_weight >= 0, a "
    f"finite loss, and finite gradients. Received: something else. {_NOTHING} Call "
    "train_on_batch() on this batch to learn what."
)
#: Least `spectral_gap` of a model in training: a little above where intervals of log Z
#: stay open.
LEAST_GAP = 0.035
#: How often a matrix is squared for a bound of its norm, at most 2.5 % too large for
#: 500 columns, and less for fewer.
_SQUARINGS = 7


class StepGuard:
    """Lets a step change a model only if all of it is sound.

    Attributes:
        reason: int variable, a bit for each part that was not sound in the first bad
            step since the reason was read; 0 if all were. It is equal on all replicas.
            `None` until `build`.
        is_read: bool, whether the caller of the step reads the reason, as `fit` does.
            If not, a bad step raises an error itself; compiled by XLA it cannot, and
            only changes nothing.
    """

    def __init__(self):
        self.reason: keras.Variable | None = None
        self.is_read = False

    def build(self):
        """Creates the variables, once."""
        if self.reason is not None:
            return
        # No weights of the model: Keras does not track this object.
        self.reason, self._ends = (
            keras.Variable(
                "zeros",
                shape=shape,
                dtype=dtype,
                trainable=False,
                aggregation="only_first_replica",
                synchronization="on_read",
                name=name,
            )
            for name, shape, dtype in (
                ("step_fault", (), "int32"),
                ("values_of_fault", (2,), "float32"),
            )
        )

    @property
    def variables(self):
        """List of its variables."""
        return [self.reason, self._ends]

    def begin(self, variables):
        """Returns variables that a step changes early, with their values, for `end`."""
        if not self.is_read:
            self.reason.assign(0)
        return [(variable, tf.convert_to_tensor(variable)) for variable in variables]

    def accept(self, sound, *parts, first_bit=DATA_BIT):
        """Returns the parts of a batch, or zeros of their shapes if one is not sound.

        Rows of zeros with weight 0 leave a model's state finite, whatever stands in
        them. An error of the pipeline may come before the step is reverted.

        Args:
            sound: bools (), whether each part is sound; others are not checked.
            *parts: tensors, or `None` for what there is not.
            first_bit: int, the bit of the first part.
        """
        sound, given = [*sound], [part for part in parts if part is not None]
        is_first = tf.equal(tf.convert_to_tensor(self.reason), 0)
        for own, part in zip(sound, given, strict=False):
            known = tf.logical_not(tf.math.is_nan(part))
            far = tf.constant(part.dtype.max, part.dtype)
            ends = [
                tf.reduce_min(tf.where(known, part, far)),
                tf.reduce_max(tf.where(known, part, -far)),
            ]
            ends = tf.cast(tf.stack(ends), tf.float32)
            self._ends.assign(tf.where(is_first & ~own, ends, self._ends))
        self.record(*sound, first_bit=first_bit)
        whole = tf.reduce_all(sound)
        return [
            part if part is None else tf.where(whole, part, tf.zeros_like(part))
            for part in parts
        ]

    def record(self, *parts, first_bit):
        """Records which parts, bools (), are not sound in any replica."""
        counts = all_sum([tf.cast(~sound, tf.int32) for sound in parts])
        reason = tf.convert_to_tensor(self.reason)
        for bit, count in enumerate(counts, first_bit):
            reason |= tf.minimum(count, 1) * 2 ** min(bit, 30)
        self.reason.assign(reason)

    def record_values(self, *parts, first_bit):
        """Records which parts, tensors, are not finite."""
        self.record(*map(all_within, parts), first_bit=first_bit)

    def if_sound(self, change, gradients):
        """Calls `change(gradients)` if the step is sound so far.

        Args:
            change: function of a list of tensors.
            gradients: list of tensors, each replica's own.
        """

        def changed(gradients):
            change(gradients)  # returns nothing, as the other branch

        sound = tf.equal(tf.convert_to_tensor(self.reason), 0)
        if not must_meet():
            tf.cond(sound, lambda: changed(gradients), lambda: None)
            return

        def across_replicas(strategy, sound, gradients):
            # Inside of a replica an optimizer cannot run in a branch.
            first = strategy.experimental_local_results(sound)[0]
            run = strategy.extended.call_for_each_replica
            tf.cond(first, lambda: run(changed, args=(gradients,)), lambda: None)

        context = tf.distribute.get_replica_context()
        context.merge_call(across_replicas, args=(sound, gradients))

    def end(self, before):
        """Reverts a bad step; returns operations to wait for.

        Args:
            before: what `begin` returned.
        """
        reason = tf.convert_to_tensor(self.reason)
        sound = tf.equal(reason, 0)
        if must_meet() or num_replicas() > 1:
            reverted = _reverted_on_replicas(sound, before)
        else:

            def revert():
                for variable, value in before:
                    variable.assign(value)
                return reason

            reverted = [tf.cond(sound, lambda: reason, revert)]
        if self.is_read:
            return []
        with tf.control_dependencies([each for each in reverted if each is not None]):
            self.reason.assign(0)
            check = tf.debugging.Assert(sound, [_IN_A_LOOP])
        return [] if check is None else [check]  # eagerly there is no operation

    def read(self, function, model, trains=False):
        """Returns a function of an iterator that raises a ValueError after a bad batch.

        Args:
            function: takes one or more steps.
            model: the model that takes them.
            trains: bool, whether they are of training.
        """

        def run(iterator):
            was_read, self.is_read = self.is_read, True
            try:
                result = function(iterator)
            except BaseException:
                if self.reason is not None:
                    self.reason.assign(0)  # the error is another
                raise
            finally:
                self.is_read = was_read
            reason = (
                0 if self.reason is None else int(tf.convert_to_tensor(self.reason))
            )
            if reason:
                self.reason.assign(0)
                raise self._error(model, reason, trains)
            return result

        return run

    def _error(self, model, reason, trains):
        """Returns the ValueError that names what was wrong with a batch or a step."""

        def named(first_bit, names):
            return [n for bit, n in enumerate(names, first_bit) if reason >> bit & 1]

        where, end = "a batch", ""
        if trains:
            step = updates_of(model.optimizer) // model.rule.inner_steps + 1
            where, end = f"step {step}", f" {_NOTHING}"
        words = model.form.expectations
        bad = named(DATA_BIT, words)
        if bad:
            low, high = map(float, tf.convert_to_tensor(self._ends))
            return ValueError(
                f"Expected {'; '.join(words[name] for name in bad)}. Received: NaN, "
                f"infinite values or values outside, from {low:g} to {high:g}, in "
                f"{', '.join(bad)} of {where}.{end} {SCALE}, or drop such rows."
            )
        of_layers = {id(v) for layer in model.layers for v in layer.weights}
        gradients = [
            f"the gradient of {v.path if id(v) in of_layers else v.name}"
            for v in model.trainable_variables
        ]
        bad = named(LOSS_BIT, ["the loss"]) + named(GRADIENT_BIT, gradients)
        return ValueError(
            "Expected a finite loss and finite gradients. Received: NaN or infinite "
            f"values in {', '.join(bad)} of {where}.{end} Lower the learning rate, "
            "scale the data, or go back to earlier weights."
        )


def _reverted_on_replicas(sound, before):
    """Reverts variables, those with a value for each replica, and those with one."""
    mirrored = [pair for pair in before if pair[0].synchronization != "on_read"]
    by_replica = [pair for pair in before if pair[0].synchronization == "on_read"]
    operations = [v.assign(tf.where(sound, v, value)) for v, value in by_replica]
    if not must_meet():
        operations += [v.assign(tf.where(sound, v, value)) for v, value in mirrored]
        return operations
    variables = [variable for variable, _ in mirrored]

    def across_replicas(strategy, sound, values):
        first = strategy.experimental_local_results(sound)[0]

        def revert():
            for variable, value in zip(variables, values, strict=True):
                strategy.extended.update(
                    variable.value, lambda own, old: own.assign(old), args=(value,)
                )

        tf.cond(first, lambda: None, revert)

    context = tf.distribute.get_replica_context()
    context.merge_call(across_replicas, args=(sound, [value for _, value in mirrored]))
    return operations


def stay_normalizable(model):
    """Shrinks the kernel of a model where Z may not be finite, in a training step.

    Only weights between unbounded units shrink, by one factor, until the
    `spectral_gap` is large enough.

    Args:
        model: `RBM` or `CRBM`.
    """
    if isinstance(model.hidden, list):
        return  # of several layers, which `fit` only watches
    visible = visible_parameters(model).curvature
    hidden = layer_parameters(model, "hidden_{}", model.hidden).curvature
    if model.kernel.trainable and _can_be_finite(visible) and _can_be_finite(hidden):
        kernel = tf.convert_to_tensor(model.kernel)
        add([model.kernel], [_change(kernel, visible, hidden)])


def _can_be_finite(curvature):
    """Returns whether there may be unbounded units; Bernoulli's constant says not."""
    values = tf.get_static_value(curvature)
    return values is None or bool(np.isfinite(values).any())


def _change(kernel, visible, hidden):
    """Returns what to add to the kernel, given the units' curvatures."""
    visible, hidden = tf.math.rsqrt(visible), tf.math.rsqrt(hidden)  # 0 if bounded
    scaled = kernel * visible[:, tf.newaxis] * hidden
    largest = np.float32(np.sqrt(1.0 - LEAST_GAP))
    factor = tf.minimum(1.0, largest / tf.maximum(_norm_bound(scaled), 1e-6))
    change = (factor - 1.0) * kernel
    return tf.where(scaled != 0.0, change, tf.zeros_like(change))


def _norm_bound(matrix):
    """Returns an upper bound of the largest singular value s_1.

    With the Gram matrix G of n columns, `trace(G^p)^(1 / 2p)` is the sum of all s_i to
    the power 2p: between s_1 and `n^(1 / 2p)` times it.
    """
    wide = matrix.shape[0] < matrix.shape[1]
    gram = tf.matmul(matrix, matrix, transpose_a=not wide, transpose_b=wide)
    log_bound, power = tf.constant(0.0, matrix.dtype), 1
    for squaring in range(_SQUARINGS + 1):
        if squaring:
            gram, power = gram @ gram, 2 * power
        trace = tf.maximum(tf.linalg.trace(gram), 1e-30)
        log_bound += tf.math.log(trace) / power
        gram /= trace
    return tf.exp(0.5 * log_bound)
