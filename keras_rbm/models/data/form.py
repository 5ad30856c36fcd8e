"""What a model's data must be: `DataForm`, and the checks that it makes."""

import math
import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from keras_rbm.datasets.sparse_rows import SparseRows, as_dense, is_sparse
from keras_rbm.models.data.missing import filled, is_known
from keras_rbm.models.data.rows import (
    as_array,
    as_rows,
    as_values,
    check_source,
    is_array,
    is_numeric,
    parts_of_rows,
    row_chunks,
    several_inputs,
    unpack,
)
from keras_rbm.models.errors import END, MARK, lies_in
from keras_rbm.units import Unit
from keras_rbm.units.bernoulli import are_binary

#: How far from 0 and 1 scaled data may be.
_ROUNDING = 1e-5


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
    def fill(self) -> float:
        """float: what entries of sparse rows are that are not stored."""
        return math.nan if self.has_gaps else 0.0

    def rows(self, values: Any) -> Any:
        """Returns an array, tensor or spec with each example as a vector."""
        if not self.flattens:
            return values
        if self.unit is not None and self.unit.encodes and self.width in (None, 1):
            values = as_column(values)
        return flattened(values, self.width)

    def check(self, values: Any, name: str | None = None) -> None:
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
        check_rows(rows, name, self.width, self.unit, self.shape, self.has_gaps)

    def dense(self, rows: Any) -> Any:
        """Returns a sparse batch as a dense one, and any other as it is."""
        return as_dense(rows, self.fill)

    def is_sound(self, rows: Any) -> tf.Tensor:
        """Returns a bool tensor (): whether all rows can be this part."""
        if self.unit is None:
            return lies_in(filled(rows) if self.has_gaps else rows)
        sound = self.unit.contains(rows)
        if self.has_gaps:
            sound = tf.logical_or(sound, tf.logical_not(is_known(rows)))
        return tf.reduce_all(sound)

    def assertions(self, rows: Any) -> list[Any]:
        """Returns operations that fail unless a tensor of a pipeline can be this."""
        if not tf.is_tensor(rows):
            return []
        rows = self.rows(tf.cast(rows, tf.float32))
        name, unit = self.name, self.unit
        expected = f"finite {name}" if unit is None else f"{name}, {unit.description}"
        words = (
            f"Expected {expected}. Received: NaN, infinite or other values in a batch "
            "from"
        )
        ends = tf.reduce_min(rows), "to", tf.reduce_max(rows)
        return [_expect(self.is_sound(rows), words, *ends)]


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
    def of_states(
        cls, unit: Unit | None, width: int | None, has_gaps: bool = False
    ) -> "DataForm":
        """Returns the form of a model of p(v)."""
        called = Part("x", width, unit if unit.encodes else None, has_gaps=has_gaps)
        return cls(Part("x", width, unit, has_gaps=has_gaps), called, False)

    @classmethod
    def of_pairs(
        cls,
        unit: Unit | None,
        width: int | None,
        num_features: int | None,
        shape: tuple[int | None, ...] | None = None,
        has_gaps: bool = False,
    ) -> "DataForm":
        """Returns the form of a model of p(y | x)."""
        called = Part("x", num_features, None, shape)
        visible = Part("y", width, unit, flattens=True, has_gaps=has_gaps)
        return cls(visible, called, True)

    @property
    def names(self) -> tuple[str, str]:
        """Names of the visible states and the features, for messages."""
        return ("y", "x") if self.conditional else ("x", "features")

    def split(self, x: Any, y: Any) -> tuple[Any, Any]:
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
                "dataset.map(lambda x, y: x)."
            )
        return (x, self.visible.rows(y)) if self.conditional else (None, x)

    def check(self, x: Any, y: Any = None, sample_weight: Any = None) -> None:
        """Raises an error unless the model can learn from a batch like this one."""
        features, visible = self.split(x, y)
        if self.conditional:
            if are_binary(self.visible.unit):
                _check_no_labels(visible)
            self.called.check(features)
        self.visible.check(y if self.conditional else x)
        if is_array(sample_weight):
            check_weights(sample_weight)

    def checked_arrays(self, x: Any, y: Any, sample_weight: Any) -> list[Any]:
        """Returns the parts of array data as checked arrays or `None`."""
        arrays = self.arrays(x, y, sample_weight)
        self.check(*arrays[:2])
        return arrays

    def arrays(self, x: Any, y: Any, sample_weight: Any) -> list[Any]:
        """Returns the parts of array data as arrays or `None`, of one length."""
        fills = (part.fill for part in (self.called, self.visible))
        return as_arrays(x, y, sample_weight, *fills)

    def dense(self, x: Any, y: Any = None, sample_weight: Any = None) -> list[Any]:
        """Returns the parts of a batch, dense if they are sparse."""
        return [self.called.dense(x), self.visible.dense(y), sample_weight]

    def checked_source(self, x: Any, y: Any = None) -> Any:
        """Returns a source of batches that raises an error at a bad batch."""
        check_alone(x, y)
        if isinstance(x, tf.data.Dataset):
            self.check(*unpack(x.element_spec)[:2])
        return self.checked(x)

    def checked(self, data: Any) -> Any:
        """Returns a source of batches like `data`, checked as they come."""
        parts = [self.called, self.visible] if self.conditional else [self.visible]
        return _checked(data, parts)

    def checked_calls(self, x: Any) -> Any:
        """Returns data to call the model on, checked as far as is possible now."""
        if is_array(x):
            x = as_values(x, self.called.fill)
            self.called.check(x)
            unit = self.visible.unit
            if not self.conditional and are_binary(unit):
                _warn_of_values_outside(values_of(x, unit), self.called.name)
            return x
        check_source(x)
        if isinstance(x, tf.data.Dataset):
            self.called.check(unpack(x.element_spec)[0])
            if x.cardinality() == 0:
                raise ValueError(
                    "Expected data of at least one batch. Received: no batch."
                )
        return _checked(x, [self.called])

    def states(self, data: Any, name: str | None = None) -> Any:
        """Returns data as checked visible states (N, V), not copied if an array."""
        values = self.visible.rows(as_values(data, self.visible.fill))
        self.visible.check(values, name or self.visible.name)
        return values

    def soundness(
        self, features: tf.Tensor | None, visible: tf.Tensor, weights: tf.Tensor
    ) -> tuple[tf.Tensor, ...]:
        """Returns bools (): whether visible states, features and weights are valid."""
        return (
            self.visible.is_sound(visible),
            self.called.is_sound(features) if self.conditional else tf.constant(True),
            lies_in(weights, 0.0),
        )


def as_column(values: Any) -> Any:
    """Returns an array, tensor or spec (N,), such as labels, as (N, 1)."""
    shape = getattr(values, "shape", None)
    rank = getattr(shape, "rank", None) if tf.is_tensor(values) else len(shape or ())
    if isinstance(values, tf.TensorSpec):
        if values.shape.rank == 1:
            return tf.TensorSpec((*values.shape, 1), values.dtype)
        return values
    return values[:, np.newaxis] if shape is not None and rank == 1 else values


def flattened(values: Any, width: int | None = None) -> Any:
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


def values_of(rows: Any, unit: Unit | None) -> Iterable[Any]:
    """Yields all values of rows, some at a time; of sparse ones those that are stored.

    If a layer has several unit types, whose values differ, rows are made dense.
    """
    alike = unit is None or unit.unit_of_column(0) is unit
    if isinstance(rows, SparseRows) and alike:
        return [as_rows(rows.stored[np.newaxis])]
    return row_chunks(rows)


def check_rows(
    rows: Any,
    name: str,
    width: int | None = None,
    unit: Unit | None = None,
    example: tuple[int | None, ...] | None = None,
    has_gaps: bool = False,
    first_row: int = 0,
) -> None:
    """Raises a ValueError unless `rows` can be states of a layer.

    Args:
        rows: tensor or array that should be (examples, width).
        name: str, the argument's name.
        width: int or `None`.
        unit: `Unit` whose states they should be, or `None` for any numbers.
        example, has_gaps: shape of one example that need not be a vector, and whether
            there may be NaN, see `Part`.
        first_row: int, number of the first row, for messages.
    """
    if not hasattr(rows, "shape"):
        raise TypeError(
            f"Expected {name} as an array. Received: {type(rows).__name__}."
            f"{several_inputs(rows)}"
        )
    if isinstance(rows.shape, tf.TensorShape) and rows.shape.rank is None:
        return
    shape = tuple(rows.shape)
    if example is not None:
        fits = tf.TensorShape(example or shape[1:]).is_compatible_with(shape[1:])
        if not (fits and len(shape) > 1):
            raise ValueError(
                f"Expected {name} of shape (examples, …), the input of the backbone, "
                f"{example}. Received: {name}.shape={shape}."
            )
    elif len(shape) != 2 or (width is not None and shape[1] not in (None, width)):
        raise ValueError(
            f"Expected {name} of shape (examples, {width or 'units'}). Received: "
            f"{name}.shape={shape}. Flatten each example to a vector, and batch a "
            "dataset: dataset.batch(100)."
        )
    if isinstance(rows, (tf.TensorSpec, tf.SparseTensorSpec)):
        return
    if isinstance(rows, SparseRows) and math.prod(shape):
        _check_sparse(rows, name, unit, has_gaps)
        return
    if tf.is_tensor(rows) and not hasattr(rows, "numpy"):
        return
    values = np.asarray(rows)
    if not values.size:
        raise ValueError(
            f"Expected {name} of at least one example. Received: {name}.shape={shape}."
        )
    if not is_numeric(values):
        raise TypeError(
            f"Expected {name} to be numbers. Received: {name} of dtype {values.dtype}."
        )
    if has_gaps:
        known = is_known(values)
        if not known.all():
            own = values[known][0] if known.any() else 0
            values = np.where(known, values, own)
    low, high = float(values.min()) + 0.0, float(values.max()) + 0.0  # no -0
    if not np.isfinite([low, high]).all():
        cure = (
            "Remove or impute them first."
            if unit is None
            else "Replace infinite ones. If NaN stands for what is not known, pass "
            "missing='latent' to the model."
        )
        kind = "infinite" if has_gaps else "NaN or infinite"
        raise ValueError(f"Expected finite {name}. Received: {kind} values. {cure}")
    if unit is not None:
        _check_states(values, name, unit, known if has_gaps else True, first_row)


def _check_sparse(rows, name, unit, has_gaps):
    """Raises a ValueError unless sparse rows can be states; looks at what is stored."""
    part = Part(name, None, unit, has_gaps=has_gaps)
    if all(map(part.is_sound, values_of(rows, unit))):
        return
    first = 0
    for chunk in map(np.asarray, parts_of_rows(rows)):
        check_rows(chunk, name, None, unit, None, has_gaps, first)
        first += len(chunk)


def _check_states(values, name, unit, known, first_row):
    """Raises a ValueError unless an array of finite numbers can be states of a unit."""
    sound = unit.contains(values) | ~np.asarray(known)
    if np.all(sound):
        return
    row, column = np.argwhere(~np.asarray(sound))[0]
    own = unit.unit_of_column(column)
    others = values if own is unit else values[:, column]
    low, high = others.min() + 0.0, others.max() + 0.0  # no -0
    raise ValueError(
        f"Expected {name}, states of {type(own).__name__} units: {own.description}. "
        f"Received: {values[row, column]:g} in row {first_row + row}, column {column}; "
        f"values from {low:g} to {high:g}. Scale the data, number categories from 0, "
        "or use another unit (visible='gaussian' takes all numbers)."
    )


def _check_no_labels(targets):
    """Raises a ValueError if `targets` are classes, not states of visible units."""
    shape = getattr(targets, "shape", (1, 2))
    if isinstance(shape, tf.TensorShape) and shape.rank is None:
        return
    single = len(shape) == 1 or (len(shape) == 2 and shape[1] == 1)
    values = targets if isinstance(targets, np.ndarray) else np.zeros(1)
    words = values.dtype.kind in "OSU"
    if words or len(shape) == 1 or (single and values.max(initial=0) > 1):
        raise ValueError(
            "Expected y of shape (examples, units), states 0 and 1. Received: "
            f"y.shape={tuple(shape)}, dtype {targets.dtype}. Turn classes into states: "
            "keras.utils.to_categorical(labels). Number words first: "
            "keras.layers.StringLookup, or np.unique(labels, return_inverse=True)[1]."
        )


def as_arrays(
    x: Any,
    y: Any,
    sample_weight: Any,
    x_fill: float | None = None,
    y_fill: float | None = None,
) -> list[Any]:
    """Returns the parts of array data as arrays or `None`, of one length.

    `x_fill`, `y_fill` are what entries of sparse rows are that are not stored.
    """
    arrays = [as_array(x, "x", x_fill), as_array(y, "y", y_fill)]
    arrays.append(as_array(sample_weight, "sample_weight"))
    check_weights(arrays[2])
    lengths = [
        part.shape[0] if len(part.shape) else 0 for part in arrays if part is not None
    ]
    if len(set(lengths)) > 1:
        raise ValueError(
            "Expected arrays of one length. Received: x, y, sample_weight of lengths "
            f"{lengths}."
        )
    return arrays


def check_weights(weights: Any) -> None:
    """Raises a ValueError unless `weights` can be the weights of examples."""
    if weights is None:
        return
    weights = np.asarray(weights)
    if weights.dtype.kind not in "biuf":
        raise TypeError(
            "Expected sample_weight to be numbers. Received: sample_weight of dtype "
            f"{weights.dtype}."
        )
    if weights.ndim not in (1, 2) or weights.size != len(weights):
        raise ValueError(
            "Expected a sample_weight for each example. Received: sample_weight "
            f"of shape {weights.shape}."
        )
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise ValueError(
            "Expected finite sample_weight ≥ 0. Received: sample_weight with "
            "negative, infinite or NaN values."
        )


def class_weights(class_weight: Any, unit: Unit, labels: Any) -> np.ndarray:
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


def check_alone(x: Any, y: Any) -> None:
    """Raises an error unless x is a source of batches, given without y."""
    check_source(x)
    if y is not None:
        raise TypeError(
            f"Expected x as an array with y. Received: x of type {type(x).__name__}. "
            "Convert it, or pass a dataset of pairs."
        )


def warn_of_means(chunks: Iterable[Any], unit: Unit, name: str) -> None:
    """Warns if rows are not states of units but means, which have no likelihood.

    Values of a function that is traced are not known.
    """
    if not tf.executing_eagerly():
        return
    for rows in chunks:
        values = np.asarray(rows)
        states = np.asarray(unit.is_state(values) | ~is_known(values))
        if not states.all():
            column = int(np.argwhere(~states)[0, 1])
            own = unit.unit_of_column(column)
            some = name if own is unit else f"column {column} of {name}"
            warnings.warn(
                f"Expected {some} to be states of {type(own).__name__} units, whole "
                "numbers. Received: values between them, for which the result is not a "
                "log-likelihood. Draw states first: keras_rbm.datasets.binarize, or "
                f"{name} > 0.5.",
                stacklevel=4,
            )
            return


def warn_of_no_zeros(rows: Any, unit: Unit) -> None:
    """Warns if state 0, of units that have it, is nowhere stored in sparse rows."""
    has_zero = unit.encodes or are_binary(unit)
    if not isinstance(rows, SparseRows) or not has_zero or np.any(rows.stored == 0):
        return
    warnings.warn(
        f"Expected stored zeros, state 0 of {type(unit).__name__} units. Received: "
        "sparse rows without any. For a model with missing= what is not stored is not "
        "known. If zeros were stored, eliminate_zeros() or a conversion has dropped "
        "them: make the matrix of (state, (row, column)), as scipy.sparse.coo_array.",
        stacklevel=3,
    )


def _warn_of_values_outside(chunks, name):
    """Warns if rows for binary units are not from 0 to 1, up to rounding."""
    for rows in chunks:
        rows = filled(np.asarray(rows))
        low, high = np.min(rows, initial=0.0), np.max(rows, initial=1.0)
        if low < -_ROUNDING or high > 1.0 + _ROUNDING:
            warnings.warn(
                f"Expected {name} from 0 to 1, states of binary units or their means. "
                f"Received: values from {low:g} to {high:g}. Features of such values "
                "mean little. Scale the data as for fit.",
                stacklevel=4,
            )
            return


def _checked(data, parts):
    """Returns a source of dense batches; raises an error at one without its parts."""
    if is_array(data):
        return data
    if isinstance(data, tf.data.Dataset):
        return data.map(lambda *element: _checked_element(element, parts))
    if isinstance(data, keras.utils.PyDataset):
        return _CheckedLoader(data, parts)
    if hasattr(data, "__next__"):
        return (_checked_batch(batch, parts) for batch in data)
    return data  # such as a distributed dataset, which cannot be checked


def _checked_element(element, parts):
    element = _with_dense(element[0] if len(element) == 1 else element, parts)
    *arrays, weights = unpack(element)
    checks = []
    for part, rows in zip(parts, arrays, strict=False):
        checks += part.assertions(rows)
    if tf.is_tensor(weights):
        words = (
            "Expected finite sample_weight ≥ 0. Received: sample_weight with negative, "
            "infinite or NaN values."
        )
        checks.append(_expect(lies_in(tf.cast(weights, tf.float32), 0.0), words))
    with tf.control_dependencies(checks):
        return tf.nest.map_structure(tf.identity, element)


def _with_dense(batch, parts):
    """Returns a batch with its sparse parts made dense."""
    if not any(map(is_sparse, tf.nest.flatten(batch))):
        return batch
    if not isinstance(batch, (tuple, list)):
        return parts[0].dense(batch)
    own = [part.dense(rows) for part, rows in zip(parts, batch, strict=False)]
    return (*own, *batch[len(own) :])


def _expect(condition, *words):
    return tf.debugging.Assert(condition, [MARK, *words, END])


def _checked_batch(batch, parts):
    """Returns a checked batch; errors have the marks that `explained` looks for."""
    try:
        batch = _with_dense(batch, parts)
        *arrays, weights = unpack(batch)
        for part, rows in zip(parts, arrays, strict=False):
            part.check(rows)
        check_weights(weights)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{MARK} {error} {END}") from error
    return batch


class _CheckedLoader(keras.utils.PyDataset):
    """A PyDataset whose batches are checked."""

    def __init__(self, loader: keras.utils.PyDataset, parts: Any) -> None:
        super().__init__(
            workers=loader.workers,
            use_multiprocessing=loader.use_multiprocessing,
            max_queue_size=loader.max_queue_size,
        )
        self._loader, self._parts = loader, parts

    def __getitem__(self, index: int) -> Any:
        return _checked_batch(self._loader[index], self._parts)

    @property
    def num_batches(self) -> int | None:
        return self._loader.num_batches

    def on_epoch_begin(self) -> None:
        self._loader.on_epoch_begin()

    def on_epoch_end(self) -> None:
        self._loader.on_epoch_end()
