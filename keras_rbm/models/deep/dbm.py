"""The deep Boltzmann machine."""

import keras
import tensorflow as tf

from keras_rbm import inference as inference_module
from keras_rbm import units
from keras_rbm.inference.arguments import as_floats
from keras_rbm.models.deep import layered
from keras_rbm.models.deep.deep_model import DeepModel
from keras_rbm.models.deep.fine_tuning import joint_classifier
from keras_rbm.models.deep.greedy_training import one_each
from keras_rbm.models.deep.pretraining import pretrain
from keras_rbm.models.workflow.initializers import reseeded
from keras_rbm.models.workflow.inputs import check_input_shape
from keras_rbm.models.workflow.layer_variables import (
    add_units,
    layer_parameters,
    unit_types,
)
from keras_rbm.units.bernoulli import are_binary


@keras.saving.register_keras_serializable("keras_rbm")
class DBM(DeepModel):
    """Deep Boltzmann machine [1].

    `-E(v, h_1, h_2, ...) = v' W_1 h_1 + h_1' W_2 h_2 + ... + biases`. Odd layers are
    connected only to even ones, so the model is an RBM whose visible layer is
    `(v, h_2, ...)` and whose hidden layer is `(h_1, h_3, ...)`. `potentials` returns
    this RBM, for learning rules, samplers and estimates of log Z. In the positive phase
    the layers above the data are inferred: layers 2, 4, … enter with their means or, if
    they are not all binary, with states drawn from mean field. Joint training,
    without pretraining, needs the centered gradient [2, 3]:
    `rule=PersistentContrastiveDivergence(centered=True)`.

    Called on data, the model returns `E[h | v]` of all hidden layers by its inference,
    side by side from below, (B, sum of hidden units). As a layer of another model it is
    not trained: see `to_classifier`.

    Args:
        hidden_units: list of at least two ints ≥ 1, from below.
        visible: str or `keras_rbm.units` object, type of the visible units.
        hidden: the same for the hidden units; or a list, one for each layer.
        inference: str or `keras_rbm.inference.Inference` that yields marginals:
            `MeanField`, or for binary units `BeliefPropagation("sum_product")`, from
            which training then takes its positive moments.
        num_visible: int or `None`, V. `None` takes it from the first data.
        seed: int or `None`. Seeds the default initial weights, sampling, shuffling.
        kernel_initializer: Keras initializer; by default normal, 0.01.
        visible_bias_initializer: Keras initializer, or `None`: zeros, until the first
            `fit` (or `adapt`) sets the bias to where the data's mean is.
        kernel_regularizer: Keras regularizer or `None`.
        **kwargs: `name`, `dtype`, `trainable`, as for `keras.Model`.

    Attributes:
        kernels: list of variables (V, H_1), (H_1, H_2), …; categorical units count
            with one row per category.
        visible_bias: variable (V,), and the units' other variables, as in `RBM`.
        hidden_biases: list of variables (H_1,), (H_2,), …
        base_rate: variable (V,), see `RBM`.

    Raises:
        ValueError: if a size is not an int ≥ 1, there is only one hidden layer, or the
            inference yields states or does not fit the units.

    Example:

    >>> data = np.random.default_rng(0).integers(0, 2, (200, 6)).astype("float32")
    >>> dbm = keras_rbm.DBM([5, 4], seed=0)
    >>> dbm.adapt(data)
    >>> rule = keras_rbm.rules.PersistentContrastiveDivergence(centered=True)
    >>> dbm.compile(keras.optimizers.SGD(0.05), rule=rule)
    >>> history = dbm.fit(data, epochs=2, batch_size=50, verbose=0)
    >>> dbm.predict(data, verbose=0).shape
    (200, 9)
    >>> dbm.log_likelihood_bound(data, "exact").shape
    TensorShape([200])

    References:
        1. Salakhutdinov, Hinton. Deep Boltzmann machines. AISTATS 2009.
        2. Montavon, Müller. Deep Boltzmann machines and the centering trick. 2012.
        3. Melchior, Fischer, Wiskott. How to center deep Boltzmann machines.
           JMLR 2016.
    """

    def __init__(
        self,
        hidden_units: list[int],
        *,
        visible: str | units.Unit = "bernoulli",
        hidden: str | units.Unit | list[str | units.Unit] = "bernoulli",
        inference: str | inference_module.Inference = "mean_field",
        num_visible: int | None = None,
        seed: int | None = None,
        kernel_initializer=None,
        visible_bias_initializer=None,
        kernel_regularizer=None,
        **kwargs,
    ):
        hidden_units = layered.checked_sizes(hidden_units)
        inference = inference_module.get(inference)
        each = one_each(hidden, "hidden", len(hidden_units))
        types = [unit_types(visible, unit) for unit in each]
        super().__init__(seed=seed, num_visible=num_visible, **kwargs)
        self.hidden_units = hidden_units
        self.visible = types[0][0]
        self.hidden = [unit for _, unit in types]
        self._check_inference(inference)
        self._inference = inference
        self._set_start(
            kernel_initializer, kernel_regularizer, visible_bias_initializer
        )
        if num_visible is not None:
            self.build((None, self.num_visible))

    def build(self, input_shape):
        check_input_shape(input_shape, self)
        if self.built:
            return
        self.input_spec = keras.layers.InputSpec(ndim=2, axes={-1: input_shape[-1]})
        self._sizes = [input_shape[-1], *self.hidden_units]
        self._visible_width = self._sizes[0]
        types = [self.visible, *self.hidden]
        self._rows = [
            unit.num_rows(count) for unit, count in zip(types, self._sizes, strict=True)
        ]
        self.kernels = []
        with self._strategy_scope():
            start = self.visible_bias_initializer
            add_units(self, layered.template(0), self.visible, self._sizes[0], start)
            for layer, count in enumerate(self.hidden_units, 1):
                kernel = self.add_weight(
                    name=f"kernel_{layer}",
                    shape=self._rows[layer - 1 : layer + 1],
                    initializer=self._initializer(layer - 1),
                    regularizer=self.kernel_regularizer,
                )
                self.kernels.append(kernel)
                add_units(self, layered.template(layer), types[layer], count)
            self.hidden_biases = [
                getattr(self, f"hidden_bias_{layer}") for layer in range(1, len(types))
            ]
            self._add_record(self._each_layer()[0].mean(tf.zeros(self._rows[0])))
        self.kernel_mask = layered.connections(self._rows)
        self.built = True
        if self.rule is not None:
            self._build_training()

    def _each_layer(self):
        """Returns the parameters of all layers, from the data upwards."""
        return [
            layer_parameters(self, layered.template(number), unit)
            for number, unit in enumerate([self.visible, *self.hidden])
        ]

    def _visible_parameters(self):
        return layer_parameters(self, layered.template(0), self.visible)

    def _initializer(self, layer):
        """Returns the initializer of a kernel, with its own seed."""
        return reseeded(self.kernel_initializer, layer)

    @property
    def kernel(self):
        return self.kernels[0]

    def potentials(self, features=None, dtype=None) -> inference_module.Potentials:
        """Returns the model as `Potentials`: even layers visible, odd ones hidden.

        Args:
            features, dtype: as for `RBM.potentials`.
        """
        self._assert_built("potentials")
        dtype = dtype or self.compute_dtype
        kernels = [tf.cast(kernel, dtype) for kernel in self.kernels]
        layers = self._each_layer()
        sides = units.joined(layers[0::2]), units.joined(layers[1::2])
        return inference_module.Potentials(layered.joint_kernel(kernels), *sides)

    def posterior(self, visible, dtype=None) -> inference_module.Potentials:
        """Returns the model of the hidden layers given v as `Potentials`.

        Args:
            visible: tensor (B, V).
            dtype: as for `potentials`.

        Returns:
            `Potentials`: even hidden layers are visible, odd ones hidden; the hidden
            biases (B, …) include the input from v.
        """
        self._assert_built("posterior")
        visible = as_floats("visible", visible, (None, self._sizes[0]))
        joint = self.potentials(dtype=dtype)
        below, *layers = self._each_layer()
        rows = self._rows[0]
        first = tf.cast(below.first_of(visible), joint.kernel.dtype)
        inputs = tf.matmul(first, joint.kernel[:rows])
        hidden = joint.hidden.with_bias(
            joint.hidden_bias + tf.cast(inputs, joint.hidden_bias.dtype)
        )
        return inference_module.Potentials(
            joint.kernel[rows:], units.joined(layers[1::2]), hidden
        )

    def gradients(self, features, positive, negative):
        """Returns negative minus positive mean statistics of the potentials."""
        gradients = super().gradients(features, positive, negative)
        if self.kernel_mask is not None:
            gradients["kernel"] *= self.kernel_mask
        return gradients

    def descend(self, gradients):
        """Descends along gradients of the potentials' parameters."""
        types = [self.visible, *self.hidden]
        super().descend(layered.by_layer(gradients, types, self._rows))

    def mean_states(self):
        """Returns the means of the even layers without coupling, (V + H_2 + …,)."""
        even = self._each_layer()[2::2]
        return tf.concat(
            [super().mean_states(), *(layer.mean(layer.bias) for layer in even)], 0
        )

    def base_natural(self, potentials):
        """Returns natural parameters of the even layers without coupling."""
        below, *layers = self._each_layer()
        data = below.natural_for_mean(super().mean_states())
        return tf.concat([data, *(layer.bias for layer in layers[1::2])], 0)

    def pretrain(
        self, x, *, optimizer=None, rule="cd", epochs: int | list[int] = 1, **kwargs
    ) -> list[keras.callbacks.History]:
        """Trains the layers one after the other, as a start for `fit`.

        Each is an RBM in which a hidden layer of this model counts twice, for the input
        that it will have from its other side [1]. The RBMs are new: what this model
        has learned is lost.

        Args:
            x: array (N, V), or a `tf.data.Dataset` of batches.
            optimizer, rule: as for `DBN.compile`.
            epochs: int ≥ 1, or a list with one for each layer.
            **kwargs: `batch_size`, `validation_data`, `callbacks`, `sample_weight`,
                `verbose`, as for `DBN.fit`. Callbacks that score a model of p(v) do not
                work with these RBMs.

        Returns:
            list of `keras.callbacks.History`, one for each layer.

        Raises:
            ValueError: if a layer is not binary; train such models directly with `fit`.

        References:
            1. Salakhutdinov, Hinton. Deep Boltzmann machines. AISTATS 2009.
        """
        self._check_binary("pretrain", "Call fit, which trains all layers at once.")
        return pretrain(self, x, optimizer, rule, epochs, **kwargs)

    def to_classifier(self, num_classes: int, *, dropout: float = 0.0) -> keras.Model:
        """Returns a feed-forward network that starts with this model's weights.

        Each layer has the input from below, and from above the features of a copy of
        this model, which is not trained [1].

        Args:
            num_classes: int ≥ 2.
            dropout: float in [0, 1), share of units dropped before each layer.

        Returns:
            `keras.Model`. Compile and fit it like any classifier.

        Raises:
            ValueError: if a layer is not binary, or the model is not built.

        References:
            1. Salakhutdinov, Hinton. Deep Boltzmann machines. AISTATS 2009.
        """
        self._assert_built("to_classifier")
        self._check_binary("to_classifier", "Use the model as a layer instead.")
        return joint_classifier(self, num_classes, dropout)

    def _check_binary(self, method, cure):
        if not are_binary(self.visible, *self.hidden):
            raise ValueError(
                f"Expected binary units in {method}(). Received: visible="
                f"{self.visible!r}, hidden={self.hidden!r:.200}. {cure}"
            )

    def get_config(self):
        config = super().get_config() | self._start_config()
        serialize = keras.saving.serialize_keras_object
        return config | {
            "hidden_units": list(self.hidden_units),
            "visible": serialize(self.visible),
            "hidden": [serialize(unit) for unit in self.hidden],
            "inference": serialize(self.inference),
            "num_visible": self.num_visible,
            "seed": self.seed,
        }
