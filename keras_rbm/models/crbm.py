"""The conditional restricted Boltzmann machine."""

import keras
import tensorflow as tf

from keras_rbm import inference as inference_module
from keras_rbm import units
from keras_rbm.checks import check_counts
from keras_rbm.models.conditional_model import ConditionalModel
from keras_rbm.models.workflow.initializers import keras_part, normal, reseeded
from keras_rbm.models.workflow.inputs import check_input_shape


@keras.saving.register_keras_serializable("keras_rbm")
class CRBM(ConditionalModel):
    """Conditional restricted Boltzmann machine, a structured predictor of v from x.

    `-E(v, h | x) = v' W h + v' (A' x + b) + h' (R' x + c)`: given x an RBM of binary
    units whose biases depend on x. It is trained on pairs, `fit(x, v)`, by any rule
    that fits, and predicts by its inference: called on x it returns the marginals
    `p(v_i = 1 | x)`, (B, V). As a layer in another model it is fixed: no gradient
    passes through the inference.

    Args:
        hidden_units: int ≥ 1, H.
        inference: `keras_rbm.inference.Inference` or its name, how the model
            predicts and rules such as `MaximumLikelihood` learn. By default
            sum-product belief propagation. Train and predict with the same.
        num_visible: int or `None`, V. `None` takes it from the first data.
        num_features: int or `None`, X, likewise.
        seed: int or `None`. Seeds initial weights, sampling and shuffling.
        kernel_initializer: Keras initialiser of `kernel`; by default normal, 0.01.
        feature_initializer: Keras initialiser of `visible_kernel` and
            `hidden_kernel`; by default normal, 0.01.
        visible_bias_initializer: Keras initialiser, or `None`: zeros, until the first
            `fit` (or `adapt`) sets the bias to where the data's mean is.
        kernel_regularizer: Keras regulariser of the three kernels, or `None`. It has
            its part in the update, not in the reported loss.
        **kwargs: `name`, `dtype`, `trainable`, as for `keras.Model`.

    Attributes:
        kernel: variable (V, H).
        visible_bias: variable (V,).
        hidden_bias: variable (H,).
        visible_kernel: variable (X, V), A.
        hidden_kernel: variable (X, H), R.

    Raises:
        ValueError: if a size is not an int ≥ 1, or the inference is unknown.

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
        hidden_units,
        *,
        inference="belief_propagation",
        num_visible=None,
        num_features=None,
        seed=None,
        kernel_initializer=None,
        feature_initializer=None,
        visible_bias_initializer=None,
        kernel_regularizer=None,
        **kwargs,
    ):
        check_counts(hidden_units=hidden_units)
        if num_features is not None:
            check_counts(num_features=num_features)
        inference = inference_module.get(inference)
        super().__init__(seed=seed, num_visible=num_visible, **kwargs)
        self.hidden_units = int(hidden_units)
        self._inference = inference
        self.num_features = None if num_features is None else int(num_features)
        self.visible = self.hidden = units.Bernoulli()
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
        visible, hidden = self.num_visible, self.hidden_units
        self._visible_width = visible
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
            self.visible_bias = self.add_weight(
                name="visible_bias",
                shape=(visible,),
                initializer=self.visible_bias_initializer or "zeros",
            )
            self.hidden_bias = self.add_weight(
                name="hidden_bias", shape=(hidden,), initializer="zeros"
            )
        self.built = True
        if self.rule is not None:
            self._build_training()

    def _build_from_batch(self, x, y):
        if self.num_visible is None:
            self.num_visible = int(y.shape[-1])
        self.build(tuple(x.shape))

    def potentials(self, features=None):
        """Returns the model given x as `Potentials`, biases of shapes (B, V), (B, H).

        Args:
            features: tensor (B, X).
        """
        self._assert_built("potentials")
        features = tf.cast(features, self.compute_dtype)

        def bias(variable, kernel):
            product = tf.matmul(features, tf.cast(kernel, self.compute_dtype))
            return tf.cast(product, self.variable_dtype) + tf.cast(
                variable, self.variable_dtype
            )

        return inference_module.Potentials(
            tf.cast(self.kernel, self.compute_dtype),
            bias(self.visible_bias, self.visible_kernel),
            bias(self.hidden_bias, self.hidden_kernel),
        )

    def gradients(self, features, positive, negative):
        """Returns negative minus positive mean statistics, by variable name."""
        gradients = {"kernel": negative.kernel - positive.kernel}
        for side in ("visible", "hidden"):
            rows = sum(
                sign * getattr(moments, side).bias * moments.weights[:, tf.newaxis]
                for sign, moments in ((1.0, negative), (-1.0, positive))
            )
            gradients[f"{side}_bias"] = tf.reduce_sum(rows, 0)
            gradients[f"{side}_kernel"] = tf.matmul(features, rows, transpose_a=True)
        return gradients

    def get_config(self):
        config = super().get_config() | self._start_config()
        return config | {
            "hidden_units": self.hidden_units,
            "inference": keras.saving.serialize_keras_object(self.inference),
            "num_visible": self.num_visible,
            "num_features": self.num_features,
            "seed": self.seed,
            "feature_initializer": keras.initializers.serialize(
                self.feature_initializer
            ),
        }
