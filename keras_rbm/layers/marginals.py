"""Marginals of an RBM, as the last layer of a network."""

import math
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from keras_rbm import inference as inference_module
from keras_rbm._checks import check_counts, seed_number
from keras_rbm.inference.exact import CHEAP_UNITS
from keras_rbm.models.layer_variables import keras_part, normal


@keras.saving.register_keras_serializable("keras_rbm")
class Marginals(keras.layers.Layer):
    """Takes the place of the sigmoid at the end of a network that predicts many bits.

    Its output are the marginals `p(v_i = 1)` of an RBM whose visible biases are the
    inputs, so that bits which belong together are predicted together:

        p(v, h) ∝ exp(v' W h + v' inputs + h' c)

    With W = 0 it is a sigmoid, and it begins close to that. Any loss of Keras trains W
    and c, and the network before, by gradients through the inference as it was made:
    the sweeps of belief propagation or mean field, or exactly [1]. Their memory does
    not grow with the number of sweeps. There is no second derivative. To switch an
    output off give it a bias of -1e4, not of minus infinity.

    A `keras_rbm.CRBM` on the same network learns by likelihood, too, and samples; this
    layer is for models with a loss. With a kernel from elsewhere call the functions,
    such as `keras_rbm.inference.sum_product`, through which gradients pass as well.

    Args:
        hidden_units: int ≥ 1, H.
        inference: `keras_rbm.inference.Inference` that yields marginals, or its name.
            By default `Exact()` if a layer has at most 8 units, else
            `BeliefPropagation()`.
        kernel_initializer: Keras initializer; by default normal, 0.01.
        kernel_regularizer: Keras regularizer of W, or `None`.
        seed: int or `None`, of the default initializer.
        **kwargs: `name`, `dtype`, `trainable`, as for `keras.layers.Layer`.

    Input: tensor (B, …) of V numbers for each example, the visible biases, or a pair of
    it and hidden biases (B, H), which are added to c. Output: the shape of the first.

    Attributes:
        kernel: variable (V, H), W.
        hidden_bias: variable (H,), c.

    Raises:
        ValueError: if a count is not an int ≥ 1, if the inference finds states, or if
            the inputs have another shape.

    Example:

    >>> inputs = keras.Input((6,))
    >>> logits = keras.layers.Dense(12)(inputs)
    >>> model = keras.Model(inputs, keras_rbm.layers.Marginals(4, seed=0)(logits))
    >>> model.compile("adam", "binary_crossentropy")
    >>> history = model.fit(np.eye(6), np.ones((6, 12)), verbose=0)

    References:
        1. Domke. Learning graphical model parameters with approximate marginal
           inference. IEEE TPAMI 2013.
    """

    def __init__(
        self,
        hidden_units: int,
        inference: str | dict[str, Any] | inference_module.Inference | None = None,
        kernel_initializer: str | Callable[..., Any] | None = None,
        kernel_regularizer: str | keras.regularizers.Regularizer | None = None,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        check_counts(hidden_units=hidden_units)
        self._inference_given = inference is not None
        if inference is None:
            inference = inference_module.BeliefPropagation()
        inference = inference_module.get(inference)
        if inference.finds_state or inference.needs_input:
            raise ValueError(
                "Expected inference that yields marginals of given biases. Received: "
                f"{inference!r}. Use BeliefPropagation('sum_product'), "
                "MeanField(starts=['independent']) or Exact()."
            )
        seed = seed_number(seed)
        super().__init__(**kwargs)
        self.autocast = False  # sums of many biases need float32
        self.hidden_units = int(hidden_units)
        self.inference = inference
        self.seed = seed
        if kernel_initializer is None:
            kernel_initializer = normal(seed)
        get, regularizers = keras.initializers.get, keras.regularizers.get
        self.kernel_initializer = keras_part(
            get, "kernel_initializer", kernel_initializer
        )
        self.kernel_regularizer = keras_part(
            regularizers, "kernel_regularizer", kernel_regularizer
        )

    def _checked_width(self, shapes, known=None):
        """Returns V; raises a ValueError unless inputs of such shapes fit."""
        visible, *hidden = map(tuple, shapes)
        width = None if None in visible[1:] else math.prod(visible[1:])
        if not (len(visible) > 1 and width) or (known and width != known):
            raise ValueError(
                f"Expected visible biases of {known or 'a known number'} for each "
                f"example, shape (examples, …). Received: shape {visible}."
            )
        if len(hidden) > 1 or any(s[1:] != (self.hidden_units,) for s in hidden):
            raise ValueError(
                "Expected visible biases, or a pair of them and hidden biases of shape "
                f"(examples, {self.hidden_units}). Received: shapes {shapes}."
            )
        return width

    def build(self, input_shape: Any) -> None:
        shapes = list(input_shape)
        if not isinstance(shapes[0], (list, tuple)):
            shapes = [tuple(shapes)]
        width = self._checked_width(shapes)
        if not self._inference_given and min(width, self.hidden_units) <= CHEAP_UNITS:
            self.inference = inference_module.Exact()
        self.kernel = self.add_weight(
            name="kernel",
            shape=(width, self.hidden_units),
            initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer,
        )
        self.hidden_bias = self.add_weight(
            name="hidden_bias", shape=(self.hidden_units,), initializer="zeros"
        )

    def call(self, inputs: Any) -> tf.Tensor:
        pair = inputs if isinstance(inputs, (list, tuple)) else [inputs]
        self._checked_width([part.shape for part in pair], self.kernel.shape[0])
        visible, *hidden = (tf.cast(part, "float32") for part in pair)
        flat = tf.reshape(visible, (tf.shape(visible)[0], self.kernel.shape[0]))
        bias = tf.cast(self.hidden_bias, "float32")
        potentials = inference_module.Potentials(
            tf.cast(self.kernel, "float32"), flat, bias + hidden[0] if hidden else bias
        )
        marginals = self.inference(potentials, pairwise=None).visible
        marginals = tf.reshape(marginals, tf.shape(visible))
        marginals = tf.ensure_shape(marginals, visible.shape)
        return tf.cast(marginals, self.compute_dtype)

    def compute_output_shape(self, input_shape: Any) -> tuple[int | None, ...]:
        first = input_shape[0]
        return tuple(first) if isinstance(first, (list, tuple)) else tuple(input_shape)

    def get_config(self) -> dict[str, Any]:
        serialize = keras.saving.serialize_keras_object
        return super().get_config() | {
            "hidden_units": self.hidden_units,
            "inference": serialize(self.inference) if self._inference_given else None,
            "kernel_initializer": serialize(self.kernel_initializer),
            "kernel_regularizer": keras.regularizers.serialize(self.kernel_regularizer),
            "seed": self.seed,
        }
