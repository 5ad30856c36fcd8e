"""What a model's data must be: `DataForm`, which checks it as `row_checks` can."""

import math
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_rbm.datasets.in_memory import as_dense
from keras_rbm.models.data import row_checks
from keras_rbm.models.data.rows import (
    as_array,
    as_batch,
    as_values,
    check_source,
    dense_source,
    is_array,
    unpack,
)
from keras_rbm.units import Unit
from keras_rbm.units.bernoulli import are_binary


class Part(NamedTuple):
    """One array of a batch.

    Attributes:
        name: str, the argument's name in messages.
        width: int, or `None` until it is known.
        unit: `Unit` whose states the rows are; `None` for any finite numbers.
        shape: tuple of ints and `None`, of one example that is no vector, but the
            input of a network; empty until it is known; `None` for vectors.
        flattens: bool, whether an example may have any shape, such as a picture's.
        has_gaps: bool, whether NaN stands for an entry that is not known.
    """

    name: str
    width: int | None
    unit: Unit | None = None
    shape: tuple[int | None, ...] | None = None
    flattens: bool = False
    has_gaps: bool = False

    @property
    def fill(self):
        """float: what entries of sparse rows are that are not stored."""
        return math.nan if self.has_gaps else 0.0

    def rows(self, values):
        """Returns an array, tensor or spec with each example as a vector."""
        if not self.flattens:
            return values
        if self.unit is not None and self.unit.encodes and self.width in (None, 1):
            values = as_column(values)
        return flattened(values, self.width)

    def check(self, values, name=None):
        """Raises an error unless an array, tensor or spec can be this part."""
        name, rows = name or self.name, self.rows(values)
        if (
            rows is not values
            and self.width
            and rows.shape[1] not in (None, self.width)
        ):
            raise ValueError(
                f"Expected {name} of {self.width} numbers for each example. Received: "
                f"{name}.shape={tuple(values.shape)}."
            )
        row_checks.check_rows(
            rows, name, self.width, self.unit, self.shape, self.has_gaps
        )

    def dense(self, rows):
        """Returns a sparse batch as a dense one, and any other as it is."""
        return as_dense(rows, self.fill)

    def is_sound(self, rows):
        """Returns a bool tensor (): whether all rows can be this part."""
        return row_checks.are_sound(rows, self.unit, self.has_gaps)


class DataForm(NamedTuple):
    """What a model learns from, and what it is called on.

    It holds no reference to the model, because pipelines keep what they refer to.

    Attributes:
        visible: `Part`, the states of the visible units: x of a model of p(v), y of a
            conditional one.
        called: `Part`, what the model is called on.
        conditional: bool, whether that is an input x beside the states.
    """

    visible: Part
    called: Part
    conditional: bool

    @classmethod
    def of_states(cls, unit, width, has_gaps=False):
        """Returns the form of a model of p(v)."""
        states = Part("x", width, unit, has_gaps=has_gaps)
        return cls(states, states, False)

    @classmethod
    def of_pairs(cls, unit, width, num_features, shape=None, has_gaps=False):
        """Returns the form of a model of p(y | x)."""
        called = Part("x", num_features, None, shape)
        visible = Part("y", width, unit, flattens=True, has_gaps=has_gaps)
        return cls(visible, called, True)

    def split(self, x, y):
        """Returns `(features, visible)`; raises a ValueError unless y fits."""
        if self.conditional and y is None:
            raise ValueError(
                "Expected pairs: a CRBM learns p(y | x). Received: no y. Call "
                "fit(x, y), with a dataset of (x, y), or use an RBM."
            )
        if not self.conditional and y is not None:
            raise ValueError(
                "Expected data without targets: an RBM learns p(x). Received: y. Call "
                "fit(x), or drop the targets of a dataset: "
                "dataset.map(lambda x, y: x). Weights are sample_weight=, or the third "
                "part: dataset.map(lambda x, w: (x, (), w))."
            )
        return (x, self.visible.rows(y)) if self.conditional else (None, x)

    def check(self, x, y=None, sample_weight=None):
        """Raises an error unless the model can learn from a batch like this one."""
        features, visible = self.split(x, y)
        if self.conditional:
            if are_binary(self.visible.unit):
                row_checks.check_no_labels(visible)
            self.called.check(features)
        self.visible.check(y if self.conditional else x)
        if is_array(sample_weight):
            row_checks.check_weights(sample_weight)

    def checked_arrays(self, x, y, sample_weight):
        """Returns the parts of array data as checked arrays or `None`."""
        arrays = self.arrays(x, y, sample_weight)
        self.check(*arrays[:2])
        return arrays

    def arrays(self, x, y, sample_weight):
        """Returns the parts of array data as arrays or `None`, of one length."""
        x, y = as_array(x, "x", self.called.fill), as_array(y, "y", self.visible.fill)
        arrays = [x, y, as_array(sample_weight, "sample_weight")]
        row_checks.check_weights(arrays[2])
        present = [part for part in arrays if part is not None]
        lengths = [part.shape[0] if len(part.shape) else 0 for part in present]
        if len(set(lengths)) > 1:
            raise ValueError(
                "Expected arrays of one length. Received: x, y, sample_weight of "
                f"lengths {lengths}."
            )
        return arrays

    def dense(self, x, y=None, sample_weight=None):
        """Returns the parts of a batch, dense if they are sparse."""
        return [self.called.dense(x), self.visible.dense(y), sample_weight]

    def source(self, x, y=None):
        """Returns a source of batches with their sparse parts made dense.

        What is in a batch is checked by the step that gets it.
        """
        check_alone(x, y)
        if isinstance(x, tf.data.Dataset):
            self.check(*unpack(x.element_spec)[:2])
        return self.densified(x)

    def densified(self, data):
        """Returns a source of batches of which none is sparse."""
        if not isinstance(data, tf.data.Dataset):
            return dense_source(data, self.dense)
        specs = tf.nest.flatten(data.element_spec)
        if not any(isinstance(spec, tf.SparseTensorSpec) for spec in specs):
            return data
        return data.map(lambda *batch: as_batch(*self.dense(*unpack(batch))))

    def checked_calls(self, x):
        """Returns data to call the model on, checked as far as is possible now."""
        if is_array(x):
            x = as_values(x, self.called.fill)
            self.called.check(x)
            return x
        check_source(x)
        if isinstance(x, tf.data.Dataset):
            self.called.check(unpack(x.element_spec)[0])
            if x.cardinality() == 0:
                raise ValueError(
                    "Expected data of at least one batch. Received: no batch."
                )
        return self.densified(x)

    def states(self, data, name=None):
        """Returns data as checked visible states (N, V), not copied if an array."""
        values = self.visible.rows(as_values(data, self.visible.fill))
        self.visible.check(values, name or self.visible.name)
        return values

    def soundness(self, features, visible, weights):
        """Returns a dict of the parts' names to bools (): whether they are valid."""
        sound = {self.visible.name: self.visible.is_sound(visible)}
        if self.conditional:
            sound[self.called.name] = self.called.is_sound(features)
        return sound | {"sample_weight": row_checks.all_within(weights, 0.0)}

    @property
    def expectations(self):
        """What each part must be, in words, by its name."""
        description = self.visible.unit.description
        words = {self.visible.name: f"finite {self.visible.name}, {description}"}
        if self.conditional:
            words[self.called.name] = f"finite {self.called.name}"
        return words | {"sample_weight": "finite sample_weight ≥ 0"}


def as_column(values):
    """Returns an array, tensor or spec (N,), such as labels, as (N, 1)."""
    shape = getattr(values, "shape", None)
    rank = getattr(shape, "rank", None) if tf.is_tensor(values) else len(shape or ())
    if isinstance(values, tf.TensorSpec):
        if values.shape.rank == 1:
            return tf.TensorSpec((*values.shape, 1), values.dtype)
        return values
    return values[:, np.newaxis] if shape is not None and rank == 1 else values


def flattened(values, width=None):
    """Returns an array, tensor or spec (N, …) as (N, V)."""
    shape = getattr(values, "shape", None)
    if shape is None:
        return values
    if isinstance(shape, tf.TensorShape) and shape.rank is None:  # retraced by Keras
        known = width is not None and not isinstance(values, tf.TensorSpec)
        return tf.reshape(values, (tf.shape(values)[0], width)) if known else values
    if len(shape) < 3:
        return values
    if None not in tuple(shape[1:]):
        width = math.prod(shape[1:])
    if isinstance(values, tf.TensorSpec):
        return tf.TensorSpec((shape[0], width), values.dtype)
    if tf.is_tensor(values):
        return tf.reshape(values, (tf.shape(values)[0], -1 if width is None else width))
    return values.reshape(len(values), width)


def class_weights(class_weight, unit, labels):
    """Returns weights (N,) of examples by their class, 1 for those that are not named.

    Raises:
        ValueError: if data are not labels of a categorical unit.
    """
    known = labels is not None and is_array(labels)
    values = np.asarray(as_dense(labels)) if known else None
    fits = unit.encodes and values is not None and values.size == len(values)
    if not fits or not isinstance(class_weight, dict):
        raise ValueError(
            "Expected class_weight, a dict, only with arrays (x, y) of one class for "
            "each example, for a CRBM of a categorical unit. Received: class_weight "
            f"for {unit!r}. Pass sample_weight instead."
        )
    return np.array([float(class_weight.get(c, 1.0)) for c in values.ravel()])


def check_alone(x, y):
    """Raises an error unless x is a source of batches, given without y."""
    check_source(x)
    if y is not None:
        raise TypeError(
            f"Expected x as an array with y. Received: x of type {type(x).__name__}. "
            "Convert it, or pass a dataset of pairs."
        )
