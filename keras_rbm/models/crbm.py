"""The conditional restricted Boltzmann machine."""

import keras
import tensorflow as tf

from keras_rbm import inference as inference_module
from keras_rbm import units
from keras_rbm.checks import check_counts
from keras_rbm.models.conditional_model import ConditionalModel
from keras_rbm.models.workflow.initializers import keras_part, normal, reseeded
from keras_rbm.models.workflow.inputs import check_input_shape
from keras_rbm.models.workflow.layer_variables import (
    add_units,
    layer_parameters,
    unit_types,
)
from keras_rbm.units.bernoulli import are_binary


@keras.saving.register_keras_serializable("keras_rbm")
class CRBM(ConditionalModel):
    """Conditional restricted Boltzmann machine, a structured predictor of v from x.

    `-E(v, h | x) = v' W h + v' (A' x + b) + h' (R' x + c)`: given x, it is an RBM whose
    biases depend on x. It is trained on pairs, `fit(x, v)`, by any rule that fits, and
    predicts by its inference: called on x, it returns the marginals `p(v_i = 1 | x)`,
    (B, V), or the means of units that are not binary (for categorical units the
    probabilities, q columns per unit). As a layer in another model it is fixed: no
    gradient passes through the inference.

    Args:
        hidden_units: int ≥ 1, H.
        visible, hidden: str or `keras_rbm.units` object, types of the units.
        inference: `keras_rbm.inference.Inference` or its name, with which the model
            predicts and rules such as `MaximumLikelihood` learn. By default
            sum-product belief propagation for binary units and `MeanField`, the only
            choice, for others. Train and predict with the same.
        num_visible: int or `None`, V. `None` takes it from the first data.
        num_features: int or `None`, X, likewise.
        seed: int or `None`. Seeds initial weights, sampling and shuffling.
        kernel_initializer: Keras initializer of `kernel`; by default normal, 0.01.
        feature_initializer: Keras initializer of `visible_kernel` and
            `hidden_kernel`; by default normal, 0.01.
        visible_bias_initializer: Keras initializer, or `None`: zeros, until the first
            `fit` sets the bias to where the data's mean is.
        kernel_regularizer: Keras regularizer of the three kernels, or `None`. It is
            part of the update, not of the reported loss.
        **kwargs: `name`, `dtype`, `trainable`, as for `keras.Model`.

    Attributes:
        kernel: variable (V, H).
        visible_bias: variable (V,).
        hidden_bias: variable (H,).
        visible_kernel: variable (X, V), A.
        hidden_kernel: variable (X, H), R.

    For categorical units V and H count rows, one per category. Other units have more
    variables, as in `RBM`.

    Raises:
        ValueError: if a size is not an int ≥ 1, or the inference or a unit type is
            unknown or does not fit.

    Example:

    >>> clean = np.random.default_rng(0).integers(0, 2, (200, 6)).astype("float32")
    >>> noisy = np.abs(clean - (np.random.default_rng(1).random((200, 6)) < 0.1))
    >>> crbm = keras_rbm.CRBM(4, seed=0)
    >>> crbm.compile(keras.optimizers.SGD(0.1), rule="maximum_likelihood")
    >>> history = crbm.fit(noisy, clean, epochs=2, batch_size=50, verbose=0)
    >>> crbm.predict(noisy, verbose=0).shape
    (200, 6)

    References:
        1. Taylor, Hinton, Roweis. Modeling human motion using binary latent
           variables. NIPS 2006.
        2. Ping, Ihler. Belief propagation in conditional RBMs for structured
           prediction. AISTATS 2017.
    """

    def __init__(
        self,
        hidden_units: int,
        *,
        visible: str | units.Unit = "bernoulli",
        hidden: str | units.Unit = "bernoulli",
        inference=None,
        num_visible: int | None = None,
        num_features: int | None = None,
        seed: int | None = None,
        kernel_initializer=None,
        feature_initializer=None,
        visible_bias_initializer=None,
        kernel_regularizer=None,
        **kwargs,
    ):
        check_counts(hidden_units=hidden_units)
        if num_features is not None:
            check_counts(num_features=num_features)
        visible, hidden = unit_types(visible, hidden)
        if inference is None:
            binary = are_binary(visible, hidden)
            inference = "belief_propagation" if binary else "mean_field"
        inference = inference_module.get(inference)
        super().__init__(seed=seed, num_visible=num_visible, **kwargs)
        self.hidden_units = int(hidden_units)
        self.visible = visible
        self.hidden = hidden
        self._check_inference(inference)
        self._inference = inference
        self.num_features = None if num_features is None else int(num_features)
        self._set_start(
            kernel_initializer, kernel_regularizer, visible_bias_initializer
        )
        if feature_initializer is None:
            feature_initializer = reseeded(normal(self.seed))
        self.feature_initializer = keras_part(
            keras.initializers.get, "feature_initializer", feature_initializer
        )
        if num_visible is not None and num_features is not None:
            self.build((None, self.num_features))

    def build(self, input_shape):
        check_input_shape(input_shape, self)
        if self.built:
            return
        num_features = input_shape[-1]
        if self.num_visible is None:
            raise ValueError(
                "Expected a known number of visible units. Received: a CRBM that has "
                "seen no targets yet. Pass num_visible= to the constructor, or call "
                "fit(x, y) first."
            )
        self.num_features = num_features
        self.input_spec = keras.layers.InputSpec(ndim=2, axes={-1: num_features})
        self._visible_width = self.num_visible
        visible = self.visible.num_rows(self.num_visible)
        hidden = self.hidden.num_rows(self.hidden_units)
        kernels = {
            "kernel": ((visible, hidden), self.kernel_initializer),
            "visible_kernel": ((num_features, visible), self.feature_initializer),
            "hidden_kernel": (
                (num_features, hidden),
                reseeded(self.feature_initializer),
            ),
        }
        with self._strategy_scope():
            for name, (shape, initializer) in kernels.items():
                variable = self.add_weight(
                    name=name,
                    shape=shape,
                    initializer=initializer,
                    regularizer=self.kernel_regularizer,
                )
                setattr(self, name, variable)
            start = self.visible_bias_initializer
            add_units(self, "visible_{}", self.visible, self.num_visible, start)
            add_units(self, "hidden_{}", self.hidden, self.hidden_units)
        self.built = True
        if self.rule is not None:
            self._build_training()

    def _build_from_batch(self, x, y):
        if self.num_visible is None:
            self.num_visible = int(y.shape[-1])
        self.build(tuple(x.shape))

    def potentials(self, features=None, dtype=None) -> inference_module.Potentials:
        """Returns the model given x as `Potentials`, biases of shapes (B, V), (B, H).

        Args:
            features: tensor (B, X).
            dtype: str or `None`, type of the kernels, by default that of the model's
                computations. Scores use `"float32"`.

        Raises:
            ValueError: if there are no features, or the model is not built.
        """
        self._assert_built("potentials")
        if features is None:
            raise ValueError(
                "Expected features of shape (examples, X): biases of a CRBM depend on "
                "them. Received: features=None."
            )
        dtype = dtype or self.compute_dtype
        features = tf.cast(features, dtype)

        def layer(side, unit):
            kernel = tf.cast(getattr(self, f"{side}_kernel"), dtype)
            inputs = tf.cast(tf.matmul(features, kernel), self.variable_dtype)
            own = tf.cast(getattr(self, f"{side}_bias"), self.variable_dtype)
            return layer_parameters(self, f"{side}_{{}}", unit, bias=inputs + own)

        return inference_module.Potentials(
            tf.cast(self.kernel, dtype),
            layer("visible", self.visible),
            layer("hidden", self.hidden),
        )

    def gradients(self, features, positive, negative):
        """Returns negative minus positive mean statistics, by variable name."""
        gradients = {"kernel": negative.kernel - positive.kernel}
        for side in ("visible", "hidden"):
            rows = tf.nest.map_structure(
                tf.subtract, _weighted(negative, side), _weighted(positive, side)
            )
            for name, values in rows._asdict().items():
                gradients[f"{side}_{name}"] = tf.reduce_sum(values, 0)
            gradients[f"{side}_kernel"] = tf.matmul(
                features, rows.bias, transpose_a=True
            )
        return gradients

    def get_config(self):
        config = super().get_config() | self._start_config()
        return config | {
            "hidden_units": self.hidden_units,
            "visible": units.serialize(self.visible),
            "hidden": units.serialize(self.hidden),
            "inference": keras.saving.serialize_keras_object(self.inference),
            "num_visible": self.num_visible,
            "num_features": self.num_features,
            "seed": self.seed,
            "feature_initializer": keras.initializers.serialize(
                self.feature_initializer
            ),
        }


def _weighted(moments, side):
    """Returns a side's statistics times the rows' weights, leaves (B, …)."""
    weights = moments.weights[:, tf.newaxis]
    return tf.nest.map_structure(lambda leaf: leaf * weights, getattr(moments, side))
