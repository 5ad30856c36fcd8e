"""Values that somebody will pass one day, by name, beside numbers."""

import datetime
import fractions

import keras
import numpy as np
import scipy.sparse
import tensorflow as tf

ROWS, WIDTH = 12, 4
DATA = np.random.default_rng(0).integers(0, 2, (ROWS, WIDTH)).astype("float32")
NAN = np.where(np.eye(ROWS, WIDTH) == 1, np.nan, DATA)


def _dataset(data, batch=5):
    return tf.data.Dataset.from_tensor_slices(data).batch(batch)


def _raising():
    yield DATA[:5]
    raise ValueError("Expected a whole file. Received: the loader's own error.")


#: Functions, since generators are used up and variables may be assigned to.
VALUES = {
    "None": lambda: None,
    "True": lambda: True,
    "a half": lambda: 0.5,
    "fraction": lambda: fractions.Fraction(1, 3),
    "complex number": lambda: 1j,
    "2**31": lambda: 2**31,
    "2**64": lambda: 2**64,
    "10**30": lambda: 10**30,
    "NumPy int": lambda: np.int64(2),
    "NumPy float": lambda: np.float32(0.5),
    "array ()": lambda: np.array(2),
    "tensor ()": lambda: tf.constant(2),
    "text": lambda: "text",
    "no text": lambda: "",
    "bytes": lambda: b"bytes",
    "object": object,
    "class": lambda: dict,
    "function": lambda: len,
    "date": lambda: datetime.date(2026, 1, 1),
    "slice": lambda: slice(2),
    "range": lambda: range(3),
    "set": lambda: {1, 2},
    "dict": dict,
    "dict of arrays": lambda: {"x": DATA},
    "config of a class": lambda: {"class_name": "Dense", "config": {"units": 3}},
    "empty list": list,
    "empty tuple": tuple,
    "list of an empty list": lambda: [[]],
    "list of None": lambda: [None, None],
    "list of text": lambda: ["a", "b"],
    "list of numbers": lambda: [0.0, 0.5, 1.0],
    "ragged lists": lambda: [[0.0], [0.0, 1.0]],
    "rows as lists": lambda: DATA.tolist(),
    "pair of arrays": lambda: (DATA, DATA),
    "array": lambda: DATA,
    "float64": lambda: DATA.astype("float64"),
    "float16": lambda: DATA.astype("float16"),
    "int64": lambda: DATA.astype("int64"),
    "uint8": lambda: DATA.astype("uint8"),
    "bool": lambda: DATA.astype(bool),
    "complex": lambda: DATA.astype(complex),
    "strings": lambda: DATA.astype(str),
    "byte strings": lambda: DATA.astype("S"),
    "objects": lambda: DATA.astype(object),
    "objects that are None": lambda: np.full((ROWS, WIDTH), None),
    "dates": lambda: DATA.astype("int64").astype("M8[D]"),
    "records": lambda: np.zeros(ROWS, [("a", "f4"), ("b", "f4")]),
    "masked": lambda: np.ma.masked_array(DATA, DATA > 0.5),
    "Fortran order": lambda: np.asfortranarray(DATA),
    "reversed": lambda: DATA[::-1, ::-1],
    "one example": lambda: DATA[0],
    "mask": lambda: DATA[0] > 0.5,
    "mask of a batch": lambda: DATA > 0.5,
    "mask of another width": lambda: DATA[:, :3] > 0.5,
    "batch of one": lambda: DATA[:1],
    "a column": lambda: DATA[:, :1],
    "narrow": lambda: DATA[:, :3],
    "wide": lambda: np.hstack([DATA, DATA]),
    "images": lambda: DATA.reshape(ROWS, 2, 2),
    "fewer rows": lambda: DATA[:5],
    "no rows": lambda: DATA[:0],
    "no columns": lambda: DATA[:, :0],
    "labels": lambda: np.arange(ROWS) % 3,
    "labels as text": lambda: np.array(list("abc") * 4),
    "weights": lambda: np.ones(ROWS),
    "NaNs": lambda: NAN,
    "infinities": lambda: np.where(np.isnan(NAN), np.inf, DATA),
    "negative": lambda: -DATA,
    "pixels to 255": lambda: DATA * 255,
    "huge": lambda: DATA * 1e30,
    "beyond float32": lambda: DATA.astype("float64") * 1e300,
    "tiny": lambda: DATA * 1e-40,
    "tensor": lambda: tf.constant(DATA),
    "bfloat16": lambda: tf.cast(DATA, tf.bfloat16),
    "tensor of text": lambda: tf.constant(["a", "b"]),
    "variable": lambda: tf.Variable(DATA),
    "Keras variable": lambda: keras.Variable(DATA),
    "symbolic tensor": lambda: keras.Input((WIDTH,)),
    "ragged tensor": lambda: tf.ragged.constant([[0.0], [0.0, 1.0]]),
    "sparse tensor": lambda: tf.sparse.from_dense(DATA),
    "sparse matrix": lambda: scipy.sparse.csr_matrix(DATA),
    "sparse array": lambda: scipy.sparse.coo_array(DATA),
    "dataset": lambda: _dataset(DATA),
    "dataset of rows": lambda: tf.data.Dataset.from_tensor_slices(DATA),
    "dataset of pairs": lambda: _dataset((DATA, DATA)),
    "dataset of labels": lambda: _dataset((DATA, np.arange(ROWS))),
    "dataset of dicts": lambda: _dataset({"x": DATA}),
    "dataset of text": lambda: _dataset(["a", "b"]),
    "dataset of NaNs": lambda: _dataset(NAN),
    "dataset of other width": lambda: _dataset(DATA[:, :3]),
    "empty dataset": lambda: _dataset(DATA).take(0),
    "generator": lambda: (DATA[i : i + 5] for i in (0, 5)),
    "generator of text": lambda: iter(["a", "b"]),
    "generator of None": lambda: iter([None]),
    "empty generator": lambda: iter(()),
    "generator that fails": _raising,
    "layer": lambda: keras.layers.Dense(3),
    "model": lambda: keras.Sequential([keras.layers.Dense(3)]),
}
