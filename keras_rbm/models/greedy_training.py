"""Training RBMs one after the other, each on the features of the last."""

import keras
import tensorflow as tf

from keras_rbm import rules
from keras_rbm.checks import check_counts
from keras_rbm.datasets.pipeline import binarize, shuffled_batches
from keras_rbm.models.boltzmann_machine import extended
from keras_rbm.models.inputs import is_array, unpack
from keras_rbm.models.resume import EpochKey
from keras_rbm.units import Bernoulli

_ROWS_AT_ONCE = 1000


def compile_each(rbms, optimizer, rule, options):
    """Compiles RBMs with copies of an optimizer and a rule, or one of a list each."""
    optimizers = one_each(optimizer, "optimizer", len(rbms))
    each_rule = one_each(rule, "rule", len(rbms))
    for rbm, optimizer, rule in zip(rbms, optimizers, each_rule, strict=True):
        optimizer = keras.optimizers.serialize(keras.optimizers.get(optimizer))
        rbm.compile(
            keras.optimizers.deserialize(optimizer),
            rule=rules.deserialize(rules.serialize(rules.get(rule))),
            **options,
        )


def fit_each(rbms, x, *, epochs, validation_data, callbacks, verbose, **arrays):
    """Trains RBMs from below, see `DBN.fit`; returns their histories."""
    counts = one_each(epochs, "epochs", len(rbms))
    for count in counts:
        check_counts(0, epochs=count)
    for rbm in rbms:
        rbm._assert_compile_called("fit")
    training, validation = Features(rbms[0], x, **arrays), None
    if validation_data is not None:
        validation = Features(rbms[0], validation_data)
    histories = []
    for index, (rbm, count) in enumerate(zip(rbms, counts, strict=True)):
        history = None
        if count:
            if index and not int(rbm.optimizer.iterations.numpy()):
                rbm.adapt(training.data)
            if verbose:
                print(f"RBM {index + 1} of {len(rbms)}: {rbm.name}")
            key = EpochKey()
            own = callbacks(index) if callable(callbacks) else callbacks
            history = rbm.fit(
                **training.for_fit(key),
                validation_data=validation and validation.fixed(),
                epochs=count,
                callbacks=extended(own, key),
                verbose=verbose,
            )
        histories.append(history)
        training = training.above(rbm)
        validation = validation and validation.above(rbm)
    return histories


def evaluate_each(rbms, x, verbose):
    """Returns the RBMs' losses, see `DBN.evaluate`."""
    features, losses = Features(rbms[0], x), []
    for rbm in rbms:
        losses.append(rbm.evaluate(features.fixed(), verbose=verbose))
        features = features.above(rbm)
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

    Of binary features these are means; states are drawn from them for training, anew
    in each epoch, and once for validation.
    """

    def __init__(self, rbm, data, sample_weight=None, batch_size=None):
        if not is_array(data) and not isinstance(data, tf.data.Dataset):
            raise TypeError(
                "Expected an array or a tf.data.Dataset. Received: "
                f"{type(data).__name__}."
            )
        if not is_array(data):
            x, y, _ = unpack(data.element_spec)
            rbm.roles(x, y)
            if sample_weight is not None:
                raise ValueError(
                    "Expected sample_weight with arrays alone. Received: "
                    "sample_weight with a dataset. Make elements (x, (), weight)."
                )
        self.data = data
        self.weights = sample_weight
        self.batch_size = batch_size
        self.are_means = False

    def above(self, rbm):
        """Returns the features of an RBM for these."""
        if is_array(self.data):
            data = rbm.predict(self.data, batch_size=_ROWS_AT_ONCE, verbose=0)
        else:
            data = self.data.map(lambda *element: _map_first(rbm, element))
        above = Features(rbm, data, self.weights, self.batch_size)
        above.are_means = isinstance(rbm.hidden, Bernoulli)
        return above

    def for_fit(self, key):
        """Returns arguments of `RBM.fit`; `key` is a number of the epoch."""
        if not self.are_means:
            arrays = {"sample_weight": self.weights, "batch_size": self.batch_size}
            return {"x": self.data} | (arrays if is_array(self.data) else {})
        batches = self.data
        if is_array(batches):
            parts = batches
            if self.weights is not None:
                parts = (batches, (), self.weights)
            batches = shuffled_batches(
                parts, self.batch_size or 32, seed=0, iterations=key
            )
        return {"x": binarize(batches, "sample", seed=0, iterations=key)}

    def fixed(self):
        """Returns the same states in each epoch, as validation data."""
        if not self.are_means:
            return self.data
        batches = self.data
        if is_array(batches):
            batches = tf.data.Dataset.from_tensor_slices(batches)
            batches = batches.batch(_ROWS_AT_ONCE)
        return binarize(batches, "sample", redraw=False)


def _map_first(function, element):
    first, *rest = element
    if isinstance(first, tuple):
        first, *rest = first
    return (function(first), *rest) if rest else function(first)
