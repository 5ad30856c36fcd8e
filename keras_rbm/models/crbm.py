"""The conditional restricted Boltzmann machine."""

import keras
import tensorflow as tf

from keras_rbm import inference as inference_module
from keras_rbm import units
from keras_rbm.checks import check_counts
from keras_rbm.models.boltzmann_machine import BoltzmannMachine
from keras_rbm.models.inputs import as_rows, check_input_shape, check_rows
from keras_rbm.models.sampling import draw

#: Of log Z. Tempering takes one model at a time.
_METHODS = ("bethe", "mean_field", "exact", "ais", "reverse_ais")


@keras.saving.register_keras_serializable("keras_rbm")
class CRBM(BoltzmannMachine):
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

    conditional = True
    _cure_unbuilt = (
        "Pass num_visible= and num_features= to the constructor, or call fit(x, y) "
        "first."
    )

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
        kernel_regularizer=None,
        **kwargs,
    ):
        check_counts(hidden_units=hidden_units)
        for name, count in (
            ("num_visible", num_visible),
            ("num_features", num_features),
        ):
            if count is not None:
                check_counts(**{name: count})
        inference = inference_module.get(inference)
        super().__init__(seed=seed, **kwargs)
        self.hidden_units = int(hidden_units)
        self._inference = inference
        self.num_visible = None if num_visible is None else int(num_visible)
        self.num_features = None if num_features is None else int(num_features)
        self.visible = self.hidden = units.Bernoulli()
        self.kernel_initializer = keras.initializers.get(
            kernel_initializer or _normal(seed, 0)
        )
        self.feature_initializer = keras.initializers.get(
            feature_initializer or _normal(seed, 1)
        )
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        if num_visible is not None and num_features is not None:
            self.build((None, self.num_features))

    @property
    def inference(self):
        return self._inference

    @inference.setter
    def inference(self, inference):
        previous, self._inference = self._inference, inference_module.get(inference)
        if self.rule is None:
            return
        try:
            self.rule.check(self)
        except ValueError:
            self._inference = previous
            raise
        self.jit_compile = self._wants_jit(
            self._requested_jit, self.rule, self.run_eagerly
        )
        # Traced with the previous inference.
        self.train_function = self.test_function = self.predict_function = None

    def compile(self, optimizer="sgd", *, rule="maximum_likelihood", **kwargs):
        """Configures the model for training, as `RBM.compile` does.

        Args:
            optimizer: str or `keras.optimizers.Optimizer`.
            rule: str or `keras_rbm.rules.LearningRule`; by default maximum likelihood
                by the model's inference, for which that has to yield marginals.
            **kwargs: see `RBM.compile`.
        """
        super().compile(optimizer, rule=rule, **kwargs)

    def build(self, input_shape):
        if self.built:
            return
        check_input_shape(input_shape)
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
        kernels = {
            "kernel": ((visible, hidden), self.kernel_initializer),
            "visible_kernel": ((num_features, visible), self.feature_initializer),
            "hidden_kernel": (
                (num_features, hidden),
                _reseeded(self.feature_initializer),
            ),
        }
        with self.strategy_scope():
            for name, (shape, initializer) in kernels.items():
                variable = self.add_weight(
                    name=name,
                    shape=shape,
                    initializer=initializer,
                    regularizer=self.kernel_regularizer,
                )
                setattr(self, name, variable)
            self.visible_bias = self.add_weight(
                name="visible_bias", shape=(visible,), initializer="zeros"
            )
            self.hidden_bias = self.add_weight(
                name="hidden_bias", shape=(hidden,), initializer="zeros"
            )
        self.built = True
        if self.rule is not None:
            self._build_training()

    def build_from_batch(self, x, y):
        if self.num_visible is None:
            self.num_visible = int(y.shape[-1])
        self.build(tuple(x.shape))

    def roles(self, x, y):
        if y is None:
            raise ValueError(
                "Expected pairs: a CRBM learns p(y | x). Received: no y. Call "
                "fit(x, y), with a dataset of (x, y), or use an RBM."
            )
        return x, y

    def check_batch(self, x, y):
        features, visible = self.roles(x, y)
        self.check_features(features)
        self.check_visible(visible, "y")

    def check_features(self, features):
        """Raises a ValueError unless `features` can be the model's input."""
        check_rows(features, "x", self.num_features)

    def feature_rows(self, x, method):
        """Returns x as a checked float32 tensor (N, X)."""
        self.assert_built(method)
        rows = as_rows(x)
        self.check_features(rows)
        return rows

    def potentials(self, features=None):
        """Returns the model given x as `Potentials`, biases of shapes (B, V), (B, H).

        Args:
            features: tensor (B, X).
        """
        self.assert_built("potentials")
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

    def call(self, inputs):
        beliefs = self.inference(self.potentials(inputs), pairwise=None)
        # Training is the rules' matter: nothing flows back through the sweeps.
        return tf.cast(tf.stop_gradient(beliefs.visible), self.compute_dtype)

    def compute_output_shape(self, input_shape):
        return (input_shape[0], self.num_visible)

    def prediction(self, features, visible):
        """Returns what compiled metrics compare with the targets: the output."""
        return tf.cast(self(features), self.variable_dtype)

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        """Updates compiled metrics with targets and the marginals given x.

        A metric with a method `observe` is given x first.
        """
        for metric in self._observers():
            metric.observe(x)
        return super().compute_metrics(x, y, y_pred, sample_weight)

    def predict_map(self, x, batch_size=1000):
        """Predicts one state of the visible units.

        Max-product inference finds the most probable (v, h), mixed-product the most
        probable v; both approximately. Of marginals (sum-product, mean field, exact) it
        returns which exceed 1/2: the state with the fewest expected errors.

        Args:
            x: array (B, X).
            batch_size: int, examples at a time.

        Returns:
            tensor (B, V) of zeros and ones.
        """
        rows = self.feature_rows(x, "predict_map")
        check_counts(batch_size=batch_size)
        parts = [
            self(rows[start : start + batch_size])
            for start in range(0, len(rows), batch_size)
        ]
        return tf.cast(tf.concat(parts, 0) > 0.5, tf.float32)

    def sample(self, x, *, steps=1000, initial_visible=None, clamp=None, seed=None):
        """Draws visible states given x by block Gibbs sampling, one for each row.

        Args:
            x: array (B, X).
            steps: int ≥ 0, sweeps of each chain.
            initial_visible: array (B, V) to start from; by default drawn from the
                model without coupling, `sigmoid(A' x + b)`.
            clamp: bool array (V,) or (B, V), units that keep the value they start
                with (completion).
            seed: int; by default drawn from the model's generator.

        Returns:
            tensor (B, V).

        Raises:
            ValueError: if a count or shape is wrong, or `clamp` comes without
                `initial_visible`.
        """
        rows = self.feature_rows(x, "sample")
        potentials = self.potentials(rows)
        base = potentials.visible_bias
        return draw(
            self,
            potentials,
            base,
            tuple(base.shape),
            steps,
            initial_visible,
            clamp,
            seed,
        )

    def free_energy(self, x, v):
        """Computes `F(v | x) = -log sum_h exp(-E(v, h | x))`.

        Args:
            x: array (B, X).
            v: array (B, V).

        Returns:
            tensor (B,), nats.
        """
        rows, visible = self._pairs(x, v, "free_energy")
        return self.potentials(rows).free_energy(visible)

    def log_partition(
        self,
        x,
        method="bethe",
        *,
        num_chains=100,
        betas=1000,
        steps=1000,
        seed=0,
        progress=False,
    ):
        """Computes or estimates `log Z(x)` for each example.

        Args:
            x: array (B, X).
            method: `"bethe"` (sum-product to 1e-3 or 100 sweeps, whatever the model's
                inference; error not known, and large where `sum_product` does not
                converge, see `Beliefs.converged`), `"mean_field"` (a lower bound),
                `"exact"` (enumerates up to 25 units), `"ais"` or `"reverse_ais"`
                (annealing, `num_chains` chains for each example, from the model
                without coupling).
            num_chains, betas, steps, seed, progress: of the two annealing methods,
                see `keras_rbm.inference.estimate_log_partition`.

        Returns:
            `keras_rbm.inference.LogPartition`, fields of shape (B,), nats.

        Raises:
            ValueError: if the method is unknown, the model too large to enumerate,
                or an argument out of range.
        """
        if method not in _METHODS:
            raise ValueError(
                f"Expected method to be one of {_METHODS}. Received: method={method!r}."
            )
        rows = self.feature_rows(x, "log_partition")
        potentials = self.potentials(rows)
        return inference_module.estimate_log_partition(
            potentials,
            method,
            base=potentials.visible_bias,
            betas=betas,
            num_chains=num_chains,
            steps=steps,
            seed=seed,
            progress=progress,
        )

    def log_likelihood(self, x, v, log_partition="bethe"):
        """Computes `log p(v | x) = -F(v | x) - log Z(x)`.

        Args:
            x: array (B, X).
            v: array (B, V).
            log_partition: `LogPartition` of the same x, or a method's name to
                compute it by now.

        Returns:
            tensor (B,), nats, float64. As good as log Z.
        """
        free_energy = tf.cast(self.free_energy(x, v), tf.float64)
        if isinstance(log_partition, str):
            log_partition = self.log_partition(x, log_partition)
        value = getattr(log_partition, "value", log_partition)
        if not hasattr(value, "__array__"):
            raise TypeError(
                "Expected log_partition as a LogPartition, an array or a method's "
                f"name. Received: {log_partition!r}."
            )
        value = tf.cast(value, tf.float64)
        if value.shape != free_energy.shape:
            raise ValueError(
                "Expected log_partition of the same x, a value for each of "
                f"{len(free_energy)} rows. Received: shape {tuple(value.shape)}. Call "
                "log_partition(x) with it, or pass a method's name."
            )
        return -free_energy - value

    def _pairs(self, x, v, method):
        rows = self.feature_rows(x, method)
        visible = self.visible_rows(v, method, "v")
        if len(rows) != len(visible):
            raise ValueError(
                "Expected x and v of one length. Received: lengths "
                f"{len(rows)} and {len(visible)}."
            )
        return rows, visible

    def get_config(self):
        config = super().get_config()
        return config | {
            "hidden_units": self.hidden_units,
            "inference": keras.saving.serialize_keras_object(self.inference),
            "num_visible": self.num_visible,
            "num_features": self.num_features,
            "seed": self.seed,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "feature_initializer": keras.initializers.serialize(
                self.feature_initializer
            ),
            "kernel_regularizer": keras.regularizers.serialize(self.kernel_regularizer),
        }


def _normal(seed, number):
    if seed is not None:
        seed += number
    return keras.initializers.RandomNormal(stddev=0.01, seed=seed)


def _reseeded(initializer):
    """Returns an initialiser like this one that does not draw the same numbers."""
    config = initializer.get_config()
    if isinstance(config.get("seed"), int):
        config["seed"] += 1
    return initializer.from_config(config)
