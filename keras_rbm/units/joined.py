"""A layer with units of several types."""

import keras
import numpy as np
import tensorflow as tf

from keras_rbm.checks import is_int
from keras_rbm.units.joined_parameters import JoinedParameters, part_name
from keras_rbm.units.unit import Unit


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

    def __init__(self, parts):
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
    def description(self):
        return "in each column the states of its unit"

    def unit_of_column(self, column):
        """Returns the type of one unit of the layer."""
        ends = np.cumsum([count for _, count in self.parts])
        return self.parts[int(np.searchsorted(ends, column, side="right"))][0]

    def variables(self):
        made = {}
        for number, (unit, _) in enumerate(self.parts):
            made |= {
                name if name == "bias" else part_name(name, number): start
                for name, start in unit.variables().items()
            }
        return made

    def constraint(self, name):
        if name == "bias":
            return None
        own, _, number = name.rpartition("_")
        return self.parts[int(number)][0].constraint(own)

    def parameters(self, bias, **values):
        sizes = [unit.num_rows(count) for unit, count in self.parts]
        made = []
        biases = tf.split(bias, sizes, -1)
        for number, ((unit, _), own) in enumerate(zip(self.parts, biases, strict=True)):
            names = [name for name in unit.variables() if name != "bias"]
            others = {name: values[part_name(name, number)] for name in names}
            made.append(unit.parameters(bias=own, **others))
        return JoinedParameters(tuple(made))

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
        own, _, number = name.rpartition("_")
        unit, count = self.parts[int(number)]
        return unit.shape_of(own, count)

    def encode(self, states):
        return self._each("encode", states)

    def contains(self, states):
        return self._each("contains", states)

    def is_state(self, states):
        return self._each("is_state", states)

    def fitted(self, mean, variance):
        sizes = [unit.num_rows(count) for unit, count in self.parts]
        ends = np.cumsum(sizes)[:-1]
        fitted, biases = {}, []
        means, variances = np.split(mean, ends), np.split(variance, ends)
        for number, (unit, _) in enumerate(self.parts):
            own = unit.fitted(means[number], variances[number])
            biases.append(own.pop("bias"))
            fitted |= {part_name(name, number): value for name, value in own.items()}
        return fitted | {"bias": np.concatenate(biases)}

    def get_config(self):
        serialize = keras.saving.serialize_keras_object
        return {"parts": [(serialize(unit), count) for unit, count in self.parts]}

    def __repr__(self):
        return f"Joined({self.parts!r})"

    def _each(self, method, states):
        sizes = [count for _, count in self.parts]
        in_graph = tf.is_tensor(states)
        split = tf.split(states, sizes, -1) if in_graph else _split(states, sizes)
        pairs = zip(self.parts, split, strict=True)
        results = [getattr(unit, method)(own) for (unit, _), own in pairs]
        return tf.concat(results, -1) if in_graph else np.concatenate(results, -1)


def _is_pair(part):
    pair = isinstance(part, (tuple, list)) and len(part) == 2
    return pair and is_int(part[1]) and part[1] >= 1


def _split(states, sizes):
    return np.split(np.asarray(states), np.cumsum(sizes)[:-1], -1)
