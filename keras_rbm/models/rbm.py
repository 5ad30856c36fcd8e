"""The restricted Boltzmann machine."""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf
from numpy.typing import ArrayLike

from keras_rbm import inference, units
from keras_rbm._checks import check_counts
from keras_rbm.inference.arguments import check_sizes
from keras_rbm.inference.missing import filled, is_known, partial
from keras_rbm.models.data.row_checks import all_known
from keras_rbm.models.data.rows import map_rows
from keras_rbm.models.files import Endpoint, endpoints_of_features, named, rows
from keras_rbm.models.frozen import scorer_of
from keras_rbm.models.generative_model import GenerativeModel
from keras_rbm.models.layer_variables import (
    add_units,
    layer_parameters,
    unit_types,
    visible_parameters,
)
from keras_rbm.models.sampling import draw, draw_tempered
from keras_rbm_frozen.scorer import Scorer

if TYPE_CHECKING:
    from keras_rbm.models.rbm_distribution import RBMDistribution


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
        kernel_initializer: Keras initializer; by default normal, 0.01, until the first
            `fit` of binary units or spins by `ParallelTempering` has some of the hidden
            units start at the data's strongest pairs, the edges of the Chow-Liu tree
            [3], if there are enough for half of them.
        visible_bias_initializer: Keras initializer, or `None`: zeros, until the first
            `fit` (or `adapt`) sets the bias to where the data's mean is.
        kernel_regularizer: Keras regularizer, or `None`. It is part of the update, not
            of the reported loss. `"auto"` is `keras_rbm.regularizers.L1BlockPrior()` of
            binary visible units and spins, `NormalPrior(1)` of others.
        missing: what NaN in data stands for. `None`: an error. `"latent"`: a state that
            is there, but not known; the likelihood is that of the known ones (missing
            at random), and training draws the others given them. `"absent"`: a unit
            that the example does not have, such as a film that a user has not rated;
            each example has a model of its own, with common weights. Of sparse rows,
            what is not stored is unknown, too; without `missing` it is 0.
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
        3. Chow, Liu. Approximating discrete probability distributions with dependence
           trees. IEEE Transactions on Information Theory, 1968.
    """

    def __init__(
        self,
        hidden_units: int,
        *,
        visible: str | units.Unit = "bernoulli",
        hidden: str | units.Unit = "bernoulli",
        num_visible: int | None = None,
        seed: int | None = None,
        kernel_initializer: str | Callable[..., Any] | None = None,
        visible_bias_initializer: str | Callable[..., Any] | None = None,
        kernel_regularizer: str | keras.regularizers.Regularizer | None = "auto",
        missing: str | None = None,
        **kwargs: Any,
    ) -> None:
        check_counts(hidden_units=hidden_units)
        visible, hidden = unit_types(visible, hidden)
        super().__init__(seed=seed, num_visible=num_visible, missing=missing, **kwargs)
        self._hidden_width = int(hidden_units)
        self.visible = visible
        self.hidden = hidden
        self._set_start(
            kernel_initializer, kernel_regularizer, visible_bias_initializer
        )
        if num_visible is not None:
            self.build((None, self.num_visible))

    def _add_variables(self, width):
        rows = self.visible.num_rows(width)
        self.kernel = self.add_weight(
            name="kernel",
            shape=(rows, self.hidden.num_rows(self._hidden_width)),
            initializer=self._kernel_initializer,
            regularizer=self.kernel_regularizer,
        )
        start = self._visible_bias_initializer
        add_units(self, "visible_{}", self.visible, width, start)
        add_units(self, "hidden_{}", self.hidden, self._hidden_width)
        self._add_record(visible_parameters(self).mean(tf.zeros(rows)))

    @property
    def hidden_units(self) -> int:
        """int: number of hidden units."""
        return self._hidden_width

    def _hidden_parameters(self):
        return layer_parameters(self, "hidden_{}", self.hidden)

    def potentials(
        self,
        features: tf.Tensor | None = None,
        dtype: str | None = None,
        training: bool = False,
    ) -> inference.Potentials:
        """Returns the model as `keras_rbm.inference.Potentials`.

        Args:
            features: tensor (B, V), 1 for the units that each example has, with
                `missing="absent"`; otherwise ignored.
            dtype: str or `None`, type of the kernel, by default that of the model's
                computations. Scores use `"float32"`.
            training: bool, ignored: for models on a network, as in Keras.
        """
        self._assert_built("potentials")
        visible = visible_parameters(self)
        if features is not None:
            visible = partial(visible, features > 0.0)
        return inference.Potentials(
            tf.cast(self.kernel, dtype or self.compute_dtype),
            visible,
            self._hidden_parameters(),
        )

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        inputs = tf.cast(inputs, self.variable_dtype)
        features = self._features(self.gaps.hidden_natural(self, inputs))
        return tf.cast(features, self.compute_dtype)

    def _features(self, natural):
        """Returns `E[h]` given natural parameters."""
        features = self._hidden_parameters().mean(natural)
        return _with_zero_gradients(
            features, *tf.nest.flatten(visible_parameters(self))
        )

    def _natural_of_mean(self, means):
        """Returns the hidden units' natural parameters given encoded means."""
        return self.potentials().hidden_natural_of_mean(means)

    def _endpoints(self):
        """Returns the exported model's functions: a dict of name to `Endpoint`."""
        visible = [rows(self.num_visible)]
        endpoints = endpoints_of_features(
            self.call, self._reconstruct, self.sample, self.num_visible
        )
        energy = named("free_energy", self.free_energy)
        endpoints["free_energy"] = Endpoint(energy, visible)
        if self.gaps.has_gaps:
            impute = functools.partial(self.gaps.imputed, self)
            endpoints["impute"] = Endpoint(named("visible", impute), visible)
        return endpoints

    def _reconstruct(self, visible, features=None):
        potentials = self.potentials(features)
        natural = potentials.hidden_natural(visible)
        if self.gaps.has_gaps and features is None:
            natural = self.gaps.hidden_natural(self, visible)
        hidden = potentials.hidden.mean(natural)
        return potentials.visible.mean(potentials.visible_natural_of_mean(hidden))

    def free_energy(self, x: ArrayLike) -> tf.Tensor:
        """Computes `F(v) = -log sum_h exp(-E(v, h))`.

        Args:
            x: array or sparse matrix (B, V); NaN only if it stands for an absent unit.

        Returns:
            tensor (B,), nats.
        """
        self._assert_built("free_energy")
        return map_rows(
            self._energies, self._scored_states(x, self.gaps.has_own_models)
        )

    def _energies(self, visible):
        features = None
        if self.gaps.has_own_models:
            features = self.gaps.features(is_known(visible))
            visible = filled(visible)
        return self.potentials(features, self.variable_dtype).free_energy(visible)

    def _scored_states(self, x, may_have_gaps=False):
        """Returns checked states, without NaN unless they may have it."""
        values = self.form.states(x)
        if self.gaps.has_gaps and not may_have_gaps and tf.executing_eagerly():
            if not all_known(values):
                raise ValueError(
                    "Expected rows of known states. Received: NaN. Call "
                    "log_likelihood, which is of what is known, or impute(x) first."
                )
        return values

    def pseudo_log_likelihood(self, x: ArrayLike) -> tf.Tensor:
        """Computes `sum_i log p(v_i | all other v)`, of units of finitely many states.

        Args:
            x: array or sparse matrix (B, V).

        Returns:
            tensor (B,), nats.
        """
        self._assert_built("pseudo_log_likelihood")
        values = self._scored_states(x)
        potentials = self.potentials(dtype=self.variable_dtype)
        return map_rows(
            lambda v: inference.pseudo_log_likelihood(potentials, v), values
        )

    def log_likelihood(
        self,
        x: ArrayLike,
        log_partition: ArrayLike | inference.LogPartition | str | None = None,
    ) -> tf.Tensor:
        """Computes `log p(v) = -F(v) - log Z`, or log p of what is known of v.

        Args:
            x: array or sparse matrix (B, V), NaN where not known, if the model has
                `missing`. With latent states -F(v) is summed over the unknown ones,
                exactly or by annealing, see `log_partition(observed=x)`.
            log_partition: `LogPartition` or a number, from `log_partition`, or the
                name of a method to compute it with, by default that of `log_partition`;
                for rows with absent units that of each row's own model, from
                `log_partition(observed=x)`.

        Returns:
            tensor (B,), nats, float64. The error of log Z is common to all examples. If
            these rows alone have more mass than an estimate of Z, a warning says so,
            and theirs takes its place; a number is used as it is.
        """
        values = self._visible_states(x, "log_likelihood")
        if self.gaps.has_gaps and not all_known(values):
            return self.gaps.log_likelihood(self, values, log_partition)
        return self._log_likelihood(values, log_partition)

    def scorer(
        self, log_partition: float | inference.LogPartition | None = None
    ) -> Scorer:
        """Returns the model's arrays as a `keras_rbm_frozen.Scorer`, for NumPy.

        Args:
            log_partition: `LogPartition` or number, by default computed.

        Raises:
            ValueError: if rows have models of their own, with `missing="absent"`.
        """
        return scorer_of(self, log_partition)

    def sample(
        self,
        num_samples: int = 1,
        *,
        steps: int = 1000,
        method: str = "gibbs",
        betas: ArrayLike | None = None,
        initial_visible: ArrayLike | None = None,
        seed: int | None = None,
    ) -> tf.Tensor:
        """Draws visible states by block Gibbs sampling or parallel tempering.

        Args:
            num_samples: int ≥ 1, number of chains.
            steps: int ≥ 0, sweeps of each chain.
            method: `"gibbs"`, or `"tempering"`, which mixes between modes at the
                cost of a chain for each temperature, see
                `keras_rbm.inference.parallel_tempering`.
            betas: inverse temperatures of `"tempering"`, as for
                `keras_rbm.inference.parallel_tempering`. By default the ladder of the
                rule `ParallelTempering` goes on from where training has left it, or
                there are 11, equally spaced.
            initial_visible: array (num_samples, V) to start from; by default drawn
                from the base rate, for tempering the states of the rule's ladder, or
                of a search for the model's mass. If some of it is
                NaN, all that is not keeps its value, and the rest is drawn given it
                (completion).
            seed: int; by default drawn from the model's generator.

        Returns:
            tensor (num_samples, V). For smooth images call `reconstruct` on it.

        Raises:
            ValueError: if a count or shape is wrong, the method is unknown or has no
                betas.
        """
        self._assert_built("sample")
        check_sizes(num_samples=num_samples)
        potentials = self.potentials()
        shape = (num_samples, potentials.num_visible)
        base = self._base_natural(potentials)
        chains: dict[str, Any] = {"initial_visible": initial_visible, "seed": seed}
        named = isinstance(method, str)
        if named and method == "gibbs":
            if betas is not None:
                raise ValueError(
                    "Expected betas with method='tempering' only. Received: "
                    f"betas={betas!r}, method='gibbs', whose chains are all at 1."
                )
            return draw(self, potentials, base, shape, steps, **chains)
        if named and method == "tempering":
            chains["ladder"] = self._ladder(base) if betas is None else None
            return draw_tempered(self, potentials, base, shape, steps, betas, **chains)
        raise ValueError(
            f"Expected method 'gibbs' or 'tempering'. Received: method={method!r}."
        )

    def distribution(
        self,
        log_partition: inference.LogPartition | str | None = None,
        steps: int = 1000,
    ) -> "RBMDistribution":
        """Returns p(v) as a `tfp.distributions.Distribution`, of events (V,).

        After more training its log Z is of other weights, and it raises an error: make
        a new one. Gradients of `log_prob` are those with respect to v only; to train,
        call `fit`, or use `keras_rbm.layers.RBMPrior`.

        Args:
            log_partition: `LogPartition`, or the name of a method to compute it with
                (by default that of `log_partition`).
            steps: int ≥ 0, sweeps of the chain that each sample is the end of.

        Returns:
            `tfp.distributions.Distribution` with `log_prob`, `sample`, and `mean`,
            exact where log Z is enumerated by default, else by 1,000 chains. There also
            with `variance` and `stddev`, of units of two states or Gaussian ones, and
            `mode`, of at most 2^20 visible states. `log_prob_interval(v)` returns the
            ends of intervals of `log_prob(v)`, from those of log Z.

        Raises:
            TypeError: if `log_partition` is anything else.

        Example:

        >>> rbm = keras_rbm.RBM(4, num_visible=6, seed=0)
        >>> distribution = rbm.distribution("exact", steps=10)
        >>> states = distribution.sample(5, seed=0)
        >>> distribution.log_prob(states).shape
        TensorShape([5])
        """
        from keras_rbm.models.rbm_distribution import RBMDistribution

        self._assert_built("distribution")
        check_sizes(0, steps=steps)
        if log_partition is None or isinstance(log_partition, str):
            log_partition = self.log_partition(log_partition)
        if not isinstance(log_partition, inference.LogPartition):
            raise TypeError(
                "Expected log_partition as a LogPartition or the name of a method. "
                f"Received: {log_partition!r}. Pass what log_partition() returned."
            )
        return RBMDistribution(self, log_partition, steps)

    def compute_output_shape(
        self, input_shape: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        return (input_shape[0], self.hidden.num_rows(self.hidden_units))

    def get_config(self) -> dict[str, Any]:
        config = super().get_config() | self._start_config()
        return config | {
            "hidden_units": self._hidden_width,
            "visible": units.serialize(self.visible),
            "hidden": units.serialize(self.hidden),
            "num_visible": self.num_visible,
            "seed": self.seed,
            "missing": self.missing,
        }


@tf.custom_gradient
def _with_zero_gradients(features, *others):
    """Returns `features`; gradients with respect to `others` are 0, not `None`.

    When the model is fine-tuned as a layer, its visible parameters have no effect on
    the output. With gradients `None` Keras would warn at every step.
    """

    def gradient(upstream):
        return (upstream, *(tf.zeros_like(other) for other in others))

    return tf.identity(features), gradient
