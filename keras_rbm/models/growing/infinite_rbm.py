"""The infinite restricted Boltzmann machine, whose hidden layer grows."""

import keras
import numpy as np
import tensorflow as tf

from keras_rbm import inference, units
from keras_rbm.checks import check_counts
from keras_rbm.models.generative_model import GenerativeModel
from keras_rbm.models.growing import rbm_conversion, unit_editing
from keras_rbm.models.layer_variables import check_input_shape
from keras_rbm.models.rbm import RBM


@keras.saving.register_keras_serializable("keras_rbm")
class InfiniteRBM(GenerativeModel):
    """Restricted Boltzmann machine with as many hidden units as the data require.

    `log p(v) = b' v + sum_i c_i log(1 + exp(v' w_i + d_i)) - log Z`: unit i counts
    `c_i = alpha q_i` times, where `q` is a distribution over unit weights and the
    temperature `alpha` is the sum of all c_i [1]. With all c_i = 1 it is an RBM. The
    rule `FrankWolfe` adds one unit per step; until then visible units are independent.

    There is room for `max_hidden_units`; computation grows only with those in use.
    Called on data, the model returns `E[h | v] = c_i sigmoid(v' w_i + d_i)`,
    (B, units in use).

    Args:
        max_hidden_units: int ≥ 1, the size at which growing ends.
        num_visible: int or `None`, V. `None` takes it from the first data.
        seed: int or `None`. Seeds unit searches, sampling and shuffling.
        **kwargs: `name`, `dtype`, `trainable`, as for `keras.Model`.

    Attributes:
        kernel: variable (V, max_hidden_units), the w_i in order of insertion.
        hidden_bias: variable (max_hidden_units,), the d_i.
        coefficients: variable (max_hidden_units,), the c_i.
        num_units: int variable, units in use, at least 1; a new model's unit has
            c = 0 and is replaced by the first one found.
        visible_bias: variable (V,).
        base_rate: variable (V,), see `RBM`.

    Raises:
        ValueError: if a size is not an int ≥ 1.

    Example:

    >>> data = np.repeat([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]], 100, axis=0)
    >>> grown = keras_rbm.InfiniteRBM(8, seed=0)
    >>> grown.compile(rule=keras_rbm.rules.FrankWolfe(l2=0.05, num_samples=500))
    >>> history = grown.fit(data, batch_size=200, epochs=3, verbose=0)
    >>> grown.to_rbm().hidden_units
    3

    References:
        1. Ping, Liu, Ihler. Learning infinite RBMs with Frank-Wolfe. NIPS 2016.
    """

    grows = True

    def __init__(
        self,
        max_hidden_units: int,
        *,
        num_visible: int | None = None,
        seed: int | None = None,
        **kwargs,
    ):
        check_counts(max_hidden_units=max_hidden_units)
        super().__init__(seed=seed, num_visible=num_visible, **kwargs)
        self.supports_jit = False  # XLA would compile again for each size
        self.max_hidden_units = int(max_hidden_units)
        self.visible = self.hidden = units.Bernoulli()
        self._first_units = 1
        if num_visible is not None:
            self.build((None, self.num_visible))

    def build(self, input_shape):
        check_input_shape(input_shape, self)
        if self.built:
            return
        self.input_spec = keras.layers.InputSpec(ndim=2, axes={-1: input_shape[-1]})
        sizes = {
            "kernel": (input_shape[-1], self.max_hidden_units),
            "visible_bias": (input_shape[-1],),
            "hidden_bias": (self.max_hidden_units,),
        }
        for name, shape in sizes.items():
            weight = self.add_weight(name=name, shape=shape, initializer="zeros")
            setattr(self, name, weight)
        shape = (self.max_hidden_units,)
        self.coefficients = self.add_weight(
            shape, "zeros", trainable=False, name="coefficients"
        )
        count = keras.initializers.Constant(self._first_units)
        self.num_units = self.add_weight(
            (), count, dtype="int32", trainable=False, name="num_units"
        )
        self._visible_width = input_shape[-1]
        self._add_record(np.full(input_shape[-1], 0.5))
        self.built = True
        if self.rule is not None:
            self._build_training()

    @property
    def hidden_units(self):
        """int: hidden units in use; 1 for a new model, whose unit has coefficient 0."""
        self._assert_built("hidden_units")
        return int(self.num_units.numpy())

    @property
    def temperature(self):
        """float: alpha, the sum of the coefficients of the units in use."""
        self._assert_built("temperature")
        return float(tf.reduce_sum(self.coefficients[: self.hidden_units]))

    def potentials(self, features=None, dtype=None) -> inference.Potentials:
        """Returns the units in use as `keras_rbm.inference.Potentials`.

        Outside of a `tf.function` these are binary units, as in an RBM, if all count
        once. The arguments are those of `RBM.potentials`.
        """
        self._assert_built("potentials")
        potentials = self._growing_potentials()
        hidden = potentials.hidden
        if tf.executing_eagerly() and tf.reduce_all(hidden.coefficients == 1.0):
            hidden = units.BernoulliParameters(hidden.bias)
        kernel = tf.cast(potentials.kernel, dtype or self.compute_dtype)
        return inference.Potentials(kernel, potentials.visible, hidden)

    def _growing_potentials(self):
        """Returns the units in use with their coefficients, in full precision."""
        count = tf.convert_to_tensor(self.num_units)
        bias, coefficients = self.hidden_bias[:count], self.coefficients[:count]
        hidden = units.FractionalParameters(bias, coefficients)
        visible = units.BernoulliParameters(tf.convert_to_tensor(self.visible_bias))
        return inference.Potentials(self.kernel[:, :count], visible, hidden)

    def compute_output_shape(self, input_shape):
        return (input_shape[0], self.hidden_units)

    def compile(self, optimizer=None, *, rule="frank_wolfe", **kwargs) -> None:
        """Configures the model for training, as `RBM.compile` does.

        Args:
            optimizer: only counts the steps; `FrankWolfe` does not use it otherwise.
            rule: str or `keras_rbm.rules.FrankWolfe`.
            **kwargs: see `RBM.compile`; `jit_compile=True` and distribution
                strategies are not supported.
        """
        if kwargs.get("jit_compile") is True:
            raise ValueError(
                "Expected jit_compile=False (or 'auto'): a growing model would be "
                "compiled again for each size. Received: jit_compile=True."
            )
        if self.distribute_strategy.num_replicas_in_sync > 1:
            raise ValueError(
                "Expected a single device: an InfiniteRBM does not grow under a "
                "distribution strategy. Received: "
                f"{type(self.distribute_strategy).__name__}. Grow it outside of the "
                "strategy's scope, and train its to_rbm() there."
            )
        super().compile(optimizer, rule=rule, **kwargs)

    def _check_rule(self, rule, optimizer=None):
        super()._check_rule(rule, optimizer)
        if not rule.grows:
            raise ValueError(
                "Expected a rule that adds hidden units. Received: "
                f"{type(rule).__name__} for {type(self).__name__} '{self.name}'. Use "
                "FrankWolfe(), or train its to_rbm()."
            )

    def fit(self, *args, **kwargs) -> keras.callbacks.History:
        """Grows the model, like `RBM.fit`, until there is no room for more units.

        Each batch adds a unit that is fitted to it. An array is one batch, unless
        `batch_size` is given. Then it is split into batches of about that size, the
        last at least half as large: a unit fitted to a few remaining rows would fit
        noise.

        Raises:
            ValueError: if there is no room at the start, the model is not trainable,
                or the data cannot be states of binary units; nothing is changed then.
        """
        if not self.trainable:
            raise ValueError(
                "Expected a trainable model to grow. Received: trainable=False. Set "
                "trainable = True and compile again."
            )
        if self.built and self.is_full:
            raise ValueError(
                f"Expected room for more than {self.hidden_units} hidden units. "
                f"Received: max_hidden_units={self.max_hidden_units}. Continue with a "
                "larger model: InfiniteRBM.from_rbm(model, max_hidden_units=...)."
            )
        return super().fit(*args, **kwargs)

    def _batch_size_for(self, count, wanted):
        """Returns a batch size near the wanted one that leaves no small last batch."""
        steps = max(1, round(count / (wanted or count)))
        while True:
            size = -(-count // steps)
            if 2 * (count - (steps - 1) * size) >= size:
                return size
            steps -= 1

    @property
    def is_full(self) -> bool:
        """bool: whether there is no room for another hidden unit."""
        in_use = self.hidden_units if self.temperature > 0.0 else 0
        return in_use >= self.max_hidden_units

    def insert_unit(self, weights, bias, coefficient=1.0) -> None:
        """Adds a hidden unit.

        Args:
            weights: tensor (V,).
            bias: scalar.
            coefficient: scalar ≥ 0, how often the unit counts.

        Raises:
            ValueError: if there is no room, or a value is not finite or has another
                shape; checked only outside of a `tf.function`.
        """
        unit_editing.insert_unit(self, weights, bias, coefficient)

    def remove_unit(self, index) -> None:
        """Removes a hidden unit; the units after it move up.

        Args:
            index: int from 0, or scalar integer tensor.

        Raises:
            ValueError: if there is no unit at the index; checked only outside of a
                `tf.function`.
        """
        unit_editing.remove_unit(self, index)

    def set_coefficient(self, index, value) -> None:
        """Sets how often a hidden unit counts.

        Args:
            index: as for `remove_unit`.
            value: float ≥ 0, or scalar tensor.
        """
        unit_editing.set_coefficient(self, index, value)

    def to_rbm(self, approximate: bool = False) -> RBM:
        """Returns this model as an RBM, for example to train it further.

        Args:
            approximate: bool. An RBM has no unit with a c between whole numbers. If
                `True`, the fractional part, called c here, becomes a unit with weights
                `c w` and bias `c d`: `2^(c-1) (1 + e^(c a)) <=
                (1 + e^a)^c <= 1 + e^(c a)` for 0 < c <= 1 [1, proposition 3.2].

        Returns:
            `RBM` of as many units as the coefficients count, not compiled.

        Raises:
            ValueError: if a coefficient is not whole and `approximate` is `False`,
                or no unit counts yet.
        """
        return rbm_conversion.to_rbm(self, approximate)

    @classmethod
    def from_rbm(cls, rbm, max_hidden_units: int, **kwargs) -> "InfiniteRBM":
        """Returns a model that continues to grow from a trained RBM.

        Args:
            rbm: `RBM` of binary units, or an `InfiniteRBM` that needs more room.
            max_hidden_units: int, at least as many as the RBM has.
            **kwargs: as for the constructor.

        Raises:
            TypeError: if `rbm` is neither.
            ValueError: if the units are not binary, or there is no room.
        """
        return rbm_conversion.from_rbm(cls, rbm, max_hidden_units, **kwargs)

    @classmethod
    def from_config(cls, config):
        # Later layers are built for the units in use, before weights are loaded.
        config = dict(config)
        count = config.pop("num_units", 1)
        model = super().from_config(config)
        model._first_units = count
        if model.built:
            model.num_units.assign(count)
        return model

    def get_config(self):
        return super().get_config() | {
            "max_hidden_units": self.max_hidden_units,
            "num_visible": self.num_visible,
            "seed": self.seed,
            "num_units": self.hidden_units if self.built else self._first_units,
        }
