"""The data of `fit`: checked, split and shuffled before anything is changed."""

import numbers
from typing import Any, NamedTuple

import tensorflow as tf

from keras_rbm import random
from keras_rbm.datasets import in_memory
from keras_rbm.datasets.in_memory import SparseRows
from keras_rbm.datasets.pipeline import shuffled_batches
from keras_rbm.models.data.form import check_alone
from keras_rbm.models.data.rows import as_batch, first_batches, is_array, unpack

#: Number of rows that are read from a source to start a new model at.
_ROWS = 1000


class TrainingData(NamedTuple):
    """Data for `fit`, with the first batches, for which a model is built and started.

    Attributes:
        start: list of `(x, y, sample_weight)`, the first batches; for arrays, all data.
        x, y, sample_weight: arrays; or only `x`, a source of batches.
        validation: validation data as Keras takes them, or `None`.
    """

    start: list[Any]
    x: Any
    y: Any
    sample_weight: Any
    validation: Any

    @classmethod
    def of(
        cls,
        form,
        x,
        y,
        sample_weight,
        batch_size,
        validation_split,
        validation_data,
        is_new=False,
    ):
        """Returns the checked data of the arguments of `fit`.

        Args:
            form: `DataForm` of the model.
            x, y, …, validation_data: arguments of `fit`.
            is_new: bool, whether the model will start at the data.

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
            parts = form.arrays(x, y, sample_weight)
            if validation_split and validation_data is None:
                parts, validation_data = _split(parts, validation_split)
            start = [parts]
        else:
            check_alone(x, y)
            if validation_split:
                raise ValueError(
                    "Expected an array from which to split validation data. Received: "
                    f"validation_split={validation_split} with {type(x).__name__}. "
                    "Pass validation_data."
                )
            batches, x = first_batches(x, _ROWS if is_new else 1)
            start = [form.dense(*unpack(batch)) for batch in batches]
            x = form.densified(x)
            parts = x, None, sample_weight
        for batch in start:
            form.check(*batch)
        if validation_data is not None:
            validation_data = _validation(form, validation_data, start[0], batch_size)
        return cls(start, *parts, validation_data)  # type: ignore[call-arg]

    @property
    def arrays(self):
        """x, y and weights, of array data."""
        return self.x, self.y, self.sample_weight

    def shuffled(self, batch_size, epoch_key):
        """Returns arrays as batches, in an order that depends on the epoch."""
        if not is_array(self.x):
            return self
        arrays, size = as_batch(*self.arrays), batch_size or 32
        batches = shuffled_batches(arrays, size, seed=0, iterations=epoch_key)
        return self._replace(x=batches, y=None, sample_weight=None)

    def for_keras(self, batch_size):
        """Returns `(x, y, sample_weight)` as `keras.Model.fit` takes them."""
        return as_keras_takes(self.x, self.y, self.sample_weight, batch_size)


def as_keras_takes(x, y, sample_weight, batch_size):
    """Returns arrays as Keras takes them.

    That is as a dataset, if there are weights but no y, because Keras drops the weights
    then, or if some are sparse.

    Returns:
        `(x, y, sample_weight)`.
    """
    sparse = any(isinstance(part, SparseRows) for part in (x, y))
    if sparse or (y is None and sample_weight is not None):
        return in_order(x, y, sample_weight, batch_size or 32), None, None
    return x, y, sample_weight


def in_order(x, y, sample_weight, batch_size):
    """Returns arrays as a dataset of dense batches."""
    parts = as_batch(x, y, sample_weight)
    parts = parts if isinstance(parts, tuple) else (parts,)
    with tf.device("CPU:0"):  # where the pipeline is
        examples = in_memory.hold_in_memory(parts)

    def batch(rows):
        return in_memory.map_present(lambda x: in_memory.gather(x, rows), examples)

    rows = tf.data.Dataset.range(len(examples[0])).batch(batch_size)
    return rows.map(batch).prefetch(2)


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


def _validation(form, data, training, batch_size):
    """Returns validation data as Keras takes them; `training` is a first batch."""
    data = tuple(data) if isinstance(data, list) else data
    data = data if isinstance(data, tuple) or not is_array(data) else (data,)
    arrays = isinstance(data, tuple) and is_array(data[0])
    if arrays:
        first = form.arrays(*unpack(data))
    else:
        source = data[0] if isinstance(data, tuple) else data
        batches, data = first_batches(source)
        first = form.dense(*unpack(batches[0]))
    form.check(*first)
    pairs = (form.split(*batch[:2]) for batch in (training, first))
    for ours, theirs in zip(*pairs, strict=True):
        if ours is not None and ours.shape[-1] != theirs.shape[-1]:
            raise ValueError(
                "Expected validation_data as wide as the training data. Received: "
                f"shapes {tuple(theirs.shape)} and {tuple(ours.shape)}."
            )
    if not arrays:
        return form.densified(data)
    x, y, weights = as_keras_takes(*first, batch_size)  # type: ignore[call-arg]
    return (x, y, weights) if is_array(x) else x


def drawn(unit, states, seed):
    """Returns states (B, V) for data that may be means, such as gray levels."""

    def draw():
        return unit.drawn(states, random.uniform(tf.shape(states), seed))

    return tf.cond(tf.reduce_all(unit.is_state(states)), lambda: states, draw)
