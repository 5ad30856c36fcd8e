"""Layers with units of several types, side by side."""

import collections
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from keras_rbm._checks import is_int
from keras_rbm.units.bernoulli import BernoulliParameters
from keras_rbm.units.unit import LayerParameters, Unit


class _Fields(NamedTuple):
    parts: tuple[LayerParameters, ...]


class JoinedParameters(LayerParameters, _Fields):
    """A layer of several parts side by side; `parts` is a tuple of their parameters."""

    __slots__ = ()

    @property
    def bias(self):
        return _joined_biases([part.bias for part in self.parts])

    def named(self):
        fields = {
            part_name(name, number): value
            for number, part in enumerate(self.parts)
            for name, value in part.named().items()
        }
        return fields | {"bias": self.bias}

    @property
    def finite(self):
        return all(part.finite for part in self.parts)

    @property
    def ends(self):
        return tf.concat([part.ends for part in self.parts], 1)

    @property
    def num_units(self):
        return sum(part.num_units for part in self.parts)

    @property
    def values(self):
        values = [part.values for part in self.parts]
        most = max(own.shape[1] for own in values)
        pad = [((0, 0), (0, most - own.shape[1])) for own in values]
        return np.concatenate(
            [np.pad(*own, mode="edge") for own in zip(values, pad, strict=True)]
        )

    @property
    def unit_of_row(self):
        firsts = np.cumsum([0] + [part.num_units for part in self.parts])
        pairs = zip(self.parts, firsts[:-1], strict=True)
        return np.concatenate([part.unit_of_row + first for part, first in pairs])

    @property
    def curvature(self):
        return tf.concat([part.curvature for part in self.parts], 0)

    def with_bias(self, bias):
        biases = self._rows(bias)
        return self.of_parts(lambda part, own: part.with_bias(own), biases)

    @property
    def whole(self):
        return self.of_parts(lambda part: part.whole)

    def of_model(self, index):
        return self.of_parts(lambda part: part.of_model(index))

    def repeat(self, count):
        return self.of_parts(lambda part: part.repeat(count))

    def of_parts(self, function, *arguments):
        """Returns a layer of the results of `function(part, …)` for each part."""
        return JoinedParameters(tuple(map(function, self.parts, *arguments)))

    def sample(self, natural, noise):
        return self._each("sample", self._rows(natural), self._columns(noise))

    def statistics(self, states):
        return self._statistics("statistics", self._columns(states))

    def expected_statistics(self, natural):
        return self._statistics("expected_statistics", self._rows(natural))

    def _of_rows(self, method, rows):
        return self._each(method, self._rows(rows))

    def _of_states(self, method, states):
        return self._each(method, self._columns(states))

    log_partition = functools.partialmethod(_of_rows, "log_partition")
    mean = functools.partialmethod(_of_rows, "mean")
    mode = functools.partialmethod(_of_rows, "mode")
    state_like = functools.partialmethod(_of_rows, "state_like")
    first = functools.partialmethod(_of_rows, "first")
    natural_for_mean = functools.partialmethod(_of_rows, "natural_for_mean")
    natural_for_expected = functools.partialmethod(_of_rows, "natural_for_expected")
    encode = functools.partialmethod(_of_states, "encode")
    base_measure = functools.partialmethod(_of_states, "base_measure")

    def _rows(self, values):
        return tf.split(values, [part.num_rows for part in self.parts], -1)

    def _columns(self, values):
        return tf.split(values, [part.num_units for part in self.parts], -1)

    def _each(self, method, *arguments):
        """Returns the results of a method for each part, side by side."""
        results = [
            getattr(part, method)(*own)
            for part, *own in zip(self.parts, *arguments, strict=True)
        ]
        return tf.concat(results, -1)

    def _statistics(self, method, arguments):
        statistics = [
            getattr(part, method)(argument)
            for part, argument in zip(self.parts, arguments, strict=True)
        ]
        fields = {"bias": tf.concat([part[0] for part in statistics], -1)}
        for number, part in enumerate(statistics):
            names = map(part_name, part._fields[1:], [number] * len(part))
            fields |= zip(names, part[1:], strict=True)
        return _statistics_of(tuple(fields))(**fields)


@keras.saving.register_keras_serializable("keras_rbm")
class Joined(Unit):
    """A layer with units of several types, for tables.

    Args:
        parts: list of `(unit, count)`: a `Unit` or its name, and its number of columns,
            in the order of the columns.

    Raises:
        TypeError, ValueError: if the list is empty, or a part is not such a pair.

    Example:

    >>> category = keras_rbm.units.Categorical(3)
    >>> kinds = [("bernoulli", 2), (category, 1), ("gaussian", 1)]
    >>> rbm = keras_rbm.RBM(4, visible=keras_rbm.units.Joined(kinds), seed=0)
    >>> rows = np.array([[0, 1, 2, 0.3], [1, 1, 0, -2.5]])
    >>> rbm.compile(rule="cd")
    >>> history = rbm.fit(rows, verbose=0)
    >>> rbm.kernel.shape
    TensorShape([6, 4])
    """

    def __init__(self, parts: Sequence[tuple[str | Unit, int]]) -> None:
        from keras_rbm.units import get  # the table of names has this one, too

        parts = list(parts) if isinstance(parts, (list, tuple)) else []
        if not parts or not all(map(_is_pair, parts)):
            raise ValueError(
                "Expected a list of (unit, count), such as [('bernoulli', 3), "
                f"('gaussian', 2)]. Received: parts={parts!r:.200}."
            )
        self.parts = [(get(unit), int(count)) for unit, count in parts]
        if any(isinstance(unit, Joined) for unit, _ in self.parts):
            raise ValueError(
                f"Expected parts that are not joined. Received: {parts!r:.200}."
            )

    @property
    def hidden_only(self):
        return any(unit.hidden_only for unit, _ in self.parts)

    @property
    def encodes(self):
        return any(unit.encodes for unit, _ in self.parts)

    @property
    def takes_means(self):
        return any(unit.takes_means for unit, _ in self.parts)

    @property
    def description(self):
        return "in each column the states of its unit"

    def unit_of_column(self, column):
        """Returns the type of one unit of the layer."""
        ends = np.cumsum([count for _, count in self.parts])
        return self.parts[int(np.searchsorted(ends, column, side="right"))][0]

    def variables(self):
        starts = {}
        for number, (unit, _) in enumerate(self.parts):
            starts |= {
                name if name == "bias" else part_name(name, number): start
                for name, start in unit.variables().items()
            }
        return starts

    def constraint(self, name):
        if name == "bias":
            return None
        field, _, number = name.rpartition("_")
        return self.parts[int(number)][0].constraint(field)

    def parameters(self, bias, **values):
        sizes = [unit.num_rows(count) for unit, count in self.parts]
        layers = []
        biases = tf.split(bias, sizes, -1)
        for number, (unit, _) in enumerate(self.parts):
            names = [name for name in unit.variables() if name != "bias"]
            fields = {name: values[part_name(name, number)] for name in names}
            layers.append(unit.parameters(bias=biases[number], **fields))
        return JoinedParameters(tuple(layers))

    def check_count(self, num_units):
        """Raises a ValueError unless the parts have `num_units` columns in total."""
        total = sum(count for _, count in self.parts)
        if num_units != total:
            raise ValueError(
                f"Expected a layer of {total} units, as in {self!r}. Received: "
                f"{num_units} units. Give each column of the data its unit."
            )

    def num_rows(self, num_units):
        self.check_count(num_units)
        return sum(unit.num_rows(count) for unit, count in self.parts)

    def shape_of(self, name, num_units):
        if name == "bias":
            return (self.num_rows(num_units),)
        field, _, number = name.rpartition("_")
        unit, count = self.parts[int(number)]
        return unit.shape_of(field, count)

    def pooled(self, mean, variance, count):
        parts = (np.split(array, self._ends) for array in (mean, variance, count))
        units = [unit for unit, _ in self.parts]
        moments = [
            unit.pooled(*arrays) for unit, *arrays in zip(units, *parts, strict=True)
        ]
        means, variances = zip(*moments, strict=True)
        return np.concatenate(means), np.concatenate(variances)

    def fitted(self, mean, variance):
        ends = self._ends
        fitted, biases = {}, []
        means, variances = np.split(mean, ends), np.split(variance, ends)
        for number, (unit, _) in enumerate(self.parts):
            start = unit.fitted(means[number], variances[number])
            biases.append(start.pop("bias"))
            fitted |= {part_name(name, number): value for name, value in start.items()}
        return fitted | {"bias": np.concatenate(biases)}

    def get_config(self) -> dict[str, Any]:
        serialize = keras.saving.serialize_keras_object
        return {"parts": [(serialize(unit), count) for unit, count in self.parts]}

    def __repr__(self):
        return f"Joined({self.parts!r})"

    @property
    def _ends(self):
        """Returns where the rows of each part but the last end."""
        return np.cumsum([unit.num_rows(count) for unit, count in self.parts])[:-1]

    def _each(self, method, states, *others):
        sizes = [count for _, count in self.parts]
        in_graph = tf.is_tensor(states)
        split = tf.split if in_graph else _split
        parts = [split(each, sizes, -1) for each in (states, *others)]
        results = [
            getattr(unit, method)(*own)
            for (unit, _), *own in zip(self.parts, *parts, strict=True)
        ]
        return tf.concat(results, -1) if in_graph else np.concatenate(results, -1)

    encode = functools.partialmethod(_each, "encode")
    by_row = functools.partialmethod(_each, "by_row")
    contains = functools.partialmethod(_each, "contains")
    is_state = functools.partialmethod(_each, "is_state")
    drawn = functools.partialmethod(_each, "drawn")


def joined(layers):
    """Returns layers side by side as one, of binary units if all are binary.

    Args:
        layers: list of `LayerParameters`.
    """
    if all(isinstance(layer, BernoulliParameters) for layer in layers):
        return BernoulliParameters(_joined_biases([layer.bias for layer in layers]))
    return layers[0] if len(layers) == 1 else JoinedParameters(tuple(layers))


def part_name(name, number):
    """Returns the name in the whole layer of a part's variable."""
    return f"{name}_{number}"


def _joined_biases(biases):
    """Returns biases (rows,) or (B, rows) side by side."""
    batches = [tf.shape(bias)[0] for bias in biases if bias.shape.rank == 2]
    if batches:
        biases = [
            tf.broadcast_to(bias, (batches[0], bias.shape[-1])) for bias in biases
        ]
    return tf.concat(biases, -1)


@functools.cache
def _statistics_of(names):
    return collections.namedtuple("JoinedStatistics", names)


def _is_pair(part):
    pair = isinstance(part, (tuple, list)) and len(part) == 2
    return pair and is_int(part[1]) and part[1] >= 1


def _split(states, sizes, axis):
    return np.split(np.asarray(states), np.cumsum(sizes)[:-1], axis)
