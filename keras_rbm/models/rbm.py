"""The restricted Boltzmann machine."""

import keras
import tensorflow as tf

from keras_rbm import inference, units
from keras_rbm.checks import check_counts
from keras_rbm.models.generative_model import GenerativeModel
from keras_rbm.models.workflow.inputs import check_input_shape
from keras_rbm.models.workflow.layer_variables import (
    add_units,
    layer_parameters,
    unit_types,
)


@keras.saving.register_keras_serializable("keras_rbm")
class RBM(GenerativeModel):
    """Restricted Boltzmann machine.

    `-E(v, h) = v' W h + b' v + c' h` for binary units; other unit types add their
    own terms. `p(v) = exp(-F(v)) / Z` with the free energy
    `F(v) = -b' v - sum_j log(1 + exp(v' W_j + c_j))`.

    Called on data, the model returns `E[h | v]`, (B, H), so it can be used as a layer.

    Args:
        hidden_units: int ≥ 1, H.
        visible: str or `keras_rbm.units` object, type of the visible units.
        hidden: the same for the hidden units.
        num_visible: int or `None`, V. `None` takes it from the first data.
        seed: int or `None`. Seeds initial weights, sampling and shuffling.
        kernel_initializer: Keras initializer; by default normal, 0.01.
        visible_bias_initializer: Keras initializer, or `None`: zeros, until the first
            `fit` (or `adapt`) sets the bias to where the data's mean is.
        kernel_regularizer: Keras regularizer or `None`.
        **kwargs: `name`, `dtype`, `trainable`, as for `keras.Model`.

    Attributes:
        kernel: variable (V, H).
        visible_bias: variable (V,), and the visible units' other variables
            (`visible_log_precision`, …).
        hidden_bias: variable (H,), likewise.
        base_rate: variable (V,), not trained: the mean of the data that `adapt` or
            `fit` saw. Annealing and sampling start from it.

    Raises:
        ValueError: if a size is not an int ≥ 1, or a unit type is unknown.

    Example:

    >>> data = np.random.default_rng(0).integers(0, 2, (200, 6)).astype("float32")
    >>> rbm = keras_rbm.RBM(4, seed=0)
    >>> rbm.adapt(data)
    >>> rbm.compile(keras.optimizers.SGD(0.05), rule="cd")
    >>> history = rbm.fit(data, epochs=2, batch_size=50, verbose=0)
    >>> rbm.predict(data, verbose=0).shape
    (200, 4)
    >>> z = rbm.log_partition("exact")
    >>> rbm.log_likelihood(data, log_partition=z).shape
    TensorShape([200])

    References:
        1. Smolensky. Information processing in dynamical systems: foundations of
           harmony theory. 1986.
        2. Hinton. Training products of experts by minimizing contrastive
           divergence. Neural Computation, 2002.
    """

    def __init__(
        self,
        hidden_units: int,
        *,
        visible: str | units.Unit = "bernoulli",
        hidden: str | units.Unit = "bernoulli",
        num_visible: int | None = None,
        seed: int | None = None,
        kernel_initializer=None,
        visible_bias_initializer=None,
        kernel_regularizer=None,
        **kwargs,
    ):
        check_counts(hidden_units=hidden_units)
        visible, hidden = unit_types(visible, hidden)
        super().__init__(seed=seed, num_visible=num_visible, **kwargs)
        self.hidden_units = int(hidden_units)
        self.visible = visible
        self.hidden = hidden
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
        num_visible = self._visible_width = input_shape[-1]
        rows = self.visible.num_rows(num_visible)
        with self._strategy_scope():
            self.kernel = self.add_weight(
                name="kernel",
                shape=(rows, self.hidden.num_rows(self.hidden_units)),
                initializer=self.kernel_initializer,
                regularizer=self.kernel_regularizer,
            )
            start = self.visible_bias_initializer
            add_units(self, "visible_{}", self.visible, num_visible, start)
            add_units(self, "hidden_{}", self.hidden, self.hidden_units)
            self._add_record(self._visible_parameters().mean(tf.zeros(rows)))
        self.built = True
        if self.rule is not None:
            self._build_training()

    def _visible_parameters(self):
        return layer_parameters(self, "visible_{}", self.visible)

    def _hidden_parameters(self):
        return layer_parameters(self, "hidden_{}", self.hidden)

    def potentials(self, features=None, dtype=None) -> inference.Potentials:
        """Returns the model as `keras_rbm.inference.Potentials`.

        Args:
            features: ignored.
            dtype: str or `None`, type of the kernel, by default that of the model's
                computations. Scores use `"float32"`.
        """
        self._assert_built("potentials")
        return inference.Potentials(
            tf.cast(self.kernel, dtype or self.compute_dtype),
            self._visible_parameters(),
            self._hidden_parameters(),
        )

    def compute_output_shape(self, input_shape):
        return (input_shape[0], self.hidden.num_rows(self.hidden_units))

    def get_config(self):
        config = super().get_config() | self._start_config()
        return config | {
            "hidden_units": self.hidden_units,
            "visible": units.serialize(self.visible),
            "hidden": units.serialize(self.hidden),
            "num_visible": self.num_visible,
            "seed": self.seed,
        }
