"""The parameters of layers side by side."""

import collections
import functools
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_rbm.units.bernoulli import BernoulliParameters
from keras_rbm.units.layer_parameters import LayerParameters


class _Fields(NamedTuple):
    parts: tuple


class JoinedParameters(LayerParameters, _Fields):
    """A layer of several parts side by side; `parts` is a tuple of their parameters."""

    __slots__ = ()

    @property
    def bias(self):
        return _joined([part.bias for part in self.parts])

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
        return np.concatenate(list(map(_with_last, values, pad)))

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

    def of_parts(self, function, *arguments):
        """Returns a layer of the results of `function(part, …)` for each part."""
        return JoinedParameters(tuple(map(function, self.parts, *arguments)))

    def log_partition(self, natural):
        return self._each("log_partition", self._rows(natural))

    def mean(self, natural):
        return self._each("mean", self._rows(natural))

    def mode(self, natural):
        return self._each("mode", self._rows(natural))

    def sample(self, natural, noise):
        return self._each("sample", self._rows(natural), self._columns(noise))

    def statistics(self, states):
        return self._statistics("statistics", self._columns(states))

    def expected_statistics(self, natural):
        return self._statistics("expected_statistics", self._rows(natural))

    def state_like(self, means):
        return self._each("state_like", self._rows(means))

    def encode(self, states):
        return self._each("encode", self._columns(states))

    def first(self, encoded):
        return self._each("first", self._rows(encoded))

    def base_measure(self, states):
        return self._each("base_measure", self._columns(states))

    def natural_for_mean(self, mean):
        return self._each("natural_for_mean", self._rows(mean))

    def natural_for_expected(self, mean):
        return self._each("natural_for_expected", self._rows(mean))

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
        each = [
            getattr(part, method)(own)
            for part, own in zip(self.parts, arguments, strict=True)
        ]
        fields = {"bias": tf.concat([own[0] for own in each], -1)}
        for number, own in enumerate(each):
            names = map(part_name, own._fields[1:], [number] * len(own))
            fields |= zip(names, own[1:], strict=True)
        return _statistics_of(tuple(fields))(**fields)


def beside(layers):
    """Returns layers side by side as one, of binary units if all are binary.

    Args:
        layers: list of `LayerParameters`.
    """
    if all(isinstance(layer, BernoulliParameters) for layer in layers):
        return BernoulliParameters(_joined([layer.bias for layer in layers]))
    return layers[0] if len(layers) == 1 else JoinedParameters(tuple(layers))


def name_beside(name, number, count):
    """Returns the name in `beside` of a layer's statistic other than the bias.

    Args:
        name: str, the layer's own name of the statistic.
        number: int, the layer's index.
        count: int, the number of layers.
    """
    return name if count == 1 else part_name(name, number)


def part_name(name, number):
    """Returns the name in the whole layer of a part's variable."""
    return f"{name}_{number}"


def _with_last(values, pad):
    return np.pad(values, pad, mode="edge")


def _joined(biases):
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
