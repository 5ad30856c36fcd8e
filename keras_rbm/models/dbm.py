"""The deep Boltzmann machine."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike

from keras_rbm import inference as inference_module, random, rules, units
from keras_rbm.inference.arguments import as_floats, check_sizes
from keras_rbm.inference.gibbs import gibbs_chain
from keras_rbm.inference.potentials import own_log_weight
from keras_rbm.models.data.rows import map_rows
from keras_rbm.models.deep import dbm_layers
from keras_rbm.models.deep.fine_tuning import joint_classifier
from keras_rbm.models.deep.greedy_training import one_each
from keras_rbm.models.files import Endpoint, endpoints_of_features, named, rows
from keras_rbm.models.generative_model import GenerativeModel
from keras_rbm.models.layer_variables import (
    add_units,
    layer_parameters,
    reseeded,
    unit_types,
    visible_parameters,
)
from keras_rbm.models.sampling import checked_chains
from keras_rbm.models.with_inference import WithInference
from keras_rbm.rules.learning_rule import Rule
from keras_rbm.units.bernoulli import are_binary
from keras_rbm.units.joined_units import joined


@keras.saving.register_keras_serializable("keras_rbm")
class DBM(WithInference, GenerativeModel):
    """Deep Boltzmann machine [1].

    `-E(v, h_1, h_2, ...) = v' W_1 h_1 + h_1' W_2 h_2 + ... + biases`. Odd layers are
    connected only to even ones, so the model is an RBM whose visible layer is
    `(v, h_2, ...)` and whose hidden layer is `(h_1, h_3, ...)`. `potentials` returns
    this RBM, for learning rules, samplers and estimates of log Z. In the positive phase
    the layers above the data are inferred: layers 2, 4, … enter with their means or, if
    they are not all binary, with states drawn from mean field. Joint training,
    without pretraining, needs the centered gradient [2, 3], which is the default.

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
        kernel_regularizer: Keras regularizer, or `None`. It is part of the update, not
            of the reported loss. `"auto"` is `keras_rbm.regularizers.L1BlockPrior()` of
            binary visible units and spins, `NormalPrior(1)` of others.
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
        hidden_units: Sequence[int],
        *,
        visible: str | units.Unit = "bernoulli",
        hidden: str | units.Unit | Sequence[str | units.Unit] = "bernoulli",
        inference: str | inference_module.Inference = "mean_field",
        num_visible: int | None = None,
        seed: int | None = None,
        kernel_initializer: str | Callable[..., Any] | None = None,
        visible_bias_initializer: str | Callable[..., Any] | None = None,
        kernel_regularizer: str | keras.regularizers.Regularizer | None = "auto",
        **kwargs: Any,
    ) -> None:
        hidden_units = dbm_layers.checked_sizes(hidden_units)
        inference = inference_module.get(inference)
        kinds = one_each(hidden, "hidden", len(hidden_units))
        types = [unit_types(visible, unit) for unit in kinds]
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

    def _add_variables(self, width):
        self._sizes = [width, *self.hidden_units]
        types = [self.visible, *self.hidden]
        self._rows = [
            unit.num_rows(count) for unit, count in zip(types, self._sizes, strict=True)
        ]
        self.kernels = []
        start = self._visible_bias_initializer
        add_units(self, dbm_layers.template(0), self.visible, width, start)
        for layer, count in enumerate(self.hidden_units, 1):
            kernel = self.add_weight(
                name=f"kernel_{layer}",
                shape=self._rows[layer - 1 : layer + 1],
                initializer=self._initializer(layer - 1),
                regularizer=self.kernel_regularizer,
            )
            self.kernels.append(kernel)
            add_units(self, dbm_layers.template(layer), types[layer], count)
        self.hidden_biases = [
            getattr(self, f"hidden_bias_{layer}") for layer in range(1, len(types))
        ]
        self._add_record(visible_parameters(self).mean(tf.zeros(self._rows[0])))
        self._kernel_mask = dbm_layers.connections(self._rows)

    def _each_layer(self):
        """Returns the parameters of all layers, from the data upwards."""
        return [
            layer_parameters(self, dbm_layers.template(number), unit)
            for number, unit in enumerate([self.visible, *self.hidden])
        ]

    def _initializer(self, layer):
        """Returns the initializer of a kernel, with its own seed."""
        return reseeded(self._kernel_initializer, layer)

    @property
    def kernel(self) -> tf.Tensor:
        """Variable (V, H_1): the kernel of the first hidden layer."""
        return self.kernels[0]

    def potentials(
        self,
        features: tf.Tensor | None = None,
        dtype: str | None = None,
        training: bool = False,
    ) -> inference_module.Potentials:
        """Returns the model as `Potentials`: even layers visible, odd ones hidden.

        Args:
            features, dtype, training: as for `RBM.potentials`.
        """
        self._assert_built("potentials")
        dtype = dtype or self.compute_dtype
        kernels = [tf.cast(kernel, dtype) for kernel in self.kernels]
        layers = self._each_layer()
        sides = joined(layers[0::2]), joined(layers[1::2])
        return inference_module.Potentials(dbm_layers.joint_kernel(kernels), *sides)

    def posterior(
        self, visible: tf.Tensor, dtype: str | None = None
    ) -> inference_module.Potentials:
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
            joint.kernel[rows:], joined(layers[1::2]), hidden
        )

    def _states_with_gaps(self, x):
        """Returns v with NaN for the states of the other even layers, float32."""
        values = super()._states_with_gaps(x)
        width = sum(self._sizes[2::2])
        return np.pad(values, ((0, 0), (0, width)), constant_values=np.nan)

    def _mean_states(self):
        """Returns the means of the even layers without coupling, (V + H_2 + …,)."""
        even = self._each_layer()[2::2]
        return tf.concat(
            [super()._mean_states(), *(layer.mean(layer.bias) for layer in even)], 0
        )

    def _complete(self, visible, seed):
        """Returns `(v, h_2, h_4, …)` by mean field, (B, V + H_2 + …).

        Binary layers enter with their means; others are drawn.
        """
        posterior = self.posterior(visible)
        beliefs = self._mean_field(posterior)
        if are_binary(*self.hidden[1::2]):
            return tf.concat([visible, beliefs.visible], 1)
        natural = posterior.visible_natural_of_mean(beliefs.hidden)
        return tf.concat([visible, posterior.visible.draw(natural, seed)], 1)

    def _mean_field(self, posterior):
        if isinstance(self.inference, inference_module.MeanField):
            return self.inference(posterior, pairwise=None)
        return inference_module.mean_field(posterior, pairwise=None)

    def _positive_phase(self, potentials, visible, weights, seed):
        states = self._complete(visible, seed)
        if isinstance(self.inference, inference_module.MeanField):
            return super()._positive_phase(potentials, states, weights, seed)
        beliefs = self.inference(self.posterior(visible), weights=weights)
        with_data = tf.matmul(
            visible * weights[:, tf.newaxis], beliefs.hidden, transpose_a=True
        )
        means = tf.concat([visible, beliefs.visible], 1)
        moments = inference_module.Moments(
            tf.concat([with_data, beliefs.pairwise], 0),
            potentials.visible.statistics(means),
            potentials.hidden.statistics(beliefs.hidden),
            weights,
        )
        return states, potentials.hidden_natural(states), moments

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        inputs = tf.cast(inputs, self.variable_dtype)
        beliefs = self.inference(self.posterior(inputs), pairwise=None)
        sizes = [self._sizes[0], *self._rows[1:]]
        _, *hidden = dbm_layers.both_sides(
            tf.concat([inputs, beliefs.visible], 1), beliefs.hidden, sizes
        )
        return tf.cast(tf.concat(hidden, 1), self.compute_dtype)

    def compute_output_shape(
        self, input_shape: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        return (input_shape[0], sum(self._rows[1:]))

    def _reconstruct(self, visible, features=None):
        below, above, *_ = self._each_layer()
        means = tf.cast(self(visible)[:, : self._rows[1]], self.variable_dtype)
        kernel = tf.cast(self.kernel, self.compute_dtype)
        potentials = inference_module.Potentials(kernel, below, above)
        return below.mean(potentials.visible_natural_of_mean(means))

    def variational_free_energy(self, x: ArrayLike) -> tf.Tensor:
        """Computes an upper bound of `-log sum_h exp(-E(v, h))`, by mean field.

        Args:
            x: array (B, V).

        Returns:
            tensor (B,), nats.
        """
        self._assert_built("variational_free_energy")
        return map_rows(self._energies, self.form.states(x))

    def _energies(self, visible):
        weight = own_log_weight(visible_parameters(self), visible)
        posterior = self.posterior(visible, self.variable_dtype)
        return -weight - self._mean_field(posterior).log_partition

    def log_likelihood_bound(
        self,
        x: ArrayLike,
        log_partition: ArrayLike | inference_module.LogPartition | str | None = None,
    ) -> tf.Tensor:
        """Computes the variational lower bound of `log p(v)`, by mean field.

        Args:
            x: array (B, V).
            log_partition: `LogPartition` or a number, from `log_partition`, or the
                name of a method to compute it with, by default that of
                `log_partition` (by `"ais"` the bound is optimistic).

        Returns:
            tensor (B,), nats, float64. The error of log Z is common to all examples.
        """
        values = self._visible_states(x, "log_likelihood_bound")
        return self._log_likelihood(values, log_partition)

    def sample(
        self,
        num_samples: int = 1,
        *,
        steps: int = 1000,
        initial_visible: ArrayLike | None = None,
        seed: int | None = None,
    ) -> tf.Tensor:
        """Draws visible states by block Gibbs sampling of all layers.

        Args:
            num_samples: int ≥ 1, number of independent chains.
            steps: int ≥ 0, sweeps of each chain.
            initial_visible: array (num_samples, V) to start from; by default drawn
                from the base rate. If some of it is NaN, all that is not keeps its
                value. The hidden layers start at mean field given it.
            seed: int; by default drawn from the model's generator.

        Returns:
            tensor (num_samples, V).

        Raises:
            ValueError: if a count or shape is wrong.
        """
        self._assert_built("sample")
        check_sizes(num_samples=num_samples)
        shape = (num_samples, self._sizes[0])
        below = visible_parameters(self)
        natural = below.natural_for_mean(tf.convert_to_tensor(self.base_rate))
        visible, clamp, seed = checked_chains(
            self, below, natural, shape, steps, initial_visible, seed
        )
        if visible is None:
            natural = tf.broadcast_to(natural, (num_samples, self._rows[0]))
            visible = below.draw(natural, random.fold_in(seed, -1))
        states = self._complete(visible, random.fold_in(seed, -2))
        if clamp is not None:
            free = tf.shape(states)[1] - self._sizes[0]
            clamp = tf.pad(clamp, [[0, 0], [0, free]])
        potentials = self.potentials()
        chains = gibbs_chain(potentials, states, seed, num_sweeps=steps, clamp=clamp)
        return chains[:, : self._sizes[0]]

    def _endpoints(self):
        """Returns the exported model's functions: a dict of name to `Endpoint`."""
        width = self._sizes[0]
        energy = Endpoint(named("free_energy", self._energies), [rows(width)])
        return {"variational_free_energy": energy} | endpoints_of_features(
            self.call, self._reconstruct, self.sample, width
        )

    def pretrain(
        self,
        x: ArrayLike | tf.data.Dataset,
        *,
        optimizer: str
        | keras.optimizers.Optimizer
        | Sequence[str | keras.optimizers.Optimizer]
        | None = None,
        rule: str | Rule | Sequence[str | Rule] | None = None,
        epochs: int | Sequence[int] = 1,
        **kwargs: Any,
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
                `verbose`, as for `DBN.pretrain`. Callbacks that score a model of p(v)
                do not work with these RBMs.

        Returns:
            list of `keras.callbacks.History`, one for each layer.

        Raises:
            ValueError: if a layer is not binary; train such models directly with `fit`.

        References:
            1. Salakhutdinov, Hinton. Deep Boltzmann machines. AISTATS 2009.
        """
        self._check_binary("pretrain", "Call fit, which trains all layers at once.")
        starts = [self._initializer(layer) for layer in range(len(self.hidden))]
        rbms, histories = dbm_layers.pretrained(
            self, starts, x, optimizer, rule, epochs, **kwargs
        )
        if not self.built:
            self.build((None, rbms[0].num_visible))
        below = [rbm.hidden_bias for rbm in rbms]
        above = [rbm.visible_bias for rbm in rbms[1:]] + below[-1:]
        for layer, rbm in enumerate(rbms):
            self.kernels[layer].assign(rbm.kernel)
            self.hidden_biases[layer].assign(0.5 * (below[layer] + above[layer]))
        self.visible_bias.assign(rbms[0].visible_bias)
        self._copy_record(rbms[0])
        if self.rule is not None:
            self.learner.recenter()
        return histories

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

    def _check_inference(self, inference):
        super()._check_inference(inference)
        if inference.finds_state:
            raise ValueError(
                "Expected inference that yields marginals. Received: "
                f"inference={inference!r}. Use MeanField() or "
                "BeliefPropagation('sum_product')."
            )

    def _check_rule(self, rule, learner):
        if isinstance(rule, rules.MaximumLikelihood):
            raise ValueError(
                "Expected a model whose visible layer is only the data, for "
                f"MaximumLikelihood. Received: {type(self).__name__} '{self.name}'. "
                "Use the rule 'pcd'."
            )
        super()._check_rule(rule, learner)
        if getattr(rule, "sparsity_cost", 0.0):
            raise ValueError(
                "Expected no sparsity target for a deep model: it would reach only "
                f"every second hidden layer. Received: {rule!r}. Leave it out."
            )

    def get_config(self) -> dict[str, Any]:
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
