"""A network in front of a conditional model."""

import math
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from keras_rbm._replicas import num_replicas
from keras_rbm.inference.potentials import Potentials
from keras_rbm.models.boltzmann_machine import BoltzmannMachine
from keras_rbm.models.data.row_checks import check_rows


def as_layer(backbone: Any) -> keras.layers.Layer | None:
    """Returns a backbone as a layer, also from its config; raises a TypeError else."""
    if isinstance(backbone, dict):
        backbone = keras.saving.deserialize_keras_object(backbone)
    if backbone is not None and not isinstance(backbone, keras.layers.Layer):
        raise TypeError(
            "Expected backbone as a Keras layer or model. Received: "
            f"{type(backbone).__name__}. Wrap a function in keras.layers.Lambda."
        )
    return backbone


def shifts_and_features(output: Any) -> tuple[tf.Tensor | None, tf.Tensor]:
    """Returns a backbone's output as visible shifts (B, V), or `None`, and features."""
    *shifts, features = _parts(output)
    if not shifts:
        return None, features
    shape = -1, math.prod(shifts[0].shape[1:])
    return keras.ops.reshape(shifts[0], shape), features


def _parts(output):
    return output if isinstance(output, (list, tuple)) else [output]


def output_shapes(
    backbone: keras.layers.Layer, example: tuple[int | None, ...]
) -> tuple[tuple[int | None, ...] | None, tuple[int | None, ...]]:
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


def check_shifts(shape: tuple[int | None, ...], num_rows: int) -> None:
    """Raises a ValueError unless a shape has a number for each visible bias."""
    if None in shape[1:] or math.prod(shape[1:]) != num_rows:
        raise ValueError(
            f"Expected a backbone whose first output has {num_rows} numbers for each "
            f"example, the visible units' biases. Received: shape {shape}."
        )


def untrained(backbone: keras.layers.Layer) -> list[keras.Variable]:
    """Returns the variables that a pass in training changes: statistics, seeds."""
    trained = {id(variable) for variable in backbone.trainable_variables}
    return [v for v in backbone.variables if id(v) not in trained]


def random_states(backbone: keras.layers.Layer) -> dict[str, keras.Variable]:
    """Returns variables that Keras does not save, by names: seeds, as of Dropout."""
    saved = {id(variable) for variable in backbone.weights}
    seeds = [v for v in backbone.variables if id(v) not in saved]
    return {f"backbone.seed_{index}": seed for index, seed in enumerate(seeds)}


def _own_losses(backbone):
    """Returns what a backbone's layers have added as losses, without penalties.

    Penalties of weights are part of each update anyway.
    """
    losses = tf.zeros(()) + sum(tf.reduce_sum(each) for each in backbone.losses)
    for variable in backbone.trainable_variables:
        if variable.regularizer is not None:
            losses -= variable.regularizer(tf.convert_to_tensor(variable))
    return losses


class TrainingPass:
    """A backbone's passes in a training step, of which the last has gradients.

    Losses that its layers add, such as of their activity, count as those of the model,
    in nats.

    Attributes:
        features: tensor (B, X) of the last.
    """

    def run(
        self, backbone: keras.layers.Layer, x: tf.Tensor
    ) -> tuple[tf.Tensor | None, tf.Tensor]:
        """Returns the visible shifts, or `None`, and features of x, in training."""
        with tf.GradientTape(persistent=True) as self._tape:
            parts = shifts_and_features(backbone(x, training=True))
            self._loss = _own_losses(backbone) / num_replicas()
        self._shifts, self.features = parts
        return parts

    def gradients(
        self,
        variables: list[keras.Variable],
        visible_kernel: keras.Variable | None,
        visible: tf.Tensor,
        hidden: tf.Tensor,
    ) -> list[tf.Tensor]:
        """Returns the gradients of a function of what the backbone made.

        Args:
            variables: list of the backbone's trainable variables.
            visible_kernel: `None` if the backbone made the visible shifts.
            visible: gradient with respect to visible shifts (B, V), or to features
                (B, X) by way of the visible units.
            hidden: gradient with respect to features (B, X) by way of hidden units.
        """
        outputs, upstream = [self.features], [hidden]
        if visible_kernel is None:
            outputs, upstream = [self._shifts, self.features], [visible, hidden]
        else:
            upstream = [visible + hidden]
        upstream = [
            tf.cast(gradient, output.dtype)
            for gradient, output in zip(upstream, outputs, strict=True)
        ]
        found = self._tape.gradient(
            [*outputs, self._loss],
            [variable.value for variable in variables],
            [*upstream, tf.ones_like(self._loss)],
            unconnected_gradients="zero",
        )
        return [
            tf.cast(tf.convert_to_tensor(gradient), variable.dtype)
            for gradient, variable in zip(found, variables, strict=True)
        ]


class TrainingPasses:
    """The passes of a step, by the tensor of x that they are of, one per replica."""

    def __init__(self) -> None:
        # The tensor is kept, too: another one could get its id.
        self._passes: dict[int, tuple[tf.Tensor, TrainingPass]] = {}

    def begin(self, x: tf.Tensor) -> None:
        """Has the backbone run on x as in training, until `end`."""
        self._passes[id(x)] = x, TrainingPass()

    def of(self, x: tf.Tensor) -> TrainingPass | None:
        """Returns the pass of x, or `None` if it is not of training."""
        return self._passes.get(id(x), (x, None))[1]

    def end(self, x: tf.Tensor) -> None:
        """Forgets the pass."""
        self._passes.pop(id(x), None)


class WithBackbone(BoltzmannMachine):
    """A conditional Boltzmann machine whose input a network may read.

    A subclass sets `num_features`, and implements `_potentials_of(x, dtype, training)`,
    which returns `Potentials` of what `_read(x, training)` returns.
    """

    _potentials_of: Callable[..., Potentials]
    num_features: int | None
    _shift_shape: tuple[int | None, ...] | None = None
    _example: tuple[int | None, ...] = ()  # of the backbone, until it is built

    def _set_backbone(self, backbone):
        self.backbone = as_layer(backbone)
        self._passes = TrainingPasses()

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        if self.backbone is None:
            super().build(input_shape)
            return
        check_rows(tf.TensorSpec(input_shape), "x", example=self._example)
        if self.built:
            return
        self._example = tuple(input_shape[1:])
        with tf.init_scope(), self._strategy_scope():
            self._shift_shape, features = output_shapes(self.backbone, self._example)
        shape = None, *self._example
        self._build_for(features[-1], keras.layers.InputSpec(shape=shape))

    def _an_example(self):
        """Returns zeros (1, …), as x."""
        return tf.zeros((1, *(size or 1 for size in self._example_shape())))

    def _example_shape(self):
        """Returns the shape of one example of x."""
        return (self.num_features,) if self.backbone is None else self._example

    def _potentials_to_train(self, features):
        trains = self._passes.of(features) is not None
        return self._potentials_of(features, None, training=trains)

    def _read(self, x, training):
        """Returns what the backbone makes of x: the visible shifts, and features."""
        if self.backbone is None:
            return None, x
        training_pass = self._passes.of(x) if training else None
        if training_pass is None:
            return shifts_and_features(self.backbone(x, training=training))
        return training_pass.run(self.backbone, x)

    def _begin_pass(self, features):
        if self.backbone is not None:
            self._passes.begin(features)

    def _end_pass(self, features):
        self._passes.end(features)

    def _state_of_a_step(self):
        state = super()._state_of_a_step()
        return state if self.backbone is None else [*state, *untrained(self.backbone)]

    def _own_weights(self):
        others = [] if self.backbone is None else self.backbone.weights
        others = {id(variable) for variable in others}
        return [v for v in self.weights if id(v) not in others]

    def _state(self):
        required, optional = super()._state()
        if self.backbone is not None:
            optional |= random_states(self.backbone)
        return required, optional
