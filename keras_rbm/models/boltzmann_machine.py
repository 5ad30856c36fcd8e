"""The base class of all models: a Keras model whose step is a learning rule."""

import math
import os
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import tree
from numpy.typing import ArrayLike

from keras_rbm import random, rules
from keras_rbm._checks import check_counts, check_flags, seed_number
from keras_rbm._replicas import (
    add,
    as_logs,
    is_single,
    normalized,
    of_replica,
    strategy_scope,
)
from keras_rbm.inference import conditional_moments, traces
from keras_rbm.inference.missing import filled, is_known
from keras_rbm.metrics.errors import without_names
from keras_rbm.models import files
from keras_rbm.models.data.batches import TrainingData, as_keras_takes, drawn
from keras_rbm.models.data.form import DataForm, class_weights
from keras_rbm.models.data.row_checks import (
    values_of,
    warn_of_means,
)
from keras_rbm.models.data.rows import (
    Data,
    as_values,
    is_array,
    unpack,
)
from keras_rbm.models.layer_variables import (
    check_input_shape,
    check_no_input_shape,
    keras_part,
    normal,
)
from keras_rbm.models.missing import entries, kind_of
from keras_rbm.models.training.defaults import (
    check_compile_options,
    choose_rate,
    is_auto,
    open_rate,
    optimizer_for,
    warn_of_rate,
)
from keras_rbm.models.training.diagnosis import Diagnosis
from keras_rbm.models.training.first_fit import FirstFit, choose_rate_for, is_new
from keras_rbm.models.training.guard import (
    DATA_BIT,
    GRADIENT_BIT,
    LOSS_BIT,
    StepGuard,
    stay_normalizable,
)
from keras_rbm.models.training.many_steps import ManySteps, pays_off
from keras_rbm.models.training.pair_start import has_two_states
from keras_rbm.models.training.progress import (
    EpochKey,
    FitState,
    Progress,
    check_rate_is_free,
    extended,
)
from keras_rbm.models.with_inference import check_prediction
from keras_rbm.regularizers import L1BlockPrior, NormalPrior
from keras_rbm.rules.forward_pass import ForwardPass, bias_changes
from keras_rbm.rules.learner import Learner
from keras_rbm.rules.learning_rule import Rule

#: Numbers of seeds among those made from a step's seed: of data that are completed, and
#: of states for means.
_COMPLETION, _MEANS = -3, -4
#: What names of other libraries are here, where a model has it.
_CALLED = {
    "complete": ("impute", "sample"),
    "generate": ("sample",),
    "marginals": ("predict",),
    "predict_proba": ("marginals", "predict"),
    "score": ("log_likelihood", "log_likelihood_bound"),
    "transform": ("predict",),
}
_KERAS_LOSS_ARGUMENTS = ("loss", "loss_weights", "auto_scale_loss")


class BoltzmannMachine(keras.Model):
    """A Keras model whose training step is a learning rule.

    A subclass sets the unit types `visible` and `hidden`, and implements

    * `_add_variables(width)`: creates the variables, for inputs with that many columns;
    * `potentials(features)`: the bipartite model, given its input;
    * `_prediction(features, visible)`: what compiled metrics compare with v;
    * `_endpoints()`: dict of name to `Endpoint`, the exported functions, among them
      `"serving_default"`;

    A model with input also sets `conditional = True` and `num_features`, and overrides
    `form` and `_build_from_batch`.

    Args:
        seed: int or `None`. Seeds all random numbers of the model.
        num_visible: int or `None`, V. `None` takes it from the first data.
        missing: `"latent"`, `"absent"` or `None`, what NaN among the states means.
        **kwargs: as for `keras.Model` (`name`, `dtype`, `trainable`).

    Attributes:
        conditional: bool, whether the model has an input x.
        inference: `keras_rbm.inference.Inference` that it predicts with, or `None`.
    """

    conditional = False
    inference = None
    visible: Any
    hidden: Any
    backbone: keras.layers.Layer | None = None  # a network in front, if it has one
    kernel_regularizer: keras.regularizers.Regularizer | None = None
    _chooses_prior = False  # whether its deviation is left to `fit`
    _reports_predictions = False  # whether `compile` was given metrics

    def __init__(
        self,
        seed: int | None = None,
        num_visible: int | None = None,
        missing: str | None = None,
        **kwargs: Any,
    ) -> None:
        gaps = kind_of(missing)
        if num_visible is not None:
            check_counts(num_visible=num_visible)
        seed = seed_number(seed)
        check_no_input_shape(kwargs)
        super().__init__(**kwargs)
        if self.variable_dtype != "float32":
            raise ValueError(
                "Expected a dtype policy with float32 variables. Received: "
                f"dtype={self.dtype_policy.name!r}. Use 'float32', 'mixed_bfloat16' or "
                "'mixed_float16'."
            )
        self.autocast = False  # bfloat16 has no 257, which may be a category
        self.num_visible = None if num_visible is None else int(num_visible)
        self.seed = seed
        self.missing = missing
        self.gaps = gaps
        self.seed_generator = keras.random.SeedGenerator(seed)
        self.rule: Any = None
        self._visible_bias_initializer = None
        self.learner: Learner | None = None
        self.guard = StepGuard()
        self._many_steps: ManySteps | None = None
        self.fit_state = FitState()

    def __getattr__(self, name):
        """Says what a name of other libraries is here, of one that no model has."""
        own = [own for own in _CALLED.get(name, ()) if hasattr(type(self), own)]
        if own:
            raise AttributeError(
                f"Expected a method of {type(self).__name__}. Received: {name!r}. Here "
                f"it is {' or '.join(own)}."
            )
        return super().__getattribute__(name)  # raises its own error, or a property's

    # Configuration

    def compile(
        self,
        optimizer: str | dict[str, Any] | keras.optimizers.Optimizer | None = None,
        *,
        rule: str | dict[str, Any] | Rule | None = None,
        loss: None = None,
        learning_rate: None = None,
        metrics: Sequence[str | keras.metrics.Metric] | None = None,
        run_eagerly: bool = False,
        steps_per_execution: int | str = "auto",
        jit_compile: bool | str = "auto",
    ) -> None:
        """Configures the model for training.

        Args:
            optimizer: str or `keras.optimizers.Optimizer`; by default Adam. One given
                by name has the schedule `keras_rbm.optimizers.FallingRate`, which falls
                to 0 in each `fit`: from 0.03 for 64 visible units, and less for more
                (binary ones count by their variance), on a network from at most 0.003,
                or from 0.2 for `"sgd"`. Those like Adam have `beta_1=0.5` if the model
                has no input. One that is an object has its own settings.
            rule: str or `keras_rbm.rules.Rule`, by default `ParallelTempering`, with
                `missing="latent"` of 10 sweeps a step instead of 3, or with
                `missing="absent"` contrastive divergence. A rule object belongs to one
                model.
            loss: not supported, except by `CRBM`; the rule takes its place.
            learning_rate: not supported: it is that of an optimizer object.
            metrics: list of Keras metrics, called with the visible states and the
                model's prediction of them: means, for several categorical units the
                likeliest categories, for one the probabilities. Without an input it is
                `reconstruct(x)`: `"mse"` is the error of that, which says little of the
                likelihood. `"accuracy"` is the share of units whose state is predicted.
                With `missing` each known entry is an example, with its row's weight.
            run_eagerly: as in Keras.
            steps_per_execution: int ≥ 1 as in Keras, or `"auto"`: for arrays as many
                as take about a tenth of a second, or 1 if a callback is called at each
                batch; 1 for pipelines and under a distribution strategy. The weights
                do not depend on it.
            jit_compile: bool or `"auto"`, whether XLA compiles the steps: a third to a
                half faster, also on a CPU, after some seconds at the start. `"auto"`
                does so if the steps ahead of a `fit`, and those before it, pay for that
                (of a pipeline if their number is not known), unless the model runs
                eagerly, under a distribution strategy, or with belief propagation,
                which compiles itself. Weights differ by rounding.

        Raises:
            ValueError: if the rule is unknown, does not fit the model, or belongs to
                another model.
        """
        if loss is not None:
            raise ValueError(
                "Expected no loss: a learning rule takes its place. Received: "
                f"loss={loss!r}. Pass rule=, for example rule='cd'."
            )
        if learning_rate is not None:
            kind = type(optimizer_for(optimizer or "adam")).__name__
            raise ValueError(
                "Expected no learning_rate: it is an optimizer's. Received: "
                f"learning_rate={learning_rate!r}. Pass "
                f"keras.optimizers.{kind}({learning_rate!r})."
            )
        modes = run_eagerly, steps_per_execution, jit_compile
        check_compile_options(metrics, *modes)
        rule = self.gaps.default_rule() if rule is None else rules.get(rule)
        name = "adam" if optimizer is None else optimizer
        optimizer = optimizer_for(name, samples=not self.conditional)
        learner = rules.Learner(self, rule, optimizer)
        self._check_rule(rule, learner)
        distributed = self.distribute_strategy.num_replicas_in_sync > 1
        steps = 1 if is_auto(steps_per_execution) else steps_per_execution
        if distributed and (jit_compile is True or steps != 1):
            raise ValueError(
                "Expected jit_compile=False (or 'auto') and steps_per_execution=1 "
                "under a distribution strategy: Keras fails with others. Received: "
                f"jit_compile={jit_compile}, steps_per_execution={steps_per_execution}."
            )
        if self.visible.encodes or self.visible.takes_means:
            metrics = without_names(metrics)
        super().compile(
            optimizer=optimizer,
            # Only weights leave entries out.
            **{"weighted_metrics" if self.gaps.has_gaps else "metrics": metrics},
            run_eagerly=run_eagerly,
            steps_per_execution=steps,
            jit_compile=self._wants_jit(jit_compile, rule, run_eagerly),
        )
        if isinstance(name, str):
            warn_of_rate(name, optimizer)
        self._requested_jit, self._requested_steps = jit_compile, steps_per_execution
        self._compiles_steps = self.jit_compile
        self._reports_predictions = bool(metrics)
        self.rule = rule
        self.learner = rule.learner = learner
        self._diagnosis = Diagnosis()
        if self.built:
            self._build_training()

    def _check_rule(self, rule, learner):
        if not isinstance(rule, rules.LearningRule):
            raise ValueError(
                "Expected a rule for a model of fixed size. Received: "
                f"{type(rule).__name__} for {type(self).__name__} '{self.name}'. Use "
                "an InfiniteRBM, InfiniteRBM.from_rbm(rbm, ...) for a trained one."
            )
        rule.check(learner)

    def _wants_jit(self, requested, rule, run_eagerly):
        """Returns whether XLA compiles the steps, see `compile`."""
        if requested is True and not rule.compiles:
            raise ValueError(
                f"Expected jit_compile='auto' for {type(rule).__name__}, which XLA "
                "cannot compile. Received: jit_compile=True."
            )
        if requested != "auto":
            return requested
        if not (traces.compiles and rule.compiles):
            return False
        distributed = self.distribute_strategy.num_replicas_in_sync > 1
        infers = getattr(rule, "inference", None) or self.inference
        compiles_itself = infers is not None and infers.is_compiled
        eager = run_eagerly or distributed or not self.supports_jit
        return not eager and not compiles_itself

    def _choose_jit(self, ahead):
        """Leaves XLA off as long as steps `ahead`, and before, do not pay for it.

        Only in steps: predictions of a model do not depend on how it was trained.
        """
        made = self.train_function is not None
        if not is_auto(self._requested_jit) or (made and self._compiles_steps):
            return
        wanted = self.jit_compile and pays_off(self, ahead)
        if made and wanted:
            self.train_function = None
        self._compiles_steps = wanted

    def get_compile_config(self) -> dict[str, Any]:
        config = super().get_compile_config()
        if not config:
            return config
        for name in _KERAS_LOSS_ARGUMENTS:
            config.pop(name, None)
        weighted = config.pop("weighted_metrics", None)
        return config | {
            "metrics": config.get("metrics") or weighted,
            "rule": rules.serialize(self.rule),
            "jit_compile": self._requested_jit,
            "steps_per_execution": self._requested_steps,
        }

    def quantize(self, *args: Any, **kwargs: Any) -> None:
        """Is refused as by a Keras layer that has none; a network passes it over."""
        keras.Layer.quantize(self, *args, **kwargs)

    def compile_from_config(self, config: dict[str, Any]) -> None:
        self.compile(**keras.saving.deserialize_keras_object(config))

    def _set_start(self, initializer, regularizer, visible_bias):
        """Sets the initializers of kernels and visible biases, and the regularizer."""
        get, regularizers = keras.initializers.get, keras.regularizers.get
        self._chooses_kernel = initializer is None
        initializer = normal(self.seed) if initializer is None else initializer
        self._kernel_initializer = keras_part(get, "kernel_initializer", initializer)
        name = "visible_bias_initializer"
        self._visible_bias_initializer = keras_part(get, name, visible_bias)
        self._chooses_prior = regularizer == "auto" and self.conditional
        if regularizer == "auto":
            regularizer = NormalPrior(1.0)
            if self.conditional:
                regularizer = NormalPrior()
            elif has_two_states(self.visible):
                regularizer = L1BlockPrior()
        name = "kernel_regularizer"
        self.kernel_regularizer = keras_part(regularizers, name, regularizer)

    def _start_config(self):
        """Returns the constructor's arguments that `_set_start` has set."""
        serialize = keras.initializers.serialize
        bias = self._visible_bias_initializer
        return {
            "kernel_initializer": None
            if self._chooses_kernel
            else serialize(self._kernel_initializer),
            "visible_bias_initializer": None if bias is None else serialize(bias),
            "kernel_regularizer": "auto"
            if self._chooses_prior
            else keras.regularizers.serialize(self.kernel_regularizer),
        }

    # Building

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        check_input_shape(input_shape, self)
        if self.built:
            return
        width = input_shape[-1]
        if not self.conditional:
            self.num_visible = width
        spec = keras.layers.InputSpec(ndim=2, axes={-1: width})
        self._build_for(width, spec)

    def _build_for(self, width, input_spec):
        """Creates the variables for an input of some width."""
        # Another model may build this one while it is traced.
        with tf.init_scope(), strategy_scope(self):
            self._add_variables(width)
            self.guard.build()
        self.input_spec = input_spec
        self.built = True
        if self.rule is not None:
            self._build_training()

    def _build_from_batch(self, x, y):
        """Builds the model for batches like this one."""
        self.build(tuple(x.shape))

    def _build_training(self):
        """Creates the variables of the rule and of the optimizer, once."""
        with strategy_scope(self):
            self.learner.build()
            if not self.optimizer.built:
                width = self.num_visible
                if width == 1 and self.conditional:  # a label of many features
                    width = self.num_features
                choose_rate(self, width)
                self.optimizer.build(self.trainable_variables)

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        # All is built; on several devices Keras' step may fail (keras issue 20585).
        if is_single(self.distribute_strategy):
            super()._maybe_symbolic_build(iterator, data_batch)

    def _assert_built(self, method):
        """Raises a ValueError if the model has no variables yet."""
        if not self.built:
            sizes = "num_visible=" + " and num_features=" * self.conditional
            raise ValueError(
                f"Expected a built model in {method}(). Received: model "
                f"'{self.name}', which has no variables yet. Pass {sizes} to the "
                "constructor, or call fit() first."
            )

    # Data

    @property
    def form(self):
        """`DataForm` of what the model learns from and is called on."""
        return DataForm.of_states(self.visible, self.num_visible, self.gaps.has_gaps)

    def _visible_states(self, data, method, name=None):
        """Returns data as checked visible states; warns if they are means."""
        self._assert_built(method)
        values = self.form.states(data, name)
        warn_of_means(values_of(values, self.visible), self.visible, name or "x")
        return values

    def _next_seed(self):
        """Draws a seed (2,) from the model's generator, different per replica."""
        return of_replica(random.as_seed(self.seed_generator.next()))

    # Training

    def fit(
        self,
        x: Data | None = None,
        y: ArrayLike | None = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: int | str = "auto",
        callbacks: Sequence[keras.callbacks.Callback] | None = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: bool = True,
        class_weight: dict[int, float] | None = None,
        sample_weight: ArrayLike | None = None,
        initial_epoch: int = 0,
        **kwargs: Any,
    ) -> keras.callbacks.History:
        """Trains the model, as `keras.Model.fit` does.

        A model that is not compiled is compiled by default, `compile()`.

        Arrays are shuffled by a permutation that depends only on the model's seed
        and `optimizer.iterations`, so a run resumed at an epoch's end
        (`keras.callbacks.BackupAndRestore`) continues as if never stopped. For
        a `tf.data.Dataset` see `keras_rbm.datasets.shuffled_batches`.

        A SciPy sparse matrix, and sparse batches of a pipeline, become dense a few
        batches at a time; all else is as for the same dense array. Entries that are not
        stored are 0, or unknown (NaN) to a model with `missing`, for which a state 0
        must be stored. Other methods take sparse rows likewise.

        Args:
            x: array or SciPy sparse matrix (N, V), `tf.data.Dataset`,
                `keras.utils.PyDataset` or generator; for a conditional model the input
                (N, X), or pairs.
            y: array or sparse matrix (N, V), the visible states of a conditional model.
            validation_data: like x and y, without shuffling.
            class_weight: dict of class to weight, for a model of a single categorical
                unit, such as a label, given arrays.
            **kwargs: the other arguments are those of `keras.Model.fit`.

        Returns:
            `keras.callbacks.History`.

        Raises:
            ValueError: if the first batch (for arrays: any row) cannot be states of the
                model's units, before anything is changed; if a later batch cannot, or
                a step has an infinite or NaN loss or gradient: the error names the
                step, which has changed nothing.
        """
        if not self.compiled:
            with strategy_scope(self):
                self.compile()
        if class_weight is not None:
            own = class_weights(class_weight, self.visible, y)
            sample_weight = own if sample_weight is None else own * sample_weight
        if batch_size is not None:
            check_counts(batch_size=batch_size)
            batch_size = int(batch_size)
        check_counts(0, epochs=epochs, initial_epoch=initial_epoch)
        steps = {
            name: kwargs.get(name) for name in ("steps_per_epoch", "validation_steps")
        }
        check_counts(
            **{name: value for name, value in steps.items() if value is not None}
        )
        check_flags(shuffle=shuffle)
        check_rate_is_free(self.optimizer, callbacks)
        split = validation_split, validation_data
        data = TrainingData.of(
            self.form, x, y, sample_weight, batch_size, *split, is_new(self)
        )
        x, y, given = data.start[0]
        if is_array(data.x):
            _, states = self.form.split(x, y)
            self.gaps.check_data(states, self.visible, self.form.visible.name)
        if not self.built:
            self._build_from_batch(x, y)
        self._build_training()
        choose_rate_for(self, data.start)
        is_all = is_array(data.x)
        if is_all:
            batch_size = self._batch_size_for(len(data.x), batch_size)
        count, rows = len(data.start[0][0]), None
        if is_all:
            rows = count if given is None else int(np.count_nonzero(given))
        epoch_key = EpochKey()
        progress = Progress(epochs, initial_epoch, count, rows)
        progress.begin(self)
        own = [epoch_key, progress]
        own += self._fit_callbacks(data.start, is_all, batch_size)
        callbacks = extended(callbacks, *own)
        read = epoch_key.read if shuffle else None
        steps = kwargs.get("steps_per_epoch")
        if steps is None and is_all:
            steps = math.ceil(len(data.x) / (batch_size or 32))
        ahead = math.inf if steps is None else (epochs - initial_epoch) * steps
        self._choose_jit(ahead)
        self.make_train_function()
        try:
            many, own_steps = self._many_steps, kwargs.get("steps_per_epoch")
            if is_all and not own_steps and many is not None and many.fits_model:
                x, y, sample_weight = many.steps, None, None
                kwargs["steps_per_epoch"] = many.begin(
                    data.arrays, batch_size or 32, tree.flatten(callbacks), read
                )
                own_size = kwargs.get("validation_batch_size")
                kwargs["validation_batch_size"] = own_size or batch_size
                batch_size = None
            else:
                if shuffle:
                    data = data.shuffled(batch_size, epoch_key.read)
                x, y, sample_weight = data.for_keras(batch_size)
            return super().fit(
                x,
                y,
                batch_size=batch_size,
                epochs=epochs,
                verbose=verbose,
                callbacks=callbacks,
                validation_data=data.validation,
                shuffle=shuffle and isinstance(x, keras.utils.PyDataset),
                sample_weight=sample_weight,
                initial_epoch=initial_epoch,
                **kwargs,
            )
        finally:
            if self._many_steps is not None:
                self._many_steps.end()
            progress.end(self)

    def _batch_size_for(self, count, wanted):
        """Returns the size of batches of an array with `count` rows."""
        return wanted

    def _fit_callbacks(self, start, is_all, batch_size):
        """Returns the callbacks that `fit` adds, the start at the data first.

        Args:
            start: list of the first batches.
            is_all: bool, whether these are all the data.
            batch_size: int or `None`.
        """
        x, y, _ = start[0]
        features, visible = self.form.split(x, y)
        if self.form.called.shape is not None:
            features = None
        chooses = open_rate(self) is not None
        diagnosis = self._diagnosis.begin(features, visible, is_all, chooses)
        return [FirstFit(start), diagnosis]

    def make_train_function(self, force: bool = False) -> None:
        if force or self.train_function is None:
            whole = self.jit_compile
            self.jit_compile = whole and self._compiles_steps
            try:
                super().make_train_function(force)
                self._many_steps = ManySteps(self)
            finally:
                self.jit_compile = whole
            taken = self.guard.read(lambda _: self._many_steps.take(), self, True)
            one = self.guard.read(self.train_function, self, True)
            self.train_function = self._many_steps.train_function(taken, one)

    def make_test_function(self, force: bool = False) -> None:
        if force or self.test_function is None:
            super().make_test_function(force)
            self.test_function = self.guard.read(self.test_function, self)

    def make_predict_function(self, force: bool = False) -> None:
        if force or self.predict_function is None:
            super().make_predict_function(force)
            self.predict_function = self.guard.read(self.predict_function, self)

    def train_on_batch(
        self,
        x: ArrayLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        **kwargs: Any,
    ) -> Any:
        """Takes one step, as `keras.Model.train_on_batch` does."""
        self._assert_compile_called("train_on_batch")
        batch = self.form.checked_arrays(x, y, sample_weight)
        return super().train_on_batch(*self.form.dense(*batch), **kwargs)

    # A step

    def train_step(self, data: Any) -> dict[str, tf.Tensor]:
        features, visible, weights, sample_weight = self._step_inputs(data)
        # A pipeline may read `optimizer.iterations`, which must not change before the
        # batch is there.
        with tf.control_dependencies([visible]):
            changed = [*self.non_trainable_variables, *self.learner.variables]
            if self.rule.updates_in_parts:
                changed += [*self.trainable_variables, *self.optimizer.variables]
            before = self.guard.begin(changed)
            features, visible, known, weights = self._accepted(
                features, visible, weights
            )
            seed = self._next_seed()
            step = self._step(
                features,
                visible,
                known,
                normalized(weights),
                seed,
                ForwardPass(self, features),
                loss_seed=random.fold_in(seed, 0),
            )
            phases = self.rule.phases(step)
            self.guard.record_values(phases.losses, first_bit=LOSS_BIT)
            # Metrics are of the model before the update.
            prediction = self._predicted(step, visible, phases.prediction)
            logs = self.rule.update(step, phases)
        self._record(visible, known, weights)
        with tf.control_dependencies(self.guard.end(before)):
            self._loss_tracker.update_state(phases.losses, sample_weight=weights)
            results = self._results(step, visible, prediction, sample_weight)
        return as_logs(results | logs)

    def _accepted(self, features, visible, weights):
        """Returns a batch, or zeros if not all of it is valid, as the guard notes.

        Here NaN is split into states and what is known of them, which is `None` for a
        model that expects none.
        """
        sound = self.form.soundness(features, visible, weights)
        visible, *features, weights = self.guard.accept(
            sound.values(),
            visible,
            *([] if features is None else [features]),
            weights,
        )
        features, known = (features or [None])[0], None
        if self.gaps.has_gaps:
            known, visible = is_known(visible), filled(visible)
            weights = tf.where(tf.reduce_any(known, -1), weights, 0.0)
            features = features if self.conditional else self.gaps.features(known)
        return features, visible, known, weights

    def _step_inputs(self, data):
        """Returns a batch's features, visible states and weights, and those given."""
        x, y, sample_weight = unpack(data)
        features, visible = self.form.split(x, y)
        with tf.init_scope():
            if not self.built:
                self._build_from_batch(x, y)
            self._build_training()
        visible = tf.cast(visible, self.variable_dtype)
        visible = tf.ensure_shape(visible, (None, self.num_visible))
        if features is not None:
            features = tf.cast(features, self.variable_dtype)
            features = tf.ensure_shape(features, (None, *self._example_shape))
        if sample_weight is None:
            weights = tf.ones(tf.shape(visible)[0], self.variable_dtype)
        else:
            weights = tf.reshape(tf.cast(sample_weight, self.variable_dtype), [-1])
        return features, visible, weights, sample_weight

    def _step(
        self, features, visible, known, weights, root_seed, forward_pass=None, **seeds
    ):
        """Returns the `rules.Step` of a batch."""
        if forward_pass is None:
            potentials = self.potentials(features)
        else:
            potentials = forward_pass.potentials
        if self.visible.takes_means and not self.conditional:
            visible = drawn(self.visible, visible, random.fold_in(root_seed, _MEANS))
        completion = random.fold_in(root_seed, _COMPLETION)
        base = self._base_natural(potentials)
        visible = self.gaps.completed(potentials, visible, known, base, completion)
        states, natural, positive = self._positive_phase(
            potentials, visible, weights, completion
        )
        return rules.Step(
            potentials,
            states,
            weights,
            natural,
            positive,
            root_seed,
            features=features,
            inference=self.inference,
            learner=self.learner,
            known=known,
            forward_pass=forward_pass,
            **seeds,
        )

    def _base_natural(self, potentials):
        """Returns natural parameters of the visible units without coupling."""
        return potentials.visible.bias

    def _positive_phase(self, potentials, visible, weights, seed):
        """Returns states of the whole visible layer, given those that are data.

        Args:
            potentials: `Potentials`.
            visible: tensor (B, V), states of the units that are data.
            weights: tensor (B,), normalized over all replicas.
            seed: seed tensor (2,), for what is drawn.

        Returns:
            `(states, hidden_natural, moments)`: tensors, and `Moments`.
        """
        natural = potentials.hidden_natural(visible)
        moments = conditional_moments(potentials, visible, weights, natural)
        return visible, natural, moments

    def _scored(self, potentials, visible):
        """Returns what the loss is of: potentials, states, and how many are data."""
        return potentials, visible, self.num_visible

    def _of_biases(self):
        """Returns the `Potentials`; of a model with input without what x adds."""
        return self.potentials(dtype=self.variable_dtype)

    def _descend(self, gradients, centering):
        """Descends along gradients of the variables, see `Step.descend`."""
        self.guard.record_values(*gradients, first_bit=GRADIENT_BIT)
        scale = self.optimizer.scale_loss(1.0)
        if tf.is_tensor(scale) or scale != 1.0:
            gradients = [gradient * scale for gradient in gradients]
        variables = self.trainable_variables

        def apply(gradients):
            if centering is None:
                self.optimizer.apply(gradients, variables)
                stay_normalizable(self)
                return
            with tf.GradientTape(persistent=True) as tape:
                before = self._of_biases()
                biases = [before.visible.bias, before.hidden.bias]
            kernel = tf.identity(before.kernel)
            self.optimizer.apply(gradients, variables)
            stay_normalizable(self)
            change = self._of_biases().kernel - kernel
            moved = [*centering.shifts(change).values()]
            shifts = bias_changes(self, tape, biases, moved)
            shift = centering.kernel_shift(change)
            if shift is not None:
                shifts.append((self.kernel, shift))
            add([v for v, _ in shifts], [shift for _, shift in shifts])

        self.guard.if_sound(apply, gradients)

    def _record(self, visible, known, weights):
        """Records a batch's visible states, (B, V), with weights (B,)."""

    def _predicted(self, step, visible, given):
        """Returns the prediction for metrics: the rule's, or else the model's."""
        if self._reports_predictions and given is None:
            if step.known is not None:
                visible = step.visible
            return self._prediction(step.features, visible)
        return given

    def _results(self, step, visible, prediction, sample_weight):
        if not self._reports_predictions:
            return self.get_metrics_result()
        x = step.features if self.conditional else visible
        parts = visible, prediction, sample_weight
        if step.known is not None:
            parts = entries(visible, step.known, prediction, sample_weight)
        return self.compute_metrics(x, *parts)

    def test_step(self, data: Any) -> dict[str, tf.Tensor]:
        features, visible, weights, sample_weight = self._step_inputs(data)
        features, visible, known, weights = self._accepted(features, visible, weights)
        # A new seed for each batch, without changing the generator.
        count = tf.cast(tf.convert_to_tensor(self._loss_tracker.count), tf.float32)
        seed = of_replica(random.fold_in(0, tf.bitcast(count, tf.int32)))
        batch = features, visible, known, weights
        step = self._step(*batch, seed, loss_seed=seed)
        losses, prediction = self.rule.losses(step)
        prediction = self._predicted(step, visible, prediction)
        self._loss_tracker.update_state(losses, sample_weight=weights)
        return as_logs(self._results(step, visible, prediction, sample_weight))

    def predict_step(self, data: Any) -> tf.Tensor:
        x, _, _ = unpack(data)
        rows, called = tf.cast(x, self.variable_dtype), self.form.called
        bit = DATA_BIT + [*self.form.expectations].index(called.name)
        self.guard.accept([called.is_sound(rows)], rows, first_bit=bit)
        return self(x)

    # Evaluation and prediction

    def __call__(self, inputs, *args, **kwargs):
        """Returns the output for a batch, which may be sparse."""
        return super().__call__(self.form.called.dense(inputs), *args, **kwargs)

    def evaluate(
        self,
        x: Data | None = None,
        y: ArrayLike | None = None,
        batch_size: int | None = None,
        verbose: int | str = "auto",
        sample_weight: ArrayLike | None = None,
        **kwargs: Any,
    ) -> Any:
        """Returns the loss and metrics on data, as `keras.Model.evaluate` does."""
        self._assert_built("evaluate")
        if batch_size is not None:
            check_counts(batch_size=batch_size)
            batch_size = int(batch_size)
        if kwargs.get("_use_cached_eval_dataset"):
            pass  # in `fit`, which has checked it
        elif is_array(x):
            x, y, sample_weight = self.form.checked_arrays(x, y, sample_weight)
            x, y, sample_weight = as_keras_takes(x, y, sample_weight, batch_size)
        else:
            x = self.form.source(x, y)
        return super().evaluate(x, y, batch_size, verbose, sample_weight, **kwargs)

    def test_on_batch(
        self,
        x: ArrayLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        **kwargs: Any,
    ) -> Any:
        """Returns the loss of a batch, as `keras.Model.test_on_batch` does."""
        self._assert_compile_called("test_on_batch")
        batch = self.form.checked_arrays(x, y, sample_weight)
        return super().test_on_batch(*self.form.dense(*batch), **kwargs)

    def predict(
        self, x: Data, batch_size: int | None = None, *args: Any, **kwargs: Any
    ) -> np.ndarray:
        """Returns the output for data, as `keras.Model.predict` does."""
        self._assert_built("predict")
        check_prediction(self)
        if batch_size is not None:
            check_counts(batch_size=batch_size)
            batch_size = int(batch_size)
        x, _, _ = as_keras_takes(self.form.checked_calls(x), None, None, batch_size)
        return super().predict(x, batch_size, *args, **kwargs)

    def predict_on_batch(self, x: ArrayLike) -> np.ndarray:
        """Returns the output for a batch, as `keras.Model.predict_on_batch` does."""
        self._assert_built("predict_on_batch")
        check_prediction(self)
        x = as_values(x, self.form.called.fill)
        self.form.called.check(x)
        return super().predict_on_batch(self.form.called.dense(x))

    # Files

    def save_own_variables(self, store: Any) -> None:
        """Saves weights, random state and the rule's state under their names."""
        files.save_state(self, store)

    def load_own_variables(self, store: Any) -> None:
        """Restores what `save_own_variables` saved; all shapes are checked first."""
        files.load_state(self, store)

    def save(
        self,
        filepath: str | os.PathLike,
        overwrite: bool = True,
        zipped: bool | None = None,
        **kwargs: Any,
    ) -> None:
        """Saves the model as `keras.Model.save` does.

        The file is written under another name and then renamed: if writing fails, an
        existing file is not changed.
        """
        files.save(self, filepath, overwrite, zipped, **kwargs)

    def save_weights(
        self,
        filepath: str | os.PathLike,
        overwrite: bool = True,
        max_shard_size: float | None = None,
    ) -> None:
        """Saves all variables, as `keras.Model.save_weights`, written as by `save`.

        HDF5 keeps no checksum of them: a bit that has turned on a disk is not noticed.
        A `.keras` file is checked when it is loaded.
        """
        files.save_weights(self, filepath, overwrite, max_shard_size)

    def load_weights(
        self, filepath: str | os.PathLike, *args: Any, **kwargs: Any
    ) -> None:
        """Restores all variables, as `keras.Model.load_weights`, or none of them."""
        self._assert_built("load_weights")
        with files.unchanged_unless_loaded(self, filepath):
            keras.Model.load_weights(self, filepath, *args, **kwargs)

    def export(
        self,
        filepath: str | os.PathLike,
        format: str = "tf_saved_model",
        verbose: bool | None = None,
        **kwargs: Any,
    ) -> None:
        """Exports the model to a format that is loaded without keras_rbm.

        A SavedModel's endpoints take batches of any size and return dicts of tensors;
        see the guide "Deploy a model" for those of each model. `sample` with a seed
        returns the same as the model's own `sample` with that seed. `sample_stateful`
        draws again at each call, with the same series of draws after each loading.
        Written as by `save`.

        Args:
            filepath: str or path of a directory to write for a SavedModel, else of a
                file.
            format: `"tf_saved_model"` with all endpoints, or what `keras.Model.export`
                writes of the model as a layer (`"onnx"`, …).
            verbose: as in Keras.
            **kwargs: for the other formats, as in Keras; and of an RBM as a SavedModel
                `log_partition`, a `LogPartition` or number: then there is an endpoint
                `log_likelihood`, with the ends of the interval as `lower`, `upper`.

        Raises:
            ValueError: if the model has no variables yet.
        """
        self._assert_built("export")
        if format == "tf_saved_model":
            files.export_saved_model(self, filepath, verbose, **kwargs)
        else:
            keras.Model.export(self, filepath, format, verbose, **kwargs)

    def summary(
        self,
        line_length: int | None = None,
        positions: Sequence[float] | None = None,
        print_fn: Callable[[str], Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Prints the variables with their shapes, by `print_fn` if there is one."""
        (print_fn or print)(files.summary_of(self))
