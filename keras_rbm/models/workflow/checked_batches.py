"""Checks of batches as they come, after the first one."""

from typing import NamedTuple

import keras
import tensorflow as tf

from keras_rbm.models.workflow.faults import END, MARK, lies_in
from keras_rbm.models.workflow.inputs import check_weights, is_array, unpack
from keras_rbm.models.workflow.states import check_rows


class BatchForm(NamedTuple):
    """What batches must be.

    It holds no reference to the model, because pipelines keep what they refer to.

    Attributes:
        x, y: `(width, unit)` of a part, see `check_rows`; `None` for a part that is
            not checked.
    """

    x: tuple
    y: tuple | None = None

    def checked(self, data):
        """Returns a source of batches that raises an error at a bad batch."""
        if is_array(data):
            return data
        if isinstance(data, tf.data.Dataset):
            return data.map(self._checked_element)
        if isinstance(data, keras.utils.PyDataset):
            return _CheckedLoader(data, self)
        if hasattr(data, "__next__"):
            return _checked_generator(data, self)
        return data  # such as a distributed dataset, which cannot be checked

    def check(self, batch):
        """Raises an error unless a batch of arrays has this form."""
        x, y, weights = unpack(batch)
        for name, part, form in (("x", x, self.x), ("y", y, self.y)):
            if form is not None:
                check_rows(part, name, *form)
        if weights is not None:
            check_weights(weights)

    def _checked_element(self, *element):
        element = element[0] if len(element) == 1 else element
        x, y, weights = unpack(element)
        checks = []
        for name, part, form in (("x", x, self.x), ("y", y, self.y)):
            if form is not None:
                checks += _row_checks(part, name, form[1])
        if tf.is_tensor(weights):
            checks.append(
                _expect(
                    lies_in(tf.cast(weights, tf.float32), 0.0, None),
                    "Expected finite sample_weight ≥ 0. Received: sample_weight with "
                    "negative, infinite or NaN values.",
                )
            )
        with tf.control_dependencies(checks):
            return tf.nest.map_structure(tf.identity, element)


def _row_checks(part, name, unit):
    """Returns operations that fail unless a tensor can be states of a layer."""
    if not tf.is_tensor(part):
        return []
    part = tf.cast(part, tf.float32)
    if unit is None:
        sound, expected = lies_in(part), f"finite {name}"
    else:
        sound = tf.reduce_all(unit.contains(part))
        expected = f"{name}, {unit.description}"
    return [
        _expect(
            sound,
            f"Expected {expected}. Received: NaN, infinite or other values in a batch "
            "from",
            tf.reduce_min(part),
            "to",
            tf.reduce_max(part),
        )
    ]


def _expect(condition, *message):
    return tf.debugging.Assert(condition, [MARK, *message, END])


class _CheckedLoader(keras.utils.PyDataset):
    """A PyDataset whose batches are checked."""

    def __init__(self, loader, form):
        super().__init__(
            workers=loader.workers,
            use_multiprocessing=loader.use_multiprocessing,
            max_queue_size=loader.max_queue_size,
        )
        self._loader, self._form = loader, form

    def __getitem__(self, index):
        return _marked(self._loader[index], self._form)

    @property
    def num_batches(self):
        return self._loader.num_batches

    def on_epoch_begin(self):
        self._loader.on_epoch_begin()

    def on_epoch_end(self):
        self._loader.on_epoch_end()


def _checked_generator(batches, form):
    for batch in batches:
        yield _marked(batch, form)


def _marked(batch, form):
    """Returns a checked batch; errors have the marks that `explained` looks for."""
    try:
        form.check(batch)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{MARK} {error} {END}") from error
    return batch
