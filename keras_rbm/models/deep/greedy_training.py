"""Training RBMs one after the other, each on the features of the last."""

import itertools

import keras
import numpy as np
import tensorflow as tf

from keras_rbm import rules
from keras_rbm.checks import check_counts
from keras_rbm.datasets.pipeline import binarize, shuffled_batches
from keras_rbm.models.workflow.defaults import optimizer_for
from keras_rbm.models.workflow.inputs import as_arrays, is_array, unpack
from keras_rbm.models.workflow.resume import EpochKey, extended
from keras_rbm.models.workflow.training_data import training_data
from keras_rbm.units import Bernoulli

_ROWS_AT_ONCE = 1000


def compile_each(rbms, optimizer, rule, options):
    """Compiles RBMs with copies of an optimizer and a rule, or one of a list each."""
    optimizers = [
        None if each is None else _copy(optimizer_for(each))
        for each in one_each(optimizer, "optimizer", len(rbms))
    ]
    copies = [
        rules.deserialize(rules.serialize(rules.get(each)))
        for each in one_each(rule, "rule", len(rbms))
    ]
    for rbm, optimizer, rule in zip(rbms, optimizers, copies, strict=True):
        rbm._check_rule(rule, optimizer)
    for rbm, optimizer, rule in zip(rbms, optimizers, copies, strict=True):
        rbm.compile(optimizer, rule=rule, **options)


def _copy(optimizer):
    return keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))


def fit_each(
    rbms,
    x,
    *,
    epochs=1,
    batch_size=None,
    validation_data=None,
    callbacks=None,
    sample_weight=None,
    verbose="auto",
):
    """Trains RBMs from below, see `DBN.fit`; returns their histories."""
    counts = one_each(epochs, "epochs", len(rbms))
    for rbm, count in zip(rbms, counts, strict=True):
        check_counts(0, epochs=count)
        if count:
            rbm._assert_compile_called("fit")
    if batch_size is not None:
        check_counts(batch_size=batch_size)
    own = [
        extended(callbacks(index) if callable(callbacks) else callbacks)
        for index in range(len(rbms))
    ]
    for callback in itertools.chain(*own):
        if not isinstance(callback, keras.callbacks.Callback):
            raise TypeError(
                "Expected keras.callbacks.Callback objects, or a function of the RBM's "
                f"index that returns a list of them. Received: {callback!r}."
            )
    training = Features.of(x, sample_weight, batch_size)
    validation = None
    if validation_data is not None:
        given = validation_data
        data, _, weights = unpack(given if isinstance(given, tuple) else (given,))
        validation = Features.of(data, weights)
    training_data(rbms[0], x, None, sample_weight, batch_size, 0.0, validation_data)
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
            rbm.adapt(training.data)
        if verbose:
            print(f"RBM {index + 1} of {len(rbms)}: {rbm.name}")
        key = EpochKey()
        history = rbm.fit(
            **training.for_fit(key.read),
            validation_data=validation and validation.fixed(),
            epochs=count,
            callbacks=[*own[index], key],
            verbose=verbose,
        )
        histories.append(history)
    return histories


def evaluate_each(rbms, x, verbose):
    """Returns the RBMs' losses, see `DBN.evaluate`."""
    features, losses = Features.of(x), []
    rbms[0]._assert_built("evaluate")
    if is_array(features.data):
        rbms[0]._check_batch(features.data, None)
    for index, rbm in enumerate(rbms):
        if index:
            features = features.above(rbms[index - 1])
        losses.append(rbm.evaluate(features.fixed(), verbose=verbose))
    return losses


def one_each(value, name, count):
    """Returns a list of one value for each RBM."""
    if not isinstance(value, (list, tuple)):
        return [value] * count
    if len(value) != count:
        raise ValueError(
            f"Expected one {name}, or a list of {count}, one for each RBM. Received: "
            f"{len(value)} of them."
        )
    return list(value)


class Features:
    """What an RBM of a stack learns from: the data, or the features below it.

    Of binary features these are means; states are drawn from them for training, again
    in each epoch, and once for validation.
    """

    def __init__(self, data, weights, batch_size, are_means=False):
        self.data = data
        self.weights = weights
        self.batch_size = batch_size
        self.are_means = are_means

    @classmethod
    def of(cls, data, weights=None, batch_size=None):
        """Returns the features that data are; raises an error for other sources."""
        if is_array(data):
            data, _, weights = as_arrays(data, None, weights)
        elif not isinstance(data, tf.data.Dataset):
            raise TypeError(
                "Expected an array or a tf.data.Dataset. Received: "
                f"{type(data).__name__}."
            )
        elif weights is not None:
            raise ValueError(
                "Expected sample_weight with arrays only. Received: sample_weight "
                "with a dataset. Make elements (x, (), weight)."
            )
        return cls(data, weights, batch_size)

    def above(self, rbm):
        """Returns the features of an RBM for these."""
        data = self.data
        if is_array(data):
            data = rbm.predict(data, batch_size=_ROWS_AT_ONCE, verbose=0)
        else:
            data = data.map(lambda *element: _map_first(rbm, element))
        are_means = isinstance(rbm.hidden, Bernoulli)
        return Features(data, self.weights, self.batch_size, are_means)

    def for_fit(self, key):
        """Returns arguments of `RBM.fit`; `key` is a number of the epoch."""
        if not is_array(self.data):
            batches = self.data
        elif not self.are_means:
            return {
                "x": self.data,
                "sample_weight": self.weights,
                "batch_size": self.batch_size,
            }
        else:
            parts = self.data
            if self.weights is not None:
                parts = (parts, (), self.weights)
            batches = shuffled_batches(
                parts, self.batch_size or 32, seed=0, iterations=key
            )
        if self.are_means:
            batches = binarize(batches, "sample", seed=0, iterations=key)
        return {"x": batches}

    def fixed(self):
        """Returns batches that are the same in each epoch, as validation data."""
        batches = self.data
        if is_array(batches):
            data, weights = self.data, self.weights
            parts = data if weights is None else (data, weights)
            batches = tf.data.Dataset.from_tensor_slices(parts).batch(_ROWS_AT_ONCE)
            if weights is not None:
                batches = batches.map(lambda x, weight: (x, (), weight))
        return binarize(batches, "sample", redraw=False) if self.are_means else batches


def _map_first(rbm, element):
    first, *rest = element
    if isinstance(first, tuple):
        first, *rest = first
    features = rbm(tf.ensure_shape(first, (None, rbm._visible_width)))
    return (features, *rest) if rest else features
