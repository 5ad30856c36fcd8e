"""A network in front of a conditional model."""

import math

import keras
import tensorflow as tf

from keras_rbm._replicas import strategy_scope
from keras_rbm.models.boltzmann_machine import BoltzmannMachine
from keras_rbm.models.data.row_checks import check_rows


def as_layer(backbone):
    """Returns a backbone as a layer, also from its config; raises a TypeError else."""
    if isinstance(backbone, dict):
        backbone = keras.saving.deserialize_keras_object(backbone)
    if backbone is not None and not isinstance(backbone, keras.layers.Layer):
        raise TypeError(
            "Expected backbone as a Keras layer or model. Received: "
            f"{type(backbone).__name__}. Wrap a function in keras.layers.Lambda."
        )
    return backbone


def shifts_and_features(output):
    """Returns a backbone's output as visible shifts (B, V), or `None`, and features."""
    *shifts, features = _parts(output)
    if not shifts:
        return None, features
    shape = -1, math.prod(shifts[0].shape[1:])
    return keras.ops.reshape(shifts[0], shape), features


def _parts(output):
    return output if isinstance(output, (list, tuple)) else [output]


def output_shapes(backbone, example):
    """Builds a backbone; returns the shapes of its visible shifts, and of features.

    Args:
        backbone: Keras layer.
        example: tuple, shape of an example of its input.

    Raises:
        ValueError: if its output cannot be read.
    """
    output = backbone(keras.Input(example))
    parts = _parts(output)
    shapes = [tuple(getattr(part, "shape", ())) for part in parts]
    if not (len(parts) in (1, 2) and len(shapes[-1]) == 2 and shapes[-1][1]):
        raise ValueError(
            "Expected a backbone that returns features of shape (examples, columns), "
            "or a pair of the visible units' biases and features. Received: shapes "
            f"{shapes}. End it with keras.layers.Flatten or GlobalAveragePooling2D."
        )
    return (shapes[0] if len(shapes) == 2 else None), shapes[-1]


def check_shifts(shape, num_rows):
    """Raises a ValueError unless a shape has a number for each visible bias."""
    if None in shape[1:] or math.prod(shape[1:]) != num_rows:
        raise ValueError(
            f"Expected a backbone whose first output has {num_rows} numbers for each "
            f"example, the visible units' biases. Received: shape {shape}."
        )


class WithBackbone(BoltzmannMachine):
    """A conditional Boltzmann machine whose input a network may read.

    A subclass sets `num_features`; its `potentials` are of what `_read` returns.
    """

    num_features: int | None
    _shift_shape: tuple[int | None, ...] | None = None
    _example: tuple[int | None, ...] = ()  # of the backbone, until it is built

    def _set_backbone(self, backbone):
        self.backbone = as_layer(backbone)

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        if self.backbone is None:
            super().build(input_shape)
            return
        check_rows(tf.TensorSpec(input_shape), "x", example=self._example)
        if self.built:
            return
        self._example = tuple(input_shape[1:])
        with tf.init_scope(), strategy_scope(self):
            self._shift_shape, features = output_shapes(self.backbone, self._example)
        shape = None, *self._example
        self._build_for(features[-1], keras.layers.InputSpec(shape=shape))

    def _an_example(self):
        """Returns zeros (1, …), as x."""
        return tf.zeros((1, *(size or 1 for size in self._example_shape)))

    @property
    def _example_shape(self):
        """The shape of one example of x."""
        return (self.num_features,) if self.backbone is None else self._example

    def _read(self, x, training):
        """Returns what the backbone makes of x: the visible shifts, and features."""
        if self.backbone is None:
            return None, x
        return shifts_and_features(self.backbone(x, training=training))
