"""The conditional restricted Boltzmann machine."""

import functools
import math
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike

from keras_rbm import inference as inference_module, random, units
from keras_rbm._checks import check_counts
from keras_rbm.inference.exact import exact_log_partition, has_few_states
from keras_rbm.inference.missing import given
from keras_rbm.models.backbone import WithBackbone, check_shifts
from keras_rbm.models.data.form import DataForm
from keras_rbm.models.data.row_checks import all_known
from keras_rbm.models.data.rows import (
    ROWS_AT_ONCE,
    as_rows,
    as_values,
    held_rows,
    map_rows,
)
from keras_rbm.models.files import Endpoint, chain_endpoints, named, rows
from keras_rbm.models.frozen import scorer_of
from keras_rbm.models.layer_variables import (
    add_units,
    check_fingerprint,
    fingerprint,
    initial_parameters,
    layer_parameters,
    normal,
    reseeded,
    unit_types,
    visible_parameters,
)
from keras_rbm.models.missing import draws_by_chains, imputed, means_by_chains
from keras_rbm.models.sampling import draw
from keras_rbm.models.scores import log_likelihoods, log_partitions
from keras_rbm.models.training.defaults import is_rule
from keras_rbm.models.training.progress import hidden_stddev
from keras_rbm.models.training.regressions import is_real
from keras_rbm.models.training.trial import Trial
from keras_rbm.models.with_inference import WithInference, check_prediction
from keras_rbm.regularizers import NormalPrior
from keras_rbm.rules.contrastive_divergence import ContrastiveDivergence
from keras_rbm.rules.learning_rule import Rule
from keras_rbm.rules.marginal_loss import MarginalLoss
from keras_rbm.units.bernoulli import are_binary
from keras_rbm_frozen.scorer import Scorer

#: Sweeps of contrastive divergence. With one, the model has modes where no data are.
_SWEEPS = 10


@keras.saving.register_keras_serializable("keras_rbm")
class CRBM(WithInference, WithBackbone):
    """Conditional restricted Boltzmann machine, a structured predictor of v from x.

    `-E(v, h | x) = v' W h + v' (A' x + b) + h' (R' x + c)`: given x, it is an RBM whose
    biases depend on x. It is trained on pairs, `fit(x, v)`, by any rule that fits (each
    v may be an array of V numbers of any shape, such as a picture), and
    predicts by its inference: called on x, it returns the marginals `p(v_i = 1 | x)`,
    (B, V), or the means of units that are not binary (for categorical units the
    probabilities, q columns per unit). As a layer in another model it is trained with
    it, by gradients that pass through the inference, unless that finds states. With
    mean field that starts at x, they pass by the biases only.

    With a `backbone` f, a Keras layer or model that is trained with it, A and R read
    f(x) instead of x; or f also returns the visible units' biases itself.

    Args:
        hidden_units: int ≥ 1, H.
        visible, hidden: str or `keras_rbm.units` object, types of the units.
        inference: `keras_rbm.inference.Inference` or its name, with which the model
            predicts and rules such as `MaximumLikelihood` learn. By default, chosen
            when the model is built: `Exact` if a layer has at most 256 states, such as
            8 binary units or the classes of a label; else for binary hidden and binary
            or categorical visible units sum-product belief propagation, for others
            `MeanField`. Train and predict with the same.
        num_visible: int or `None`, V. `None` takes it from the first data.
        num_features: int or `None`, X, likewise.
        backbone: Keras layer or model, or `None`. It maps x, of any shape, to features
            (B, X), or to a pair of V numbers for each example, of any shape, which take
            the place of `A' f(x)`, and features. The first data fix the shape of x; for
            images of any size call `build((None, None, None, 1))` before. A rule of
            several updates a step (`SDCP`) runs it again for each, with a Dropout mask
            of its own.
        seed: int or `None`. Seeds initial weights, sampling and shuffling, but not the
            weights of a backbone.
        kernel_initializer: Keras initializer of `kernel`; by default normal, 0.01, and
            with exact inference `hidden_kernel` begins as random features, normal with
            variance 1 / X: all kernels near 0 are a saddle point.
        visible_bias_initializer: Keras initializer, or `None`: zeros, until the first
            `fit` sets the bias to where the data's mean is. Without a backbone it then
            also sets `visible_kernel`, to the regressions of visible units on x:
            logistic ones of binary units, ridge regressions of real numbers, whose
            precision is that of the residuals. Their penalty is that of the
            `NormalPrior` below (of 0.55 if there is none). It does so if all of these
            are trainable, and a step takes less than about a second.
        kernel_regularizer: Keras regularizer of the three kernels, or `None`. It is
            part of the update, not of the reported loss. `"auto"` is for
            `visible_kernel` a `keras_rbm.regularizers.NormalPrior()`, with a deviation
            of 0.55; the first `fit` that sets `visible_kernel` chooses it between 0.075
            and 8 (for real numbers between 0.01 and 4,096), by folds of the rows that
            are held out of such regressions, if there are at least 50. The kernels of
            the hidden units have one of deviation 8 / sqrt(V), at most 3: at a much
            narrower one they stay 0. Where the likelihood of several binary units is
            learned by exact inference, in 50 to 10,000 rows of an array, two fits to
            four fifths of them first try, for at most 100 epochs, whether hidden units
            should read features: if the last fifth is likelier without, `hidden_kernel`
            has a prior of deviation 0.05, and `kernel` of 3. For real numbers, in 50 to
            2,500 rows of an array, a short fit first tries whether they help: unless
            the last fifth, held out, is predicted better than by the ridge regressions,
            by a standard error, the model stays at these, and the deviation is 0.05,
            with a warning. Features should be about as large as standardized ones.
        missing: what NaN in v stands for, as for `RBM`: `None` (an error) or
            `"latent"`, a state that is there, but not known.
        **kwargs: `name`, `dtype`, `trainable`, as for `keras.Model`.

    Attributes:
        backbone: the Keras layer, or `None`. With one, x below is what it takes, and X
            and `num_features` are the columns of its features.
        kernel: variable (V, H).
        visible_bias: variable (V,).
        hidden_bias: variable (H,).
        visible_kernel: variable (X, V), A, or `None` if the backbone returns a pair.
        hidden_kernel: variable (X, H), R.

    For categorical units V and H count rows, one per category. Other units have more
    variables, as in `RBM`.

    Raises:
        TypeError: if the backbone is not a Keras layer.
        ValueError: if a size is not an int ≥ 1, or the inference or a unit type is
            unknown or does not fit; when the model is built, if the backbone's output
            has another shape.

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

    def __init__(
        self,
        hidden_units: int,
        *,
        visible: str | units.Unit = "bernoulli",
        hidden: str | units.Unit = "bernoulli",
        inference: str | dict[str, Any] | inference_module.Inference | None = None,
        num_visible: int | None = None,
        num_features: int | None = None,
        backbone: keras.layers.Layer | dict[str, Any] | None = None,
        seed: int | None = None,
        kernel_initializer: str | Callable[..., Any] | None = None,
        visible_bias_initializer: str | Callable[..., Any] | None = None,
        kernel_regularizer: str | keras.regularizers.Regularizer | None = "auto",
        missing: str | None = None,
        **kwargs: Any,
    ) -> None:
        check_counts(hidden_units=hidden_units)
        if num_features is not None:
            check_counts(num_features=num_features)
            if backbone is not None and not isinstance(backbone, dict):
                raise ValueError(
                    "Expected no num_features with a backbone, whose output it is. "
                    f"Received: num_features={num_features}."
                )
        if missing == "absent":
            raise ValueError(
                "Expected missing='latent' or None for a model with input. Received: "
                "missing='absent'. Use an RBM of x and v together."
            )
        visible, hidden = unit_types(visible, hidden)
        chooses = inference is None
        if chooses:
            types: Any = visible, hidden
            messages = inference_module.BeliefPropagation().takes(*types)
            inference = "belief_propagation" if messages else "mean_field"
        inference = inference_module.get(inference)
        super().__init__(seed=seed, num_visible=num_visible, missing=missing, **kwargs)
        self.hidden_units = int(hidden_units)
        self.visible = visible
        self.hidden = hidden
        self._check_inference(inference)
        self._inference = inference
        self._awaits_inference = chooses
        self.num_features = None if num_features is None else int(num_features)
        self._set_backbone(backbone)
        self._set_start(
            kernel_initializer, kernel_regularizer, visible_bias_initializer
        )
        self._feature_initializer = reseeded(normal(self.seed))
        known = num_visible is not None and num_features is not None
        if known and self.backbone is None:
            self.build((None, self.num_features))

    def _add_variables(self, width):
        if self.num_visible is None:
            raise ValueError(
                "Expected a known number of visible units. Received: a CRBM that has "
                "seen no targets yet. Pass num_visible= to the constructor, or call "
                "fit(x, y) first."
            )
        self.num_features = width
        if self._awaits_inference:
            sizes = (self.visible, self.num_visible), (self.hidden, self.hidden_units)
            if any(has_few_states(initial_parameters(*size)) for size in sizes):
                self.inference = inference_module.Exact()
            self._awaits_inference = False
        visible = self.visible.num_rows(self.num_visible)
        if self._shift_shape is not None:
            check_shifts(self._shift_shape, visible)
        hidden = self.hidden.num_rows(self.hidden_units)
        initial = self._feature_initializer
        self.visible_kernel = None
        kernels = [("kernel", (visible, hidden), self._kernel_initializer)]
        if self._shift_shape is None:
            kernels.append(("visible_kernel", (width, visible), initial))
        of_features = reseeded(initial)
        exact = isinstance(self.inference, inference_module.Exact)
        if exact and self._chooses_kernel:
            of_features = reseeded(normal(self.seed, 1.0 / math.sqrt(width)), 2)
        kernels.append(("hidden_kernel", (width, hidden), of_features))
        for name, shape, initializer in kernels:
            regularizer = self.kernel_regularizer
            if self._chooses_prior and name != "visible_kernel":
                regularizer = NormalPrior(hidden_stddev(self.num_visible))
            weight = self.add_weight(
                shape, initializer, name=name, regularizer=regularizer
            )
            setattr(self, name, weight)
        start = self._visible_bias_initializer
        add_units(self, "visible_{}", self.visible, self.num_visible, start)
        add_units(self, "hidden_{}", self.hidden, self.hidden_units)

    def _build_from_batch(self, x, y):
        if self.num_visible is None:
            self.num_visible = int(self.form.visible.rows(y).shape[-1])
        self.build(tuple(x.shape))

    def compile(
        self,
        optimizer: str | dict[str, Any] | keras.optimizers.Optimizer | None = None,
        loss: str | dict[str, Any] | keras.losses.Loss | None = None,
        *,
        rule: str | dict[str, Any] | Rule | None = None,
        **kwargs: Any,
    ) -> None:
        """Configures the model for training, as `RBM.compile` does.

        Args:
            optimizer: as for `RBM.compile`.
            loss: Keras loss of the marginals instead of a rule, or its name, see
                `keras_rbm.rules.MarginalLoss`.
            rule: str or `keras_rbm.rules.Rule`; by default maximum likelihood
                with the model's inference, which must then yield marginals; but
                `ContrastiveDivergence(10)` for real-valued units with mean field, which
                is too far from them to learn by.
            **kwargs: see `RBM.compile`.
        """
        if loss is not None:
            if rule is not None:
                raise ValueError(
                    "Expected a rule or a loss. Received: both, "
                    f"rule={rule!r}, loss={loss!r}."
                )
            if is_rule(loss):
                raise ValueError(
                    f"Expected a loss. Received: loss={loss!r}, which is a learning "
                    "rule. Call compile(rule=…)."
                )
            rule = MarginalLoss(loss)
        if rule is None:
            rule = (
                ContrastiveDivergence(_SWEEPS)
                if self._samples
                else "maximum_likelihood"
            )
        super().compile(optimizer, rule=rule, **kwargs)

    @property
    def _samples(self):
        """Whether mean field is too far from real-valued units to learn by."""
        hidden = initial_parameters(self.hidden, self.hidden_units)
        exact = self._awaits_inference and has_few_states(hidden)
        mean_field = isinstance(self.inference, inference_module.MeanField)
        return mean_field and not exact and is_real(self.visible)

    def _fit_callbacks(self, start, is_all, batch_size):
        first, *others = super()._fit_callbacks(start, is_all, batch_size)
        if is_all and type(self) is CRBM:
            others.insert(0, Trial(self, start[0], batch_size))
        return [first, *others]

    @property
    def form(self):
        features = self.num_features, None
        if self.backbone is not None:
            features = None, self._example
        gaps = self.gaps.has_gaps
        return DataForm.of_pairs(self.visible, self.num_visible, *features, gaps)

    def _feature_rows(self, x, method):
        """Returns x as checked rows (N, X), a float32 tensor, or sparse."""
        self._assert_built(method)
        rows = held_rows(x, self.form.called.fill)
        self.form.called.check(rows)
        return rows

    def potentials(
        self,
        features: tf.Tensor | None = None,
        dtype: str | None = None,
        training: bool = False,
    ) -> inference_module.Potentials:
        """Returns the model given x as `Potentials`, biases of shapes (B, V), (B, H).

        Args:
            features: tensor (B, X), or the input of the backbone.
            dtype: str or `None`, type of the kernels, by default that of the model's
                computations. Scores use `"float32"`.
            training: bool, whether the backbone runs as in training.

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
        shifts, features = self._read(features, training)
        features = tf.cast(features, dtype)

        def layer(side, unit):
            kernel = getattr(self, f"{side}_kernel")
            if kernel is None:
                inputs = tf.cast(shifts, self.variable_dtype)
            else:
                inputs = tf.matmul(features, tf.cast(kernel, dtype))
                inputs = tf.cast(inputs, self.variable_dtype)
            bias = tf.cast(getattr(self, f"{side}_bias"), self.variable_dtype)
            return layer_parameters(self, f"{side}_{{}}", unit, bias=inputs + bias)

        return inference_module.Potentials(
            tf.cast(self.kernel, dtype),
            layer("visible", self.visible),
            layer("hidden", self.hidden),
        )

    def _of_biases(self):
        return inference_module.Potentials(
            tf.cast(self.kernel, self.variable_dtype),
            visible_parameters(self),
            layer_parameters(self, "hidden_{}", self.hidden),
        )

    def call(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor:
        inputs = tf.ensure_shape(inputs, (None, *self._example_shape))
        infer = self.inference.given(inputs)
        potentials = self.potentials(inputs, training=training)
        beliefs = infer(potentials, pairwise=None)
        return tf.cast(beliefs.visible, self.compute_dtype)

    def compute_output_shape(
        self, input_shape: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        return (input_shape[0], self.visible.num_rows(self.num_visible))

    def _prediction(self, features, visible):
        """Returns what compiled metrics compare with the targets: the output.

        For categorical units, which have no mean, it is the likeliest categories.
        """
        return self.potentials(features).visible.compared(
            tf.cast(self(features), self.variable_dtype)
        )

    def predict_map(self, x: ArrayLike, batch_size: int = 1000) -> tf.Tensor:
        """Predicts one state of the visible units.

        Max-product inference finds the most probable (v, h), mixed-product the most
        probable v; both approximately. With marginals (sum-product, mean field, exact)
        units are 1 if their marginal exceeds 1/2, which has the fewest expected errors;
        units that are not binary get their likeliest state.

        Args:
            x: array (B, X).
            batch_size: int, examples at a time.

        Returns:
            tensor (B, V), states.
        """
        rows = self._feature_rows(x, "predict_map")
        check_prediction(self)
        check_counts(batch_size=batch_size)
        return map_rows(self._most_probable, rows, rows_at_once=batch_size)

    def _most_probable(self, rows):
        if are_binary(self.visible):
            return tf.cast(self(rows) > 0.5, tf.float32)
        potentials = self.potentials(rows)
        beliefs = self.inference.given(rows)(potentials, pairwise=None)
        if isinstance(self.visible, units.Categorical):
            return potentials.visible.mode(beliefs.visible)
        natural = potentials.visible_natural_of_mean(beliefs.hidden)
        return potentials.visible.mode(natural)

    def free_energy(self, x: ArrayLike, v: ArrayLike) -> tf.Tensor:
        """Computes `F(v | x) = -log sum_h exp(-E(v, h | x))`.

        Args:
            x: array (B, X).
            v: array (B, V).

        Returns:
            tensor (B,), nats.
        """
        rows, visible = self._pairs(x, v, "free_energy")

        def energies(rows, visible):
            return self.potentials(rows, self.variable_dtype).free_energy(visible)

        return map_rows(energies, rows, visible)

    def log_partition(
        self,
        x: ArrayLike,
        method: str | None = None,
        *,
        num_chains: int = 100,
        precision: float | None = None,
        seed: int | tf.Tensor = 0,
    ) -> inference_module.LogPartition:
        """Computes or estimates `log Z(x)` for each example.

        Args:
            x: array (B, X).
            method: `"exact"` (enumerates up to 25 units), the default if the model's
                inference is `Exact`; `"bethe"`, that for other binary units
                (sum-product to 1e-3 or 100 sweeps, whatever the model's inference; its
                error is not known, and large if `sum_product` does not converge, see
                `Beliefs.converged`); `"ais"`, that for all others; `"mean_field"` (a
                lower bound, the higher one of two starts), `"bidirectional"` or
                `"reverse_ais"` (annealing, `num_chains` chains for each example).
            num_chains, precision, seed: see `keras_rbm.inference.anneal`.

        Returns:
            `keras_rbm.inference.LogPartition`, fields of shape (B,), nats.

        Raises:
            ValueError: if the method is unknown, the model too large to enumerate,
                or an argument out of range.
        """
        options = {"num_chains": num_chains, "precision": precision, "seed": seed}
        method = self._default_method() if method is None else method
        return self._log_partitions(x, [method], **options)[method]

    def _log_partitions(self, x, methods, **options):
        """Returns a dict of method to estimate; they share a search and chains."""

        def potentials_of(features):
            return self.potentials(features, self.variable_dtype)

        rows = self._feature_rows(x, "log_partition")
        estimates = log_partitions(potentials_of, rows, methods, **options)
        own = fingerprint(self)
        return {m: z._replace(fingerprint=own) for m, z in estimates.items()}

    def _default_method(self):
        if isinstance(self.inference, inference_module.Exact):
            return "exact"
        return "bethe" if are_binary(self.visible, self.hidden) else "ais"

    def log_likelihood(
        self,
        x: ArrayLike,
        v: ArrayLike,
        log_partition: ArrayLike | inference_module.LogPartition | str | None = None,
    ) -> tf.Tensor:
        """Computes `log p(v | x) = -F(v | x) - log Z(x)`.

        Args:
            x: array (B, X).
            v: array (B, V). With `missing="latent"` and exact inference `exp(-F)` is
                summed over states that are NaN: the result is log p of the others.
            log_partition: `LogPartition` of the same x, or the name of a method to
                compute it with, by default that of `log_partition`.

        Returns:
            tensor (B,), nats, float64. Its error is that of log Z. `"mean_field"`, a
            lower bound of log Z, gives an upper bound, at most 0. With `"bethe"` it may
            exceed 0, which a log probability cannot: then a warning says so.
        """
        visible = self._visible_states(v, "log_likelihood", "v")
        if self.gaps.has_gaps and not all_known(visible):
            free_energy = self._free_energy_of_known(x, visible)
        else:
            free_energy = self.free_energy(x, visible)
        if log_partition is None:
            log_partition = self._default_method()
        method = None
        if isinstance(log_partition, str):
            method = log_partition
            log_partition = self.log_partition(x, method)
        check_fingerprint(self, log_partition)
        discrete = self.potentials(as_rows(held_rows(x)[:1])).visible.finite
        return log_likelihoods(free_energy, log_partition, method, discrete)

    def _free_energy_of_known(self, x, v):
        """Returns `-log sum exp(-F(v | x))` over the states of v that are NaN."""
        if not isinstance(self.inference, inference_module.Exact):
            raise ValueError(
                "Expected v without NaN, or a model with inference='exact', that sums "
                "over what is not known. Received: NaN. Score impute(x, v), or rows "
                "that are known."
            )

        def energies(rows, visible):
            models, own = given(self.potentials(rows, self.variable_dtype), visible)
            return -exact_log_partition(models) - tf.cast(own, tf.float64)

        return map_rows(energies, *self._pairs(x, v, "log_likelihood"))

    def _pairs(self, x, v, method):
        rows = self._feature_rows(x, method)
        visible = held_rows(self.form.states(v, "v"))
        lengths = rows.shape[0], visible.shape[0]
        if lengths[0] != lengths[1]:
            raise ValueError(
                f"Expected x and v of equal length. Received: lengths {lengths}."
            )
        return rows, visible

    def scorer(self) -> Scorer:
        """Returns the model's arrays as a `keras_rbm_frozen.Scorer`, for NumPy.

        Raises:
            ValueError: if the model has a backbone.
        """
        return scorer_of(self)

    def _endpoints(self):
        """Returns the exported model's functions: a dict of name to `Endpoint`."""
        shape = None, *self._example_shape
        x, v = tf.TensorSpec(shape, tf.float32, "x"), rows(self.num_visible, "v")
        predict = Endpoint(named("marginals", self.call), [x])

        return {
            "serving_default": predict,
            "predict": predict,
            "predict_map": Endpoint(named("visible", self._most_probable), [x]),
            "free_energy": Endpoint(named("free_energy", self.free_energy), [x, v]),
        } | chain_endpoints(self.sample, x)

    def sample(
        self,
        x: ArrayLike,
        *,
        steps: int = 1000,
        initial_visible: ArrayLike | None = None,
        seed: int | None = None,
    ) -> tf.Tensor:
        """Draws visible states given x by block Gibbs sampling, one for each row.

        Args:
            x: array (B, X).
            steps: int ≥ 0, sweeps of each chain.
            initial_visible: array (B, V) to start from; by default drawn from the
                model without coupling, `sigmoid(A' x + b)`. If some of it is NaN, all
                that is not keeps its value (completion).
            seed: int; by default drawn from the model's generator.

        Returns:
            tensor (B, V).

        Raises:
            ValueError: if a count or shape is wrong.
        """
        rows = as_rows(self._feature_rows(x, "sample"))
        potentials = self.potentials(rows)
        base = potentials.visible_bias
        count = tf.shape(base)[0] if base.shape[0] is None else base.shape[0]
        shape = count, self.num_visible
        return draw(self, potentials, base, shape, steps, initial_visible, seed)

    def impute(
        self,
        x: ArrayLike,
        v: ArrayLike,
        method: str = "mean",
        *,
        steps: int = 200,
        seed: int = 0,
    ) -> tf.Tensor:
        """Fills in what is not known of the visible states, given x and the rest.

        Args:
            x: array (B, X).
            v: array (B, V), states, NaN where not known; or B pictures.
            method, steps, seed: as for `RBM.impute`.

        Returns:
            tensor of the shape of v, in which known states are unchanged.

        Raises:
            ValueError: if the method is unknown, or known values are no states.
        """
        features = self._feature_rows(x, "impute")
        check_counts(steps=steps)
        part = self.form.visible._replace(has_gaps=True)
        given = as_values(v, self.form.visible.fill)
        part.check(given, "v")
        values = np.array(part.rows(given), np.float32)
        if len(values) != len(features):
            raise ValueError(
                "Expected x and v of equal length. Received: lengths "
                f"{len(features)}, {len(values)}."
            )
        parts = []
        for first in range(0, len(values), ROWS_AT_ONCE):
            rows = slice(first, first + ROWS_AT_ONCE)
            inputs = as_rows(features[rows])
            potentials = self.potentials(inputs, self.variable_dtype)
            fresh = random.fold_in(random.as_seed(seed), first)
            chains = potentials, values[rows], potentials.visible.bias, steps, fresh
            parts.append(
                imputed(
                    potentials.visible,
                    values[rows],
                    method,
                    functools.partial(means_by_chains, *chains),
                    functools.partial(draws_by_chains, *chains),
                )
            )
        return tf.reshape(tf.concat(parts, 0), given.shape)

    def get_config(self) -> dict[str, Any]:
        config = super().get_config() | self._start_config()
        return config | {
            "hidden_units": self.hidden_units,
            "visible": units.serialize(self.visible),
            "hidden": units.serialize(self.hidden),
            "inference": None
            if self._awaits_inference
            else keras.saving.serialize_keras_object(self.inference),
            "num_visible": self.num_visible,
            "num_features": self.num_features,
            "backbone": None
            if self.backbone is None
            else keras.saving.serialize_keras_object(self.backbone),
            "seed": self.seed,
            "missing": self.missing,
        }
