"""Training RBMs one after the other, each on the features of the last."""

from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from keras_rbm._checks import check_counts
from keras_rbm.datasets import keyed, pipeline
from keras_rbm.datasets.in_memory import as_dense
from keras_rbm.models.data import rows
from keras_rbm.models.data.batches import TrainingData, in_order
from keras_rbm.models.training import defaults
from keras_rbm.models.training.progress import EpochKey, extended
from keras_rbm.rules import Learner
from keras_rbm.units.bernoulli import are_binary

_ROWS_AT_ONCE = 1000


def compile_each(rbms, optimizer, rule, options):
    """Compiles RBMs with copies of an optimizer and a rule, or one each from lists."""
    optimizers = [
        each if each is None or isinstance(each, str) else defaults.new_optimizer(each)
        for each in one_each(optimizer, "optimizer", len(rbms))
    ]
    copies = [
        None if each is None else defaults.new_rule(each)
        for each in one_each(rule, "rule", len(rbms))
    ]
    for rbm, identifier, rule in zip(rbms, optimizers, copies, strict=True):
        if rule is not None:
            default = defaults.optimizer_for(identifier or "adam")
            rbm._check_rule(rule, Learner(rbm, rule, default))
    for rbm, identifier, rule in zip(rbms, optimizers, copies, strict=True):
        rbm.compile(identifier, rule=rule, **options)


def fit_each(
    rbms,
    x,
    *,
    epochs=1,
    batch_size=None,
    validation_data=None,
    validation_split=0.0,
    callbacks=None,
    sample_weight=None,
    verbose="auto",
    last=(),
):
    """Trains RBMs from below, see `DBN.pretrain`; returns their histories.

    `last` are callbacks to be called after those of the user.
    """
    counts = one_each(epochs, "epochs", len(rbms))
    for count in counts:
        check_counts(0, epochs=count)
    if batch_size is not None:
        check_counts(batch_size=batch_size)
    for_each = callable(callbacks) and not isinstance(callbacks, type)
    lists = [
        extended(callbacks(i) if for_each else callbacks) for i in range(len(rbms))
    ]
    for callback in (each for callbacks in lists for each in callbacks):
        if not isinstance(callback, keras.callbacks.Callback):
            raise TypeError(
                "Expected keras.callbacks.Callback objects, or a function of the RBM's "
                f"index that returns a list of them. Received: {callback!r}."
            )
    options = sample_weight, batch_size, validation_split, validation_data
    data = TrainingData.of(rbms[0].form, x, None, *options)
    training = Features.of(data.x, data.sample_weight)
    validation = None
    if data.validation is not None:
        given = data.validation
        part, _, weights = rows.unpack(given if isinstance(given, tuple) else (given,))
        validation = Features.of(part, weights)
    if not counts[0]:
        rbms[0]._assert_built("fit")

    histories = []
    for index, (rbm, count) in enumerate(zip(rbms, counts, strict=True)):
        if index:
            training = training.above(rbms[index - 1])
            validation = validation and validation.above(rbms[index - 1])
        if not count:
            histories.append(None)
            continue
        if index and not np.any(rbm.visible_bias):
            rbm.build((None, training.units.num_units))
            rbm._start_at(*training.moments())
        if verbose:
            print(f"RBM {index + 1} of {len(rbms)}: {rbm.name}")
        key = EpochKey()
        history = rbm.fit(
            **training.for_fit(batch_size, key.read, _draws_states(rbm)),
            validation_data=validation and validation.fixed(),
            epochs=count,
            callbacks=[*lists[index], key, *last],
            verbose=verbose,
        )
        histories.append(history)
    return histories


def evaluate_each(rbms, x, verbose):
    """Returns the RBMs' losses, see `DBN.evaluate`."""
    features, losses = Features.of(x), []
    rbms[0]._assert_built("evaluate")
    if rows.is_array(features.data):
        rbms[0].form.check(features.data)
    for index, rbm in enumerate(rbms):
        if index:
            features = features.above(rbms[index - 1])
        losses.append(rbm.evaluate(features.fixed(), verbose=verbose))
    return losses


def one_each(value, name, count):
    """Returns a list of one value for each layer."""
    if not isinstance(value, (list, tuple)):
        return [value] * count
    if len(value) != count:
        raise ValueError(
            f"Expected one {name}, or a list of {count}, one for each layer. Received: "
            f"{name} with {len(value)} values."
        )
    return list(value)


def _draws_states(rbm):
    """Returns whether steps draw states of means, and no metric would see these."""
    return are_binary(rbm.visible) and not rbm._reports_predictions


class Features(NamedTuple):
    """The data that a stack learns from, or a hidden layer of it given the data.

    For a hidden layer these are natural parameters, given the means of the layer below.
    States are drawn from them by the layer's own units: again in each epoch of
    training, but only once for validation.

    Attributes:
        data: array or `tf.data.Dataset`.
        weights: array, weights of the rows of an array, or `None`.
        units: `LayerParameters` of the hidden layer, or `None`.
    """

    data: Any
    weights: Any = None
    units: Any = None

    @classmethod
    def of(cls, data, weights=None):
        """Returns arrays or batches as features; raises an error for others."""
        if rows.is_array(data):
            return cls(rows.as_array(data, "x"), weights)
        if not isinstance(data, tf.data.Dataset):
            raise TypeError(
                "Expected data that each RBM can read from their beginning, an array "
                f"or a tf.data.Dataset. Received: {type(data).__name__}."
            )
        if weights is not None:
            raise ValueError(
                "Expected sample_weight only with arrays. Received: sample_weight "
                f"with {type(data).__name__}. Make its batches (x, (), weight)."
            )
        return cls(data)

    def above(self, rbm):
        """Returns an RBM's features of these features."""

        def natural(part):
            part = tf.cast(part, tf.float32)
            if self.units is None:
                part = tf.ensure_shape(part, (None, rbm.num_visible))
                means = rbm.visible.encode(part)
            else:
                means = self.units.mean(part)
            return rbm._natural_of_mean(means)

        if rows.is_array(self.data):
            data = rows.map_rows(natural, self.data)
        else:
            data = self.data.map(lambda *element: _with_first(natural, element))
        return self._replace(data=data, units=rbm._hidden_parameters())

    def moments(self):
        """Returns mean and variance (rows,) of the layer's states, as encoded."""
        given = rows.weighted_chunks(self.data, self.weights)
        drawn = rows.weighted_chunks(self.fixed())
        mean, _ = rows.moments((self.units.mean(part), w) for part, w in given)
        encoded = ((self.units.encode(part), w) for part, w in drawn)
        return mean, rows.moments(encoded)[1]

    def for_fit(self, batch_size, key, draws_states):
        """Returns arguments for `RBM.fit`.

        Args:
            batch_size: int or `None`, for arrays.
            key: function that returns a number for the epoch.
            draws_states: bool, whether steps draw states of means by themselves.
        """
        batches = self.data
        is_array = rows.is_array(batches)
        arrays = {"sample_weight": self.weights, "batch_size": batch_size}
        if self.units is None:
            return {"x": batches} | (arrays if is_array else {})
        if is_array and draws_states:
            return {"x": rows.map_rows(self.units.mean, batches).numpy()} | arrays
        if is_array:
            parts = rows.as_batch(batches, sample_weight=self.weights)
            options = {"seed": 0, "iterations": key}
            batches = pipeline.shuffled_batches(parts, batch_size or 32, **options)
        return {"x": self._drawn(batches, redraw=True, iterations=key)}

    def fixed(self):
        """Returns batches that are the same in each epoch, for validation."""
        batches = self.data
        if rows.is_array(batches):
            batches = in_order(batches, None, self.weights, _ROWS_AT_ONCE)
        if self.units is None:
            return batches
        return self._drawn(batches, redraw=False, iterations=None)

    def _drawn(self, batches, **options):
        """Returns batches of states, drawn given batches of natural parameters."""

        def draw(element, key):
            def states(natural):
                shape = (tf.shape(natural)[0], self.units.num_units)
                noise = tf.random.stateless_uniform(shape, key, alg="philox")
                natural = tf.cast(natural, noise.dtype)
                drawn = self.units.sample(natural, noise)
                return tf.ensure_shape(drawn, (None, shape[1]))

            return _with_first(
                states, element if isinstance(element, tuple) else (element,)
            )

        stream = keyed.SAMPLING
        return keyed.map_with_keys(batches, draw, stream=stream, seed=0, **options)


def _with_first(function, element):
    """Returns an element with `function` applied to its first component."""
    first, *rest = element
    if isinstance(first, tuple):
        first, *rest = first
    return (function(as_dense(first)), *rest) if rest else function(as_dense(first))
