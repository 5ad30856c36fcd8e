"""The infinite restricted Boltzmann machine, whose hidden layer grows."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike

from keras_rbm import inference
from keras_rbm._checks import check_counts
from keras_rbm.inference.arguments import as_floats
from keras_rbm.inference.growing.growth import GrowingSamples, grow
from keras_rbm.inference.growing.resample_move import FractionalParameters
from keras_rbm.models.rbm import RBM
from keras_rbm.models.training.growing import Growing, SampleVariables
from keras_rbm.rules import FrankWolfe
from keras_rbm.rules.learning_rule import Rule
from keras_rbm.units.bernoulli import BernoulliParameters, are_binary

#: Bias of a unit that is never on: the only one of a model that has none yet.
_OFF = -1e4


@keras.saving.register_keras_serializable("keras_rbm")
class InfiniteRBM(RBM):
    """Restricted Boltzmann machine with as many hidden units as the data require.

    `log p(v) = b' v + sum_i c_i log(1 + exp(v' w_i + d_i)) - log Z`: unit i counts
    `c_i = alpha q_i` times, where `q` is a distribution over unit weights [1]. Here
    the temperature `alpha` is the number of units, and each counts once: it is an RBM.
    The rule `FrankWolfe` adds one unit per step; until then visible units are
    independent.

    There is room for `max_hidden_units`; computation grows only with those in use.
    Called on data, the model returns `E[h | v]`, (B, units in use). A model without
    units returns one that is never on.

    Args:
        max_hidden_units: int ≥ 1, the size at which growing ends.
        num_visible: int or `None`, V. `None` takes it from the first data.
        seed: int or `None`. Seeds unit searches, sampling and shuffling.
        **kwargs: `name`, `dtype`, `trainable`, as for `keras.Model`.

    Attributes:
        kernel: variable (V, max_hidden_units), the w_i in order of insertion.
        hidden_bias: variable (max_hidden_units,), the d_i.
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

    _samples: Any = None  # until it is built for a rule
    _predicts = False

    def __init__(
        self,
        max_hidden_units: int,
        *,
        num_visible: int | None = None,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        check_counts(max_hidden_units=max_hidden_units)
        if kwargs.get("missing") is not None:
            raise ValueError(
                "Expected no missing for a model that grows, whose steps take complete "
                f"rows. Received: missing={kwargs['missing']!r}. Use an RBM."
            )
        self._first_units = 0
        super().__init__(
            max_hidden_units,
            visible="bernoulli",
            hidden="bernoulli",
            num_visible=num_visible,
            seed=seed,
            kernel_initializer="zeros",
            kernel_regularizer=None,
            **kwargs,
        )
        self.supports_jit = False  # XLA would compile again for each size

    def _add_variables(self, width):
        count = keras.initializers.Constant(self._first_units)
        self._in_use = self.add_weight(
            (), count, dtype="int32", trainable=False, name="hidden_units"
        )
        super()._add_variables(width)

    def _build_training(self):
        variables = self.learner.variables
        if not variables:
            size = self.rule.num_samples, self.num_visible
            samples = GrowingSamples.new(*size, self._next_seed())
            variables += SampleVariables.variables_for(samples)
        self._samples = SampleVariables(variables)
        super()._build_training()

    @property
    def hidden_units(self) -> int:
        """int: hidden units in use, 0 for a new model."""
        self._assert_built("hidden_units")
        return int(self._in_use.numpy())

    @property
    def max_hidden_units(self) -> int:
        """int: the size at which growing ends."""
        return self._hidden_width

    @property
    def is_full(self) -> bool:
        """bool: whether there is no room for another hidden unit."""
        return self.hidden_units >= self.max_hidden_units

    def potentials(
        self,
        features: tf.Tensor | None = None,
        dtype: str | None = None,
        training: bool = False,
    ) -> inference.Potentials:
        """Returns the units in use as `keras_rbm.inference.Potentials`.

        The arguments are those of `RBM.potentials`.
        """
        self._assert_built("potentials")
        count = tf.convert_to_tensor(self._in_use)
        used = slice(tf.maximum(count, 1))
        return inference.Potentials(
            tf.cast(self.kernel[:, used], dtype or self.compute_dtype),
            BernoulliParameters(tf.convert_to_tensor(self.visible_bias)),
            BernoulliParameters(tf.where(count > 0, self.hidden_bias[used], _OFF)),
        )

    def _hidden_parameters(self):
        return self.potentials().hidden

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        features = super().call(inputs)
        if not tf.inside_function() or self._predicts:
            return features
        # A layer behind this one needs a static width.
        with tf.init_scope():
            count = self.hidden_units
        if not count:
            raise ValueError(
                "Expected hidden units of an InfiniteRBM in another model. Received: "
                f"'{self.name}', which has none yet. Call fit() first, and pass "
                "to_rbm()."
            )
        return tf.ensure_shape(features, (None, count))

    def predict_step(self, data: Any) -> tf.Tensor:
        self._predicts = True  # and follows the model's growth
        try:
            return super().predict_step(data)
        finally:
            self._predicts = False

    def compute_output_shape(
        self, input_shape: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        return (input_shape[0], max(self.hidden_units, 1))

    def compile(
        self,
        optimizer: str | dict[str, Any] | keras.optimizers.Optimizer | None = None,
        *,
        rule: str | dict[str, Any] | Rule = "frank_wolfe",
        **kwargs: Any,
    ) -> None:
        """Configures the model for training, as `RBM.compile` does.

        Args:
            optimizer: only counts the steps.
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

    def _check_rule(self, rule, learner):
        if not isinstance(rule, FrankWolfe):
            raise ValueError(
                "Expected a rule that adds hidden units. Received: "
                f"{type(rule).__name__} for {type(self).__name__} '{self.name}'. Use "
                "FrankWolfe(), or train its to_rbm()."
            )
        steps = getattr(learner.optimizer, "gradient_accumulation_steps", None)
        if steps:
            raise ValueError(
                "Expected an optimizer that only counts the steps. Received: "
                f"gradient_accumulation_steps={steps}. Leave the optimizer out."
            )
        rule.check(learner)

    def fit(self, *args: Any, **kwargs: Any) -> keras.callbacks.History:
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

    def _fit_callbacks(self, start, is_all, batch_size):
        return [Growing(self._samples)]

    def _grow(self, step):
        """Takes the step of `keras_rbm.inference.growing.growth.grow` with a batch."""
        count = tf.convert_to_tensor(self._in_use)
        growth = grow(
            self._growing_potentials(),
            self._samples.read(),
            step.visible,
            step.weights,
            step.root_seed,
            settings=self.rule,
            l2=self.rule.penalty(count),
            room=count < self.max_hidden_units,
        )
        unit = growth.unit
        tf.cond(
            growth.accepted,
            lambda: self._insert(unit.weights[0], unit.bias[0]),
            lambda: None,
        )
        self.visible_bias.assign(growth.visible_bias)
        self._samples.assign(growth.samples, self)
        self.optimizer.iterations.assign_add(1)
        number = tf.convert_to_tensor(self._in_use)
        return growth.logs | {"hidden_units": number}

    def _growing_potentials(self):
        """Returns the units in use as `grow` takes them, in full precision."""
        count = tf.convert_to_tensor(self._in_use)
        columns = tf.maximum(count, 1)
        coefficients = tf.cast(tf.range(columns) < count, tf.float32)
        return inference.Potentials(
            self.kernel[:, :columns],
            BernoulliParameters(tf.convert_to_tensor(self.visible_bias)),
            FractionalParameters(self.hidden_bias[:columns], coefficients),
        )

    def _chains(self, potentials):
        return None if self._samples is None else self._samples.read().chains

    def insert_unit(self, weights: ArrayLike, bias: float | ArrayLike) -> None:
        """Adds a hidden unit.

        Args:
            weights: tensor (V,).
            bias: scalar.

        Raises:
            ValueError: if there is no room, or a value is not finite or has another
                shape.
        """
        self._assert_built("insert_unit")
        weights, bias = as_floats("weights", weights), as_floats("bias", bias)
        shapes = tuple(weights.shape), tuple(bias.shape)
        finite = np.isfinite(weights).all() and np.isfinite(bias).all()
        if shapes != ((self.num_visible,), ()) or not finite:
            raise ValueError(
                f"Expected finite weights of shape ({self.num_visible},) and a "
                f"scalar bias. Received: shapes {shapes}."
            )
        if self.is_full:
            raise ValueError(
                f"Expected room for a unit. Received: {self.hidden_units} of "
                f"max_hidden_units={self.max_hidden_units} in use. Use "
                "InfiniteRBM.from_rbm(model, max_hidden_units=...)."
            )
        self._insert(weights, bias)

    def _insert(self, weights, bias):
        slot = tf.convert_to_tensor(self._in_use)
        self.kernel.value[:, slot].assign(weights)
        self.hidden_bias.value[slot].assign(bias)
        self._in_use.assign(slot + 1)

    def to_rbm(self) -> RBM:
        """Returns this model as an RBM, for example to train it further.

        Returns:
            `RBM`, not compiled.

        Raises:
            ValueError: if the model has no unit yet.
        """
        count = self.hidden_units
        if not count:
            raise ValueError(
                "Expected a model with hidden units. Received: model "
                f"'{self.name}', whose visible units are still independent. Call "
                "fit() first."
            )
        options = {"seed": self.seed, "dtype": self.dtype_policy}
        rbm = RBM(count, num_visible=self.num_visible, **options)
        rbm.kernel.assign(self.kernel[:, :count])
        rbm.hidden_bias.assign(self.hidden_bias[:count])
        rbm.visible_bias.assign(self.visible_bias)
        rbm._copy_record(self)
        return rbm

    @classmethod
    def from_rbm(cls, rbm: RBM, max_hidden_units: int, **kwargs: Any) -> "InfiniteRBM":
        """Returns a model that continues to grow from a trained RBM.

        Args:
            rbm: `RBM` of binary units, or an `InfiniteRBM` that needs more room.
            max_hidden_units: int, at least as many as the RBM has.
            **kwargs: as for the constructor.

        Raises:
            TypeError: if `rbm` is neither.
            ValueError: if the units are not binary, or there is no room.
        """
        if not isinstance(rbm, RBM):
            raise TypeError(
                "Expected an RBM or InfiniteRBM. Received: rbm of type "
                f"{type(rbm).__name__}."
            )
        rbm._assert_built("from_rbm")
        for side in ("visible", "hidden"):
            if not are_binary(getattr(rbm, side)):
                raise ValueError(
                    "Expected an RBM of binary units. Received: "
                    f"{side}={getattr(rbm, side)!r}."
                )
        check_counts(max_hidden_units=max_hidden_units)
        count = rbm.hidden_units
        if max_hidden_units < count:
            raise ValueError(
                f"Expected max_hidden_units ≥ {count}, the RBM's hidden units. "
                f"Received: max_hidden_units={max_hidden_units}."
            )
        options = {"seed": rbm.seed, "dtype": rbm.dtype_policy} | kwargs
        model = cls(max_hidden_units, num_visible=rbm.kernel.shape[0], **options)
        empty = [0, max_hidden_units - count]
        model.kernel.assign(tf.pad(rbm.kernel[:, :count], [[0, 0], empty]))
        model.hidden_bias.assign(tf.pad(rbm.hidden_bias[:count], [empty]))
        model._in_use.assign(count)
        model.visible_bias.assign(rbm.visible_bias)
        model._copy_record(rbm)
        return model

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "InfiniteRBM":
        # Later layers are built for the units in use, before weights are loaded.
        config = dict(config)
        count = config.pop("hidden_units", 0)
        model = super().from_config(config)
        model._first_units = count
        if model.built:
            model._in_use.assign(count)
        return model

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        same = ("name", "trainable", "dtype", "num_visible", "seed")
        return {name: config[name] for name in same} | {
            "max_hidden_units": self.max_hidden_units,
            "hidden_units": self.hidden_units if self.built else self._first_units,
        }
