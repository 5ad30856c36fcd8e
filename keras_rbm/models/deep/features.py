"""The data that the RBMs of a stack learn from."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from keras_rbm.datasets.keyed import SAMPLING, map_with_keys
from keras_rbm.datasets.pipeline import shuffled_batches
from keras_rbm.datasets.sparse_rows import as_dense
from keras_rbm.models.data.batches import in_order
from keras_rbm.models.data.form import as_arrays
from keras_rbm.models.data.rows import (
    as_dataset,
    is_array,
    map_rows,
    moments,
    weighted_chunks,
)

_ROWS_AT_ONCE = 1000


class Features:
    """The data that a stack learns from, or a hidden layer of it given the data.

    For a hidden layer these are natural parameters, given the means of the layer below.
    States are drawn from them by the layer's own units: again in each epoch of
    training, but only once for validation. `steps` are the batches of an epoch of data
    without end.
    """

    def __init__(
        self,
        data: Any,
        weights: Any,
        batch_size: int | None,
        steps: int | None,
        units: Any = None,
    ) -> None:
        self.data = data
        self.weights = weights
        self.batch_size = batch_size
        self.steps = steps
        self.units = units

    @classmethod
    def of(
        cls,
        data: Any,
        weights: Any = None,
        batch_size: int | None = None,
        steps: int | None = None,
    ) -> "Features":
        """Returns arrays or batches as features; raises an error for others."""
        if is_array(data):
            data, _, weights = as_arrays(data, None, weights)
        elif weights is not None:
            raise ValueError(
                "Expected sample_weight only with arrays. Received: sample_weight "
                f"with {type(data).__name__}. Make its batches (x, (), weight)."
            )
        elif hasattr(data, "__next__") and steps is None:
            raise ValueError(
                "Expected data that each RBM can read from their beginning, or a "
                "generator without end and the number of its batches in an epoch. "
                f"Received: {type(data).__name__}."
            )
        elif not isinstance(data, tf.data.Dataset):
            data = as_dataset(data, lambda x, y, weights: (as_dense(x), None, weights))
        return cls(data, weights, batch_size, steps)

    def above(self, rbm: Any) -> "Features":
        """Returns an RBM's features of these features."""

        def natural(rows):
            rows = tf.cast(rows, tf.float32)
            if self.units is None:
                rows = tf.ensure_shape(rows, (None, rbm._visible_width))
                return rbm._natural_of_mean(rbm.visible.encode(rows))
            return rbm._natural_of_mean(self.units.mean(rows))

        data = self.data
        if is_array(data):
            data = map_rows(natural, data)
        else:
            data = data.map(lambda *element: _with_first(natural, element))
        own = rbm._hidden_parameters()
        return Features(data, self.weights, self.batch_size, self.steps, own)

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns mean and variance (rows,) of the layer's states, as encoded."""
        data, drawn = self.data, self.fixed()
        if self.steps is not None and not is_array(data):
            data, drawn = data.take(self.steps), drawn.take(self.steps)
        given, drawn = weighted_chunks(data, self.weights), weighted_chunks(drawn)
        mean, _ = moments((self.units.mean(rows), own) for rows, own in given)
        return mean, moments((self.units.encode(rows), own) for rows, own in drawn)[1]

    def for_fit(self, key: Callable[[], int]) -> dict[str, Any]:
        """Returns arguments for `RBM.fit`; `key` returns a number for the epoch."""
        batches = self.data
        if self.units is None:
            if not is_array(batches):
                return {"x": batches}
            return {
                "x": batches,
                "sample_weight": self.weights,
                "batch_size": self.batch_size,
            }
        if is_array(batches):
            parts = batches if self.weights is None else (batches, (), self.weights)
            size = self.batch_size or 32
            batches = shuffled_batches(parts, size, seed=0, iterations=key)
        return {"x": self._drawn(batches, redraw=True, iterations=key)}

    def fixed(self) -> Any:
        """Returns batches that are the same in each epoch, for validation."""
        batches = self.data
        if is_array(batches):
            batches = in_order(batches, None, self.weights, _ROWS_AT_ONCE)
        if self.units is None:
            return batches
        return self._drawn(batches, redraw=False, iterations=None)

    def _drawn(self, batches, **options):
        """Returns batches of states, drawn given batches of natural parameters."""

        def states(natural, key):
            shape = (tf.shape(natural)[0], self.units.num_units)
            noise = tf.random.stateless_uniform(shape, key, alg="philox")
            natural = tf.cast(natural, noise.dtype)
            return tf.ensure_shape(self.units.sample(natural, noise), (None, shape[1]))

        def draw(element, key):
            parts = element if isinstance(element, tuple) else (element,)
            return _with_first(lambda natural: states(natural, key), parts)

        return map_with_keys(batches, draw, stream=SAMPLING, seed=0, **options)


def _with_first(function, element):
    """Returns an element with `function` applied to its first component."""
    first, *rest = element
    if isinstance(first, tuple):
        first, *rest = first
    return (function(first), *rest) if rest else function(first)
