"""Checks and splits the data of `fit`, before anything is changed."""

import numbers
from typing import NamedTuple

from keras_rbm.datasets.pipeline import shuffled_batches
from keras_rbm.models.workflow.first_fit import is_new
from keras_rbm.models.workflow.inputs import (
    as_arrays,
    check_source,
    check_weights,
    first_batches,
    is_array,
    unpack,
    with_weights,
)

#: Number of rows that are read from a source to start a new model at.
_ROWS = 1000


class TrainingData(NamedTuple):
    """Data for `fit`, with the first batches, for which a model is built and started.

    Attributes:
        start: list of `(x, y, sample_weight)`, the first batches; for arrays, all data.
        x, y, sample_weight: arrays; or only `x`, a source of batches.
        validation: validation data as Keras takes them, or `None`.
    """

    start: list
    x: object
    y: object
    sample_weight: object
    validation: object

    def shuffled(self, batch_size, epoch_key):
        """Returns arrays as batches, in an order that depends on the epoch."""
        if not is_array(self.x):
            return self
        parts = self.x if self.y is None else (self.x, self.y)
        if self.sample_weight is not None:
            parts = (self.x, () if self.y is None else self.y, self.sample_weight)
        batches = shuffled_batches(
            parts, batch_size or 32, seed=0, iterations=epoch_key
        )
        return self._replace(x=batches, y=None, sample_weight=None)

    def with_checked_validation(self, form):
        """Returns the data with a check of each validation batch.

        The training step checks its own batch.
        """
        if self.validation is None:
            return self
        return self._replace(validation=form.checked(self.validation))

    def for_keras(self, batch_size):
        """Returns `(x, y, sample_weight)` as `keras.Model.fit` takes them."""
        return with_weights(self.x, self.y, self.sample_weight, batch_size)


def training_data(
    model, x, y, sample_weight, batch_size, validation_split, validation_data
):
    """Returns the `TrainingData` of the arguments of `fit`.

    Raises:
        TypeError, ValueError: if the model cannot learn from them.
    """
    split_is_number = isinstance(validation_split, numbers.Real)
    if not split_is_number or not 0.0 <= validation_split < 1.0:
        raise ValueError(
            "Expected validation_split in [0, 1). Received: "
            f"validation_split={validation_split}."
        )
    if is_array(x):
        parts = as_arrays(x, y, sample_weight)
        if validation_split and validation_data is None:
            parts, validation_data = _split(parts, validation_split)
        start = [parts]
    else:
        check_alone(x, y)
        _check_no_split(x, validation_split)
        batches, x = first_batches(x, _ROWS if is_new(model) else 1)
        start, parts = [*map(unpack, batches)], (x, None, sample_weight)
    for batch in start:
        _check_batch(model, *batch)
    if validation_data is not None:
        validation_data = _validation(model, validation_data, start[0], batch_size)
    return TrainingData(start, *parts, validation_data)


def _split(parts, share):
    """Returns the parts to train with, and those to validate with."""
    count = len(parts[0])
    cut = int(count * (1.0 - share))
    if not 0 < cut < count:
        raise ValueError(
            "Expected a validation_split that leaves an example on either side. "
            f"Received: validation_split={share} of {count} examples."
        )
    return (
        [part if part is None else part[:cut] for part in parts],
        tuple(part if part is None else part[cut:] for part in parts),
    )


def check_alone(x, y):
    """Raises an error unless x is a source of batches, given without y."""
    check_source(x)
    if y is not None:
        raise TypeError(
            f"Expected x as an array with y. Received: x of type {type(x).__name__}. "
            "Convert it (a sparse matrix: x.toarray()), or pass a dataset of pairs."
        )


def _check_no_split(x, validation_split):
    """Raises a ValueError if validation data should be split off from a non-array."""
    if validation_split:
        raise ValueError(
            "Expected an array from which to split validation data. Received: "
            f"validation_split={validation_split} with {type(x).__name__}. "
            "Pass validation_data."
        )


def _check_batch(model, x, y, weights):
    """Raises an error unless the model can learn from batches like this one."""
    model._check_batch(x, y)
    if is_array(weights):
        check_weights(weights)


def _validation(model, data, training, batch_size):
    """Returns validation data as Keras takes them; `training` is a first batch."""
    data = tuple(data) if isinstance(data, list) else data
    data = data if isinstance(data, tuple) or not is_array(data) else (data,)
    arrays = isinstance(data, tuple) and is_array(data[0])
    if arrays:
        first = as_arrays(*unpack(data))
    else:
        source = data[0] if isinstance(data, tuple) else data
        batches, data = first_batches(source)
        first = unpack(batches[0])
    _check_batch(model, *first)
    for ours, theirs in zip(training[:2], first[:2], strict=True):
        if ours is not None and ours.shape[-1] != theirs.shape[-1]:
            raise ValueError(
                "Expected validation_data as wide as the training data. Received: "
                f"shapes {tuple(theirs.shape)} and {tuple(ours.shape)}."
            )
    if not arrays:
        return data
    x, y, weights = with_weights(*first, batch_size)
    return (x, y, weights) if is_array(x) else x
